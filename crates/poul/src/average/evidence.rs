//! What the rows of each policy say of its average: the mean residual outcome under weights 1/π, and its noise.
//!
//! Residuals are those of an outcome model that has not seen the row, so that E[y − m̂ | T = t] differs between policies by
//! their average effects alone, whatever m̂ is; a good one makes them precise. What the effects of rows are known to differ by
//! may be taken off beforehand, so that it is no part of the noise. The mean of an arm is Hájek's, its variance that of the sums of clusters. Few rows tell little of their own
//! variance: it is drawn to that of all rows, as if the arm had twenty more of them.

use crate::nuisance::Propensity;

/// Rows, or clusters, of average noise that an arm's own variance is mixed with.
const PRIOR_UNITS: f64 = 20.0;

/// Residual outcomes of all rows, and who got what.
pub(crate) struct ResidualRows<'a> {
    /// y − m̂(x) out of fold, and perhaps less what rows are known to differ by; row-major, one column per outcome.
    pub(crate) residual: &'a [f32],
    pub(crate) n_outcomes: usize,
    /// The policy of each row.
    pub(crate) policy: &'a [u32],
    pub(crate) n_policies: usize,
    pub(crate) weight: Option<&'a [f64]>,
    pub(crate) cluster: Option<&'a [u32]>,
    /// π(t|x).
    pub(crate) propensity: &'a Propensity,
}

/// The policies that were run, with their means.
#[derive(Clone, Debug)]
pub(super) struct Arms {
    /// The policies, ascending.
    pub(super) policy: Vec<usize>,
    /// The mean residual of each.
    pub(super) mean: Vec<f64>,
    /// Its variance.
    pub(super) variance: Vec<f64>,
    /// Rows that count.
    pub(super) rows: Vec<usize>,
    /// Independent units: clusters, or rows.
    pub(super) n_units: usize,
    /// Σ w of each arm.
    mass: Vec<f64>,
    /// The arm of each policy.
    place: Vec<Option<usize>>,
}

impl Arms {
    /// The variance of one row such that an arm of n rows has about this over n: that of all rows together, with what
    /// weights and clusters add to it.
    pub(super) fn row_variance(&self) -> f64 {
        let rows: f64 = self.rows.iter().map(|rows| *rows as f64).sum();
        let noise =
            self.rows.iter().zip(&self.variance).map(|(rows, variance)| (*rows as f64).powi(2) * variance);
        noise.sum::<f64>() / rows.max(1.0)
    }
}

