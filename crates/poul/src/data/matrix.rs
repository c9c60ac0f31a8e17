//! Rows of numbers, in memory or beyond it.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use super::budget::Budget;
use super::gather::gather_rows;
use super::scratch::{Scratch, ScratchWriter};
use crate::{Error, Result};

/// A table of `f32`, row after row.
///
/// What exceeds the budget is kept in a scratch file. As a [`RowSource`](crate::net::RowSource) it then reads what it is
/// asked for and holds
/// nothing; [`values`](Self::values) maps the whole file, whose pages count as memory while they are used.
pub struct Matrix {
    n_rows: usize,
    width: usize,
    store: Store,
    /// Rows that training may hold at a time, where they are in a file.
    window_rows: usize,
    /// The first thing that went wrong when rows were read.
    failure: OnceLock<Error>,
}

enum Store {
    Memory(Vec<f32>),
    Scratch(Scratch),
}

impl Matrix {
    /// A matrix from its numbers, row after row; `None` if they are not whole rows.
    pub fn from_vec(width: usize, values: Vec<f32>) -> Option<Self> {
        let whole = width > 0 && values.len().is_multiple_of(width);
        whole.then(|| Self {
            n_rows: values.len() / width,
            width,
            store: Store::Memory(values),
            window_rows: 0,
            failure: OnceLock::new(),
        })
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

    /// Bytes of memory that the rows take; none where they are in a scratch file.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match &self.store {
            Store::Memory(values) => size_of_val(values.as_slice()) as u64,
            Store::Scratch(_) => 0,
        }
    }

    /// Whether the rows are in a scratch file.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.store, Store::Scratch(_))
    }
}

/// Rows between two that are wanted are read with them if they are so few.
const FEW_BETWEEN: u32 = 8;
/// Most numbers that are read at once.
const READ_VALUES: usize = 1 << 18;

impl Matrix {
    /// Copies rows by number. Those that cannot be read are NaN, and [`failure`](Self::failure) tells why.
    pub(crate) fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        match &self.store {
            Store::Memory(values) => gather_rows(values, self.width, rows, |row| row as usize, out),
            Store::Scratch(scratch) => {
                if let Err(error) = self.read_rows(scratch, rows, out) {
                    out.fill(f32::NAN);
                    self.failure.get_or_init(|| error);
                }
            }
        }
    }

    /// Rows that training may hold in memory at a time, where not all are there.
    pub(crate) fn window_rows(&self) -> Option<usize> {
        self.is_on_disk().then_some(self.window_rows)
    }

    /// The first thing that went wrong when rows were copied.
    pub(crate) fn failure(&self) -> Option<Error> {
        let told = |error: &Error| {
            Error::other(error.to_string()).hint(error.hint_text().unwrap_or("fit again").to_owned())
        };
        self.failure.get().map(told)
    }

    /// Rows that lie together are read together.
    fn read_rows(&self, scratch: &Scratch, rows: &[u32], out: &mut [f32]) -> Result<()> {
        let most_rows = (READ_VALUES / self.width).max(1);
        let (mut out, mut rest, mut together) = (out, rows, Vec::new());
        while let Some(first) = rest.first().copied() {
            let near = |(place, pair): (usize, &[u32])| {
                let ascends = pair[1] > pair[0] && pair[1] - pair[0] <= FEW_BETWEEN;
                (!(ascends && ((pair[1] - first) as usize) < most_rows)).then_some(place + 1)
            };
            let n = rest.windows(2).enumerate().find_map(near).unwrap_or(rest.len());
            let (now, later) = out.split_at_mut(n * self.width);
            let n_read = (rest[n - 1] - first) as usize + 1;
            let start = first as u64 * self.width as u64;
            if n_read == n {
                scratch.read(start, now)?;
            } else {
                together.resize(n_read * self.width, 0.0);
                scratch.read(start, &mut together)?;
                for (out, row) in now.chunks_exact_mut(self.width).zip(rest) {
                    out.copy_from_slice(&together[(row - first) as usize * self.width..][..self.width]);
                }
            }
            (out, rest) = (later, &rest[n..]);
        }
        Ok(())
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
        let (n_rows, width) = (self.n_rows, self.width);
        let window_rows = match &store {
            Store::Memory(_) => 0,
            Store::Scratch(_) => self.budget.window_rows(n_rows, width),
        };
        Ok(Matrix { n_rows, width, store, window_rows, failure: OnceLock::new() })
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
            for rows in [&[0, 1, 2][..], &[5, 7, 8, 40, 99], &[9, 9, 3, 4, 0], &[98], &[]] {
                let mut out = vec![0.0; rows.len() * 3];
                matrix.copy_rows(rows, &mut out);
                let own: Vec<f32> = rows.iter().flat_map(|row| matrix.row(*row as usize).to_vec()).collect();
                assert_eq!(out, own, "{rows:?}");
            }
            assert_eq!(matrix.window_rows().is_some(), on_disk);
            assert!(matrix.failure().is_none());
        }
    }

    #[test]
    fn an_empty_matrix_is_fine() {
        assert_eq!(build(0, Some(1000), 10).values(), &[] as &[f32]);
        assert!(Matrix::from_vec(3, vec![0.0; 4]).is_none());
        assert_eq!(Matrix::from_vec(2, vec![0.0; 4]).unwrap().n_rows(), 2);
    }
}
