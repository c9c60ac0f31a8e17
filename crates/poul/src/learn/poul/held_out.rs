//! The rows that each member of the ensemble is not taught, by which training is stopped and effects are sized.
//!
//! Units are dealt into parts, and member k never sees part k: together the members have held out most rows, not one part
//! of them, while each of them learns from as many as before.

use super::fit::Problem;
use super::phases::TrainingPhase;
use crate::Seed;
use crate::nuisance::Folds;

/// Which part each row is in, and which member holds which part out.
pub(super) struct HeldOutParts {
    folds: Option<Folds>,
}

impl HeldOutParts {
    /// About 1/`share` parts, by cluster; none where nothing is to be held out.
    pub(super) fn new(problem: &Problem<'_>, share: f64, seed: Seed) -> Self {
        let deal = || {
            let n_parts = (1.0 / share).round().max(2.0) as usize;
            Folds::deal(problem.x.n_rows(), problem.cluster, n_parts, seed.child("validation"))
        };
        Self { folds: (share > 0.0).then(deal) }
    }

    /// Whether anything is held out.
    pub(super) fn is_some(&self) -> bool {
        self.folds.is_some()
    }

    /// Whether a member does not learn from a row.
    #[inline]
    pub(super) fn holds_out(&self, member: usize, row: u32) -> bool {
        self.folds.as_ref().is_some_and(|folds| folds.of_row[row as usize] as usize == member % folds.n_folds)
    }

    /// The rows that a member does not learn from and that belong to a phase.
    pub(super) fn rows(&self, member: usize, phase: &TrainingPhase) -> Vec<u32> {
        let own = |folds: &Folds| folds.rows(member % folds.n_folds);
        phase.select(&self.folds.as_ref().map(own).unwrap_or_default())
    }
}
