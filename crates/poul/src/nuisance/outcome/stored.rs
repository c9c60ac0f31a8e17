//! The outcome models of all folds: predictions for new rows, and their stored form.

use serde::{Deserialize, Serialize};

use crate::net::{Ensemble, Epoch, RowSource, Tensor, Tensors};
use crate::nuisance::boosted::{Boosted, BoostedManifest};
use crate::stored::damaged;
use crate::{Error, Result};

use super::linear::Lines;
use super::model::{OutcomeModel, Scale};
use super::network::Shape;
use super::params::OutcomeKind;

/// The models of all folds.
#[derive(Clone, Debug)]
pub struct OutcomeModels {
    pub(super) n_outcomes: usize,
    /// The outcomes that have a model; the others are given by the user.
    pub(super) fitted: Vec<usize>,
    pub(super) shape: Shape,
    /// By fold; none where outcomes are predicted otherwise.
    pub(super) networks: Vec<OutcomeModel>,
    pub(super) boosted: Option<Boosted>,
    pub(super) lines: Option<Lines>,
    /// How much each counts where there may be several.
    pub(super) blend: Option<Blend>,
}

/// The weights of models, by fitted outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Blend {
    pub(super) ridge: Vec<f32>,
    pub(super) network: Vec<f32>,
    pub(super) boosted: Vec<f32>,
}

/// Everything of [`OutcomeModels`] but the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeManifest {
    n_outcomes: usize,
    fitted: Vec<usize>,
    shape: Shape,
    folds: Vec<FoldManifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boosted: Option<BoostedManifest>,
    /// Folds of the ridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ridge: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blend: Option<Blend>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FoldManifest {
    n_members: usize,
    scales: Vec<Scale>,
    history: Vec<Epoch>,
    best: usize,
}

impl OutcomeModels {
    /// Of these outcomes, without any model yet.
    pub(super) fn new(n_outcomes: usize, fitted: &[usize], shape: Shape) -> Self {
        let fitted = fitted.to_vec();
        Self { n_outcomes, fitted, shape, networks: Vec::new(), boosted: None, lines: None, blend: None }
    }

    pub(super) fn of_kind(mut self, kind: OutcomeKind) -> Self {
        self.shape.kind = kind;
        self
    }

    /// m(x) of new rows: the mean of the folds' models, row-major with one column per outcome.
    ///
    /// `given` has the user's own predictions for these rows, for every outcome that was given in training.
    pub fn predict(&self, x: &dyn RowSource, given: &[(usize, &[f32])]) -> Result<Vec<f32>> {
        let (n_rows, n_fitted) = (x.n_rows(), self.fitted.len());
        if x.n_cols() != self.shape.n_features && n_fitted > 0 {
            let (found, expected) = (x.n_cols(), self.shape.n_features);
            return Err(Error::other(format!("{found} features where the outcome model has {expected}")));
        }
        let mut predicted = vec![0.0; n_rows * self.n_outcomes];
        for outcome in (0..self.n_outcomes).filter(|outcome| !self.fitted.contains(outcome)) {
            let values = given.iter().find(|(given, values)| *given == outcome && values.len() == n_rows);
            let Some((_, values)) = values else {
                let error = Error::input(format!("there is no prediction of outcome {}", outcome + 1));
                return Err(
                    error.hint("its predictions were a column of the training data: give it here too")
                );
            };
            let column = predicted.iter_mut().skip(outcome).step_by(self.n_outcomes);
            column.zip(*values).for_each(|(predicted, value)| *predicted = *value);
        }
        let mut add = |values: &[f32], share: f32, weights: Option<&[f32]>| {
            for (values, predicted) in values.chunks(n_fitted).zip(predicted.chunks_mut(self.n_outcomes)) {
                for (place, (value, outcome)) in values.iter().zip(&self.fitted).enumerate() {
                    predicted[*outcome] += share * weights.map_or(1.0, |weights| weights[place]) * value;
                }
            }
        };
        let blend = self.blend.as_ref();
        let share = 1.0 / self.networks.len().max(1) as f32;
        for model in &self.networks {
            add(&model.predict(x)?, share, blend.map(|own| own.network.as_slice()));
        }
        if let Some(boosted) = &self.boosted {
            let folds: Vec<usize> = (0..boosted.folds.len()).collect();
            add(&boosted.predict(&folds, x)?, 1.0, blend.map(|own| own.boosted.as_slice()));
        }
        if let Some(lines) = &self.lines {
            let folds: Vec<usize> = (0..lines.n_folds()).collect();
            add(&lines.predict(&folds, x)?, 1.0, blend.map(|own| own.ridge.as_slice()));
        }
        Ok(predicted)
    }

