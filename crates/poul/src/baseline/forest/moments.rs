//! Splits that part labels best: Σ_sides ‖Σ weight · label‖² / Σ weight, for labels of several numbers.
//!
//! Regression labels rows with what they are off the node's mean; the causal forest with gradients of its moment
//! equations. The rest is the same for both.

use super::criterion::Criterion;

/// Where the numbers of a label start: before it are the count, whether the treatment is above the node's mean, and the
/// weight. Widths are multiples of four, so that adding a row to a bin is a few vector instructions.
pub(super) const LABEL: usize = 3;

/// How rows are labelled in a node; `E` is [`LABEL`] and room for the label.
pub(super) trait Labels<const E: usize>: Sync {
    /// Writes [1, above, weight, weight · label…] for each row; `None` where the node cannot be split.
    fn label(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Least>;

    /// The numbers that a leaf keeps.
    fn leaf(&self, rows: &[u32], out: &mut Vec<f32>);
}

/// What each side of a split must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    pub(super) rows: f64,
    /// Rows with a treatment above the node's mean, and rows with one below.
    pub(super) of_each: f64,
}

/// Splits by labels.
pub(super) struct Moments<const E: usize, L>(pub(super) L);

impl<const E: usize, L: Labels<E>> Criterion for Moments<E, L> {
    type Row = [f32; E];
    type Bin = [f32; E];
    type Side = [f64; E];
    type Node = ([f64; E], Least);
    type Above = ();

    const EMPTY_BIN: [f32; E] = [0.0; E];
    const EMPTY_SIDE: [f64; E] = [0.0; E];

    fn relabel(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Self::Node> {
        out.clear();
        let least = self.0.label(rows, out)?;
        let mut total = [0.0; E];
        out.iter().for_each(|row| Self::gather(&mut total, row));
        Some((total, least))
    }

    #[inline]
    fn add(bin: &mut [f32; E], row: &[f32; E]) {
        bin.iter_mut().zip(row).for_each(|(bin, row)| *bin += row);
    }

    #[inline]
    fn gather(side: &mut [f64; E], bin: &[f32; E]) {
        side.iter_mut().zip(bin).for_each(|(side, bin)| *side += f64::from(*bin));
    }

    #[inline]
    fn count(side: &[f64; E]) -> f64 {
        side[0]
    }

    #[inline]
    fn merge(side: &mut [f64; E], other: &[f64; E]) {
        side.iter_mut().zip(other).for_each(|(side, other)| *side += other);
    }

    #[inline]
    fn score(&self, (total, least): &Self::Node, left: &[f64; E], least_score: f64) -> Option<f64> {
        let (n_left, n_right) = (left[0], total[0] - left[0]);
        if n_left < least.rows || n_right < least.rows {
            return None;
        }
        let (above_left, above_right) = (left[1], total[1] - left[1]);
        let fewest = above_left.min(above_right).min(n_left - above_left).min(n_right - above_right);
        let (weight_left, weight_right) = (left[2], total[2] - left[2]);
        if fewest < least.of_each || weight_left <= 0.0 || weight_right <= 0.0 {
            return None;
        }
        let (mut squares_left, mut squares_right) = (0.0, 0.0);
        for (left, total) in left[LABEL..].iter().zip(&total[LABEL..]) {
            squares_left += left * left;
            squares_right += (total - left) * (total - left);
        }
        // Most splits are not the best: they are told without a division.
        let product = weight_left * weight_right;
        let scaled = squares_left * weight_right + squares_right * weight_left;
        (scaled > least_score * product).then(|| scaled / product)
    }

    fn start(&self) {}

    fn inherit(&self, (): &(), _rows: &[u32]) {}

    fn leaf(&self, (): &(), rows: &[u32], out: &mut Vec<f32>) {
        self.0.leaf(rows, out);
    }
}
