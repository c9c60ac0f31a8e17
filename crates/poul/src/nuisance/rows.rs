//! Views of features: some rows of a table, or several tables one below the other.

use crate::Error;
use crate::net::RowSource;

/// Some rows of a source, by number.
pub(crate) struct SomeRows<'a> {
    pub(crate) x: &'a dyn RowSource,
    pub(crate) rows: &'a [u32],
}

impl RowSource for SomeRows<'_> {
    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn n_cols(&self) -> usize {
        self.x.n_cols()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let rows: Vec<u32> = rows.iter().map(|row| self.rows[*row as usize]).collect();
        self.x.copy_rows(&rows, out);
    }

    fn exposure(&self, row: usize) -> Option<&[f32]> {
        self.x.exposure(self.rows[row] as usize)
    }

    fn window_rows(&self) -> Option<usize> {
        self.x.window_rows()
    }

    fn failure(&self) -> Option<Error> {
        self.x.failure()
    }
}

/// The rows of one source, then those of the next, all of the same width.
pub(crate) struct StackedRows<'a> {
    parts: Vec<&'a dyn RowSource>,
    /// Where each part begins.
    starts: Vec<usize>,
    n_rows: usize,
}

impl<'a> StackedRows<'a> {
    pub(crate) fn new(parts: Vec<&'a dyn RowSource>) -> Self {
        let mut n_rows = 0;
        let mut start = |part: &&dyn RowSource| {
            n_rows += part.n_rows();
            n_rows - part.n_rows()
        };
        let starts = parts.iter().map(&mut start).collect();
        Self { parts, starts, n_rows }
    }
}

impl RowSource for StackedRows<'_> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.parts.first().map_or(0, |part| part.n_cols())
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let part_of =
            |row: u32| self.starts.partition_point(|start| *start <= row as usize).saturating_sub(1);
        let mut out = out;
        let mut own = Vec::with_capacity(rows.len());
        // Neighbours of one part are asked for together: it may have to read them.
        for rows in rows.chunk_by(|a, b| part_of(*a) == part_of(*b)) {
            let part = rows.first().map_or(0, |row| part_of(*row));
            own.clear();
            own.extend(rows.iter().map(|row| row - self.starts[part] as u32));
            let (now, later) = out.split_at_mut(rows.len() * self.n_cols());
            self.parts[part].copy_rows(&own, now);
            out = later;
        }
    }

    fn window_rows(&self) -> Option<usize> {
        self.parts.iter().filter_map(|part| part.window_rows()).min()
    }

    fn failure(&self) -> Option<Error> {
        self.parts.iter().find_map(|part| part.failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn views_give_the_rows_they_stand_for() {
        let (a, b) = ([0.0, 1.0, 2.0, 3.0], [4.0, 5.0]);
        let (a, b) = (DenseRows::new(&a, 2).unwrap(), DenseRows::new(&b, 2).unwrap());
        let none = DenseRows::new(&[], 2).unwrap();
        let stacked = StackedRows::new(vec![&none, &a, &none, &b]);
        let some = SomeRows { x: &stacked, rows: &[2, 0, 1, 2] };
        assert_eq!((some.n_rows(), some.n_cols(), stacked.n_rows()), (4, 2, 3));
        let mut out = [0.0; 6];
        some.copy_rows(&[3, 1, 2], &mut out);
        assert_eq!(out, [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
    }
}
