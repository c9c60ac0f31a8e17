//! Covariate balance between policies: standardised differences over all rows, and a permutation test on a sample.
//!
//! Rows belong to *groups*. With a moderate number of policies a group is a policy. With very many, most policies have
//! too few rows to speak of, and a group is an atom (s, a), to which a row belongs with weight Π_t(a|s).

use rand::RngExt;
use rayon::prelude::*;
use serde::Serialize;

use crate::Seed;

/// Group memberships of each policy: `members[policy]` lists (group, weight).
pub(super) struct Groups {
    pub(super) names: Vec<String>,
    pub(super) members: Vec<Vec<(u32, f64)>>,
    /// The group others are compared with; without one it is the mean of all rows.
    pub(super) reference: Option<usize>,
}

/// Columns that are summed together: one cache line of a row.
const BLOCK: usize = 16;

/// Sums of each encoded column by group, over all rows.
pub(super) struct Sums {
    width: usize,
    weight: Vec<f64>,
    total_weight: f64,
    blocks: Vec<BlockSums>,
}

/// The sums of one block of columns.
#[derive(Clone)]
struct BlockSums {
    /// By group.
    sum: Vec<[f64; BLOCK]>,
    total: [f64; BLOCK],
    square: [f64; BLOCK],
}

/// How far a group's mean of one encoded column is from the reference, in standard deviations.
#[derive(Clone, Debug, Serialize)]
pub struct Imbalance {
    /// Encoded column, such as `age` or `city=Rome`.
    pub column: String,
    /// Policy, or atom where there are very many policies.
    pub group: String,
    /// Standardised mean difference.
    pub difference: f64,
}

impl Sums {
    pub(super) fn new(width: usize, n_groups: usize) -> Self {
        let block =
            BlockSums { sum: vec![[0.0; BLOCK]; n_groups], total: [0.0; BLOCK], square: [0.0; BLOCK] };
        let blocks = vec![block; width.div_ceil(BLOCK)];
        Self { width, weight: vec![0.0; n_groups], total_weight: 0.0, blocks }
    }

    /// Adds row-major encoded rows. Each column is summed in row order, whatever the number of threads.
    pub(super) fn add(&mut self, x: &[f32], policy: &[u32], weight: Option<&[f64]>, groups: &Groups) {
        let width = self.width;
        let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
        for (row, &policy) in policy.iter().enumerate() {
            let row_weight = weight_of(row);
            self.total_weight += row_weight;
            for &(group, share) in &groups.members[policy as usize] {
                self.weight[group as usize] += row_weight * share;
            }
        }
        self.blocks.par_iter_mut().enumerate().for_each(|(block, sums)| {
            let columns = block * BLOCK..((block + 1) * BLOCK).min(width);
            for (row, &policy) in policy.iter().enumerate() {
                let x = &x[row * width..(row + 1) * width][columns.clone()];
                let row_weight = weight_of(row);
                for ((&x, total), square) in x.iter().zip(&mut sums.total).zip(&mut sums.square) {
                    let value = f64::from(x);
                    *total += row_weight * value;
                    *square += row_weight * value * value;
                }
                for &(group, share) in &groups.members[policy as usize] {
                    let share = row_weight * share;
                    for (&x, sum) in x.iter().zip(&mut sums.sum[group as usize]) {
                        *sum += share * f64::from(x);
                    }
                }
            }
        });
    }

    /// Standardised differences of every (column, group), largest first; groups lighter than `least_weight` are left
    /// out.
    pub(super) fn imbalances(
        &self,
        columns: &[String],
        groups: &Groups,
        least_weight: f64,
    ) -> Vec<Imbalance> {
        let mut found = Vec::new();
        for (column, name) in columns.iter().enumerate() {
            let (block, place) = (&self.blocks[column / BLOCK], column % BLOCK);
            let mean = block.total[place] / self.total_weight;
            let variance = block.square[place] / self.total_weight - mean * mean;
            if variance <= 1e-12 {
                continue;
            }
            let group_mean = |group: usize| block.sum[group][place] / self.weight[group];
            let reference = groups.reference.map_or(mean, group_mean);
            for (group, group_name) in groups.names.iter().enumerate() {
                if Some(group) == groups.reference || self.weight[group] < least_weight {
                    continue;
                }
                let difference = (group_mean(group) - reference) / variance.sqrt();
                found.push(Imbalance { column: name.clone(), group: group_name.clone(), difference });
            }
        }
        found.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        found
    }
}

