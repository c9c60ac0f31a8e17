//! The outcome model of one fold: fitting, and predictions in the outcomes' own units.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::net::{Ensemble, Epoch, Fit, RowSource, mean_outputs};
use crate::nuisance::rows::SomeRows;
use crate::{Error, Result, Run};

use super::network::{OutcomeNet, PolicyTarget, Shape, Training};
use super::params::{OutcomeLoss, OutcomeParams};

/// The networks that were fitted without the rows of one fold.
#[derive(Clone, Debug)]
pub struct OutcomeModel {
    pub(super) net: OutcomeNet,
    pub(super) ensemble: Ensemble,
    pub(super) scales: Vec<Scale>,
    pub(super) history: Vec<Epoch>,
    pub(super) best: usize,
}

/// Where an outcome lies: predictions are mean + deviation · output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scale {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// All rows that some fold trains on: the experiment's, then the extra ones.
pub(super) struct Pool<'a> {
    pub(super) x: &'a dyn RowSource,
    /// Fitted outcomes in their own units, row-major.
    pub(super) outcomes: Vec<f32>,
    pub(super) weight: Option<Cow<'a, [f32]>>,
    pub(super) policy: Option<PolicyTarget>,
}

impl Pool<'_> {
    pub(super) fn weight_of(&self, row: u32) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| f64::from(weight[row as usize]))
    }

    /// Mean and deviation of an outcome over some rows.
    pub(super) fn scale(&self, rows: &[u32], outcome: usize, loss: OutcomeLoss, n_outcomes: usize) -> Scale {
        if loss == OutcomeLoss::Logistic {
            return Scale { mean: 0.0, deviation: 1.0 };
        }
        let value = |row: u32| f64::from(self.outcomes[row as usize * n_outcomes + outcome]);
        let mass: f64 = rows.iter().map(|row| self.weight_of(*row)).sum();
        let mean = rows.iter().map(|row| self.weight_of(*row) * value(*row)).sum::<f64>() / mass;
        let squares = rows.iter().map(|row| self.weight_of(*row) * (value(*row) - mean).powi(2));
        let deviation = (squares.sum::<f64>() / mass).sqrt();
        // A constant outcome is predicted by its mean.
        Scale { mean, deviation: if deviation > 0.0 { deviation } else { 1.0 } }
    }

    /// The outcomes of one loss in standard units, row-major, and how many there are.
    fn targets(&self, shape: &Shape, scales: &[Scale], loss: OutcomeLoss) -> (Vec<f32>, usize) {
        let columns: Vec<usize> =
            (0..shape.losses.len()).filter(|outcome| shape.losses[*outcome] == loss).collect();
        if columns.is_empty() {
            return (Vec::new(), 0);
        }
        let standard = |outcome: usize, value: f32| {
            ((f64::from(value) - scales[outcome].mean) / scales[outcome].deviation) as f32
        };
        let rows = self.outcomes.chunks(shape.losses.len());
        let targets =
            rows.flat_map(|row| columns.iter().map(|outcome| standard(*outcome, row[*outcome]))).collect();
        (targets, columns.len())
    }
}

impl OutcomeModel {
    /// Fits on `rows` of the pool and stops by `held`.
    pub(super) fn fit(
        pool: &Pool<'_>,
        shape: &Shape,
        (rows, held): (&[u32], &[u32]),
        params: &OutcomeParams,
        stage: &str,
        run: Run<'_>,
    ) -> Result<Self> {
        let n_outcomes = shape.losses.len();
        if rows.iter().all(|row| pool.weight_of(*row) <= 0.0) {
            let error = Error::input("all rows that the outcome model would be fitted on have weight 0");
            return Err(error.hint("fewer folds, or other weights"));
        }
        let scale = |outcome: usize| pool.scale(rows, outcome, shape.losses[outcome], n_outcomes);
        let scales: Vec<Scale> = (0..n_outcomes).map(scale).collect();
        let squared = pool.targets(shape, &scales, OutcomeLoss::Squared);
        let logistic = pool.targets(shape, &scales, OutcomeLoss::Logistic);
        let (net, layout) = shape.build()?;
        let training = Training {
            net: &net,
            squared: (&squared.0, squared.1),
            logistic: (&logistic.0, logistic.1),
            weight: pool.weight.as_deref(),
            policy: pool.policy.as_ref(),
        };
        let some = SomeRows { x: pool.x, rows: held };
        let judge = |weights: &[&[f32]]| {
            let outputs = mean_outputs(&layout, weights, &net, &some, n_outcomes)?;
            Ok(held_loss(pool, shape, &scales, held, &outputs))
        };
        let is_weighty = held.iter().any(|row| pool.weight_of(*row) > 0.0);
        let fit = Fit {
            x: pool.x,
            rows,
            loss: &training,
            judge: is_weighty.then_some(&judge),
            adam: params.adam().check()?,
            n_members: params.members,
            start: None,
            schedule: &params.schedule,
            part: 0,
            stage,
        };
        let fitted = fit.run(layout.clone(), run)?;
        Ok(Self { net, ensemble: fitted.ensemble, scales, history: fitted.history, best: fitted.best })
    }

    /// Predictions in the outcomes' units, row-major with one column per fitted outcome.
    pub fn predict(&self, x: &dyn RowSource) -> Result<Vec<f32>> {
        let mut outputs = self.ensemble.mean(&self.net, x, self.scales.len())?;
        for row in outputs.chunks_mut(self.scales.len()) {
            for (value, scale) in row.iter_mut().zip(&self.scales) {
                *value = (scale.mean + scale.deviation * f64::from(*value)) as f32;
            }
        }
        Ok(outputs)
    }

    /// How training went, epoch by epoch.
    pub(crate) fn history(&self) -> &[Epoch] {
        &self.history
    }

    /// The epoch whose weights were kept, from 0.
    pub(crate) fn best_epoch(&self) -> usize {
        self.best
    }
}

/// The loss of predictions for held-out rows, in standard units, summed over outcomes.
fn held_loss(pool: &Pool<'_>, shape: &Shape, scales: &[Scale], rows: &[u32], outputs: &[f32]) -> f64 {
    let n_outcomes = shape.losses.len();
    let (mut total, mut mass) = (0.0, 0.0);
    for (outputs, row) in outputs.chunks(n_outcomes).zip(rows) {
        let weight = pool.weight_of(*row);
        mass += weight;
        for (outcome, output) in outputs.iter().enumerate() {
            let value = f64::from(pool.outcomes[*row as usize * n_outcomes + outcome]);
            let output = f64::from(*output);
            total += weight
                * match shape.losses[outcome] {
                    OutcomeLoss::Squared => {
                        let scale = scales[outcome];
                        ((value - scale.mean) / scale.deviation - output).powi(2)
                    }
                    OutcomeLoss::Logistic => {
                        let p = output.clamp(1e-7, 1.0 - 1e-7);
                        -(value * p.ln() + (1.0 - value) * (1.0 - p).ln())
                    }
                };
        }
    }
    total / mass
}
