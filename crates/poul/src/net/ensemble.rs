//! Networks of one shape trained side by side: fitting with early stopping, the mean of their outputs, and their
//! weights as named tensors.

use std::borrow::Cow;

use crate::net::{
    AdamParams, Epoch, Layout, Network, RowSource, Schedule, Trainer, TrainerParams, predict, train,
};
use crate::{Error, Kind, Progress, Result, Seed};

use super::rows::SomeRows;

/// A matrix of weights as a model file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// Its name, such as `m.0.1.y0.0.weight`: nuisance, fold, member, matrix.
    pub name: String,
    /// Rows and columns.
    pub shape: [usize; 2],
    /// The values, row by row.
    pub values: Cow<'a, [f32]>,
}

/// Looks a stored tensor up by name: its shape and values.
pub type FindTensor<'f> = dyn Fn(&str) -> Option<(Vec<usize>, Vec<f32>)> + 'f;

/// The members' weights.
#[derive(Clone, Debug)]
pub(super) struct Ensemble {
    pub(super) layout: Layout,
    pub(super) weights: Vec<Vec<f32>>,
}

/// What an ensemble is fitted to, and how.
pub(super) struct Fit<'a> {
    pub(super) x: &'a dyn RowSource,
    /// Rows to train on.
    pub(super) rows: &'a [u32],
    /// Rows to stop by.
    pub(super) held: &'a [u32],
    pub(super) loss: &'a dyn Network,
    pub(super) outputs: &'a dyn Network,
    pub(super) n_out: usize,
    /// The loss of outputs for the held rows, in their order.
    pub(super) held_loss: &'a dyn Fn(&[f32]) -> f64,
    pub(super) adam: AdamParams,
    pub(super) n_members: usize,
    pub(super) schedule: &'a Schedule,
    /// What the progress bar says.
    pub(super) stage: String,
}

/// A fitted ensemble and how training went.
pub(super) struct Fitted {
    pub(super) ensemble: Ensemble,
    pub(super) history: Vec<Epoch>,
    pub(super) best: usize,
}

impl Fit<'_> {
    pub(super) fn run(self, layout: Layout, seed: Seed, progress: &dyn Progress) -> Result<Fitted> {
        let params = TrainerParams { n_members: self.n_members, ..TrainerParams::default() };
        let mut trainer = Trainer::new(layout.clone(), self.adam.check()?, params, seed.child("start"))?;
        let held = SomeRows { x: self.x, rows: self.held };
        let mut validate = |trainer: &Trainer| {
            if self.held.is_empty() {
                return Ok(None);
            }
            let weights: Vec<&[f32]> =
                (0..trainer.n_members()).map(|member| trainer.averaged_weights(member)).collect();
            let outputs = mean_outputs(trainer.layout(), &weights, self.outputs, &held, self.n_out)?;
            Ok(Some((self.held_loss)(&outputs)))
        };
        progress.start(&self.stage, "rows", Some(self.schedule.most_rows(self.rows.len())));
        let order = seed.child("order");
        let trained =
            train(&mut trainer, self.x, self.rows, self.loss, self.schedule, &mut validate, order, progress);
        // Where training itself went wrong, in which network is worth knowing.
        let trained = trained.map_err(|error| match error.kind() {
            Kind::Other => error.at(self.stage.as_str()),
            _ => error,
        })?;
        progress.finish();
        let ensemble = Ensemble { layout, weights: trained.weights };
        Ok(Fitted { ensemble, history: trained.history, best: trained.best })
    }
}

impl Ensemble {
    /// The members' mean output for every row.
    pub(super) fn mean(&self, outputs: &dyn Network, x: &dyn RowSource, n_out: usize) -> Result<Vec<f32>> {
        let weights: Vec<&[f32]> = self.weights.iter().map(Vec::as_slice).collect();
        mean_outputs(&self.layout, &weights, outputs, x, n_out)
    }

    /// Every matrix of every member, named `<prefix>.<member>.<matrix>`.
    pub(super) fn tensors(&self, prefix: &str) -> Vec<Tensor<'_>> {
        let members = self.weights.iter().enumerate();
        members
            .flat_map(|(member, weights)| {
                self.layout.segments().iter().map(move |segment| Tensor {
                    name: format!("{prefix}.{member}.{}", segment.name),
                    shape: [segment.n_rows, segment.n_cols],
                    values: Cow::Borrowed(&weights[segment.range()]),
                })
            })
            .collect()
    }

    /// Puts an ensemble together again from the tensors of [`tensors`](Self::tensors).
    pub(super) fn from_parts(
        layout: Layout,
        n_members: usize,
        prefix: &str,
        find: &FindTensor<'_>,
    ) -> Result<Self> {
        let mut all = Vec::new();
        for member in 0..n_members {
            // Found first: a manifest may promise more than there is memory for.
            let mut found = Vec::with_capacity(layout.segments().len());
            for segment in layout.segments() {
                let name = format!("{prefix}.{member}.{}", segment.name);
                let Some((shape, values)) = find(&name) else {
                    return Err(damaged(format!("the tensor `{name}` is missing")));
                };
                let expected = [segment.n_rows, segment.n_cols];
                if shape != expected || values.len() != segment.range().len() {
                    let what = format!("the tensor `{name}` has shape {shape:?} instead of {expected:?}");
                    return Err(damaged(what));
                }
                if values.iter().any(|value| !value.is_finite()) {
                    return Err(damaged(format!("the tensor `{name}` holds a number that is not finite")));
                }
                found.push(values);
            }
            let mut weights = vec![0.0; layout.n_values()];
            for (segment, values) in layout.segments().iter().zip(found) {
                weights[segment.range()].copy_from_slice(&values);
            }
            all.push(weights);
        }
        if all.is_empty() {
            return Err(damaged(format!("`{prefix}` has no members")));
        }
        Ok(Self { layout, weights: all })
    }
}

/// A stored model that cannot be put together.
pub(super) fn damaged(what: String) -> Error {
    Error::input(what).hint("the model is damaged or was changed by hand: fit it again")
}

fn mean_outputs(
    layout: &Layout,
    weights: &[&[f32]],
    outputs: &dyn Network,
    x: &dyn RowSource,
    n_out: usize,
) -> Result<Vec<f32>> {
    let mut mean = vec![0.0; x.n_rows() * n_out];
    for (member, weights) in weights.iter().enumerate() {
        let outputs = predict(layout, weights, outputs, x, n_out, member)?;
        mean.iter_mut().zip(outputs).for_each(|(mean, value)| *mean += value);
    }
    let n_members = weights.len().max(1) as f32;
    mean.iter_mut().for_each(|mean| *mean /= n_members);
    Ok(mean)
}
