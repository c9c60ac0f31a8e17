//! Splits after which the outcomes of arms are farthest apart (Rzepakowski and Jaroszewicz 2012): the gain of a
//! divergence between treated and control, over what the split itself reveals of the treatment.
//!
//! With several arms a divergence is the mean over arms against control, by their share of the node. Outcomes other
//! than 0/1 have no distribution over classes to compare: their means are, by squared difference.

use super::criterion::Criterion;
use super::params::{Divergence, UpliftParams};

/// Estimated shares stay this far from 0 and 1, where logarithms and ratios end.
const LEAST_SHARE: f64 = 1e-3;

/// The rows of one outcome; arm 0 is control, and there are at most `A`.
pub(super) struct DivergenceSplits<'a, const A: usize> {
    pub(super) outcome: &'a [f32],
    pub(super) arm: &'a [u8],
    pub(super) n_arms: usize,
    pub(super) weight: Option<&'a [f32]>,
    /// Mean outcome of each arm over all rows.
    pub(super) means: [f64; A],
    pub(super) params: &'a UpliftParams,
}

/// Sums of an arm: rows, weight, weighted outcome.
type Arm<T> = [T; 3];

/// What the splits of a node are measured by.
pub(super) struct Parent<const A: usize> {
    total: [Arm<f64>; A],
    n_rows: f64,
    least: f64,
    divergence: f64,
}

/// A row as bins take it.
#[derive(Clone, Copy)]
pub(super) struct Labelled {
    arm: u8,
    weight: f32,
    outcome: f32,
}

impl<const A: usize> DivergenceSplits<'_, A> {
    fn sums(&self, rows: &[u32]) -> [Arm<f64>; A] {
        let mut sums = [[0.0; 3]; A];
        for row in rows {
            let row = *row as usize;
            let weight = self.weight.map_or(1.0, |weight| f64::from(weight[row]));
            let sum = &mut sums[usize::from(self.arm[row])];
            sum[0] += 1.0;
            sum[1] += weight;
            sum[2] += weight * f64::from(self.outcome[row]);
        }
        sums
    }

    /// D(P^T : P^C) of a set of rows, arms weighted as in the whole node.
    fn divergence(&self, side: &[Arm<f64>; A], node: &[Arm<f64>; A]) -> f64 {
        let control = side[0][2] / side[0][1];
        let (mut total, mut mass) = (0.0, 0.0);
        for (arm, whole) in side[1..self.n_arms].iter().zip(&node[1..self.n_arms]) {
            mass += whole[1];
            if arm[1] > 0.0 {
                total += whole[1] * between(self.params.divergence, arm[2] / arm[1], control);
            }
        }
        if mass > 0.0 { total / mass } else { 0.0 }
    }

    /// What a split reveals of the treatment, and how evenly it parts the arms: eqs. (11) and (13) of the paper.
    fn normaliser(&self, node: &Parent<A>, left: &[Arm<f64>; A]) -> f64 {
        let treated = |sums: &[Arm<f64>; A]| sums[1..self.n_arms].iter().map(|arm| arm[1]).sum::<f64>();
        let (n_treated, n_control) = (treated(&node.total), node.total[0][1]);
        let share = n_treated / (n_treated + n_control);
        let (left_treated, left_control) = (treated(left) / n_treated, left[0][1] / n_control);
        let impurity = |p: f64| match self.params.divergence {
            Divergence::Kl => {
                let p = p.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
                -p * p.log2() - (1.0 - p) * (1.0 - p).log2()
            }
            Divergence::Euclidean | Divergence::ChiSquared => 2.0 * p * (1.0 - p),
        };
        let revealed = match self.params.divergence {
            Divergence::Euclidean => 2.0 * (left_treated - left_control).powi(2),
            other => between(other, left_treated, left_control),
        };
        impurity(share) * revealed
            + share * impurity(left_treated)
            + (1.0 - share) * impurity(left_control)
            + 0.5
    }
}

/// The divergence of two 0/1 distributions; the squared difference of means is that of squared Euclid up to a factor.
fn between(divergence: Divergence, p: f64, q: f64) -> f64 {
    let inside = |share: f64| share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
    match divergence {
        Divergence::Euclidean => (p - q) * (p - q),
        Divergence::Kl => {
            let (p, q) = (inside(p), inside(q));
            p * (p / q).log2() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).log2()
        }
        Divergence::ChiSquared => {
            let q = inside(q);
            (p - q).powi(2) / (q * (1.0 - q))
        }
    }
}

