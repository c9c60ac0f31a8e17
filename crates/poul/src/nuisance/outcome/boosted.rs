//! m by boosted trees, cross-fitted.

use crate::nuisance::boosted::{Boosted, Cuts, FoldTrees, Rows, Target, Tiles, boost_once, room};
use crate::nuisance::rows::SomeRows;
use crate::{Error, Result};

use super::cross_fit::{Fitted, Task};
use super::fold_rows::FoldRows;
use super::model::{Pool, Scale};
use super::networks::shape;
use super::params::OutcomeLoss;
use super::stored::OutcomeModels;

/// Fits the trees of every fold.
pub(super) fn fit_boosted(task: &Task<'_>) -> Result<Fitted> {
    let Task { problem, folds, pool, fitted, params, .. } = *task;
    let mut models = OutcomeModels::new(problem.losses.len(), fitted, shape(task));
    let mut predicted = vec![0.0; problem.x.n_rows() * fitted.len()];
    if fitted.is_empty() {
        return Ok(Fitted { predicted, choices: Vec::new(), models });
    }
    room(pool.x, pool.x.n_rows())?;
    let all: Vec<u32> = (0..pool.x.n_rows() as u32).collect();
    let mut boosted = Boosted { cuts: Cuts::learn(pool.x, &all), folds: Vec::with_capacity(folds.n_folds) };
    let rows_of = FoldRows::new(problem, folds, params.boosted.patience > 0, task.run.seed);
    for fold in 0..folds.n_folds {
        let fold_trees = fit_fold(task, &boosted.cuts, rows_of.of(fold), fold)?;
        boosted.folds.push(fold_trees);
        let inside = folds.rows(fold);
        let values = boosted.predict(&[fold], &SomeRows { x: problem.x, rows: &inside })?;
        task.place(&inside, &values, &mut predicted);
    }
    models.boosted = Some(boosted);
    Ok(Fitted { predicted, choices: Vec::new(), models })
}

/// The trees of one fold, outcome by outcome.
fn fit_fold(
    task: &Task<'_>,
    cuts: &Cuts,
    (rows, held): (Vec<u32>, Vec<u32>),
    fold: usize,
) -> Result<Vec<FoldTrees>> {
    let (pool, losses) = (task.pool, task.losses());
    let weighs = |row: &u32| pool.weight_of(*row) > 0.0;
    let rows: Vec<u32> = rows.into_iter().filter(weighs).collect();
    if rows.is_empty() {
        let error = Error::input("all rows that the outcome model would be fitted on have weight 0");
        return Err(error.hint("fewer folds, or other weights"));
    }
    let all: Vec<u32> = rows.iter().copied().chain(held.into_iter().filter(weighs)).collect();
    let tiles = Tiles::new(cuts, pool.x, &all);
    if let Some(error) = pool.x.failure() {
        return Err(error);
    }
    let weight = relative_weight(pool, &rows, &all);
    let own = Rows { tiles: &tiles, n_training: rows.len(), weight: weight.as_deref() };
    let fit = |(outcome, loss): (usize, &OutcomeLoss)| {
        let scale = pool.scale(&rows, outcome, *loss, losses.len());
        let Scale { mean, deviation } = scale;
        let value = |row: &u32| f64::from(pool.outcomes[*row as usize * losses.len() + outcome]);
        let values: Vec<f32> = all.iter().map(|row| ((value(row) - mean) / deviation) as f32).collect();
        let stage = match losses.len() {
            1 => "Boosted outcome model".to_owned(),
            n => format!("Boosted outcome model {} of {n}", outcome + 1),
        };
        let (stage, params) = (task.stage(&stage, fold), &task.params.boosted);
        match loss {
            OutcomeLoss::Squared => {
                let trees = boost_once(&own, Target::Values(&values), params, &stage, task.run)?;
                Ok(trees.in_units(mean, deviation))
            }
            OutcomeLoss::Logistic => boost_once(&own, Target::Shares(&values), params, &stage, task.run),
        }
    };
    losses.iter().enumerate().map(fit).collect()
}

/// Weights whose mean over the rows that are fitted on is 1, so that their unit does not matter.
fn relative_weight(pool: &Pool<'_>, rows: &[u32], all: &[u32]) -> Option<Vec<f32>> {
    pool.weight.as_ref()?;
    let mean = rows.iter().map(|row| pool.weight_of(*row)).sum::<f64>() / rows.len() as f64;
    Some(all.iter().map(|row| (pool.weight_of(*row) / mean) as f32).collect())
}
