//! The cells of a numeric feature, read without copies where the type allows.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::moments::BLOCK;
use crate::data::values::numbers;

/// Numbers of a column; missing ones are null, NaN or infinite.
pub(super) enum Cells<'a> {
    Single(&'a [f32], Option<&'a NullBuffer>),
    Double(&'a [f64], Option<&'a NullBuffer>),
    /// Converted; nulls are NaN.
    Owned(Vec<f64>),
}

impl<'a> Cells<'a> {
    /// `None` if the column is not numeric.
    pub(super) fn of(array: &'a ArrayRef) -> Option<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        match array.data_type() {
            DataType::Float32 => Some(Self::Single(array.as_primitive::<Float32Type>().values(), nulls)),
            DataType::Float64 => Some(Self::Double(array.as_primitive::<Float64Type>().values(), nulls)),
            _ => numbers(array).map(Self::Owned),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(values, _) => values.len(),
            Self::Double(values, _) => values.len(),
            Self::Owned(values) => values.len(),
        }
    }

    /// The value of a row, NaN where it is null.
    pub(super) fn get(&self, row: usize) -> f64 {
        let valid = |nulls: &Option<&NullBuffer>| nulls.is_none_or(|nulls| nulls.is_valid(row));
        match self {
            Self::Single(values, nulls) if valid(nulls) => f64::from(values[row]),
            Self::Double(values, nulls) if valid(nulls) => values[row],
            Self::Owned(values) => values[row],
            _ => f64::NAN,
        }
    }

    pub(super) fn nulls(&self) -> Option<&'a NullBuffer> {
        match self {
            Self::Single(_, nulls) | Self::Double(_, nulls) => *nulls,
            Self::Owned(_) => None,
        }
    }

    /// Gives the values that are not missing to `take`, in blocks.
    pub(super) fn for_each_block(&self, mut take: impl FnMut(&[f64])) {
        let mut block = [0.0; BLOCK];
        for start in (0..self.len()).step_by(BLOCK) {
            let rows = start..(start + BLOCK).min(self.len());
            let n = match self {
                Self::Single(values, None) => {
                    pack(&mut block, values[rows].iter().map(|value| f64::from(*value)))
                }
                Self::Double(values, None) => pack(&mut block, values[rows].iter().copied()),
                Self::Owned(values) => pack(&mut block, values[rows].iter().copied()),
                _ => pack(&mut block, rows.map(|row| self.get(row))),
            };
            take(&block[..n]);
        }
    }

    /// Marks missing rows of a range with 1 and others with 0.
    pub(super) fn missing(&self, rows: Range<usize>, out: &mut [f32]) {
        fn mark(missing: impl Iterator<Item = bool>, out: &mut [f32]) {
            out.iter_mut().zip(missing).for_each(|(out, missing)| *out = if missing { 1.0 } else { 0.0 });
        }
        match self {
            Self::Single(values, _) => mark(values[rows.clone()].iter().map(|value| !value.is_finite()), out),
            Self::Double(values, _) => mark(values[rows.clone()].iter().map(|value| !value.is_finite()), out),
            Self::Owned(values) => mark(values[rows.clone()].iter().map(|value| !value.is_finite()), out),
        }
        if let Some(nulls) = self.nulls() {
            for (out, row) in out.iter_mut().zip(rows) {
                if nulls.is_null(row) {
                    *out = 1.0;
                }
            }
        }
    }
}

/// Moves the finite values to the front; returns how many there are.
fn pack(block: &mut [f64; BLOCK], values: impl Iterator<Item = f64>) -> usize {
    let mut n = 0;
    for value in values {
        // Written before it is known to count: no branch.
        block[n.min(BLOCK - 1)] = value;
        n += usize::from(value.is_finite());
    }
    n
}
