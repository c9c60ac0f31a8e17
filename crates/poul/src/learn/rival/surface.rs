//! Rivals that are networks of levels under treatments, μ(x, t): what one says of itself, and the rows it learns from.
//!
//! A rival says which weights it has and what μ is; the rest, τ(x; t1, t0) = μ(x, t1) − μ(x, t0), is the same for all.
//! Levels count up to a function of x: what learns effects alone has the level 0 under control.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::first_stage::{ArmPropensity, Needs};
use super::fit::standard;
use super::fitted::Fitted;
use super::params::TrainingParams;
use super::treatments::{Chosen, Tier, Treatments};
use crate::effect::{PolicyShift, ValidTrainingData};
use crate::net::{Batch, LayoutBuilder, RowSource, Tape, Var};
use crate::nuisance::Folds;
use crate::policy::PolicySet;
use crate::{Result, Run};

/// A network of outcomes under treatments.
pub(super) trait Surface: Sized + Send + Sync {
    /// The learner's name.
    const NAME: &'static str;
    /// Whether it has a first stage, and `training.folds`.
    const HAS_FIRST_STAGE: bool = false;
    /// `[model]` of its settings.
    type Model: Serialize + DeserializeOwned + Default + Clone + Send + Sync;

    /// Checks `[model]`.
    fn check(model: &Self::Model) -> Result<()>;

    /// What it sees of a policy.
    fn tier(model: &Self::Model) -> Tier;

    /// Networks trained side by side and averaged.
    fn members(model: &Self::Model) -> usize;

    /// What its first stage must give.
    fn needs(model: &Self::Model) -> Needs<'_> {
        let _ = model;
        Needs::default()
    }

    /// Settles what depends on the data.
    fn adapt(model: &mut Self::Model, data: &ValidTrainingData<'_>) -> Result<()> {
        let _ = (model, data);
        Ok(())
    }

    /// Whether what was settled by the data fits the treatments, as it does unless a file was damaged.
    fn fits(model: &Self::Model, treatments: &Treatments) -> bool {
        let _ = (model, treatments);
        true
    }

    /// An outcome in the units that it is learned in, and what a unit is: by default standard units.
    fn units(model: &Self::Model, values: &[f64], weight: Option<&[f64]>) -> (Vec<f32>, f64) {
        let _ = model;
        standard(values, weight)
    }

    /// Declares the weights.
    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &Self::Model) -> Self;

    /// What all rows share; `treatments` are the arms in training, and those asked for in scoring.
    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let _ = (tape, treatments);
    }

    /// μ of each row under its own treatment, an index into the treatments of [`shared`](Self::shared).
    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let levels = self.all(tape, treatments);
        let chosen = one_hot(tape, own, treatments.arm.len());
        tape.row_dot(levels, chosen)
    }

    /// μ of each row under every treatment, one column each.
    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var;

    /// How many numbers of a row have a [`goal`](Self::goal).
    fn n_goals(&self) -> usize {
        1
    }

    /// What training brings close to its goal, and validation judges: by default μ under the row's own treatment.
    fn fitted(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        self.factual(tape, rows.treatments, &own)
    }

    /// What the [`fitted`](Self::fitted) numbers of a row should be, and how much each counts: by default the outcome.
    fn goal(&self, rows: &Rows<'_>, row: usize, goal: &mut [f32], weight: &mut [f32]) {
        goal[0] = rows.outcome[row];
        weight[0] = 1.0;
    }

    /// What must be added to levels once an outcome is fitted, so that mean effects over the training rows are those
    /// that the rival vouches for; by default nothing.
    fn shift(fit: &Fitted<Self>, outcome: &FittedOutcome<'_>) -> Result<Option<PolicyShift>> {
        let _ = (fit, outcome);
        Ok(None)
    }

    /// The loss of a shard: by default the squared distance from the goals.
    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let fitted = self.fitted(tape, rows, batch);
        if self.n_goals() == 1 {
            return rows.squared_loss(tape, fitted, batch);
        }
        goal_loss(self, tape, fitted, rows, batch)
    }
}

/// An outcome whose networks were fitted, and how.
pub(super) struct FittedOutcome<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) policies: &'a PolicySet,
    pub(super) x: &'a dyn RowSource,
    /// Of each member.
    pub(super) weights: &'a [Vec<f32>],
    /// The folds of the first stage.
    pub(super) folds: &'a Folds,
    /// Parts of which the first is held out for early stopping.
    pub(super) parts: Option<&'a Folds>,
    pub(super) training: &'a TrainingParams,
    /// The outcome's part of the work, under whose stream networks of its own may be trained.
    pub(super) run: Run<'a>,
    /// What progress calls the outcome.
    pub(super) stage: &'a str,
}

