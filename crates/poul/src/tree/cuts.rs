//! Features in at most 255 bins of about equal size, one byte each: what trees see of a row.

use rayon::prelude::*;

use crate::net::RowSource;

/// The bin of missing values. Bins of values are numbered below it.
pub(crate) const MISSING: u8 = 255;
/// Bins of values.
const MOST_BINS: usize = 255;
/// Cuts are learned from so many rows, evenly spaced.
const MOST_SAMPLED: usize = 1 << 17;
/// Rows that are copied out at once.
const BLOCK_ROWS: usize = 4096;

/// Where the bins of each feature end: a value's bin is the number of cuts below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cuts(Vec<Vec<f32>>);

impl Cuts {
    /// Learns the cuts from some rows of `x`.
    pub(crate) fn learn(x: &dyn RowSource, rows: &[u32]) -> Self {
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

    pub(crate) fn n_features(&self) -> usize {
        self.0.len()
    }

    /// The bins of one row.
    pub(crate) fn bin_row(&self, row: &[f32], out: &mut [u8]) {
        for ((value, cuts), out) in row.iter().zip(&self.0).zip(out) {
            *out = bin_of(cuts, *value);
        }
    }

    /// How many bins the values of a feature have.
    pub(crate) fn n_bins(&self, feature: usize) -> usize {
        self.0[feature].len() + 1
    }

    /// The cuts of all features, one after the other, and how many each has: what a model file keeps.
    pub(crate) fn parts(&self) -> (Vec<f32>, Vec<f32>) {
        (self.0.concat(), self.0.iter().map(|cuts| cuts.len() as f32).collect())
    }

    /// How many cuts there are, by the second of [`parts`](Self::parts); none where a file is damaged.
    pub(crate) fn count(lengths: &[f32]) -> Option<usize> {
        let sound = |length: &f32| (0.0..MOST_BINS as f32).contains(length);
        lengths.iter().all(sound).then(|| lengths.iter().map(|length| *length as usize).sum())
    }

    /// From [`parts`](Self::parts); none where they contradict each other.
    pub(crate) fn from_parts(all: &[f32], lengths: &[f32]) -> Option<Self> {
        if Self::count(lengths)? != all.len() {
            return None;
        }
        let mut rest = all;
        let mut cuts = Vec::with_capacity(lengths.len());
        for length in lengths {
            let (own, others) = rest.split_at(*length as usize);
            if !own.is_sorted_by(|a, b| a < b) {
                return None;
            }
            cuts.push(own.to_vec());
            rest = others;
        }
        Some(Self(cuts))
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
        let cuts = Cuts::learn(&DenseRows::new(&x, 1).unwrap(), &[0, 1, 2, 3, 4, 5, 6, 7]);
        let bin = |value: &f32| {
            let mut bin = [0];
            cuts.bin_row(&[*value], &mut bin);
            bin[0]
        };
        assert_eq!(x.iter().map(bin).collect::<Vec<u8>>(), [2, MISSING, 4, 2, 3, 5, 0, 1]);
        assert!(cuts.0[0].iter().all(|cut| cut.is_finite()));
        assert_eq!(cuts.n_bins(0), 6);
    }

    #[test]
    fn cuts_survive_storage_and_damage_is_told() {
        let x = [1.0, 5.0, 2.0, 5.0, 3.0, 5.0];
        let cuts = Cuts::learn(&DenseRows::new(&x, 2).unwrap(), &[0, 1, 2]);
        let (mut all, lengths) = cuts.parts();
        assert_eq!(Cuts::from_parts(&all, &lengths), Some(cuts));
        assert_eq!(Cuts::from_parts(&all[1..], &lengths), None);
        assert_eq!(Cuts::from_parts(&all, &[255.0, 0.0]), None);
        all.reverse();
        assert_eq!(Cuts::from_parts(&all, &lengths), None);
    }
}
