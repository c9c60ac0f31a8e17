//! Rows of numbers, in memory or beyond it.

use std::fmt;
use std::ops::Range;

use super::budget::Budget;
use super::scratch::{Scratch, ScratchWriter};
use crate::Result;

/// A table of `f32`, row after row.
///
/// What exceeds the budget is kept in a mapped scratch file; reading is the same either way.
pub struct Matrix {
    n_rows: usize,
    width: usize,
    store: Store,
}

enum Store {
    Memory(Vec<f32>),
    Scratch(Scratch),
}

impl Matrix {
    /// A matrix from its numbers, row after row; `None` if they are not whole rows.
    pub fn from_vec(width: usize, values: Vec<f32>) -> Option<Self> {
        let whole = width > 0 && values.len().is_multiple_of(width);
        whole.then(|| Self { n_rows: values.len() / width, width, store: Store::Memory(values) })
    }

    /// How many rows it has.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// How many numbers a row has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row number `row`. Panics beyond the last, as slices do.
    pub fn row(&self, row: usize) -> &[f32] {
        self.rows(row..row + 1)
    }

    /// The numbers of neighbouring rows. Panics beyond the last, as slices do.
    pub fn rows(&self, rows: Range<usize>) -> &[f32] {
        &self.values()[rows.start * self.width..rows.end * self.width]
    }

    /// All numbers.
    pub fn values(&self) -> &[f32] {
        match &self.store {
            Store::Memory(values) => values,
            Store::Scratch(scratch) => scratch.values(),
        }
    }

    /// Whether the rows are in a scratch file.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.store, Store::Scratch(_))
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_on_disk() { "on disk" } else { "in memory" };
        write!(f, "Matrix({} × {}, {place})", self.n_rows, self.width)
    }
}

/// A matrix being filled, block after block.
pub struct MatrixBuilder {
    width: usize,
    n_rows: usize,
    expected_bytes: Option<u64>,
    budget: Budget,
    filling: Filling,
}

enum Filling {
    /// The first `n_filled` numbers are rows; the rest is zero.
    Memory {
        values: Vec<f32>,
        n_filled: usize,
    },
    Scratch {
        writer: ScratchWriter,
        block: Vec<f32>,
    },
}

const BYTES: u64 = size_of::<f32>() as u64;

impl MatrixBuilder {
    /// Starts a matrix; `expected_rows` is an upper bound where one is known.
    pub fn new(width: usize, expected_rows: Option<u64>, budget: &Budget) -> Result<Self> {
        let expected_bytes =
            expected_rows.map(|rows| rows.saturating_mul(width as u64).saturating_mul(BYTES));
        let fits = expected_bytes.is_none_or(|bytes| bytes <= budget.bytes);
        let filling = match zeros((expected_bytes.unwrap_or(0) / BYTES) as usize) {
            Some(values) if fits => Filling::Memory { values, n_filled: 0 },
            _ => {
                let writer = ScratchWriter::create(&budget.scratch_folder, expected_bytes)?;
                Filling::Scratch { writer, block: Vec::new() }
            }
        };
        Ok(Self { width, n_rows: 0, expected_bytes, budget: budget.clone(), filling })
    }

    /// Appends `n_rows` rows, which `fill` writes into zeroed memory.
    pub fn append(&mut self, n_rows: usize, fill: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()> {
        let n_values = n_rows * self.width;
        self.make_room(n_values)?;
        match &mut self.filling {
            Filling::Memory { values, n_filled } => {
                fill(&mut values[*n_filled..*n_filled + n_values])?;
                *n_filled += n_values;
            }
            Filling::Scratch { writer, block } => {
                block.clear();
                block.resize(n_values, 0.0);
                fill(block)?;
                writer.write(block)?;
            }
        }
        self.n_rows += n_rows;
        Ok(())
    }

    /// The matrix.
    pub fn finish(self) -> Result<Matrix> {
        let store = match self.filling {
            Filling::Memory { mut values, n_filled } => {
                values.truncate(n_filled);
                values.shrink_to_fit();
                Store::Memory(values)
            }
            Filling::Scratch { writer, .. } => Store::Scratch(writer.finish()?),
        };
        Ok(Matrix { n_rows: self.n_rows, width: self.width, store })
    }

    /// Grows the memory, or moves to a scratch file where the budget does not allow it.
    fn make_room(&mut self, n_values: usize) -> Result<()> {
        let Filling::Memory { values, n_filled } = &mut self.filling else { return Ok(()) };
        let needed = *n_filled + n_values;
        if needed <= values.len() {
            return Ok(());
        }
        let grown = needed.max(2 * values.len());
        // A vector that grows holds its old self too.
        let peak = (grown + values.len()) as u64 * BYTES;
        if peak <= self.budget.bytes && values.try_reserve_exact(grown - values.len()).is_ok() {
            values.resize(grown, 0.0);
            return Ok(());
        }
        let mut writer = ScratchWriter::create(&self.budget.scratch_folder, self.expected_bytes)?;
        writer.write(&values[..*n_filled])?;
        self.filling = Filling::Scratch { writer, block: Vec::new() };
        Ok(())
    }
}

/// So many zeros, if there is memory for them. The system gives pages when they are first written, which here is by
/// the threads that fill them.
fn zeros(n: usize) -> Option<Vec<f32>> {
    Vec::<f32>::new().try_reserve_exact(n).ok()?;
    Some(vec![0.0; n])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(n_rows: usize, expected: Option<u64>, budget: u64) -> Matrix {
        let mut builder = MatrixBuilder::new(3, expected, &Budget::of(budget)).unwrap();
        let mut next = 0;
        while next < n_rows {
            let rows = 7.min(n_rows - next);
            builder
                .append(rows, |out| {
                    assert_eq!(out.len(), rows * 3);
                    out.iter_mut().enumerate().for_each(|(idx, out)| *out = (next * 3 + idx) as f32);
                    Ok(())
                })
                .unwrap();
            next += rows;
        }
        builder.finish().unwrap()
    }

    #[test]
    fn memory_and_disk_hold_the_same() {
        let expected: Vec<f32> = (0..300).map(|value| value as f32).collect();
        for (rows_hint, budget, on_disk) in [
            (Some(100), 1 << 20, false),
            (Some(100), 1000, true),
            (None, 1 << 20, false),
            (None, 1000, true),
            // More rows than promised.
            (Some(10), 1000, true),
        ] {
            let matrix = build(100, rows_hint, budget);
            assert_eq!(matrix.is_on_disk(), on_disk, "{rows_hint:?} {budget}");
            assert_eq!((matrix.n_rows(), matrix.width()), (100, 3));
            assert_eq!(matrix.values(), expected);
            assert_eq!(matrix.row(99), [297.0, 298.0, 299.0]);
            assert_eq!(matrix.rows(1..3), &expected[3..9]);
        }
    }

    #[test]
    fn an_empty_matrix_is_fine() {
        assert_eq!(build(0, Some(1000), 10).values(), &[] as &[f32]);
        assert!(Matrix::from_vec(3, vec![0.0; 4]).is_none());
        assert_eq!(Matrix::from_vec(2, vec![0.0; 4]).unwrap().n_rows(), 2);
    }
}