    /// The networks of each fold; none where every outcome was given, or is predicted otherwise.
    pub fn folds(&self) -> &[OutcomeModel] {
        &self.networks
    }

    /// Everything but the weights.
    pub fn manifest(&self) -> OutcomeManifest {
        let fold = |model: &OutcomeModel| FoldManifest {
            n_members: model.ensemble.weights.len(),
            scales: model.scales.clone(),
            history: model.history.clone(),
            best: model.best,
        };
        OutcomeManifest {
            n_outcomes: self.n_outcomes,
            fitted: self.fitted.clone(),
            shape: self.shape.clone(),
            folds: self.networks.iter().map(fold).collect(),
            boosted: self.boosted.as_ref().map(Boosted::manifest),
            ridge: self.lines.as_ref().map(Lines::n_folds),
            blend: self.blend.clone(),
        }
    }

    /// The weights, named `m.<fold>.<member>.<matrix>`; those of boosted trees begin with `m.boosted`, those of ridges
    /// with `m.ridge`.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let models = self.networks.iter().enumerate();
        let networks = models.flat_map(|(fold, model)| model.ensemble.tensors(&format!("m.{fold}")));
        let boosted = self.boosted.iter().flat_map(|own| own.tensors("m.boosted"));
        let lines = self.lines.iter().flat_map(|own| own.tensors("m.ridge"));
        networks.chain(boosted).chain(lines).collect()
    }

    /// The models that [`manifest`](Self::manifest) and [`tensors`](Self::tensors) came from.
    pub fn from_parts(manifest: &OutcomeManifest, tensors: &mut Tensors) -> Result<Self> {
        let OutcomeManifest { n_outcomes, fitted, shape, folds, boosted, ridge, blend } = manifest;
        let is_ordered = fitted.windows(2).all(|pair| pair[0] < pair[1]);
        let has_model = !folds.is_empty() || boosted.is_some() || ridge.is_some();
        let of_outcomes = |blend: &Blend| {
            [&blend.ridge, &blend.network, &blend.boosted].iter().all(|weights| weights.len() == fitted.len())
        };
        let is_whole = is_ordered
            && fitted.len() == shape.losses.len()
            && fitted.iter().all(|outcome| outcome < n_outcomes)
            && fitted.is_empty() != has_model
            && blend.as_ref().is_none_or(of_outcomes);
        if !is_whole {
            return Err(damaged("the outcome model's parts do not fit together"));
        }
        let mut models = Self::new(*n_outcomes, fitted, shape.clone());
        models.blend = blend.clone();
        for (fold, part) in folds.iter().enumerate() {
            if part.scales.len() != fitted.len() {
                return Err(damaged(format!("the outcome model of fold {fold} lacks a scale")));
            }
            let (net, layout) = shape.build()?;
            let ensemble = Ensemble::from_tensors(layout, part.n_members, &format!("m.{fold}"), tensors)?;
            models.networks.push(OutcomeModel {
                net,
                ensemble,
                scales: part.scales.clone(),
                history: part.history.clone(),
                best: part.best,
            });
        }
        if let Some(boosted) = boosted {
            let boosted = Boosted::from_parts(boosted, &vec![1; fitted.len()], "m.boosted", tensors)?;
            if boosted.cuts.n_features() != shape.n_features {
                return Err(damaged("the boosted trees are of other features"));
            }
            models.boosted = Some(boosted);
        }
        if let Some(n_folds) = ridge {
            let n_features = shape.n_features;
            models.lines = Some(Lines::from_parts(*n_folds, &shape.losses, n_features, "m.ridge", tensors)?);
        }
        Ok(models)
    }
}
