//! Views of features: some rows of a table, or two tables one below the other.

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
}

/// The rows of one source, then those of another of the same width.
pub(super) struct StackedRows<'a> {
    pub(super) first: &'a dyn RowSource,
    pub(super) second: &'a dyn RowSource,
}

impl RowSource for StackedRows<'_> {
    fn n_rows(&self) -> usize {
        self.first.n_rows() + self.second.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.first.n_cols()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let n_first = self.first.n_rows() as u32;
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.n_cols().max(1))) {
            match row.checked_sub(n_first) {
                None => self.first.copy_rows(&[*row], out),
                Some(row) => self.second.copy_rows(&[row], out),
            }
        }
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
        let stacked = StackedRows { first: &a, second: &b };
        let some = SomeRows { x: &stacked, rows: &[2, 0, 1, 2] };
        assert_eq!((some.n_rows(), some.n_cols(), stacked.n_rows()), (4, 2, 3));
        let mut out = [0.0; 6];
        some.copy_rows(&[3, 1, 2], &mut out);
        assert_eq!(out, [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
    }
}
