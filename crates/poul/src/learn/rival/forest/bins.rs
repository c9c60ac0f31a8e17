//! The rows that forests are grown on, by bin.

use rayon::prelude::*;

use crate::net::RowSource;
use crate::tree::Cuts;

/// Rows that are copied out at once.
const BLOCK_ROWS: usize = 4096;
/// Nodes with fewer rows read them one by one.
const FEW_ROWS: usize = 2048;

/// The rows of the training data by bin, feature after feature and row after row: large nodes read whole columns, small
/// ones a few rows, whose features share cache lines.
pub(super) struct Bins {
    n_rows: usize,
    n_features: usize,
    columns: Vec<u8>,
    rows: Vec<u8>,
    /// Features with more than one bin: the only ones that can split.
    pub(super) varying: Vec<u32>,
}

impl Bins {
    /// The bins of some rows of `x`, numbered in their order.
    pub(super) fn new(cuts: &Cuts, x: &dyn RowSource, rows: &[u32]) -> Self {
        let (n_rows, n_cols) = (rows.len(), cuts.n_features());
        let mut bins = vec![0; n_rows * n_cols];
        let blocks = bins.par_chunks_mut(BLOCK_ROWS * n_cols.max(1)).zip(rows.par_chunks(BLOCK_ROWS));
        blocks.for_each(|(bins, rows)| {
            let mut block = vec![0.0; rows.len() * n_cols];
            x.copy_rows(rows, &mut block);
            for (values, out) in block.chunks_exact(n_cols).zip(bins.chunks_exact_mut(n_cols)) {
                cuts.bin_row(values, out);
            }
        });
        let mut columns = vec![0; n_rows * n_cols];
        columns.par_chunks_mut(n_rows.max(1)).enumerate().for_each(|(feature, column)| {
            let values = bins.iter().skip(feature).step_by(n_cols);
            column.iter_mut().zip(values).for_each(|(out, bin)| *out = *bin);
        });
        let varies = |feature: &u32| {
            let column = &columns[*feature as usize * n_rows..][..n_rows];
            column.iter().any(|bin| *bin != column[0])
        };
        let varying = (0..n_cols as u32).filter(varies).collect();
        Self { n_rows, n_features: n_cols, columns, rows: bins, varying }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn n_features(&self) -> usize {
        self.n_features
    }

    /// The bin of every row in one feature.
    pub(super) fn column(&self, feature: u32) -> &[u8] {
        &self.columns[feature as usize * self.n_rows..][..self.n_rows]
    }

    /// Consecutive rows, row after row.
    pub(super) fn rows(&self, rows: std::ops::Range<usize>) -> &[u8] {
        &self.rows[rows.start * self.n_features..rows.end * self.n_features]
    }

    /// The bins of some rows in one feature: from its column where rows are many, and otherwise from the rows themselves.
    #[inline(always)]
    pub(super) fn of<'a>(&'a self, feature: u32, rows: &'a [u32]) -> impl Iterator<Item = u8> + 'a {
        let (bins, stride, first) = match rows.len() < FEW_ROWS {
            true => (&self.rows, self.n_features, feature as usize),
            false => (&self.columns, 1, feature as usize * self.n_rows),
        };
        let bins = &bins[first..];
        rows.iter().map(move |row| bins[*row as usize * stride])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn many_values_share_bins_evenly_around_a_frequent_one() {
        // Half of the values are 0, the others are all different.
        let x: Vec<f32> = (0..20_000).map(|row| if row % 2 == 0 { 0.0 } else { row as f32 }).collect();
        let x = DenseRows::new(&x, 1).unwrap();
        let rows: Vec<u32> = (0..20_000).collect();
        let bins = Bins::new(&Cuts::learn(&x, &rows), &x, &rows);
        let mut counts = [0; 256];
        bins.column(0).iter().for_each(|bin| counts[usize::from(*bin)] += 1);
        assert_eq!(counts[0], 10_000);
        let used = counts[1..255].iter().filter(|count| **count > 0);
        assert!(used.clone().count() > 240, "{counts:?}");
        assert!(used.into_iter().all(|count| (20..=80).contains(count)), "{counts:?}");
        assert_eq!(bins.rows(1..4), [bins.column(0)[1], 0, bins.column(0)[3]]);
    }
}
