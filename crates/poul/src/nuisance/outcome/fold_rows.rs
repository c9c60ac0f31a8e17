//! Which rows each fold's model is fitted on, and which it is stopped by.

use super::problem::{ExtraRows, OutcomeProblem};
use crate::Seed;
use crate::nuisance::Folds;

/// One row in so many is held out for early stopping.
const HELD_PARTS: usize = 10;

/// The rows of folds, by their number in the pool: the experiment's, then the extra ones.
pub(super) struct FoldRows<'a> {
    problem: &'a OutcomeProblem<'a>,
    folds: &'a Folds,
    held_parts: Option<Folds>,
}

impl<'a> FoldRows<'a> {
    /// Every tenth unit is held out, if any should be.
    pub(super) fn new(
        problem: &'a OutcomeProblem<'a>,
        folds: &'a Folds,
        holds_out: bool,
        seed: Seed,
    ) -> Self {
        let deal = || Folds::deal(problem.x.n_rows(), problem.cluster, HELD_PARTS, seed.child("validation"));
        Self { problem, folds, held_parts: holds_out.then(deal) }
    }

    /// Rows to fit on, and rows to stop by.
    pub(super) fn of(&self, fold: usize) -> (Vec<u32>, Vec<u32>) {
        let (held, mut rows): (Vec<u32>, Vec<u32>) =
            self.folds.training(fold).into_iter().partition(|row| self.is_held(*row as usize));
        rows.extend(self.extra(fold));
        (rows, held)
    }

    /// The extra rows that a fold's model may see.
    pub(super) fn extra(&self, fold: usize) -> Vec<u32> {
        let problem = self.problem;
        let Some(ExtraRows { x, cluster: extra_cluster, .. }) = &problem.extra else { return Vec::new() };
        let first = problem.x.n_rows() as u32;
        let all = first..first + x.n_rows() as u32;
        let (Some(cluster), Some(extra_cluster)) = (problem.cluster, extra_cluster) else {
            return all.collect();
        };
        let n_clusters = cluster.iter().max().map_or(0, |last| *last as usize + 1);
        let mut is_barred = vec![false; n_clusters];
        for (row, cluster) in cluster.iter().enumerate() {
            let is_inside = self.folds.n_folds > 1 && self.folds.of_row[row] as usize == fold;
            is_barred[*cluster as usize] |= is_inside || self.is_held(row);
        }
        let is_free = |row: &u32| {
            let cluster = extra_cluster[(*row - first) as usize] as usize;
            !is_barred.get(cluster).copied().unwrap_or(false)
        };
        all.filter(is_free).collect()
    }

    fn is_held(&self, row: usize) -> bool {
        self.held_parts.as_ref().is_some_and(|parts| parts.of_row[row] == 0)
    }
}
