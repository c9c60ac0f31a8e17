//! The outcome models of all folds: predictions for new rows, and their stored form.

use serde::{Deserialize, Serialize};

use crate::net::{Epoch, RowSource};
use crate::nuisance::ensemble::{Ensemble, FindTensor, Tensor, damaged};
use crate::{Error, Result};

use super::model::{OutcomeModel, Scale};
use super::network::Shape;

/// The models of all folds.
#[derive(Clone, Debug)]
pub struct OutcomeModels {
    pub(super) n_outcomes: usize,
    /// The outcomes that have a model; the others are given by the user.
    pub(super) fitted: Vec<usize>,
    pub(super) shape: Shape,
    pub(super) models: Vec<OutcomeModel>,
}

/// Everything of [`OutcomeModels`] but the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeManifest {
    n_outcomes: usize,
    fitted: Vec<usize>,
    shape: Shape,
    folds: Vec<FoldManifest>,
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
        let share = 1.0 / self.models.len().max(1) as f32;
        for model in &self.models {
            let values = model.predict(x)?;
            for (values, predicted) in values.chunks(n_fitted).zip(predicted.chunks_mut(self.n_outcomes)) {
                for (value, outcome) in values.iter().zip(&self.fitted) {
                    predicted[*outcome] += share * value;
                }
            }
        }
        Ok(predicted)
    }

    /// The model of each fold; none where every outcome was given.
    pub fn folds(&self) -> &[OutcomeModel] {
        &self.models
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
            folds: self.models.iter().map(fold).collect(),
        }
    }

    /// The weights, named `m.<fold>.<member>.<matrix>`.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let models = self.models.iter().enumerate();
        models.flat_map(|(fold, model)| model.ensemble.tensors(&format!("m.{fold}"))).collect()
    }

    /// The models that [`manifest`](Self::manifest) and [`tensors`](Self::tensors) came from.
    pub fn from_parts(manifest: &OutcomeManifest, find: &FindTensor<'_>) -> Result<Self> {
        let OutcomeManifest { n_outcomes, fitted, shape, folds } = manifest;
        let is_ordered = fitted.windows(2).all(|pair| pair[0] < pair[1]);
        let is_whole = is_ordered
            && fitted.len() == shape.losses.len()
            && fitted.iter().all(|outcome| outcome < n_outcomes)
            && fitted.is_empty() == folds.is_empty();
        if !is_whole {
            return Err(damaged("the outcome model's parts do not fit together".to_owned()));
        }
        let mut models = Vec::with_capacity(folds.len());
        for (fold, part) in folds.iter().enumerate() {
            if part.scales.len() != fitted.len() {
                return Err(damaged(format!("the outcome model of fold {fold} lacks a scale")));
            }
            let (net, layout) = shape.build()?;
            let ensemble = Ensemble::from_parts(layout, part.n_members, &format!("m.{fold}"), find)?;
            models.push(OutcomeModel {
                net,
                ensemble,
                scales: part.scales.clone(),
                history: part.history.clone(),
                best: part.best,
            });
        }
        Ok(Self { n_outcomes: *n_outcomes, fitted: fitted.clone(), shape: shape.clone(), models })
    }
}
