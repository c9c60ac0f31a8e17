//! Columns into rows: encoded in slabs that stay in the first cache, then turned.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use rayon::prelude::*;

use super::cells::Cells;
use super::levels::{MISSING, OTHER};
use super::{Code, FeatureEncoder, Part};
use crate::{Error, Result};

/// Rows of a slab.
const ROWS: usize = 256;
/// Columns of a slab: one cache line of a row.
const COLUMNS: usize = 16;

/// The columns of a batch in a form that is quick to encode.
enum Prepared<'a> {
    Nothing,
    Number(Cells<'a>),
    Codes(Vec<u32>),
}

/// Encodes `columns` into `out`, row after row; counts for each feature the cells of categories never seen in fitting.
pub(super) fn encode(features: &[FeatureEncoder], columns: &[ArrayRef], out: &mut [f32]) -> Result<Vec<u64>> {
    let n_rows = columns.first().map_or(0, Array::len);
    let parts: Vec<(usize, Part)> = features
        .iter()
        .enumerate()
        .flat_map(|(idx, feature)| feature.parts().into_iter().map(move |part| (idx, part)))
        .collect();
    let width = parts.len();
    if columns.len() != features.len()
        || columns.iter().any(|column| column.len() != n_rows)
        || out.len() != n_rows * width
    {
        return Err(Error::other("the columns do not match the encoder"));
    }
    if out.is_empty() {
        return Ok(vec![0; features.len()]);
    }
    let prepared = features.par_iter().zip(columns).map(|(feature, column)| prepare(feature, column));
    let prepared = prepared.collect::<Result<Vec<_>>>()?;
    out.par_chunks_mut(ROWS * width).enumerate().for_each(|(block, out)| {
        let first_row = block * ROWS;
        let rows = first_row..first_row + out.len() / width;
        let mut slab = [[0.0_f32; ROWS]; COLUMNS];
        for (slab_idx, parts) in parts.chunks(COLUMNS).enumerate() {
            for (column, (idx, part)) in slab.iter_mut().zip(parts) {
                fill(&features[*idx].code, &prepared[*idx], *part, rows.clone(), &mut column[..rows.len()]);
            }
            turn(&slab, parts.len(), width, slab_idx * COLUMNS, out);
        }
    });
    let unseen = |(feature, prepared): (&FeatureEncoder, &Prepared<'_>)| match prepared {
        Prepared::Codes(codes) if feature.code.knows_all_levels() => {
            codes.iter().filter(|code| **code == OTHER).count() as u64
        }
        _ => 0,
    };
    Ok(features.iter().zip(&prepared).map(unseen).collect())
}

fn prepare<'a>(feature: &FeatureEncoder, column: &'a ArrayRef) -> Result<Prepared<'a>> {
    let prepared = match &feature.code {
        Code::Dropped => Some(Prepared::Nothing),
        Code::Number(_) => Cells::of(column).map(Prepared::Number),
        Code::Levels(levels) => levels.codes(column).map(Prepared::Codes),
    };
    prepared.ok_or_else(|| {
        let what = format!("is {}, which is not {}", column.data_type(), feature.feature.kind.words());
        Error::input(what).at(format!("column `{}`", feature.feature.name))
    })
}

fn fill(code: &Code, prepared: &Prepared<'_>, part: Part, rows: Range<usize>, out: &mut [f32]) {
    match (code, prepared) {
        (Code::Number(number), Prepared::Number(cells)) => match (&number.value, part) {
            (Some(standard), Part::Value) => standard.encode(cells, rows, out),
            _ => cells.missing(rows, out),
        },
        (_, Prepared::Codes(codes)) => {
            let wanted = match part {
                Part::Level(level) => level,
                Part::Other => OTHER,
                Part::Missing | Part::Value => MISSING,
            };
            for (out, code) in out.iter_mut().zip(&codes[rows]) {
                *out = if *code == wanted { 1.0 } else { 0.0 };
            }
        }
        _ => out.fill(0.0),
    }
}

/// Writes the first `n_columns` columns of a slab into rows, from `first_column` on.
fn turn(slab: &[[f32; ROWS]; COLUMNS], n_columns: usize, width: usize, first_column: usize, out: &mut [f32]) {
    let rows = out.chunks_exact_mut(width).map(|row| &mut row[first_column..first_column + n_columns]);
    if n_columns == COLUMNS {
        for (row, out) in rows.enumerate() {
            let line: [f32; COLUMNS] = std::array::from_fn(|column| slab[column][row]);
            out.copy_from_slice(&line);
        }
    } else {
        for (row, out) in rows.enumerate() {
            out.iter_mut().zip(slab).for_each(|(out, column)| *out = column[row]);
        }
    }
}
