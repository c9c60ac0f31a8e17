//! Whether a feature differs by policy beyond what chance allows: a score test on encoded rows.

use super::super::balance::Groups;
use super::sampled::EncodedRows;
use crate::stats::normal_quantile;

/// Chance that any column of a sound experiment is called unbalanced.
const LEVEL: f64 = 1e-4;
/// Units of a group, and outside it, below which its balance is not tested.
const FEWEST_UNITS: f64 = 50.0;

/// Units of assignment, and which groups they belong to.
pub(super) struct Units<'a> {
    /// Unit of each row.
    of_row: Vec<u32>,
    /// Policy of each unit: its first row's.
    policy: Vec<u32>,
    groups: &'a Groups,
    /// Sum of memberships by group.
    mass: Vec<f64>,
    /// Standard errors beyond which a column is unbalanced.
    critical: f64,
}

impl<'a> Units<'a> {
    pub(super) fn new(rows: &EncodedRows<'_>, groups: &'a Groups, width: usize) -> Self {
        let n_rows = rows.policy.len();
        let (mut of_row, mut policy) = (vec![0; n_rows], Vec::new());
        match rows.cluster {
            None => {
                of_row = (0..n_rows as u32).collect();
                policy = rows.policy.to_vec();
            }
            Some(cluster) => {
                let mut order: Vec<u32> = (0..n_rows as u32).collect();
                order.sort_by_key(|row| cluster[*row as usize]);
                for own in order.chunk_by(|a, b| cluster[*a as usize] == cluster[*b as usize]) {
                    own.iter().for_each(|row| of_row[*row as usize] = policy.len() as u32);
                    policy.push(rows.policy[own[0] as usize]);
                }
            }
        }
        let mut mass = vec![0.0; groups.names.len()];
        for own in &policy {
            groups.members[*own as usize].iter().for_each(|(group, share)| mass[*group as usize] += share);
        }
        let n_tests = (width * groups.names.len()).max(1) as f64;
        Self { of_row, policy, groups, mass, critical: normal_quantile(1.0 - LEVEL / (2.0 * n_tests)) }
    }

    /// Whether a group's sum of the column, centred within strata, is further from 0 than chance allows: a score test whose
    /// variance is that of the units' own squares.
    pub(super) fn is_unbalanced(&self, values: &[f64], stratum: Option<&[u32]>) -> bool {
        let n_units = self.policy.len();
        let sums = self.centred(values, stratum);
        let (mut sum, mut square, mut own_square) =
            (vec![0.0; self.mass.len()], vec![0.0; self.mass.len()], vec![0.0; self.mass.len()]);
        let mut all = 0.0;
        for (value, policy) in sums.iter().zip(&self.policy) {
            all += value * value;
            for (group, share) in &self.groups.members[*policy as usize] {
                let group = *group as usize;
                sum[group] += share * value;
                square[group] += share * value * value;
                own_square[group] += share * share * value * value;
            }
        }
        (0..self.mass.len()).any(|group| {
            let share = self.mass[group] / n_units as f64;
            let variance = own_square[group] - 2.0 * share * square[group] + share * share * all;
            let enough = self.mass[group].min(n_units as f64 - self.mass[group]) >= FEWEST_UNITS;
            enough && sum[group].abs() > self.critical * variance.max(0.0).sqrt() && variance > 0.0
        })
    }

    /// The column less its mean in the stratum, summed by unit.
    fn centred(&self, values: &[f64], stratum: Option<&[u32]>) -> Vec<f64> {
        let of = |row: usize| stratum.map_or(0, |stratum| stratum[row] as usize);
        let n_strata = stratum.and_then(|stratum| stratum.iter().max()).map_or(1, |last| *last as usize + 1);
        let mut means = vec![(0.0, 0.0); n_strata];
        for (row, value) in values.iter().enumerate() {
            let (sum, n) = &mut means[of(row)];
            (*sum, *n) = (*sum + value, *n + 1.0);
        }
        let mut sums = vec![0.0; self.policy.len()];
        for (row, value) in values.iter().enumerate() {
            let (sum, n) = means[of(row)];
            sums[self.of_row[row] as usize] += value - sum / n;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    #[test]
    fn a_shift_by_policy_is_found_within_strata_and_clusters() {
        let mut rng = Seed::new(9).rng();
        let n = 8000;
        let stratum: Vec<u32> = (0..n).map(|_| rng.random_range(0..2)).collect();
        // Shares differ between strata, and so does the feature: nothing is wrong within.
        let policy: Vec<u32> = stratum
            .iter()
            .map(|own| u32::from(rng.random_range(0.0..1.0) < [0.2, 0.7][*own as usize]))
            .collect();
        let fair: Vec<f64> =
            stratum.iter().map(|own| f64::from(*own) + rng.random_range(-1.0..1.0)).collect();
        let late: Vec<f64> =
            fair.iter().zip(&policy).map(|(own, policy)| own + 0.2 * f64::from(*policy)).collect();
        let groups = Groups {
            names: vec!["a".into(), "b".into()],
            members: vec![vec![(0, 1.0)], vec![(1, 1.0)]],
            reference: None,
        };
        let mass = [0, 1].map(|own| policy.iter().filter(|policy| **policy == own).count() as f64).to_vec();
        let units =
            Units { of_row: (0..n).collect(), policy: policy.clone(), groups: &groups, mass, critical: 4.5 };
        assert!(!units.is_unbalanced(&fair, Some(&stratum)));
        assert!(units.is_unbalanced(&fair, None));
        assert!(units.is_unbalanced(&late, Some(&stratum)));
        // A feature of the cluster, policies by cluster: 400 units, and no more than chance.
        let cluster: Vec<u32> = (0..n).map(|row| row / 20).collect();
        let level: Vec<f64> = (0..400).map(|_| rng.random_range(-1.0..1.0)).collect();
        let by_cluster: Vec<u32> = (0..400).map(|_| rng.random_range(0..2)).collect();
        let shared: Vec<f64> = cluster.iter().map(|own| level[*own as usize]).collect();
        let mass =
            [0, 1].map(|own| by_cluster.iter().filter(|policy| **policy == own).count() as f64).to_vec();
        let units = Units { of_row: cluster, policy: by_cluster, groups: &groups, mass, critical: 4.5 };
        assert!(!units.is_unbalanced(&shared, None));
        let late: Vec<f64> = shared
            .iter()
            .zip(&units.of_row)
            .map(|(own, unit)| own + f64::from(units.policy[*unit as usize]))
            .collect();
        assert!(units.is_unbalanced(&late, None));
    }
}
