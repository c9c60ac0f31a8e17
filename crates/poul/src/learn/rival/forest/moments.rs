//! Splits that part labels best: Σ_sides ‖Σ weight · label‖² / Σ weight, for labels of several numbers.
//!
//! Regression labels rows with what they are off the node's mean; the causal forest with gradients of its moment
//! equations. The rest is the same for both. Labels of a node add up to nothing, so what is on the right is what is on the
//! left with its sign changed, and one square does for both sides: ‖L‖²/w_L + ‖L‖²/w_R = ‖L‖² w / (w_L · w_R).

use super::criterion::Criterion;

/// Where the label starts in what a row adds to its bin, if all rows weigh the same: [1, label…].
pub(super) const PLAIN: usize = 1;
/// The same where weights matter, or on which side of the node's mean treatment a row is: [1, above, weight, label…].
pub(super) const FULL: usize = 3;

/// How rows are labelled in a node. `E` numbers are added for each row, a multiple of four that vector instructions like;
/// the label starts at `FIRST`, which is [`PLAIN`] or [`FULL`].
pub(super) trait Labels<const E: usize, const FIRST: usize>: Sync {
    /// Writes the numbers of each row, weight · label last; `None` where the node cannot be split. Over the rows, weight ·
    /// label adds up to 0.
    fn label(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Least>;

    /// The numbers that a leaf keeps.
    fn leaf(&self, rows: &[u32], out: &mut Vec<f32>);
}

/// What each side of a split must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    pub(super) rows: f64,
    /// Rows with a treatment above the node's mean, and rows with one below; only where rows are labelled in [`FULL`].
    pub(super) of_each: f64,
}

/// Splits by labels.
pub(super) struct Moments<const E: usize, const FIRST: usize, L>(pub(super) L);

/// What the splits of a node have in common.
pub(super) struct Whole {
    n_rows: f64,
    above: f64,
    weight: f64,
    least: Least,
}

impl<const E: usize, const FIRST: usize, L: Labels<E, FIRST>> Criterion for Moments<E, FIRST, L> {
    type Row = [f32; E];
    type Bin = [f32; E];
    type Side = [f64; E];
    type Node = Whole;
    type Above = ();

    const EMPTY_BIN: [f32; E] = [0.0; E];
    const EMPTY_SIDE: [f64; E] = [0.0; E];

    fn relabel(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Whole> {
        out.clear();
        let least = self.0.label(rows, out)?;
        let n_rows = rows.len() as f64;
        if FIRST == PLAIN {
            return Some(Whole { n_rows, above: 0.0, weight: n_rows, least });
        }
        let sum = |place: usize| out.iter().map(|row| f64::from(row[place])).sum::<f64>();
        Some(Whole { n_rows, above: sum(1), weight: sum(2), least })
    }

    // Whole arrays are built, which compiles to vector instructions; adding in place, number by number, does not.
    #[inline(always)]
    fn add(bin: &mut [f32; E], row: &[f32; E]) {
        *bin = std::array::from_fn(|place| bin[place] + row[place]);
    }

    #[inline(always)]
    fn gather(side: &mut [f64; E], bin: &[f32; E]) {
        *side = std::array::from_fn(|place| side[place] + f64::from(bin[place]));
    }

    #[inline(always)]
    fn count(side: &[f64; E]) -> f64 {
        side[0]
    }

    #[inline(always)]
    fn merge(side: &mut [f64; E], other: &[f64; E]) {
        *side = std::array::from_fn(|place| side[place] + other[place]);
    }

    #[inline(always)]
    fn score(&self, node: &Whole, left: &[f64; E], least_score: f64) -> Option<f64> {
        let least = &node.least;
        let (n_left, n_right) = (left[0], node.n_rows - left[0]);
        if n_left < least.rows || n_right < least.rows {
            return None;
        }
        let mut weight_left = n_left;
        if FIRST == FULL {
            weight_left = left[2];
            let (above_left, above_right) = (left[1], node.above - left[1]);
            let fewest = above_left.min(above_right).min(n_left - above_left).min(n_right - above_right);
            if fewest < least.of_each {
                return None;
            }
        }
        let weight_right = node.weight - weight_left;
        if weight_left <= 0.0 || weight_right <= 0.0 {
            return None;
        }
        // Most splits are not the best: they are told without a division.
        let product = weight_left * weight_right;
        let scaled = squares::<E, FIRST>(left) * node.weight;
        (scaled > least_score * product).then(|| scaled / product)
    }

    #[inline(always)]
    fn is_over(&self, node: &Whole, left: &[f64; E]) -> bool {
        node.n_rows - left[0] < node.least.rows
    }

    fn start(&self) {}

    fn inherit(&self, (): &(), _rows: &[u32]) {}

    fn leaf(&self, (): &(), rows: &[u32], out: &mut Vec<f32>) {
        self.0.leaf(rows, out);
    }
}

/// ‖label‖², in four sums side by side.
#[inline(always)]
fn squares<const E: usize, const FIRST: usize>(side: &[f64; E]) -> f64 {
    let mut sums = [0.0; 4];
    for (block, values) in side.chunks_exact(4).enumerate() {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let value = if 4 * block + lane < FIRST { 0.0 } else { values[lane] };
            *sum += value * value;
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}
