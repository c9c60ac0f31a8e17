//! Cross-fitting of m: each row is predicted by a model that was fitted without its fold.

use std::borrow::Cow;
use std::sync::Arc;

use crate::net::RowSource;
use crate::nuisance::Folds;
use crate::nuisance::classes::{NEVER_RUN, PolicyClasses};
use crate::nuisance::rows::{SomeRows, StackedRows};
use crate::{Error, Progress, Result, Seed};

use super::model::{OutcomeModel, Pool};
use super::network::{PolicyTarget, Shape};
use super::params::{OutcomeKind, OutcomeLoss, OutcomeParams, ValidOutcomeParams};
use super::problem::{ExtraRows, OutcomeProblem};
use super::remembered::digest;
use super::stored::OutcomeModels;

/// One row in so many is held out for early stopping.
const HELD_PARTS: usize = 10;
/// Most classes of policies that a Dragonnet's trunk predicts.
const MAX_CLASSES: usize = 512;

/// m of every row, out of fold, and the models.
#[derive(Clone, Debug)]
pub struct OutcomeFit {
    /// m̂(x) in the outcomes' units, row-major with one column per outcome; the user's own where given.
    pub predicted: Vec<f32>,
    /// Share of each outcome's variance that `predicted` explains; out of fold it may be negative.
    pub r2: Vec<f64>,
    /// The models, one per fold.
    pub models: OutcomeModels,
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
    seed: Seed,
    progress: &dyn Progress,
) -> Result<OutcomeFit> {
    problem.check(folds)?;
    let Some(memory) = progress.memory() else { return fit(problem, folds, params, seed, progress) };
    let digest = digest(problem, folds, params, seed)?;
    if let Some(known) = memory.recall::<OutcomeFit>(digest) {
        return Ok(OutcomeFit::clone(&known));
    }
    let fit = fit(problem, folds, params, seed, progress)?;
    memory.keep(digest, Arc::new(fit.clone()));
    Ok(fit)
}

fn fit(
    problem: &OutcomeProblem<'_>,
    folds: &Folds,
    ValidOutcomeParams(params): &ValidOutcomeParams,
    seed: Seed,
    progress: &dyn Progress,
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
    let shape = Shape {
        kind: params.kind,
        n_features: problem.x.n_cols(),
        hidden: params.hidden.clone(),
        head_hidden: params.head_hidden.clone(),
        dropout: params.dropout,
        losses: fitted.iter().map(|outcome| problem.losses[*outcome]).collect(),
        n_classes,
    };
    let pool =
        Pool { x, outcomes: pooled_outcomes(problem, &fitted), weight: pooled_weight(problem), policy };
    let held_parts = (params.schedule.patience > 0)
        .then(|| Folds::deal(n_rows, problem.cluster, HELD_PARTS, seed.child("validation")));
    let is_held = |row: usize| held_parts.as_ref().is_some_and(|parts| parts.of_row[row] == 0);
    let n_models = if fitted.is_empty() { 0 } else { folds.n_folds };
    let mut models = Vec::with_capacity(n_models);
    for fold in 0..n_models {
        let (held, mut rows): (Vec<u32>, Vec<u32>) =
            folds.training(fold).into_iter().partition(|row| is_held(*row as usize));
        if let Some(extra) = &problem.extra {
            rows.extend(extra_rows(problem, extra, folds, is_held, fold));
        }
        let stage = match folds.n_folds {
            1 => "Outcome model".to_owned(),
            n_folds => format!("Outcome model, fold {} of {n_folds}", fold + 1),
        };
        let seed = seed.child("fold").index(fold as u64);
        let model = OutcomeModel::fit(&pool, &shape, (&rows, &held), params, stage, seed, progress)?;
        let inside = folds.rows(fold);
        let values = model.predict(&SomeRows { x: problem.x, rows: &inside })?;
        for (values, row) in values.chunks(fitted.len()).zip(&inside) {
            for (value, outcome) in values.iter().zip(&fitted) {
                predicted[*row as usize * n_outcomes + outcome] = *value;
            }
        }
        models.push(model);
    }
    let r2 = (0..n_outcomes).map(|outcome| r2(problem, &predicted, outcome)).collect();
    let models = OutcomeModels { n_outcomes, fitted, shape, models };
    Ok(OutcomeFit { predicted, r2, models })
}

/// [`fit_outcome`] for the plain case: squared loss for every outcome, nothing given, no extra rows. Gives
/// m of every row, row-major with one column per outcome, and the models.
#[expect(clippy::too_many_arguments, reason = "a shorthand for callers that have exactly these")]
pub fn cross_fit(
    x: &dyn RowSource,
    outcomes: &[f32],
    weight: Option<&[f32]>,
    cluster: Option<&[u32]>,
    folds: &Folds,
    params: &OutcomeParams,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<(Vec<f32>, OutcomeModels)> {
    let losses = vec![OutcomeLoss::Squared; outcomes.len() / x.n_rows().max(1)];
    let problem = OutcomeProblem { weight, cluster, ..OutcomeProblem::new(x, outcomes, &losses) };
    let fit = fit_outcome(&problem, folds, &params.clone().check()?, seed, progress)?;
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

/// What a Dragonnet's trunk predicts beside outcomes, and how many classes there are.
fn policy_target(
    problem: &OutcomeProblem<'_>,
    params: &OutcomeParams,
) -> Result<(Option<PolicyTarget>, usize)> {
    if params.kind != OutcomeKind::Dragonnet || params.policy_weight == 0.0 {
        return Ok((None, 0));
    }
    let Some(policy) = problem.policy else {
        let error = Error::usage("the outcome model `dragonnet` needs the policy of each row");
        return Err(error.hint("use `mlp`, or give a treatment column"));
    };
    let n_policies = policy.iter().max().map_or(0, |last| *last as usize + 1);
    let classes = PolicyClasses::new(policy, problem.weight, n_policies, 1, MAX_CLASSES);
    let mut class = classes.of_rows(policy);
    let mut weight = problem.weight.map_or_else(|| vec![1.0; policy.len()], <[f32]>::to_vec);
    let n_all = policy.len() + problem.extra.as_ref().map_or(0, |extra| extra.x.n_rows());
    class.resize(n_all, 0);
    weight.resize(n_all, 0.0);
    debug_assert!(!class.contains(&NEVER_RUN));
    Ok((Some(PolicyTarget { class, weight, factor: params.policy_weight }), classes.len()))
}

/// The extra rows that a fold's model may see, by their number in the pool.
fn extra_rows(
    problem: &OutcomeProblem<'_>,
    extra: &ExtraRows<'_>,
    folds: &Folds,
    is_held: impl Fn(usize) -> bool,
    fold: usize,
) -> Vec<u32> {
    let first = problem.x.n_rows() as u32;
    let all = first..first + extra.x.n_rows() as u32;
    let (Some(cluster), Some(extra_cluster)) = (problem.cluster, extra.cluster) else {
        return all.collect();
    };
    let n_clusters = cluster.iter().max().map_or(0, |last| *last as usize + 1);
    let mut is_barred = vec![false; n_clusters];
    for (row, cluster) in cluster.iter().enumerate() {
        let is_inside = folds.n_folds > 1 && folds.of_row[row] as usize == fold;
        is_barred[*cluster as usize] |= is_inside || is_held(row);
    }
    let is_free = |row: &u32| {
        let cluster = extra_cluster[(*row - first) as usize] as usize;
        !is_barred.get(cluster).copied().unwrap_or(false)
    };
    all.filter(is_free).collect()
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