/// A bounded sample of rows for the permutation test, chosen by a hash of the row number.
pub(super) struct Sample {
    width: usize,
    most_rows: usize,
    level: u32,
    hash: Vec<u64>,
    pub(super) x: Vec<f32>,
    pub(super) policy: Vec<u32>,
    pub(super) cluster: Vec<u32>,
    pub(super) stratum: Vec<u32>,
    /// By outcome.
    pub(super) outcomes: Vec<Vec<f64>>,
}

impl Sample {
    pub(super) fn new(width: usize, n_outcomes: usize, most_rows: usize) -> Self {
        let (hash, x, policy, cluster, stratum) = Default::default();
        let outcomes = vec![Vec::new(); n_outcomes];
        Self { width, most_rows: most_rows.max(2), level: 0, hash, x, policy, cluster, stratum, outcomes }
    }

    /// Offers one row; `unit` is its cluster, or its own number where rows were assigned one by one. Clusters are
    /// taken or left whole.
    pub(super) fn offer(
        &mut self,
        unit: u64,
        x: &[f32],
        policy: u32,
        cluster: Option<u32>,
        stratum: u32,
        outcome: impl Fn(usize) -> f64,
    ) {
        let hash = Seed::new(unit).child("balance sample").value();
        if hash.trailing_zeros() < self.level {
            return;
        }
        self.hash.push(hash);
        self.x.extend_from_slice(x);
        self.policy.push(policy);
        self.cluster.push(cluster.unwrap_or(self.cluster.len() as u32));
        self.stratum.push(stratum);
        self.outcomes.iter_mut().enumerate().for_each(|(place, values)| values.push(outcome(place)));
        if self.hash.len() > self.most_rows {
            self.thin();
        }
    }

    /// Keeps the units whose hash has one more trailing zero: about half.
    fn thin(&mut self) {
        self.level += 1;
        let mut kept = 0;
        for row in 0..self.hash.len() {
            if self.hash[row].trailing_zeros() < self.level {
                continue;
            }
            self.hash[kept] = self.hash[row];
            self.policy[kept] = self.policy[row];
            self.cluster[kept] = self.cluster[row];
            self.stratum[kept] = self.stratum[row];
            self.outcomes.iter_mut().for_each(|values| values[kept] = values[row]);
            self.x.copy_within(row * self.width..(row + 1) * self.width, kept * self.width);
            kept += 1;
        }
        self.hash.truncate(kept);
        self.policy.truncate(kept);
        self.cluster.truncate(kept);
        self.stratum.truncate(kept);
        self.outcomes.iter_mut().for_each(|values| values.truncate(kept));
        self.x.truncate(kept * self.width);
    }
}

/// What the permutation test found.
#[derive(Clone, Debug, Serialize)]
pub struct PermutationTest {
    /// Rows in the sample that was permuted.
    pub rows: usize,
    /// Number of permutations.
    pub permutations: usize,
    /// Share of permutations at least as unbalanced as the data, all columns together.
    pub p_value: f64,
    /// Encoded columns whose imbalance exceeds the largest of any column in 99 % of the permutations.
    pub columns: Vec<String>,
}