impl<const A: usize> Criterion for DivergenceSplits<'_, A> {
    type Row = Labelled;
    type Bin = [Arm<f32>; A];
    type Side = [Arm<f64>; A];
    type Node = Parent<A>;
    type Above = [f64; A];

    const EMPTY_BIN: [Arm<f32>; A] = [[0.0; 3]; A];
    const EMPTY_SIDE: [Arm<f64>; A] = [[0.0; 3]; A];

    fn relabel(&self, rows: &[u32], out: &mut Vec<Labelled>) -> Option<Parent<A>> {
        let tree = &self.params.tree;
        let each = (tree.min_node * self.n_arms).max(tree.min_child_rows).max(1);
        let least = (tree.imbalance * rows.len() as f64).ceil().max(each as f64);
        if (rows.len() as f64) < 2.0 * least {
            return None;
        }
        let total = self.sums(rows);
        if total[0][1] <= 0.0 || total[1..].iter().all(|arm| arm[1] <= 0.0) {
            return None;
        }
        out.clear();
        out.extend(rows.iter().map(|row| {
            let row = *row as usize;
            let weight = self.weight.map_or(1.0, |weight| weight[row]);
            Labelled { arm: self.arm[row], weight, outcome: weight * self.outcome[row] }
        }));
        let divergence = self.divergence(&total, &total);
        Some(Parent { total, n_rows: rows.len() as f64, least, divergence })
    }

    #[inline(always)]
    fn add(bin: &mut [Arm<f32>; A], row: &Labelled) {
        let arm = &mut bin[usize::from(row.arm)];
        arm[0] += 1.0;
        arm[1] += row.weight;
        arm[2] += row.outcome;
    }

    #[inline(always)]
    fn gather(side: &mut [Arm<f64>; A], bin: &[Arm<f32>; A]) {
        let sums = side.as_flattened_mut().iter_mut().zip(bin.as_flattened());
        sums.for_each(|(side, bin)| *side += f64::from(*bin));
    }

    #[inline(always)]
    fn count(side: &[Arm<f64>; A]) -> f64 {
        side.iter().map(|arm| arm[0]).sum()
    }

    #[inline(always)]
    fn merge(side: &mut [Arm<f64>; A], other: &[Arm<f64>; A]) {
        let sums = side.as_flattened_mut().iter_mut().zip(other.as_flattened());
        sums.for_each(|(side, other)| *side += other);
    }

    fn score(&self, node: &Parent<A>, left: &[Arm<f64>; A], least: f64) -> Option<f64> {
        let n_left = Self::count(left);
        if n_left < node.least || node.n_rows - n_left < node.least {
            return None;
        }
        let mut right = node.total;
        right.as_flattened_mut().iter_mut().zip(left.as_flattened()).for_each(|(right, left)| *right -= left);
        let min_node = self.params.tree.min_node as f64;
        // Control, and the treated together; with two arms these are all.
        let enough = |side: &[Arm<f64>; A]| {
            let treated: f64 = side[1..].iter().map(|arm| arm[0]).sum();
            side[0][0] >= min_node && treated >= min_node
        };
        if !enough(left) || !enough(&right) {
            return None;
        }
        let weight = |side: &[Arm<f64>; A]| side.iter().map(|arm| arm[1]).sum::<f64>();
        let share = weight(left) / weight(&node.total);
        let apart =
            share * self.divergence(left, &node.total) + (1.0 - share) * self.divergence(&right, &node.total);
        let gain = apart - node.divergence;
        let normaliser = if self.params.normalize { self.normaliser(node, left) } else { 1.0 };
        Some(gain / normaliser).filter(|score| *score > least)
    }

    fn is_over(&self, node: &Parent<A>, left: &[Arm<f64>; A]) -> bool {
        node.n_rows - Self::count(left) < node.least
    }

    fn start(&self) -> [f64; A] {
        self.means
    }

    /// Arm means, drawn towards those of the node above.
    fn inherit(&self, above: &[f64; A], rows: &[u32]) -> [f64; A] {
        let mut means = *above;
        let prior = self.params.prior_rows;
        for (mean, [_, weight, outcome]) in means.iter_mut().zip(self.sums(rows)) {
            if weight > 0.0 {
                *mean = (outcome + prior * *mean) / (weight + prior);
            }
        }
        means
    }

    fn leaf(&self, above: &[f64; A], rows: &[u32], out: &mut Vec<f32>) {
        let means = self.inherit(above, rows);
        out.extend(means[..self.n_arms].iter().map(|mean| *mean as f32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergences_are_those_of_hand_and_vanish_between_equals() {
        assert!((between(Divergence::Kl, 0.5, 0.25) - (0.5 + 0.5 * (2.0_f64 / 3.0).log2())).abs() < 1e-12);
        assert_eq!(between(Divergence::ChiSquared, 0.5, 0.25), 0.0625 / 0.1875);
        assert_eq!(between(Divergence::Euclidean, 0.5, 0.25), 0.0625);
        for divergence in [Divergence::Kl, Divergence::Euclidean, Divergence::ChiSquared] {
            assert_eq!(between(divergence, 0.3, 0.3), 0.0);
        }
    }

    #[test]
    fn a_split_that_parts_the_arms_is_marked_down() {
        let params = UpliftParams::default();
        let splits = DivergenceSplits::<2> {
            outcome: &[],
            arm: &[],
            n_arms: 2,
            weight: None,
            means: [0.0; 2],
            params: &params,
        };
        let total = [[100.0, 100.0, 50.0]; 2];
        let node = Parent { total, n_rows: 200.0, least: 10.0, divergence: 0.0 };
        let left = |control: f64, treated: f64| [[control, control, control], [treated, treated, 0.0]];
        let even = splits.score(&node, &left(50.0, 50.0), 0.0).unwrap();
        assert!((even - 1.0 / splits.normaliser(&node, &left(50.0, 50.0))).abs() < 1e-12);
        // Even halves: Gini of ½ twice, and the half that is always added.
        assert!((splits.normaliser(&node, &left(50.0, 50.0)) - 1.0).abs() < 1e-12);
        assert!(splits.normaliser(&node, &left(40.0, 60.0)) > splits.normaliser(&node, &left(10.0, 10.0)));
        assert!(splits.score(&node, &left(50.0, 5.0), 0.0).is_none(), "too few treated");
    }
}
