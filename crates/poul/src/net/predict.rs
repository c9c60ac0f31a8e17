//! Forward-only: outputs for every row of a source, in blocks of rows, in parallel.

use rayon::prelude::*;

use super::batch::{Batch, Network, RowSource};
use super::kernel::elementwise::{Activation, activate};
use super::kernel::few_rows::{self, FEW_ROWS, multiply_few};
use super::kernel::product::{Matrix, multiply};
use super::layout::Layout;
use super::tape::Tape;
use super::workspace::{Setting, Workspace};
use crate::{Error, Result};

/// Rows that are computed together.
pub(crate) const BLOCK_ROWS: usize = 256;
/// Shorter blocks are filled up to this unless they are very short: below it, matrix products take other paths with other
/// last bits, and a row's outputs must not depend on how many others are scored with it.
const MIN_ROWS: usize = few_rows::BLOCK_ROWS;
/// Fewest columns of a product, for the same reason.
const MIN_COLS: usize = 4;

/// The outputs of a network, `n_out` a row, for all rows of the source, as member `member`.
///
/// A row's outputs depend on that row alone, to the last bit.
pub fn predict(
    layout: &Layout,
    weights: &[f32],
    network: &dyn Network,
    source: &dyn RowSource,
    n_out: usize,
    member: usize,
) -> Result<Vec<f32>> {
    let prepared = Prepared::new(layout, weights, network, member)?;
    check_n_rows(source)?;
    let mut outputs = vec![0.0; source.n_rows() * n_out];
    outputs.par_chunks_mut((BLOCK_ROWS * n_out).max(1)).enumerate().try_for_each_init(
        || (Block::default(), Workspace::default(), Vec::new()),
        |(block, workspace, values), (number, outputs): (usize, &mut [f32])| {
            block.read(source, number * BLOCK_ROWS, outputs.len() / n_out);
            prepared.outputs(block, workspace, n_out, values)?;
            outputs.copy_from_slice(&values[..outputs.len()]);
            Ok(())
        },
    )?;
    Ok(outputs)
}

/// Rows are numbered in 32 bits.
pub(crate) fn check_n_rows(source: &dyn RowSource) -> Result<()> {
    let n_rows = source.n_rows();
    if u32::try_from(n_rows).is_ok() {
        return Ok(());
    }
    Err(Error::other(format!("{n_rows} rows at once")).hint("score at most 4 billion rows at a time"))
}

/// 1 / (1 + e⁻ᶻ) of every value z plus the shift of its column.
pub(crate) fn sigmoid(shifts: &[f32], values: &mut [f32]) {
    activate(Activation::Sigmoid, shifts, values);
}

/// A network at some weights, with what all rows share computed.
pub(crate) struct Prepared<'n> {
    layout: &'n Layout,
    weights: &'n [f32],
    network: &'n dyn Network,
    member: usize,
    shared: Workspace,
}

impl<'n> Prepared<'n> {
    pub(crate) fn new(
        layout: &'n Layout,
        weights: &'n [f32],
        network: &'n dyn Network,
        member: usize,
    ) -> Result<Self> {
        if weights.len() != layout.n_values() {
            let (given, needed) = (weights.len(), layout.n_values());
            return Err(Error::other(format!("{given} weights for a network of {needed}")));
        }
        let mut shared = Workspace::default();
        let mut tape = Tape::start(&mut shared, setting(layout, weights));
        network.shared(&mut tape, member);
        tape.check()?;
        Ok(Self { layout, weights, network, member, shared })
    }

