//! The best split of a node: where the quadratic approximation of the loss falls most,
//! G_l²/(H_l + λ) + G_r²/(H_r + λ) − G²/(H + λ).

use super::histogram::Sums;
use crate::tree::MISSING;

/// A gain must be more than rounding, in units of what the node has.
const ROUNDING: f64 = 1e-12;

/// A split that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) feature: u32,
    /// The last bin that goes left.
    pub(super) bin: u8,
    pub(super) missing_left: bool,
    /// By how much the loss falls, in units that all nodes of a tree share.
    pub(super) gain: f64,
    /// The sums of the left side.
    pub(super) left: Sums,
}

/// What splits must keep to, in the units of sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The least curvature of a side.
    pub(super) least: f64,
    /// λ.
    pub(super) l2: f64,
}

/// The best split on the features of a tile, of which `first` is the first; `bins` are those of
/// [`Histogram`](super::histogram::Histogram).
pub(super) fn best_of_tile(
    first: usize,
    n_bins: &[usize],
    bins: &[Sums],
    node: Sums,
    limits: Limits,
) -> Option<Split> {
    if node[1] < 2.0 * limits.least {
        return None;
    }
    let mut search = Search { node, limits, best: Best { above: 0.0, below: 1.0, ..Best::default() } };
    let mut rest = bins;
    for (place, n_bins) in n_bins.iter().enumerate() {
        let (own, others) = rest.split_at(n_bins + 1);
        let (values, missing) = own.split_at(*n_bins);
        search.feature((first + place) as u32, values, missing[0]);
        rest = others;
    }
    let Search { best, .. } = search;
    let whole = node[0] * node[0] / (node[1] + limits.l2);
    let parts = best.above / best.below;
    (parts - whole > ROUNDING * parts).then(|| Split {
        feature: best.feature,
        bin: best.bin,
        missing_left: best.missing_left.unwrap_or(2.0 * best.left[1] >= node[1]),
        gain: parts - whole,
        left: best.left,
    })
}

struct Search {
    node: Sums,
    limits: Limits,
    best: Best,
}

/// The score of the best split is above/below: fractions are compared without dividing.
#[derive(Clone, Copy, Default)]
struct Best {
    above: f64,
    below: f64,
    feature: u32,
    bin: u8,
    /// None where the node has no missing values.
    missing_left: Option<bool>,
    left: Sums,
}

impl Search {
    /// Tries every cut of a feature, with missing values on either side where there are any.
    fn feature(&mut self, feature: u32, values: &[Sums], missing: Sums) {
        let before = self.best;
        let cuts = &values[..values.len() - 1];
        if missing[1] > 0.0 {
            // The last of these parts values from missing ones.
            self.scan([0.0; 2], values, Some(false));
            self.scan(missing, cuts, Some(true));
        } else {
            self.scan([0.0; 2], cuts, None);
        }
        if (before.above, before.below) == (self.best.above, self.best.below) {
            return;
        }
        self.best.feature = feature;
        // Halfway to the next bin that has rows: values in between fall on the nearer side.
        let bin = usize::from(self.best.bin);
        let next = (bin + 1..values.len()).find(|next| values[*next][1] > 0.0);
        self.best.bin = next.map_or(MISSING - 1, |next| usize::midpoint(bin, next) as u8);
    }

    #[inline(always)]
    fn scan(&mut self, start: Sums, bins: &[Sums], missing_left: Option<bool>) {
        let (Limits { least, l2 }, node) = (self.limits, self.node);
        let mut left = start;
        for (bin, sums) in bins.iter().enumerate() {
            left = [left[0] + sums[0], left[1] + sums[1]];
            let right = [node[0] - left[0], node[1] - left[1]];
            if right[1] < least {
                return;
            }
            if left[1] < least {
                continue;
            }
            let (on_left, on_right) = (left[1] + l2, right[1] + l2);
            let above = left[0] * left[0] * on_right + right[0] * right[0] * on_left;
            let below = on_left * on_right;
            if above * self.best.below > self.best.above * below {
                self.best = Best { above, below, bin: bin as u8, missing_left, left, ..self.best };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { least: 2.0, l2: 1.0 };

    fn gain(left: Sums, node: Sums) -> f64 {
        let part = |[g, h]: Sums| g * g / (h + 1.0);
        part(left) + part([node[0] - left[0], node[1] - left[1]]) - part(node)
    }

    #[test]
    fn the_best_cut_is_that_of_trying_all() {
        // Two features; the second bin of the first is empty.
        let bins = [
            [3.0, 2.0],
            [0.0, 0.0],
            [-4.0, 3.0],
            [0.0, 0.0],
            [0.0, 0.0],
            [1.0, 4.0],
            [-2.0, 1.0],
            [0.0, 0.0],
        ];
        let node = [-1.0, 5.0];
        let found = best_of_tile(8, &[4, 2], &bins, node, LIMITS).unwrap();
        assert_eq!((found.feature, found.bin, found.left), (8, 1, [3.0, 2.0]));
        assert!((found.gain - gain([3.0, 2.0], node)).abs() < 1e-12);
        // The majority decides where missing values go that the node did not have.
        assert!(!found.missing_left);
    }

    #[test]
    fn missing_values_go_where_they_gain() {
        for (sign, missing_left) in [(1.0, true), (-1.0, false)] {
            let bins = [[4.0, 3.0], [-4.0, 3.0], [3.0 * sign, 2.0]];
            let node = [3.0 * sign, 8.0];
            let found = best_of_tile(0, &[2], &bins, node, LIMITS).unwrap();
            assert_eq!((found.bin, found.missing_left), (0, missing_left));
        }
        // Values from missing ones.
        let bins = [[4.0, 3.0], [4.0, 3.0], [-8.0, 4.0]];
        let found = best_of_tile(0, &[2], &bins, [0.0, 10.0], LIMITS).unwrap();
        assert_eq!((found.bin, found.missing_left), (MISSING - 1, false));
    }

    #[test]
    fn sides_have_their_least_and_nothing_is_split_for_nothing() {
        let bins = [[9.0, 1.0], [-9.0, 7.0], [0.0, 0.0]];
        assert_eq!(best_of_tile(0, &[2], &bins, [0.0, 8.0], LIMITS), None);
        // The same everywhere.
        let bins = [[3.0, 3.0], [3.0, 3.0], [0.0, 0.0]];
        assert_eq!(best_of_tile(0, &[2], &bins, [6.0, 6.0], Limits { least: 1.0, l2: 0.0 }), None);
    }
}
