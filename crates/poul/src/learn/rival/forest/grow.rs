//! Growing a tree: depth first, honest where rows that fill leaves are kept apart from rows that choose splits
//! (Wager and Athey 2018). A split that leaves no row to fill one side is pruned on the way: the other side takes the
//! node's place.

use rand::RngExt;
use rand_distr::{Distribution, Poisson};

use super::bins::Bins;
use super::criterion::Criterion;
use super::histogram::{Histogram, Split};
use crate::seed::Rng;
use crate::tree::{MISSING, Tree};

/// How far a tree grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Splits on the way to a leaf; 0: any number.
    pub(super) max_depth: usize,
    /// Features that a node tries, on average.
    pub(super) mtry: usize,
}

/// The rows of a tree.
pub(super) struct Sample {
    /// Rows that choose splits, ascending.
    pub(super) split: Vec<u32>,
    /// Rows that fill leaves; without them, the same.
    pub(super) estimate: Option<Vec<u32>>,
}

/// Grows a tree; the sample has rows of both kinds.
pub(super) fn grow<C: Criterion>(
    bins: &Bins,
    criterion: &C,
    sample: Sample,
    limits: Limits,
    mut rng: Rng,
) -> Tree {
    let mut grower = Grower {
        bins,
        criterion,
        limits,
        histogram: Histogram::<C>::new(),
        labels: Vec::new(),
        features: bins.varying.clone(),
        right: Vec::new(),
    };
    let Sample { mut split, mut estimate } = sample;
    let mut tree = Tree::default();
    let mut n_leaves = 0;
    let n_estimate = estimate.as_ref().map_or(0, Vec::len);
    let root = Pending { split: 0..split.len(), estimate: 0..n_estimate, depth: 0, right_of: None };
    let mut stack = vec![(root, criterion.start())];
    while let Some((node, above)) = stack.pop() {
        if let Some(parent) = node.right_of {
            tree.next_is_right_of(parent);
        }
        // Until the node is a leaf, or a split with rows to fill both sides.
        let mut node = node;
        loop {
            let rows = &mut split[node.split.clone()];
            let found = grower.best_split(rows, node.depth, &mut rng);
            let filling = |node: &Pending| match &estimate {
                Some(estimate) => &estimate[node.estimate.clone()],
                None => &split[node.split.clone()],
            };
            let Some(found) = found else {
                criterion.leaf(&above, filling(&node), &mut tree.leaves);
                tree.push_leaf(n_leaves);
                n_leaves += 1;
                break;
            };
            let below = criterion.inherit(&above, filling(&node));
            let (found, [left, right]) = grower.part(found, &node, &mut split, estimate.as_mut());
            if estimate.is_some() && left.estimate.is_empty() {
                node = right;
            } else if estimate.is_some() && right.estimate.is_empty() {
                node = left;
            } else {
                let number = tree.push_split(found.feature, found.bin, found.missing_left == Some(true));
                stack.push((Pending { right_of: Some(number), ..right }, below.clone()));
                stack.push((left, below));
                break;
            }
        }
    }
    tree.shrink();
    tree
}

/// A node whose rows are known.
#[derive(Clone, Debug)]
struct Pending {
    split: std::ops::Range<usize>,
    estimate: std::ops::Range<usize>,
    depth: usize,
    /// The parent that waits for the number of its right child.
    right_of: Option<usize>,
}

/// Room that all nodes of a tree share.
struct Grower<'a, C: Criterion> {
    bins: &'a Bins,
    criterion: &'a C,
    limits: Limits,
    histogram: Histogram<C>,
    labels: Vec<C::Row>,
    features: Vec<u32>,
    right: Vec<u32>,
}

