//! m by networks, cross-fitted.

use crate::nuisance::classes::{NEVER_RUN, PolicyClasses};
use crate::nuisance::rows::SomeRows;
use crate::{Error, Result};

use super::cross_fit::{Fitted, Task};
use super::fold_rows::FoldRows;
use super::model::OutcomeModel;
use super::network::{PolicyTarget, Shape};
use super::params::{OutcomeKind, OutcomeParams};
use super::problem::OutcomeProblem;
use super::stored::OutcomeModels;

/// Most classes of policies that a Dragonnet's trunk predicts.
const MAX_CLASSES: usize = 512;

/// Fits the networks of every fold.
pub(super) fn fit_networks(task: &Task<'_>) -> Result<Fitted> {
    let Task { problem, folds, pool, fitted, params, .. } = *task;
    let shape = shape(task);
    let rows_of = FoldRows::new(problem, folds, params.schedule.patience > 0, task.run.seed);
    let n_models = if fitted.is_empty() { 0 } else { folds.n_folds };
    let mut predicted = vec![0.0; problem.x.n_rows() * fitted.len()];
    let mut networks = Vec::with_capacity(n_models);
    for fold in 0..n_models {
        let (rows, held) = rows_of.of(fold);
        let (stage, run) = (task.stage("Outcome model", fold), task.run.child("fold").index(fold as u64));
        let model = OutcomeModel::fit(pool, &shape, (&rows, &held), params, &stage, run)?;
        let inside = folds.rows(fold);
        let values = model.predict(&SomeRows { x: problem.x, rows: &inside })?;
        task.place(&inside, &values, &mut predicted);
        networks.push(model);
    }
    let models = OutcomeModels { networks, ..OutcomeModels::new(problem.losses.len(), fitted, shape) };
    Ok(Fitted { predicted, choices: Vec::new(), models })
}

/// What decides which weights the networks have.
pub(super) fn shape(task: &Task<'_>) -> Shape {
    let params = task.params;
    Shape {
        kind: params.kind,
        n_features: task.problem.x.n_cols(),
        hidden: params.hidden.clone(),
        head_hidden: params.head_hidden.clone(),
        dropout: params.dropout,
        losses: task.losses(),
        n_classes: task.n_classes,
    }
}

/// What a Dragonnet's trunk predicts beside outcomes, and how many classes there are.
pub(super) fn policy_target(
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