/// The weighted mean squared distance of fitted numbers from several goals.
pub(super) fn goal_loss<S: Surface>(
    surface: &S,
    tape: &mut Tape<'_>,
    fitted: Var,
    rows: &Rows<'_>,
    batch: &Batch<'_>,
) -> Var {
    let n_goals = surface.n_goals();
    let mut goals = vec![0.0; batch.rows.len() * n_goals];
    let mut roots = vec![0.0; goals.len()];
    let places = goals.chunks_mut(n_goals).zip(roots.chunks_mut(n_goals));
    for (row, (goals, roots)) in batch.rows.iter().zip(places) {
        surface.goal(rows, *row as usize, goals, roots);
        for (goal, root) in goals.iter_mut().zip(roots) {
            *root = root.sqrt();
            *goal *= *root;
        }
    }
    let goals = tape.constant(batch.rows.len(), n_goals, &goals);
    let roots = tape.constant(batch.rows.len(), n_goals, &roots);
    let fitted = tape.mul(fitted, roots);
    let weights = rows.weights(tape, batch);
    tape.squared_loss(fitted, goals, Some(weights), rows.scale(batch))
}

/// A row for each label, 1 in its column.
pub(super) fn one_hot(tape: &mut Tape<'_>, labels: &[u32], n_cols: usize) -> Var {
    let mut values = vec![0.0; labels.len() * n_cols];
    labels.iter().enumerate().for_each(|(row, label)| values[row * n_cols + *label as usize] = 1.0);
    tape.constant(labels.len(), n_cols, &values)
}

/// Everything that decides which weights a network has.
pub(super) struct Shape<'a> {
    pub(super) n_features: usize,
    pub(super) treatments: &'a Treatments,
}

/// The rows that one outcome is learned from.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The arms.
    pub(super) treatments: &'a Chosen,
    /// The arm of each row.
    pub(super) arm: &'a [u32],
    /// The outcome in standard units; less m(x), where the first stage gives it.
    pub(super) outcome: &'a [f32],
    pub(super) weight: Option<&'a [f32]>,
    /// Of each arm, what makes all arms weigh the same: 1 / (arms · its share).
    pub(super) balance: &'a [f32],
    /// μ of each row under every arm, out of fold, rows × arms; empty where the first stage does not give it.
    pub(super) levels: &'a [f32],
    /// π of every arm; empty where the first stage does not give it.
    pub(super) propensity: &'a ArmPropensity,
}

impl Rows<'_> {
    /// The weighted mean squared error of predictions, one each row.
    pub(super) fn squared_loss(&self, tape: &mut Tape<'_>, prediction: Var, batch: &Batch<'_>) -> Var {
        let target = tape.column(batch.pick(self.outcome));
        match self.weight {
            None => tape.squared_loss(prediction, target, None, batch.scale()),
            Some(weight) => {
                let weights = tape.column(batch.pick(weight));
                tape.squared_loss(prediction, target, Some(weights), batch.weighted_scale(weight))
            }
        }
    }

    /// The same where every arm counts as much as any other: w = t/(2u) + (1 − t)/(2(1 − u)) for two arms.
    pub(super) fn balanced_loss(&self, tape: &mut Tape<'_>, prediction: Var, batch: &Batch<'_>) -> Var {
        let target = tape.column(batch.pick(self.outcome));
        let weights = self.balanced_weights(tape, batch);
        tape.squared_loss(prediction, target, Some(weights), self.scale(batch))
    }

    /// Weight times balance of each row, as a column.
    pub(super) fn balanced_weights(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let weight = |row: u32| self.weight.map_or(1.0, |weight| weight[row as usize]);
        let balance = |row: u32| self.balance[self.arm[row as usize] as usize];
        tape.column(batch.rows.iter().map(|row| weight(*row) * balance(*row)))
    }

    /// Sample weights as a column; 1 where there are none.
    pub(super) fn weights(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        tape.column(batch.rows.iter().map(|row| self.weight.map_or(1.0, |weight| weight[*row as usize])))
    }

    /// What makes weighted sums over the shards of a batch a mean.
    pub(super) fn scale(&self, batch: &Batch<'_>) -> f32 {
        self.weight.map_or_else(|| batch.scale(), |weight| batch.weighted_scale(weight))
    }

    /// The share of an arm.
    pub(super) fn share(&self, arm: usize) -> f32 {
        1.0 / (self.balance[arm] * self.balance.len() as f32)
    }

    /// The weighted mean squared distance of fitted numbers from their goals, for some rows.
    pub(super) fn held_loss<S: Surface>(&self, surface: &S, rows: &[u32], fitted: &[f32]) -> f64 {
        let n_goals = surface.n_goals();
        let (mut goals, mut counts) = (vec![0.0; n_goals], vec![0.0; n_goals]);
        let (mut total, mut mass) = (0.0, 0.0);
        for (row, fitted) in rows.iter().zip(fitted.chunks(n_goals)) {
            let row = *row as usize;
            let weight = self.weight.map_or(1.0, |weight| f64::from(weight[row]));
            mass += weight;
            surface.goal(self, row, &mut goals, &mut counts);
            for ((goal, count), fitted) in goals.iter().zip(&counts).zip(fitted) {
                total += weight * f64::from(*count) * (f64::from(*goal) - f64::from(*fitted)).powi(2);
            }
        }
        total / mass.max(f64::MIN_POSITIVE)
    }
}