impl<C: Criterion> Grower<'_, C> {
    fn best_split(&mut self, rows: &[u32], depth: usize, rng: &mut Rng) -> Option<Split> {
        if self.limits.max_depth > 0 && depth >= self.limits.max_depth {
            return None;
        }
        let node = self.criterion.relabel(rows, &mut self.labels)?;
        let mut best = None;
        for place in 0..self.n_tried(rng) {
            let other = rng.random_range(place..self.features.len());
            self.features.swap(place, other);
            let feature = self.features[place];
            let bins = self.bins.of(feature, rows);
            self.histogram.offer(self.criterion, &node, (feature, bins), &self.labels, &mut best);
        }
        best
    }

    /// Poisson about `mtry`, as the reference implementation draws it: every feature is tried somewhere.
    fn n_tried(&self, rng: &mut Rng) -> usize {
        let n_features = self.features.len();
        let drawn = Poisson::new(self.limits.mtry as f64).map_or(1.0, |poisson| poisson.sample(rng));
        (drawn as usize).clamp(1.min(n_features), n_features)
    }

    /// Parts the rows of a node; missing values that the node did not have go where more rows go.
    fn part(
        &mut self,
        mut found: Split,
        node: &Pending,
        split: &mut [u32],
        estimate: Option<&mut Vec<u32>>,
    ) -> (Split, [Pending; 2]) {
        let column = self.bins.column(found.feature);
        let missing_left = found.missing_left == Some(true);
        let goes_left = |row: u32| {
            let bin = column[row as usize];
            bin <= found.bin || (bin == MISSING && missing_left)
        };
        let n_rows = node.split.len();
        let n_left = partition(&mut split[node.split.clone()], &mut self.right, goes_left);
        let middle = node.split.start + n_left;
        let more_left = 2 * n_left >= n_rows;
        let missing_left = *found.missing_left.get_or_insert(more_left);
        let goes_left = |row: u32| {
            let bin = column[row as usize];
            bin <= found.bin || (bin == MISSING && missing_left)
        };
        let n_filling_left = estimate.map_or(0, |estimate| {
            partition(&mut estimate[node.estimate.clone()], &mut self.right, goes_left)
        });
        let cut = node.estimate.start + n_filling_left;
        let child = |split, estimate| Pending { split, estimate, depth: node.depth + 1, right_of: None };
        let left = child(node.split.start..middle, node.estimate.start..cut);
        let right = child(middle..node.split.end, cut..node.estimate.end);
        (found, [left, right])
    }
}

/// Moves the rows that go left to the front and returns how many; both sides keep their order.
fn partition(rows: &mut [u32], right: &mut Vec<u32>, goes_left: impl Fn(u32) -> bool) -> usize {
    right.clear();
    let mut n_left = 0;
    for i in 0..rows.len() {
        let row = rows[i];
        if goes_left(row) {
            rows[n_left] = row;
            n_left += 1;
        } else {
            right.push(row);
        }
    }
    rows[n_left..].copy_from_slice(right);
    n_left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::learn::rival::forest::local_moments::{LocalMoments, padded};
    use crate::learn::rival::forest::moments::{FULL, Moments};
    use crate::net::DenseRows;
    use crate::tree::Cuts;

    /// A causal tree on 400 rows, of which the last `n_filling` fill leaves.
    fn causal_tree(outcome: &[f32], n_filling: usize) -> Tree {
        let mut rng = Seed::new(3).rng();
        let x: Vec<f32> = (0..800).map(|_| rng.random_range(-1.0..1.0)).collect();
        let treatment: Vec<f32> = (0..400).map(|row| if row % 2 == 0 { -1.0 } else { 1.0 }).collect();
        let treatment: Vec<[f32; 1]> = padded(&treatment, 1);
        let x = DenseRows::new(&x, 2).unwrap();
        let rows: Vec<u32> = (0..400).collect();
        let bins = Bins::new(&Cuts::learn(&x, &rows), &x, &rows);
        let local = LocalMoments {
            outcome,
            treatment: &treatment,
            width: 1,
            weight: None,
            min_node: 2,
            min_child_rows: 0,
            imbalance: 0.0,
        };
        let (split, estimate) = rows.split_at(400 - n_filling);
        let sample = Sample { split: split.to_vec(), estimate: (n_filling > 0).then(|| estimate.to_vec()) };
        let limits = Limits { max_depth: 0, mtry: 2 };
        grow(&bins, &Moments::<4, FULL, _>(local), sample, limits, Seed::new(4).rng())
    }

    fn outcome() -> Vec<f32> {
        let mut rng = Seed::new(5).rng();
        (0..400).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn outcomes_of_rows_that_fill_leaves_do_not_move_splits() {
        let plain = outcome();
        let mut changed = plain.clone();
        changed[200..].iter_mut().for_each(|value| *value = 7.0 - 3.0 * *value);
        let (before, after) = (causal_tree(&plain, 200), causal_tree(&changed, 200));
        assert!(before.n_nodes() > 20);
        assert!(before.same_splits(&after));
        assert_ne!(before.leaves, after.leaves);
        // Without honesty they do.
        assert!(!causal_tree(&plain, 0).same_splits(&causal_tree(&changed, 0)));
    }

    #[test]
    fn no_leaf_is_left_without_rows() {
        // Two rows fill at most two leaves; a leaf without rows would have means that are not numbers.
        let tree = causal_tree(&outcome(), 2);
        assert!(tree.n_nodes() <= 3);
        assert!(tree.leaves.iter().all(|value| value.is_finite()));
        let tree = causal_tree(&outcome(), 60);
        assert!(tree.leaves.iter().all(|value| value.is_finite()));
    }
}
