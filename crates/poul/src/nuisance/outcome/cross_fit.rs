//! Cross-fitting of m: each row is predicted by a model that was fitted without its fold.

use std::borrow::Cow;
use std::sync::Arc;

use crate::net::RowSource;
use crate::nuisance::rows::StackedRows;
use crate::nuisance::{Folds, NuisanceChoice};
use crate::{Result, Run};

use super::auto::fit_auto;
use super::boosted::fit_boosted;
use super::model::Pool;
use super::networks::{fit_networks, policy_target};
use super::params::{OutcomeKind, OutcomeLoss, OutcomeParams, ValidOutcomeParams};
use super::problem::OutcomeProblem;
use super::remembered::digest;
use super::stored::OutcomeModels;

/// m of every row, out of fold, and the models.
#[derive(Clone, Debug)]
pub struct OutcomeFit {
    /// m̂(x) in the outcomes' units, row-major with one column per outcome; the user's own where given.
    pub predicted: Vec<f32>,
    /// Share of each outcome's variance that `predicted` explains; out of fold it may be negative.
    pub r2: Vec<f64>,
    /// What [`OutcomeKind::Auto`] chose for each outcome, none where it is given by the user; empty for other kinds.
    pub choices: Vec<Option<NuisanceChoice>>,
    /// The models, one per fold.
    pub models: OutcomeModels,
}

/// What one kind of model comes to: predictions of the fitted outcomes out of fold, row-major, and the models.
pub(super) struct Fitted {
    pub(super) predicted: Vec<f32>,
    pub(super) choices: Vec<NuisanceChoice>,
    pub(super) models: OutcomeModels,
}

/// Fits m on the other folds for every fold, and predicts each row by the model that never saw its fold.
///
/// With one fold the model is fitted and applied on all rows. Every tenth unit (cluster, or row) of a training part is
/// held out and training stops by its loss, unless the schedule has no patience; extra rows are never held out, as m is
/// needed on the experiment's. A fit that is in the memory of `progress` is not fitted again.
pub fn fit_outcome(
    problem: &OutcomeProblem<'_>,
    folds: &Folds,
    params: &ValidOutcomeParams,
    run: Run<'_>,
) -> Result<OutcomeFit> {
    problem.check(folds)?;
    let Some(memory) = run.memory else { return fit(problem, folds, params, run) };
    let digest = digest(problem, folds, params, run.seed)?;
    if let Some(known) = memory.recall::<OutcomeFit>(digest) {
        return Ok(OutcomeFit::clone(&known));
    }
    let fit = fit(problem, folds, params, run)?;
    memory.keep(digest, Arc::new(fit.clone()));
    Ok(fit)
}

fn fit(
    problem: &OutcomeProblem<'_>,
    folds: &Folds,
    ValidOutcomeParams(params): &ValidOutcomeParams,
    run: Run<'_>,
) -> Result<OutcomeFit> {
    let (n_rows, n_outcomes, fitted) = (problem.x.n_rows(), problem.losses.len(), problem.fitted());
    let mut predicted = vec![0.0; n_rows * n_outcomes];
    for (outcome, values) in problem.given {
        let column = predicted.iter_mut().skip(*outcome).step_by(n_outcomes);
        column.zip(*values).for_each(|(predicted, value)| *predicted = *value);
    }
    let stacked = problem.extra.as_ref().map(|extra| StackedRows::new(vec![problem.x, extra.x]));
    let x = stacked.as_ref().map_or(problem.x, |stacked| stacked as &dyn RowSource);
    let (policy, n_classes) = policy_target(problem, params)?;
    let pool =
        Pool { x, outcomes: pooled_outcomes(problem, &fitted), weight: pooled_weight(problem), policy };
    let task = Task { problem, folds, pool: &pool, fitted: &fitted, params, n_classes, run };
    let own = match params.kind {
        OutcomeKind::Mlp | OutcomeKind::Dragonnet => fit_networks(&task)?,
        OutcomeKind::Boosted => fit_boosted(&task)?,
        OutcomeKind::Auto => fit_auto(&task)?,
    };
    for (values, predicted) in own.predicted.chunks(fitted.len().max(1)).zip(predicted.chunks_mut(n_outcomes))
    {
        values.iter().zip(&fitted).for_each(|(value, outcome)| predicted[*outcome] = *value);
    }
    let r2 = (0..n_outcomes).map(|outcome| r2(problem, &predicted, outcome)).collect();
    let mut choices = vec![None; if own.choices.is_empty() { 0 } else { n_outcomes }];
    own.choices.into_iter().zip(&fitted).for_each(|(choice, outcome)| choices[*outcome] = Some(choice));
    Ok(OutcomeFit { predicted, r2, choices, models: own.models })
}