impl ResidualRows<'_> {
    /// Means and variances of one outcome.
    pub(super) fn arms(&self, outcome: usize) -> Arms {
        let n_policies = self.n_policies;
        let (mut mass, mut squares, mut sum) =
            (vec![0.0; n_policies], vec![0.0; n_policies], vec![0.0; n_policies]);
        let mut rows = vec![0_usize; n_policies];
        for row in 0..self.policy.len() {
            let (policy, weight) = (self.policy[row] as usize, self.row_weight(row));
            mass[policy] += weight;
            squares[policy] += weight * weight;
            sum[policy] += weight * self.value(row, outcome);
            rows[policy] += usize::from(weight > 0.0);
        }
        let policy: Vec<usize> = (0..n_policies).filter(|policy| mass[*policy] > 0.0).collect();
        let mut place = vec![None; n_policies];
        policy.iter().enumerate().for_each(|(arm, policy)| place[*policy] = Some(arm));
        let of = |values: &[f64]| -> Vec<f64> { policy.iter().map(|policy| values[*policy]).collect() };
        let (mass, squares, sum) = (of(&mass), of(&squares), of(&sum));
        let rows: Vec<usize> = policy.iter().map(|policy| rows[*policy]).collect();
        let mean: Vec<f64> = sum.iter().zip(&mass).map(|(sum, mass)| sum / mass).collect();
        let n_arms = policy.len();
        let mut arms = Arms { policy, mean, variance: vec![0.0; n_arms], rows, n_units: 0, mass, place };

        // The noise of one row: around the means of arms, or around that of all where hardly an arm has two rows.
        let n_rows: usize = arms.rows.iter().sum();
        let is_thin = 2 * n_arms > n_rows;
        let total: f64 = arms.mass.iter().sum();
        let grand = arms.mean.iter().zip(&arms.mass).map(|(mean, mass)| mean * mass).sum::<f64>() / total;
        let around: Vec<f64> = if is_thin { vec![grand; n_arms] } else { arms.mean.clone() };
        let mut noise = 0.0;
        for row in 0..self.policy.len() {
            let Some(arm) = arms.place[self.policy[row] as usize] else { continue };
            noise += self.row_weight(row) * (self.value(row, outcome) - around[arm]).powi(2);
        }
        let freedom = n_rows as f64 - if is_thin { 1.0 } else { n_arms as f64 };
        let pooled = noise / total * n_rows as f64 / freedom.max(1.0);
        let by_row: Vec<f64> =
            squares.iter().zip(&arms.mass).map(|(squares, mass)| pooled * squares / (mass * mass)).collect();

        // Σ over units of squared sums, and how many units each arm has.
        let (mut own, mut units) = (vec![0.0; n_arms], vec![0.0; n_arms]);
        let around = arms.mean.clone();
        arms.n_units = self.each_unit(&arms, outcome, &around, |sums| {
            for (arm, value) in sums {
                own[*arm] += value * value;
                units[*arm] += 1.0;
            }
        });
        // Clusters that share their noise: by how much it exceeds that of rows, in arms that have enough of them.
        let known = (0..n_arms).filter(|arm| units[*arm] >= PRIOR_UNITS);
        let (found, expected) = known
            .map(|arm| (own[arm] * units[arm] / (units[arm] - 1.0), by_row[arm]))
            .fold((0.0, 0.0), |(found, expected), (own, row)| (found + own, expected + row));
        let excess = if self.cluster.is_some() && expected > 0.0 { (found / expected).max(1.0) } else { 1.0 };
        for arm in 0..n_arms {
            let n = units[arm];
            let own = if n > 1.0 { own[arm] * n / (n - 1.0) } else { 0.0 };
            let trust = if n > 1.0 { n } else { 0.0 };
            arms.variance[arm] = (trust * own + PRIOR_UNITS * excess * by_row[arm]) / (trust + PRIOR_UNITS);
        }
        arms
    }

    /// For every unit the sums of w·(value − centre)/Σw of the arms that it has rows in; gives how many units there are.
    pub(super) fn each_unit(
        &self,
        arms: &Arms,
        outcome: usize,
        centre: &[f64],
        mut act: impl FnMut(&[(usize, f64)]),
    ) -> usize {
        let term = |row: usize| {
            let (arm, weight) = (arms.place[self.policy[row] as usize]?, self.row_weight(row));
            let value = weight * (self.value(row, outcome) - centre[arm]) / arms.mass[arm];
            (weight > 0.0).then_some((arm, value))
        };
        let n_rows = self.policy.len();
        let Some(cluster) = self.cluster else {
            let mut n_units = 0;
            for term in (0..n_rows).filter_map(term) {
                act(&[term]);
                n_units += 1;
            }
            return n_units;
        };
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        order.sort_by_key(|row| (cluster[*row as usize], arms.place[self.policy[*row as usize] as usize]));
        let mut n_units = 0;
        let mut sums: Vec<(usize, f64)> = Vec::new();
        for (place, row) in order.iter().enumerate() {
            if let Some((arm, value)) = term(*row as usize) {
                match sums.last_mut() {
                    Some((last, sum)) if *last == arm => *sum += value,
                    _ => sums.push((arm, value)),
                }
            }
            let is_last =
                order.get(place + 1).is_none_or(|next| cluster[*next as usize] != cluster[*row as usize]);
            if is_last && !sums.is_empty() {
                act(&sums);
                sums.clear();
                n_units += 1;
            }
        }
        n_units
    }

    fn value(&self, row: usize, outcome: usize) -> f64 {
        f64::from(self.residual[row * self.n_outcomes + outcome])
    }

    /// The row's weight over the propensity of its policy; shares that are the same for all rows cancel.
    fn row_weight(&self, row: usize) -> f64 {
        let weight = self.weight.map_or(1.0, |weight| weight[row]);
        match self.propensity {
            Propensity::Shares(_) => weight,
            by_row => {
                let own = f64::from(by_row.of_row(row, self.n_policies)[self.policy[row] as usize]);
                if own > 0.0 { weight / own } else { 0.0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<'a>(residual: &'a [f32], policy: &'a [u32], propensity: &'a Propensity) -> ResidualRows<'a> {
        ResidualRows {
            residual,
            n_outcomes: 1,
            policy,
            n_policies: 3,
            weight: None,
            cluster: None,
            propensity,
        }
    }

    #[test]
    fn means_and_variances_are_those_of_the_arms() {
        let n = 4000;
        let policy: Vec<u32> = (0..n).map(|row| u32::from(row % 4 == 0)).collect();
        let residual: Vec<f32> =
            (0..n).map(|row| policy[row] as f32 + if (row / 4) % 2 == 0 { 2.0 } else { -2.0 }).collect();
        let shares = Propensity::shares(&policy, None, 3);
        let arms = rows(&residual, &policy, &shares).arms(0);
        assert_eq!((arms.policy.clone(), arms.rows.clone(), arms.n_units), (vec![0, 1], vec![3000, 1000], n));
        assert!((arms.mean[1] - arms.mean[0] - 1.0).abs() < 1e-9);
        assert!((arms.variance[1] - 4.0 / 1000.0).abs() < 1e-5, "{:?}", arms.variance);
        assert!((arms.row_variance() - 4.0).abs() < 0.01, "{}", arms.row_variance());
        // Pairs of rows that are the same are half as many.
        let twice = |values: &[u32]| values.iter().flat_map(|value| [*value, *value]).collect::<Vec<_>>();
        let (policy, cluster) = (twice(&policy), twice(&(0..n as u32).collect::<Vec<_>>()));
        let residual: Vec<f32> = residual.iter().flat_map(|value| [*value, *value]).collect();
        let clustered = ResidualRows { cluster: Some(&cluster), ..rows(&residual, &policy, &shares) }.arms(0);
        assert_eq!(clustered.n_units, n);
        assert!((clustered.variance[1] / arms.variance[1] - 1.0).abs() < 0.03, "{:?}", clustered.variance);
        // As are weights of two, but for the noise, which counts rows.
        let weight = vec![2.0; 2 * n];
        let weighted = ResidualRows { weight: Some(&weight), ..rows(&residual, &policy, &shares) }.arms(0);
        assert!((weighted.variance[1] / arms.variance[1] - 0.5).abs() < 0.02);
    }

    #[test]
    fn rows_that_were_unlikely_to_get_a_policy_count_for_the_others() {
        // Half of the rows have residual 1 and get the policy once in five, the others 0 and get it four times in five.
        let n = 1000;
        let policy: Vec<u32> =
            (0..n).map(|row| u32::from(if row < 500 { row % 5 == 0 } else { row % 5 != 0 })).collect();
        let residual: Vec<f32> = (0..n).map(|row| if row < 500 { 1.0 } else { 0.0 }).collect();
        let table: Vec<f32> =
            (0..n).flat_map(|row| if row < 500 { [0.8, 0.2, 0.0] } else { [0.2, 0.8, 0.0] }).collect();
        let propensity = Propensity::Rows(std::sync::Arc::new(table));
        let arms = rows(&residual, &policy, &propensity).arms(0);
        assert!(arms.mean.iter().all(|mean| (mean - 0.5).abs() < 1e-6), "{:?}", arms.mean);
    }

    #[test]
    fn single_rows_have_the_noise_of_all() {
        let residual: Vec<f32> = (0..300).map(|row| if row % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let policy: Vec<u32> = (0..300).collect();
        let shares = Propensity::shares(&policy, None, 300);
        let arms = ResidualRows { n_policies: 300, ..rows(&residual, &policy, &shares) }.arms(0);
        assert!(arms.variance.iter().all(|variance| (variance - 1.0).abs() < 0.01));
    }
}
