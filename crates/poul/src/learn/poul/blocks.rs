//! Rows scored block by block, side by side: what all scorers of the method have in common.

use rayon::prelude::*;

use crate::effect::Scores;
use crate::net::{BLOCK_ROWS, RowSource, check_n_rows};
use crate::nuisance::OutcomeModels;
use crate::stored::damaged;
use crate::{Error, Result};

/// The rows and what is asked of them.
pub(super) struct Blocks<'a> {
    pub(super) x: &'a dyn RowSource,
    /// How many numbers an encoded row has.
    pub(super) n_features: usize,
    pub(super) n_outcomes: usize,
    pub(super) n_targets: usize,
    /// b(x) of the logistic outcomes.
    pub(super) baseline: Option<&'a OutcomeModels>,
    pub(super) spread: bool,
}

/// A block of rows and where their effects go, by outcome.
pub(super) struct Piece<'s> {
    pub(super) first_row: usize,
    pub(super) n_rows: usize,
    pub(super) means: Vec<&'s mut [f32]>,
    pub(super) spreads: Vec<&'s mut [f32]>,
}

impl Blocks<'_> {
    /// Has every block filled, given b(x) of all rows, by threads with buffers of their own.
    pub(super) fn fill<B: Default>(
        &self,
        fill: impl Fn(&mut B, Option<&[f32]>, Piece<'_>) -> Result<()> + Sync,
    ) -> Result<Scores> {
        let Self { x, n_features, n_outcomes, n_targets, baseline, spread } = *self;
        check_n_rows(x)?;
        let n_rows = x.n_rows();
        if x.n_cols() != n_features {
            let found = x.n_cols();
            return Err(Error::other(format!("{found} encoded features where the model has {n_features}")));
        }
        let baseline = baseline.map(|baseline| baseline.predict(x, &[])).transpose()?;
        if baseline.as_ref().is_some_and(|baseline| baseline.len() != n_rows * n_outcomes) {
            return Err(damaged("the baseline of the model is not of its outcomes"));
        }
        let zeros = || vec![vec![0.0_f32; n_rows * n_targets]; n_outcomes];
        let mut scores = Scores { mean: zeros(), spread: if spread { zeros() } else { Vec::new() } };
        let n_block = (BLOCK_ROWS * n_targets).max(1);
        let mut means: Vec<_> = scores.mean.iter_mut().map(|values| values.chunks_mut(n_block)).collect();
        let mut spreads: Vec<_> = scores.spread.iter_mut().map(|values| values.chunks_mut(n_block)).collect();
        let piece = |first_row: usize| Piece {
            first_row,
            n_rows: BLOCK_ROWS.min(n_rows - first_row),
            means: means.iter_mut().filter_map(Iterator::next).collect(),
            spreads: spreads.iter_mut().filter_map(Iterator::next).collect(),
        };
        let pieces: Vec<Piece<'_>> = (0..n_rows).step_by(BLOCK_ROWS).map(piece).collect();
        pieces
            .into_par_iter()
            .try_for_each_init(B::default, |buffers, piece| fill(buffers, baseline.as_deref(), piece))?;
        Ok(scores)
    }
}
