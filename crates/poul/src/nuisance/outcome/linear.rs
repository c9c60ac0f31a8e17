//! m by a ridge, cross-fitted in closed form: the simplest of what `auto` chooses from.

use rayon::prelude::*;

use crate::Result;
use crate::net::{RowSource, Tensor, Tensors, check_n_rows};
use crate::nuisance::ridge::Data;
use crate::nuisance::rows::SomeRows;
use crate::stored::damaged;

use super::cross_fit::Task;
use super::fold_rows::FoldRows;
use super::params::OutcomeLoss;

/// Rows that are read at once.
const BLOCK_ROWS: usize = 4096;
/// How near to 0 and 1 a line may come where it stands for a probability.
const LEAST_SHARE: f64 = 1e-3;

/// Lines of all folds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    /// By fold, for every outcome a constant and slopes, one after the other: the numbers that a model file keeps.
    folds: Vec<Vec<f32>>,
    losses: Vec<OutcomeLoss>,
    n_features: usize,
}

/// Fits the lines of every fold; predictions of the fitted outcomes out of fold, row-major.
pub(super) fn fit_lines(task: &Task<'_>) -> Result<(Vec<f32>, Lines)> {
    let (problem, pool, losses) = (task.problem, task.pool, task.losses());
    let column =
        |outcome: usize| pool.outcomes.iter().skip(outcome).step_by(losses.len()).map(|y| f64::from(*y));
    let columns: Vec<Vec<f64>> = (0..losses.len()).map(|outcome| column(outcome).collect()).collect();
    let outcomes: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let weight: Option<Vec<f64>> =
        pool.weight.as_ref().map(|own| own.iter().map(|own| f64::from(*own)).collect());
    let n_x = pool.x.n_cols();
    let data = Data { x: pool.x, outcomes: &outcomes, weight: weight.as_deref(), n_x };
    // No rows are held out: there is nothing to stop.
    let rows_of = FoldRows::new(problem, task.folds, false, task.run.seed);
    task.run.progress.start("Linear outcome model", "rows", Some(pool.x.n_rows() as u64));
    let chosen = data.lines(task.folds, |fold| rows_of.extra(fold));
    let of_fold = |fold: Vec<(f64, Vec<f64>)>| {
        fold.into_iter().flat_map(|(_, line)| line).map(|own| own as f32).collect()
    };
    let lines = Lines { folds: chosen.into_iter().map(of_fold).collect(), losses, n_features: n_x };
    let mut predicted = vec![0.0; problem.x.n_rows() * task.fitted.len()];
    for fold in 0..task.folds.n_folds {
        let inside = task.folds.rows(fold);
        let values = lines.predict(&[fold], &SomeRows { x: problem.x, rows: &inside })?;
        task.place(&inside, &values, &mut predicted);
    }
    task.run.progress.advance(pool.x.n_rows() as u64);
    task.run.progress.finish();
    Ok((predicted, lines))
}

impl Lines {
    /// The mean of some folds' lines for every row, one column per outcome.
    pub(super) fn predict(&self, folds: &[usize], x: &dyn RowSource) -> Result<Vec<f32>> {
        check_n_rows(x)?;
        let (n_rows, width) = (x.n_rows(), self.losses.len());
        let mut predicted = vec![0.0; n_rows * width];
        predicted.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate().for_each(|(block, predicted)| {
            let first = block * BLOCK_ROWS;
            let rows: Vec<u32> = (first as u32..(first + BLOCK_ROWS).min(n_rows) as u32).collect();
            let mut features = vec![0.0; rows.len() * self.n_features];
            x.copy_rows(&rows, &mut features);
            let share = 1.0 / folds.len() as f64;
            for (x, out) in
                features.chunks_exact(self.n_features.max(1)).zip(predicted.chunks_exact_mut(width))
            {
                for (outcome, (out, loss)) in out.iter_mut().zip(&self.losses).enumerate() {
                    let of_fold = |fold: &usize| {
                        let line =
                            &self.folds[*fold][outcome * (self.n_features + 1)..][..self.n_features + 1];
                        let slopes =
                            x.iter().zip(&line[1..]).map(|(x, slope)| f64::from(*x) * f64::from(*slope));
                        let value = f64::from(line[0]) + slopes.sum::<f64>();
                        match loss {
                            OutcomeLoss::Squared => value,
                            OutcomeLoss::Logistic => value.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE),
                        }
                    };
                    *out = folds.iter().map(|fold| share * of_fold(fold)).sum::<f64>() as f32;
                }
            }
        });
        match x.failure() {
            Some(error) => Err(error),
            None => Ok(predicted),
        }
    }

    /// The lines, named `<prefix>.<fold>`.
    pub(super) fn tensors(&self, prefix: &str) -> Vec<Tensor<'_>> {
        let shape = [self.losses.len(), self.n_features + 1];
        let of_fold = |(fold, values)| (format!("{prefix}.{fold}"), values);
        let named = self.folds.iter().enumerate().map(of_fold);
        named.map(|(name, values)| Tensor::new(name, &shape, values)).collect()
    }

    /// What [`tensors`](Self::tensors) came from.
    pub(super) fn from_parts(
        n_folds: usize,
        losses: &[OutcomeLoss],
        n_features: usize,
        prefix: &str,
        tensors: &mut Tensors,
    ) -> Result<Self> {
        let shape = [losses.len(), n_features.saturating_add(1)];
        let mut folds = Vec::new();
        for fold in 0..n_folds {
            folds.push(tensors.take(&format!("{prefix}.{fold}"), &shape)?);
        }
        if folds.is_empty() {
            return Err(damaged(format!("`{prefix}` has no folds")));
        }
        Ok(Self { folds, losses: losses.to_vec(), n_features })
    }

    pub(super) fn n_folds(&self) -> usize {
        self.folds.len()
    }
}