    /// The outputs of a block, `n_out` a row, into `values`; those of the rows it was filled up with too.
    pub(crate) fn outputs(
        &self,
        block: &Block,
        workspace: &mut Workspace,
        n_out: usize,
        values: &mut Vec<f32>,
    ) -> Result<()> {
        let Block { rows, features, n_features, first_row } = block;
        let setting = Setting {
            features,
            n_features: *n_features,
            shared: Some(&self.shared),
            first_row: *first_row,
            ..setting(self.layout, self.weights)
        };
        let mut tape = Tape::start(workspace, setting);
        let batch = Batch { member: self.member, rows, batch_rows: rows };
        let output = self.network.rows(&mut tape, &batch);
        let (shape, n_rows) = (tape.shape(output), rows.len());
        tape.require(shape == (n_rows, n_out), || {
            format!("outputs of {} × {} where {n_rows} × {n_out} are asked for", shape.0, shape.1)
        });
        tape.check()?;
        values.clear();
        values.extend_from_slice(tape.value(output));
        Ok(())
    }
}

fn setting<'n>(layout: &'n Layout, weights: &'n [f32]) -> Setting<'n> {
    Setting { training: false, ..Setting::training(layout, weights) }
}

/// How many rows a product of so many is filled up to, so that a row's bits do not depend on the others.
pub(crate) fn filled_rows(n_rows: usize) -> usize {
    if n_rows <= FEW_ROWS { n_rows.max(1) } else { n_rows.max(MIN_ROWS) }
}

/// Features of some rows, read once for every network that scores them.
#[derive(Default)]
pub(crate) struct Block {
    rows: Vec<u32>,
    features: Vec<f32>,
    n_features: usize,
    first_row: usize,
}

impl Block {
    /// Reads rows; few rows are filled up with copies of the last.
    pub(crate) fn read(&mut self, source: &dyn RowSource, first_row: usize, n_rows: usize) {
        let last_row = first_row + n_rows.max(1) - 1;
        self.rows.clear();
        self.rows.extend((0..filled_rows(n_rows)).map(|i| (first_row + i).min(last_row) as u32));
        self.n_features = source.n_cols();
        self.first_row = first_row;
        self.features.resize(self.rows.len() * self.n_features, 0.0);
        source.copy_rows(&self.rows, &mut self.features);
    }

    /// Rows, with those it was filled up with.
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }
}

/// A matrix that blocks of rows are multiplied with: x·w, of which each row depends on that row of x alone.
pub(crate) struct Columns {
    values: Vec<f32>,
    n_in: usize,
    n_out: usize,
}

impl Columns {
    /// A matrix of `n_in` × `n_out`, given by its values at (row, column).
    pub(crate) fn new(n_in: usize, n_out: usize, value: impl Fn(usize, usize) -> f32) -> Self {
        let n_padded = n_out.max(MIN_COLS);
        let at = |i: usize| if i % n_padded < n_out { value(i / n_padded, i % n_padded) } else { 0.0 };
        Self { values: (0..n_in * n_padded).map(at).collect(), n_in, n_out }
    }

    /// x·w of the first rows of a block's outputs, as many as fit into `product`.
    pub(crate) fn multiply(&self, x: &[f32], scratch: &mut Vec<f32>, product: &mut [f32]) {
        let (n_rows, n_padded) = (x.len() / self.n_in.max(1), self.n_out.max(MIN_COLS));
        let w = Matrix::new(&self.values, self.n_in, n_padded);
        if n_rows <= FEW_ROWS {
            scratch.resize(n_rows * n_padded, 0.0);
            multiply_few(x, w, scratch);
            for (product, scratch) in product.chunks_exact_mut(self.n_out).zip(scratch.chunks_exact(n_padded))
            {
                product.copy_from_slice(&scratch[..self.n_out]);
            }
            return;
        }
        let x = Matrix::new(x, n_rows, self.n_in);
        if product.len() == n_rows * n_padded {
            return multiply(x, w, product, false);
        }
        scratch.resize(n_rows * n_padded, 0.0);
        multiply(x, w, scratch, false);
        for (product, scratch) in product.chunks_exact_mut(self.n_out).zip(scratch.chunks_exact(n_padded)) {
            product.copy_from_slice(&scratch[..self.n_out]);
        }
    }
}