/// Permutes policies over units within strata; units are clusters if `by_cluster`, else rows.
///
/// Per column the statistic is the between-group sum of squares in units of the column's variance; the omnibus test
/// adds them up, and single columns are held against the permutation distribution of the maximum, which keeps the
/// error over all columns together.
pub(super) fn permutation_test(
    sample: &Sample,
    columns: &[String],
    groups: &Groups,
    by_cluster: bool,
    permutations: usize,
    seed: Seed,
) -> Option<PermutationTest> {
    let n_rows = sample.policy.len();
    if n_rows < 20 || permutations == 0 || columns.is_empty() {
        return None;
    }
    let units = Units::new(sample, by_cluster);
    let observed = statistics(sample, &sample.policy, groups);
    let seed = seed.child("balance permutations");
    let draws: Vec<(f64, f64)> = (0..permutations as u64)
        .into_par_iter()
        .map(|draw| {
            let statistics = statistics(sample, &units.permuted(seed.index(draw)), groups);
            (statistics.iter().sum(), statistics.iter().copied().fold(0.0, f64::max))
        })
        .collect();
    let observed_sum: f64 = observed.iter().sum();
    let as_large = draws.iter().filter(|(sum, _)| *sum >= observed_sum * (1.0 - 1e-9)).count();
    let mut largest: Vec<f64> = draws.iter().map(|(_, largest)| *largest).collect();
    largest.sort_by(f64::total_cmp);
    let critical = largest[(permutations * 99 / 100).min(permutations - 1)];
    let beyond = observed.iter().zip(columns).filter(|(statistic, _)| **statistic > critical * 1.000_001);
    Some(PermutationTest {
        rows: n_rows,
        permutations,
        p_value: (1 + as_large) as f64 / (1 + permutations) as f64,
        columns: beyond.map(|(_, name)| name.clone()).collect(),
    })
}

fn statistics(sample: &Sample, policy: &[u32], groups: &Groups) -> Vec<f64> {
    let (width, n_rows, n_groups) = (sample.width, policy.len(), groups.names.len());
    let mut sums = vec![0.0_f64; n_groups * width];
    let mut weights = vec![0.0_f64; n_groups];
    let mut total = vec![0.0_f64; width];
    let mut square = vec![0.0_f64; width];
    for (row, &policy) in policy.iter().enumerate() {
        let x = &sample.x[row * width..(row + 1) * width];
        for ((total, square), &value) in total.iter_mut().zip(&mut square).zip(x) {
            *total += f64::from(value);
            *square += f64::from(value) * f64::from(value);
        }
        for &(group, share) in &groups.members[policy as usize] {
            let group = group as usize;
            weights[group] += share;
            for (sum, &value) in sums[group * width..(group + 1) * width].iter_mut().zip(x) {
                *sum += share * f64::from(value);
            }
        }
    }
    let mut statistics = vec![0.0; width];
    for (column, statistic) in statistics.iter_mut().enumerate() {
        let mean = total[column] / n_rows as f64;
        let variance = square[column] / n_rows as f64 - mean * mean;
        if variance <= 1e-12 {
            continue;
        }
        for (group, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                let difference = sums[group * width + column] / weight - mean;
                *statistic += weight * difference * difference / variance;
            }
        }
    }
    statistics
}

/// The units of assignment in the sample, by stratum.
struct Units {
    /// Unit of each row.
    of_row: Vec<u32>,
    /// Policy of each unit.
    policy: Vec<u32>,
    /// Units of each stratum.
    strata: Vec<Vec<u32>>,
}

impl Units {
    fn new(sample: &Sample, by_cluster: bool) -> Self {
        let unit_of = |row: u32| if by_cluster { sample.cluster[row as usize] } else { row };
        let mut order: Vec<u32> = (0..sample.policy.len() as u32).collect();
        order.sort_by_key(|&row| (unit_of(row), row));
        let mut of_row = vec![0; order.len()];
        let (mut policy, mut stratum) = (Vec::new(), Vec::new());
        let mut previous = None;
        for row in order {
            let unit = unit_of(row);
            let row = row as usize;
            if previous != Some(unit) {
                previous = Some(unit);
                policy.push(sample.policy[row]);
                stratum.push(sample.stratum[row]);
            }
            of_row[row] = policy.len() as u32 - 1;
        }
        let n_strata = stratum.iter().max().map_or(0, |last| *last as usize + 1);
        let mut strata = vec![Vec::new(); n_strata];
        for (unit, &stratum) in stratum.iter().enumerate() {
            strata[stratum as usize].push(unit as u32);
        }
        Self { of_row, policy, strata }
    }

