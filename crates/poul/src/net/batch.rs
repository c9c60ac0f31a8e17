//! What a network is to the engine, and the rows it is shown.

use super::layout::Layout;
use super::tape::{Tape, Var};
use crate::data::gather_rows;
use crate::{Error, Result};

/// A network: a function from rows to a loss (in training) or to outputs (in prediction).
///
/// A closure `|tape: &mut Tape, batch: &Batch| -> Var` is a network without a shared part.
///
/// ```
/// use poul::net::{Activation, Batch, Init, Layout, Mlp, Network, Tape, Var};
///
/// struct Regression<'d> { mlp: Mlp, outcome: &'d [f32] }
///
/// impl Network for Regression<'_> {
///     fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
///         let x = tape.features();
///         let prediction = self.mlp.forward(tape, x);
///         let outcome = tape.column(batch.pick(self.outcome));
///         tape.squared_loss(prediction, outcome, None, batch.scale())
///     }
/// }
/// ```
pub trait Network: Sync {
    /// What all rows share, computed once a step: h of every policy, penalties. Hands matrices over by
    /// [`Tape::share`]; their gradients come back from all rows before the walk back over this part.
    fn shared(&self, tape: &mut Tape<'_>, member: usize) {
        let _ = (tape, member);
    }

    /// State that training carries along besides what it learns, such as a running mean: called for every member and
    /// step with the weights that gave the gradients, before they are updated. Only matrices of frozen groups
    /// (`rate_factor` 0) may be changed.
    fn carry(&self, layout: &Layout, weights: &mut [f32], rows: &[u32]) -> Result<()> {
        let _ = (layout, weights, rows);
        Ok(())
    }

    /// The rows of a shard: their loss, 1 × 1, to be added over shards; or their outputs, one row each.
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var;
}

impl<F> Network for F
where
    F: Fn(&mut Tape<'_>, &Batch<'_>) -> Var + Sync,
{
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        self(tape, batch)
    }
}

/// The rows of one shard of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'b> {
    /// Which member of the ensemble is being computed.
    pub member: usize,
    /// The numbers of this shard's rows in the data.
    pub rows: &'b [u32],
    /// The numbers of all rows of the batch.
    pub batch_rows: &'b [u32],
}

impl<'b> Batch<'b> {
    /// The values of a column of the data for these rows.
    pub fn pick<T: Copy>(&self, column: &'b [T]) -> impl Iterator<Item = T> + 'b {
        self.rows.iter().map(move |row| column[*row as usize])
    }

    /// 1 / rows of the whole batch: what makes the shards' losses add up to a mean.
    pub fn scale(&self) -> f32 {
        1.0 / self.batch_rows.len().max(1) as f32
    }

    /// 1 / the weight of the whole batch: [`scale`](Self::scale) for weighted rows; 0 where all weigh nothing.
    pub(crate) fn weighted_scale(&self, weights: &[f32]) -> f32 {
        let total: f64 = self.batch_rows.iter().map(|row| f64::from(weights[*row as usize])).sum();
        if total > 0.0 { (1.0 / total) as f32 } else { 0.0 }
    }
}

/// Where features come from, row by row; a table in memory ([`DenseRows`]), or anything that can copy rows out.
pub trait RowSource: Sync {
    /// How many rows there are.
    fn n_rows(&self) -> usize;

    /// How many features a row has.
    fn n_cols(&self) -> usize;

    /// Writes the rows by number, one after the other. Numbers are below [`n_rows`](Self::n_rows).
    fn copy_rows(&self, rows: &[u32], out: &mut [f32]);

    /// How much a row meets each context, where rows differ in it: w_i(s), in the order of the contexts.
    fn exposure(&self, row: usize) -> Option<&[f32]> {
        let _ = row;
        None
    }

    /// How many rows may be held in memory to be visited in random order; `None` where all rows are at hand.
    fn window_rows(&self) -> Option<usize> {
        None
    }

    /// What went wrong when rows were read; rows that could not be read are NaN.
    fn failure(&self) -> Option<Error> {
        None
    }
}

/// A row-major table of features.
#[derive(Clone, Copy, Debug)]
pub struct DenseRows<'d> {
    values: &'d [f32],
    n_cols: usize,
}

impl<'d> DenseRows<'d> {
    /// `values` read as rows of `n_cols`.
    pub fn new(values: &'d [f32], n_cols: usize) -> Result<Self> {
        if n_cols == 0 || !values.len().is_multiple_of(n_cols) {
            let n_values = values.len();
            return Err(Error::other(format!("{n_values} values are no table with {n_cols} columns")));
        }
        Ok(Self { values, n_cols })
    }
}

impl RowSource for DenseRows<'_> {
    fn n_rows(&self) -> usize {
        self.values.len() / self.n_cols
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        gather_rows(self.values, self.n_cols, rows, |row| row as usize, out);
    }
}

/// Checks that rows exist before anything indexes by them.
pub(super) fn check_rows(rows: &[u32], source: &dyn RowSource) -> Result<()> {
    let n_rows = source.n_rows();
    match rows.iter().find(|row| **row as usize >= n_rows) {
        Some(row) => Err(Error::other(format!("row {row} of a table with {n_rows} rows"))),
        None => Ok(()),
    }
}
