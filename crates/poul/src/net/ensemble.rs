//! Networks of one shape trained side by side: fitting with early stopping, the mean of their outputs, and their
//! weights as named tensors.

use super::batch::{Network, RowSource};
use super::epochs::{Epoch, train};
use super::layout::Layout;
use super::optimizer::Adam;
use super::predict::predict;
use super::schedule::Schedule;
use super::tensor::{Tensor, Tensors};
use super::trainer::{Trainer, TrainerParams};
use crate::stored::damaged;
use crate::{Kind, Result, Run};

/// The members' weights.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    pub(crate) layout: Layout,
    pub(crate) weights: Vec<Vec<f32>>,
}

/// The loss of members with these weights on the rows to stop by.
pub(crate) type Judge<'a> = dyn Fn(&[&[f32]]) -> Result<f64> + 'a;
/// The weights that members start from, given those they would have otherwise.
pub(crate) type Start<'a> = dyn Fn(&[&[f32]]) -> Result<Vec<Vec<f32>>> + 'a;

/// What an ensemble is fitted to, and how.
pub(crate) struct Fit<'a> {
    pub(crate) x: &'a dyn RowSource,
    /// Rows to train on.
    pub(crate) rows: &'a [u32],
    pub(crate) loss: &'a dyn Network,
    /// What training is stopped by; nothing without rows that are held out.
    pub(crate) judge: Option<&'a Judge<'a>>,
    pub(crate) adam: Adam,
    pub(crate) n_members: usize,
    pub(crate) start: Option<&'a Start<'a>>,
    pub(crate) schedule: &'a Schedule,
    /// Which part of a training in several it is, from 0: each has streams of its own.
    pub(crate) part: u64,
    /// What the progress bar says.
    pub(crate) stage: &'a str,
}

/// A fitted ensemble and how training went.
pub(crate) struct Fitted {
    pub(crate) ensemble: Ensemble,
    pub(crate) history: Vec<Epoch>,
    pub(crate) best: usize,
}

impl Fit<'_> {
    pub(crate) fn run(self, layout: Layout, run: Run<'_>) -> Result<Fitted> {
        let stream = |name: &str| match self.part {
            0 => run.child(name),
            part => run.child(name).index(part),
        };
        let params = TrainerParams { n_members: self.n_members, ..TrainerParams::default() };
        let mut trainer = Trainer::new(layout.clone(), self.adam, params, stream("start").seed)?;
        if let Some(start) = self.start {
            let fresh: Vec<&[f32]> = (0..self.n_members).map(|member| trainer.weights(member)).collect();
            let weights = start(&fresh)?;
            trainer.start_from(&weights)?;
        }
        let mut validate = |trainer: &Trainer| {
            let weights: Vec<&[f32]> =
                (0..trainer.n_members()).map(|member| trainer.averaged_weights(member)).collect();
            self.judge.map(|judge| judge(&weights)).transpose()
        };
        run.progress.start(self.stage, "rows", Some(self.schedule.most_rows(self.rows.len())));
        let order = stream("order");
        let trained = train(&mut trainer, self.x, self.rows, self.loss, self.schedule, &mut validate, order);
        // Where training itself went wrong, in which network is worth knowing.
        let trained = trained.map_err(|error| match error.kind() {
            Kind::Other => error.at(self.stage),
            _ => error,
        })?;
        run.progress.finish();
        let ensemble = Ensemble { layout, weights: trained.weights };
        Ok(Fitted { ensemble, history: trained.history, best: trained.best })
    }
}

impl Ensemble {
    /// The members' mean output for every row.
    pub(crate) fn mean(&self, outputs: &dyn Network, x: &dyn RowSource, n_out: usize) -> Result<Vec<f32>> {
        let weights: Vec<&[f32]> = self.weights.iter().map(Vec::as_slice).collect();
        mean_outputs(&self.layout, &weights, outputs, x, n_out)
    }

    /// Every matrix of every member, named `<prefix>.<member>.<matrix>`.
    pub(crate) fn tensors(&self, prefix: &str) -> Vec<Tensor<'_>> {
        let members = self.weights.iter().enumerate();
        members
            .flat_map(|(member, weights)| {
                self.layout.segments().iter().map(move |segment| {
                    let shape = [segment.n_rows, segment.n_cols];
                    let name = format!("{prefix}.{member}.{}", segment.name);
                    Tensor::new(name, &shape, &weights[segment.range()])
                })
            })
            .collect()
    }

    /// Puts an ensemble together again from what [`tensors`](Self::tensors) gave.
    pub(crate) fn from_tensors(
        layout: Layout,
        n_members: usize,
        prefix: &str,
        tensors: &mut Tensors,
    ) -> Result<Self> {
        let mut weights = Vec::new();
        for member in 0..n_members {
            weights.push(tensors.take_weights(&layout, |segment| format!("{prefix}.{member}.{segment}"))?);
        }
        match weights.is_empty() {
            true => Err(damaged(format!("`{prefix}` has no members"))),
            false => Ok(Self { layout, weights }),
        }
    }
}

/// The mean output of members with these weights for every row.
pub(crate) fn mean_outputs(
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