    /// The policy of each row after one shuffle.
    fn permuted(&self, seed: Seed) -> Vec<u32> {
        let mut rng = seed.rng();
        let mut policy = self.policy.clone();
        for units in &self.strata {
            for last in (1..units.len()).rev() {
                let other = rng.random_range(0..=last);
                policy.swap(units[last] as usize, units[other] as usize);
            }
        }
        self.of_row.iter().map(|&unit| policy[unit as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_groups() -> Groups {
        let names = vec!["control".to_string(), "treated".to_string()];
        Groups { names, members: vec![vec![(0, 1.0)], vec![(1, 1.0)]], reference: Some(0) }
    }

    fn names() -> Vec<String> {
        vec!["even".into(), "shifted".into()]
    }

    /// Column 0 has nothing to do with the policy; column 1 is shifted by `shift` in the treated.
    fn data(n_rows: usize, shift: f32) -> (Vec<f32>, Vec<u32>) {
        let mut rng = Seed::new(5).rng();
        let policy: Vec<u32> = (0..n_rows).map(|_| rng.random_range(0..2)).collect();
        let mut noise = || rng.random_range(-1.0_f32..1.0);
        let x = policy.iter().flat_map(|&p| [noise(), noise() + shift * p as f32]).collect();
        (x, policy)
    }

    fn test(n_rows: usize, shift: f32) -> PermutationTest {
        let (x, policy) = data(n_rows, shift);
        let mut sample = Sample::new(2, 0, 2000);
        for (row, policy) in policy.iter().enumerate() {
            sample.offer(row as u64, &x[2 * row..2 * row + 2], *policy, None, 0, |_| 0.0);
        }
        permutation_test(&sample, &names(), &two_groups(), false, 199, Seed::new(1)).unwrap()
    }

    #[test]
    fn a_shift_is_found_and_chance_is_not() {
        let chance = test(1500, 0.0);
        assert!(chance.p_value > 0.01 && chance.columns.is_empty(), "{chance:?}");
        let shifted = test(1500, 0.3);
        assert_eq!(shifted.p_value, 0.005);
        assert_eq!(shifted.columns, ["shifted"]);
    }

    #[test]
    fn differences_are_in_standard_deviations() {
        let (x, policy) = data(50_000, 0.5);
        let mut sums = Sums::new(2, 2);
        for rows in [0..20_000, 20_000..50_000] {
            sums.add(&x[2 * rows.start..2 * rows.end], &policy[rows], None, &two_groups());
        }
        let imbalances = sums.imbalances(&names(), &two_groups(), 30.0);
        // The shifted column: uniform(−1, 1) has variance 1/3, the shift adds 0.5² / 4.
        let expected = 0.5 / (1.0_f64 / 3.0 + 0.0625).sqrt();
        assert_eq!(imbalances[0].column, "shifted");
        assert!((imbalances[0].difference - expected).abs() < 0.02, "{imbalances:?}");
        assert!(imbalances[1].difference.abs() < 0.03);
    }

    #[test]
    fn the_sample_is_bounded_and_keeps_clusters_whole() {
        let mut sample = Sample::new(1, 1, 100);
        for row in 0..10_000_u32 {
            let cluster = row / 4;
            sample.offer(u64::from(cluster), &[row as f32], 0, Some(cluster), 0, |_| f64::from(row));
        }
        let n_rows = sample.policy.len();
        assert!((20..=100).contains(&n_rows), "{n_rows}");
        assert!(sample.x.iter().zip(&sample.outcomes[0]).all(|(x, outcome)| f64::from(*x) == *outcome));
        assert!(sample.cluster.chunks(4).all(|rows| rows.len() == 4 && rows.iter().all(|c| *c == rows[0])));
    }
}
