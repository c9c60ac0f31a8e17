//! Forward-only: outputs for every row of a source, in blocks of rows, in parallel.

use rayon::prelude::*;

use super::batch::{Batch, Network, RowSource};
use super::layout::Layout;
use super::tape::Tape;
use super::workspace::{Setting, Workspace};
use crate::{Error, Result};

/// Rows that are computed together.
const BLOCK_ROWS: usize = 256;
/// Shorter blocks are filled up to this: below it, matrix products take other paths with other last bits, and a row's
/// outputs must not depend on how many others are scored with it.
const MIN_ROWS: usize = 80;

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
    let (n_rows, n_features) = (source.n_rows(), source.n_cols());
    if weights.len() != layout.n_values() {
        let (given, needed) = (weights.len(), layout.n_values());
        return Err(Error::other(format!("{given} weights for a network of {needed}")));
    }
    if u32::try_from(n_rows).is_err() {
        return Err(
            Error::other(format!("{n_rows} rows at once")).hint("score at most 4 billion rows at a time")
        );
    }
    let mut shared = Workspace::default();
    let setting = Setting { training: false, ..Setting::training(layout, weights) };
    let mut tape = Tape::start(&mut shared, setting);
    network.shared(&mut tape, member);
    tape.check()?;
    let mut outputs = vec![0.0; n_rows * n_out];
    outputs.par_chunks_mut((BLOCK_ROWS * n_out).max(1)).enumerate().try_for_each_init(
        || (Workspace::default(), Vec::new(), Vec::new()),
        |(workspace, rows, features), (block, outputs): (usize, &mut [f32])| {
            let first_row = block * BLOCK_ROWS;
            let n_block = outputs.len() / n_out;
            let last_row = first_row + n_block - 1;
            rows.clear();
            rows.extend((0..n_block.max(MIN_ROWS)).map(|i| (first_row + i).min(last_row) as u32));
            features.resize(rows.len() * n_features, 0.0_f32);
            source.copy_rows(rows, features);
            let setting = Setting { features, n_features, shared: Some(&shared), first_row, ..setting };
            let mut tape = Tape::start(workspace, setting);
            let batch = Batch { member, rows, batch_rows: rows };
            let output = network.rows(&mut tape, &batch);
            let (shape, n_rows) = (tape.shape(output), rows.len());
            tape.require(shape == (n_rows, n_out), || {
                format!("outputs of {} × {} where {n_rows} × {n_out} are asked for", shape.0, shape.1)
            });
            tape.check()?;
            outputs.copy_from_slice(&tape.value(output)[..outputs.len()]);
            Ok(())
        },
    )?;
    Ok(outputs)
}