/// A problem on its way to a kind of model.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) problem: &'a OutcomeProblem<'a>,
    pub(super) folds: &'a Folds,
    pub(super) pool: &'a Pool<'a>,
    /// The outcomes that are fitted.
    pub(super) fitted: &'a [usize],
    pub(super) params: &'a OutcomeParams,
    /// Classes of policies that a Dragonnet predicts.
    pub(super) n_classes: usize,
    pub(super) run: Run<'a>,
}

impl Task<'_> {
    pub(super) fn losses(&self) -> Vec<OutcomeLoss> {
        self.fitted.iter().map(|outcome| self.problem.losses[*outcome]).collect()
    }

    /// What the progress bar says while a fold is fitted.
    pub(super) fn stage(&self, what: &str, fold: usize) -> String {
        match self.folds.n_folds {
            1 => what.to_owned(),
            n_folds => format!("{what}, fold {} of {n_folds}", fold + 1),
        }
    }

    /// Puts the predictions of a fold's rows in their places.
    pub(super) fn place(&self, fold_rows: &[u32], values: &[f32], predicted: &mut [f32]) {
        let width = self.fitted.len().max(1);
        for (values, row) in values.chunks(width).zip(fold_rows) {
            predicted[*row as usize * width..][..width].copy_from_slice(values);
        }
    }
}

/// [`fit_outcome`] for the plain case: squared loss for every outcome, nothing given, no extra rows. Gives
/// m of every row, row-major with one column per outcome, and the models.
pub fn cross_fit(
    x: &dyn RowSource,
    outcomes: &[f32],
    weight: Option<&[f32]>,
    cluster: Option<&[u32]>,
    folds: &Folds,
    params: &OutcomeParams,
    run: Run<'_>,
) -> Result<(Vec<f32>, OutcomeModels)> {
    let losses = vec![OutcomeLoss::Squared; outcomes.len() / x.n_rows().max(1)];
    let problem = OutcomeProblem { weight, cluster, ..OutcomeProblem::new(x, outcomes, &losses) };
    let fit = fit_outcome(&problem, folds, &params.clone().check()?, run)?;
    Ok((fit.predicted, fit.models))
}

/// The fitted outcomes of the experiment's rows, then of the extra ones.
fn pooled_outcomes(problem: &OutcomeProblem<'_>, fitted: &[usize]) -> Vec<f32> {
    let extra = problem.extra.as_ref().map_or(&[][..], |extra| extra.outcomes);
    let rows = problem.outcomes.chunks(problem.losses.len()).chain(extra.chunks(problem.losses.len()));
    rows.flat_map(|row| fitted.iter().map(|outcome| row[*outcome])).collect()
}

fn pooled_weight<'a>(problem: &OutcomeProblem<'a>) -> Option<Cow<'a, [f32]>> {
    let Some(extra) = &problem.extra else { return problem.weight.map(Cow::Borrowed) };
    if problem.weight.is_none() && extra.weight.is_none() {
        return None;
    }
    let of =
        |weight: Option<&[f32]>, n_rows: usize| weight.map_or_else(|| vec![1.0; n_rows], <[f32]>::to_vec);
    let mut weight = of(problem.weight, problem.x.n_rows());
    weight.extend(of(extra.weight, extra.x.n_rows()));
    Some(Cow::Owned(weight))
}

fn r2(problem: &OutcomeProblem<'_>, predicted: &[f32], outcome: usize) -> f64 {
    let n_outcomes = problem.losses.len();
    let column = |values: &[f32], row: usize| f64::from(values[row * n_outcomes + outcome]);
    let weight = |row: usize| problem.weight.map_or(1.0, |weight| f64::from(weight[row]));
    let (mut mass, mut mean) = (0.0, 0.0);
    for row in 0..problem.x.n_rows() {
        mass += weight(row);
        mean += weight(row) * column(problem.outcomes, row);
    }
    mean /= mass;
    let (mut total, mut left) = (0.0, 0.0);
    for row in 0..problem.x.n_rows() {
        let value = column(problem.outcomes, row);
        total += weight(row) * (value - mean).powi(2);
        left += weight(row) * (value - column(predicted, row)).powi(2);
    }
    if total > 0.0 { 1.0 - left / total } else { 0.0 }
}
