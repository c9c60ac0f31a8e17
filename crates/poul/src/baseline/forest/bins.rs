//! Features in at most 255 bins of about equal size, one byte each: what trees see of a row.

use rayon::prelude::*;

use crate::effect::{Tensor, Tensors};
use crate::net::RowSource;
use crate::{Error, Result};

/// The bin of missing values. Bins of values are numbered below it.
pub(super) const MISSING: u8 = 255;
/// Bins of values.
const MOST_BINS: usize = 255;
/// Cuts are learned from so many rows, evenly spaced.
const MOST_SAMPLED: usize = 1 << 17;
/// Rows that are copied out at once.
const BLOCK_ROWS: usize = 4096;
/// Nodes with fewer rows read them one by one.
const FEW_ROWS: usize = 2048;

/// Where the bins of each feature end: a value's bin is the number of cuts below it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cuts(Vec<Vec<f32>>);

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

impl Cuts {
    /// Learns the cuts from some rows of `x`.
    pub(super) fn learn(x: &dyn RowSource, rows: &[u32]) -> Self {
        let step = rows.len().div_ceil(MOST_SAMPLED).max(1);
        let sampled: Vec<u32> = rows.iter().copied().step_by(step).collect();
        let n_cols = x.n_cols();
        let mut columns = vec![Vec::with_capacity(sampled.len()); n_cols];
        let mut block = vec![0.0; BLOCK_ROWS * n_cols];
        for rows in sampled.chunks(BLOCK_ROWS) {
            let block = &mut block[..rows.len() * n_cols];
            x.copy_rows(rows, block);
            for (feature, column) in columns.iter_mut().enumerate() {
                let values = block.iter().skip(feature).step_by(n_cols);
                column.extend(values.copied().filter(|value| !value.is_nan()));
            }
        }
        Self(columns.into_par_iter().map(cuts_of).collect())
    }

    pub(super) fn n_features(&self) -> usize {
        self.0.len()
    }

    /// The bins of one row.
    pub(super) fn bin_row(&self, row: &[f32], out: &mut [u8]) {
        for ((value, cuts), out) in row.iter().zip(&self.0).zip(out) {
            *out = bin_of(cuts, *value);
        }
    }

    pub(super) fn tensors(&self, name: &str) -> Vec<Tensor<'static>> {
        let lengths: Vec<f32> = self.0.iter().map(|cuts| cuts.len() as f32).collect();
        let cuts = self.0.concat();
        vec![
            Tensor::new(format!("{name}.cuts"), &[cuts.len()], cuts),
            Tensor::new(format!("{name}.cuts_of_feature"), &[lengths.len()], lengths),
        ]
    }

    pub(super) fn load(name: &str, n_features: usize, tensors: &mut Tensors) -> Result<Self> {
        let lengths = tensors.take(&format!("{name}.cuts_of_feature"), &[n_features])?;
        let lengths: Vec<usize> = lengths.iter().map(|length| *length as usize).collect();
        let damaged =
            || Error::input("the bins of features are wrong").hint("the file is damaged: fit again");
        if lengths.iter().any(|length| *length >= MOST_BINS) {
            return Err(damaged());
        }
        let all = tensors.take(&format!("{name}.cuts"), &[lengths.iter().sum()])?;
        let mut rest = all.as_slice();
        let mut cuts = Vec::with_capacity(n_features);
        for length in lengths {
            let (own, others) = rest.split_at(length);
            if !own.is_sorted_by(|a, b| a < b) {
                return Err(damaged());
            }
            cuts.push(own.to_vec());
            rest = others;
        }
        Ok(Self(cuts))
    }
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

fn bin_of(cuts: &[f32], value: f32) -> u8 {
    if value.is_nan() { MISSING } else { cuts.partition_point(|cut| *cut < value) as u8 }
}

/// Cuts halfway between neighbouring values: between all where they are few, and otherwise such that what is left is
/// shared out evenly, so that one frequent value does not starve the others.
fn cuts_of(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_unstable_by(f32::total_cmp);
    let runs: Vec<&[f32]> = values.chunk_by(|a, b| a == b).collect();
    let mut cuts: Vec<f32> = Vec::new();
    let (mut in_bin, mut left) = (0, values.len());
    for (run, pair) in runs.windows(2).enumerate() {
        in_bin += pair[0].len();
        let bins_left = MOST_BINS - cuts.len();
        let few = runs.len() - run <= bins_left;
        if bins_left > 1 && (few || in_bin * bins_left >= left) {
            cuts.push(between(pair[0][0], pair[1][0]));
            left -= in_bin;
            in_bin = 0;
        }
    }
    cuts.dedup();
    cuts
}

/// A finite number from `low` on that is below `high`.
fn between(low: f32, high: f32) -> f32 {
    let middle = low / 2.0 + high / 2.0;
    let inside = middle.is_finite() && low <= middle && middle < high;
    if inside { middle } else { low.max(f32::MIN) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn few_values_have_a_bin_each_and_missing_ones_their_own() {
        let x = [1.0, f32::NAN, 3.0, 1.0, 2.0, f32::INFINITY, f32::NEG_INFINITY, -0.0];
        let x = DenseRows::new(&x, 1).unwrap();
        let rows: Vec<u32> = (0..8).collect();
        let cuts = Cuts::learn(&x, &rows);
        let bins = Bins::new(&cuts, &x, &rows);
        assert_eq!(bins.column(0), [2, MISSING, 4, 2, 3, 5, 0, 1]);
        assert!(cuts.0[0].iter().all(|cut| cut.is_finite()));
        assert_eq!(bins.varying, [0]);
    }

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

    #[test]
    fn cuts_survive_storage_and_damage_is_told() {
        let x = [1.0, 5.0, 2.0, 5.0, 3.0, 5.0];
        let cuts = Cuts::learn(&DenseRows::new(&x, 2).unwrap(), &[0, 1, 2]);
        let stored = |change: fn(&mut Vec<f32>)| {
            let mut tensors = Tensors::default();
            for tensor in cuts.tensors("f") {
                let mut values = tensor.values.to_vec();
                if tensor.name == "f.cuts" {
                    change(&mut values);
                }
                tensors.insert(tensor.name, tensor.shape, values);
            }
            Cuts::load("f", 2, &mut tensors)
        };
        assert_eq!(stored(|_| ()).unwrap(), cuts);
        assert!(stored(|cuts| cuts.reverse()).is_err());
    }
}
