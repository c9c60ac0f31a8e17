//! A small regression tree of predicted effects, to be read: depth 3, leaves of at least 2 % of the rows, rules in words.
//!
//! Greedy splits by reduction of the sum of squares (Breiman et al. 1984). Numbers are cut between their groups, with what
//! is missing on either side or apart; categories are split in the order of their means, which is optimal (Fisher 1958).

use super::average::groups::Groups;
use super::reasons::TreeNode;

const DEPTH: usize = 3;
const LEAF_SHARE: f64 = 0.02;
/// A split that explains less than this share of the whole variation is not worth reading.
const LEAST_SHARE: f64 = 0.005;
/// Categories that a rule names.
const NAMED: usize = 4;

/// The tree, node 0 the root and the nodes of each split next to each other, and the sum of squares that it explains.
pub(super) fn effect_tree(
    values: &[f64],
    weight: Option<&[f64]>,
    names: &[&str],
    groups: &[Groups],
) -> (Vec<TreeNode>, f64) {
    let mass = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let rows: Vec<u32> = (0..values.len() as u32).filter(|row| mass(*row as usize) > 0.0).collect();
    let whole = Sums::of(&rows, values, &mass);
    if whole.mass <= 0.0 {
        return (Vec::new(), 0.0);
    }
    // Around the mean, so that sums of squares keep their digits.
    let centre = whole.sum / whole.mass;
    let values: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let variation: f64 = rows.iter().map(|row| mass(*row as usize) * values[*row as usize].powi(2)).sum();
    let grower = Grower {
        values: &values,
        mass: &mass,
        names,
        groups,
        least_rows: (LEAF_SHARE * rows.len() as f64).ceil() as usize,
        least_gain: LEAST_SHARE * variation,
    };
    let root = TreeNode { rule: "all rows".to_owned(), rows: rows.len(), effect: centre, parent: None };
    let (mut tree, mut explained) = (vec![root], 0.0);
    let mut open = vec![(0_usize, rows)];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for (parent, rows) in open {
            let Some(split) = grower.best(&rows) else { continue };
            explained += split.gain;
            for is_left in [true, false] {
                let own: Vec<u32> =
                    rows.iter().copied().filter(|row| split.holds(groups, *row) == is_left).collect();
                let sums = Sums::of(&own, &values, &mass);
                tree.push(TreeNode {
                    rule: split.rule(names, groups, is_left),
                    rows: own.len(),
                    effect: centre + sums.sum / sums.mass,
                    parent: Some(parent),
                });
                next.push((tree.len() - 1, own));
            }
        }
        open = next;
    }
    (tree, explained)
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n_rows: usize,
    mass: f64,
    sum: f64,
}

impl Sums {
    fn of(rows: &[u32], values: &[f64], mass: &dyn Fn(usize) -> f64) -> Self {
        let mut sums = Self::default();
        rows.iter().for_each(|row| sums.add(values[*row as usize], mass(*row as usize)));
        sums
    }

    fn add(&mut self, value: f64, mass: f64) {
        self.n_rows += 1;
        self.mass += mass;
        self.sum += mass * value;
    }

    fn plus(self, other: Self) -> Self {
        Self { n_rows: self.n_rows + other.n_rows, mass: self.mass + other.mass, sum: self.sum + other.sum }
    }

    fn minus(self, other: Self) -> Self {
        Self { n_rows: self.n_rows - other.n_rows, mass: self.mass - other.mass, sum: self.sum - other.sum }
    }

    fn square(self) -> f64 {
        if self.mass > 0.0 { self.sum * self.sum / self.mass } else { 0.0 }
    }
}

/// A feature and the groups of it that go left.
struct Split {
    feature: usize,
    left: Vec<bool>,
    gain: f64,
}

struct Grower<'a> {
    values: &'a [f64],
    mass: &'a dyn Fn(usize) -> f64,
    names: &'a [&'a str],
    groups: &'a [Groups],
    least_rows: usize,
    least_gain: f64,
}

impl Grower<'_> {
    /// The split that explains most; the first of equals.
    fn best(&self, rows: &[u32]) -> Option<Split> {
        let mut best: Option<Split> = None;
        for feature in 0..self.names.len() {
            let groups = &self.groups[feature];
            let mut sums = vec![Sums::default(); groups.len()];
            for row in rows {
                let row = *row as usize;
                sums[usize::from(groups.of_row[row])].add(self.values[row], (self.mass)(row));
            }
            let whole = sums.iter().fold(Sums::default(), |all, own| all.plus(*own));
            for left in candidates(groups, &sums) {
                let chosen = sums.iter().zip(&left).filter(|(_, left)| **left);
                let below = chosen.fold(Sums::default(), |all, (own, _)| all.plus(*own));
                let above = whole.minus(below);
                let gain = below.square() + above.square() - whole.square();
                let is_better = best.as_ref().is_none_or(|best| gain > best.gain * (1.0 + 1e-9));
                if below.n_rows.min(above.n_rows) >= self.least_rows
                    && gain >= self.least_gain
                    && gain > 0.0
                    && is_better
                {
                    best = Some(Split { feature, left, gain });
                }
            }
        }
        best
    }
}

