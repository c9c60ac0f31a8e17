//! Sparse rows: the mixtures α_t(s, a) = w(s)·Π_t(a|s) of policies over atoms (paper, eq. 7).

use crate::{Error, Result};

/// A sparse matrix by rows: for each policy, the atoms it carries and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows {
    n_cols: usize,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl SparseRows {
    /// A matrix of `n_cols` columns from the (column, value) pairs of each row.
    ///
    /// Pairs are sorted by column, so their order never reaches a sum; a column given twice is an error.
    pub fn new<R>(n_cols: usize, rows: impl IntoIterator<Item = R>) -> Result<Self>
    where
        R: IntoIterator<Item = (u32, f32)>,
    {
        let mut matrix = Self { n_cols, starts: vec![0], columns: Vec::new(), values: Vec::new() };
        let mut pairs: Vec<(u32, f32)> = Vec::new();
        for (row_idx, row) in rows.into_iter().enumerate() {
            pairs.clear();
            pairs.extend(row);
            pairs.sort_by_key(|(column, _)| *column);
            let place = |what: String| Error::other(what).at(format!("sparse row {row_idx}"));
            if let Some((column, _)) = pairs.last().filter(|(column, _)| *column as usize >= n_cols) {
                return Err(place(format!("column {column} of a matrix with {n_cols} columns")));
            }
            if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(place(format!("column {} is given twice", pair[0].0)));
            }
            if let Some((column, value)) = pairs.iter().find(|(_, value)| !value.is_finite()) {
                // Numbers come from files: whoever wrote one beyond single precision is told, not us.
                let error = Error::input(format!("column {column} is {value}"));
                return Err(error
                    .at(format!("sparse row {row_idx}"))
                    .hint("a model with such numbers is damaged: fit again"));
            }
            matrix.columns.extend(pairs.iter().map(|(column, _)| *column));
            matrix.values.extend(pairs.iter().map(|(_, value)| *value));
            matrix.starts.push(matrix.columns.len());
        }
        Ok(matrix)
    }

    /// Rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Columns.
    pub(crate) fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The columns and values of a row.
    pub fn row(&self, row_idx: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.starts[row_idx]..self.starts[row_idx + 1];
        let columns = self.columns[range.clone()].iter().map(|column| *column as usize);
        columns.zip(self.values[range].iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_pairs_is_forgotten() {
        let a = SparseRows::new(4, [vec![(3, 0.5), (0, 0.25)], vec![]]).unwrap();
        let b = SparseRows::new(4, [vec![(0, 0.25), (3, 0.5)], vec![]]).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.row(0).collect::<Vec<_>>(), [(0, 0.25), (3, 0.5)]);
        assert_eq!((a.n_rows(), a.n_cols(), a.row(1).count()), (2, 4, 0));
    }

    #[test]
    fn wrong_pairs_are_placed() {
        for (row, what) in
            [(vec![(4, 1.0)], "column 4"), (vec![(1, 1.0), (1, 2.0)], "twice"), (vec![(1, f32::NAN)], "NaN")]
        {
            let error = SparseRows::new(4, [vec![], row]).unwrap_err().to_string();
            assert!(error.starts_with("sparse row 1: ") && error.contains(what), "{error}");
        }
    }
}