/// The sets of groups that may go left.
fn candidates(groups: &Groups, sums: &[Sums]) -> Vec<Vec<bool>> {
    let n = groups.len();
    let n_known = n - usize::from(groups.has_missing);
    let mut sets = Vec::new();
    if groups.ordered {
        for cut in 1..n_known {
            let below: Vec<bool> = (0..n).map(|group| group < cut).collect();
            if groups.has_missing {
                let mut with_missing = below.clone();
                with_missing[n - 1] = true;
                sets.push(with_missing);
            }
            sets.push(below);
        }
        if groups.has_missing && n_known > 0 {
            sets.push((0..n).map(|group| group == n - 1).collect());
        }
        return sets;
    }
    let mut order: Vec<usize> = (0..n).filter(|group| sums[*group].mass > 0.0).collect();
    let mean = |group: usize| sums[group].sum / sums[group].mass;
    order.sort_by(|a, b| mean(*a).total_cmp(&mean(*b)));
    for cut in 1..order.len() {
        let mut set = vec![false; n];
        // The shorter side is the one that is named.
        let side = if 2 * cut <= order.len() { &order[..cut] } else { &order[cut..] };
        side.iter().for_each(|group| set[*group] = true);
        if side.len() <= NAMED {
            sets.push(set);
        }
    }
    sets
}

impl Split {
    fn holds(&self, groups: &[Groups], row: u32) -> bool {
        self.left[usize::from(groups[self.feature].of_row[row as usize])]
    }

    /// The rule of one side in words.
    fn rule(&self, names: &[&str], groups: &[Groups], is_left: bool) -> String {
        let (name, groups) = (names[self.feature], &groups[self.feature]);
        let n = groups.len();
        let missing = groups.has_missing && self.left[n - 1];
        let n_left = self.left.iter().filter(|left| **left).count();
        if missing && n_left == 1 {
            return if is_left { format!("{name} is missing") } else { format!("{name} is known") };
        }
        if groups.ordered {
            let n_below = n_left - usize::from(missing);
            let cut = &groups.cut_names[n_below - 1];
            let sign = if is_left { "<" } else { "≥" };
            let or_missing = if groups.has_missing && missing == is_left { " or missing" } else { "" };
            return format!("{name} {sign} {cut}{or_missing}");
        }
        let labels = groups.labels.iter().zip(&self.left).filter(|(_, left)| **left);
        let labels: Vec<&str> = labels.map(|(label, _)| label.as_str()).collect();
        match (is_left, labels.as_slice()) {
            (true, [label]) => format!("{name} is {label}"),
            (false, [label]) => format!("{name} is not {label}"),
            (true, labels) => format!("{name} is one of {}", labels.join(", ")),
            (false, labels) => format!("{name} is none of {}", labels.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::RawColumn;

    #[test]
    fn what_is_missing_can_be_split_off() {
        let trips: Vec<f64> =
            (0..500).map(|row| if row % 5 == 0 { f64::NAN } else { f64::from(row % 7) }).collect();
        let values: Vec<f64> = trips.iter().map(|trips| if trips.is_nan() { 3.0 } else { 1.0 }).collect();
        let groups = [Groups::of_column(&RawColumn::of_numbers("trips", trips), None, 10, 10)];
        let (tree, explained) = effect_tree(&values, None, &["trips"], &groups);
        let rules: Vec<&str> = tree.iter().map(|node| node.rule.as_str()).collect();
        assert_eq!(rules, ["all rows", "trips is missing", "trips is known"]);
        assert_eq!(tree[1].rows, 100);
        assert!((tree[1].effect - 3.0).abs() < 1e-12);
        assert!((explained - 500.0 * 0.8 * 0.2 * 4.0).abs() < 1e-9);
    }

    #[test]
    fn leaves_are_large_and_parents_hold_their_children() {
        let x: Vec<f64> = (0..1_000).map(|row| f64::from((row * 37) % 1_000)).collect();
        let z: Vec<f64> = (0..1_000).map(|row| f64::from((row * 91) % 997)).collect();
        let values: Vec<f64> = x.iter().zip(&z).map(|(x, z)| (x / 150.0).sin() + z / 900.0).collect();
        let columns = [RawColumn::of_numbers("x", x), RawColumn::of_numbers("z", z)];
        let groups = columns.each_ref().map(|column| Groups::of_column(column, None, 10, 10));
        let (tree, _) = effect_tree(&values, None, &["x", "z"], &groups);
        assert!(tree.len() > 7 && tree.len() <= 15, "{}", tree.len());
        for (index, node) in tree.iter().enumerate().filter(|(_, node)| node.parent.is_some()) {
            assert!(node.rows >= 20);
            let parent = node.parent.unwrap();
            let children: Vec<&TreeNode> = tree.iter().filter(|own| own.parent == Some(parent)).collect();
            assert_eq!(children.iter().map(|own| own.rows).sum::<usize>(), tree[parent].rows);
            let sum: f64 = children.iter().map(|own| own.effect * own.rows as f64).sum();
            assert!((sum / tree[parent].rows as f64 - tree[parent].effect).abs() < 1e-9, "{index}");
        }
    }
}
