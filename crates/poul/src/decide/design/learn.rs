//! What teaches most: the batch of policies, and their shares of the users, that leave the least variance in the averages of
//! all candidates (V-optimal; chosen one by one, then shares by exchange).
//!
//! An experiment tells contrasts with its own control: y_B = f_B + e, e ~ N(0, σ²(diag(1/n) + 11ᵀ/n₀)), so that the variance
//! of what is known, Σ, becomes Σ − Σ_B(Σ_BB + R)⁻¹Σ_Bᵀ.

use crate::stats::Cholesky;

/// The smallest share that is given.
const LEAST_SHARE: f64 = 0.01;

/// The covariance of candidates, and what a user is worth.
pub(super) struct Knowledge<'a> {
    /// Candidates × candidates.
    pub(super) covariance: &'a [f64],
    pub(super) n: usize,
    /// σ of one user.
    pub(super) deviation: f64,
    /// Users.
    pub(super) rows: f64,
}

/// A batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Batch {
    /// Candidates, in the order chosen.
    pub(super) chosen: Vec<usize>,
    /// Their shares; what is left is control's.
    pub(super) shares: Vec<f64>,
    /// Variances of all candidates after it.
    pub(super) variance: Vec<f64>,
}

impl Knowledge<'_> {
    /// The best batch of `size` policies.
    pub(super) fn batch(&self, size: usize) -> Batch {
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < size.min(self.n) {
            let shares = even(chosen.len() + 1);
            let mut best: Option<(usize, f64)> = None;
            for candidate in (0..self.n).filter(|own| !chosen.contains(own)) {
                let with: Vec<usize> = chosen.iter().copied().chain([candidate]).collect();
                let left = self.left(&with, &shares);
                if best.is_none_or(|(_, least)| left < least) {
                    best = Some((candidate, left));
                }
            }
            let Some((candidate, _)) = best else { break };
            chosen.push(candidate);
        }
        let shares = self.exchanged(&chosen);
        let variance = self.variance(&chosen, &shares);
        Batch { chosen, shares, variance }
    }

    /// Moves shares between policies, and between them and control, as long as that helps.
    fn exchanged(&self, chosen: &[usize]) -> Vec<f64> {
        let n = chosen.len();
        let mut shares = even(n);
        let mut least = self.left(chosen, &shares);
        let mut step = 0.1;
        while step > 0.002 {
            let mut best: Option<(Vec<f64>, f64)> = None;
            // The last place is control's.
            for (from, to) in
                (0..=n).flat_map(|from| (0..=n).map(move |to| (from, to))).filter(|(a, b)| a != b)
            {
                let mut all = shares.clone();
                all.push(1.0 - shares.iter().sum::<f64>());
                all[from] -= step;
                all[to] += step;
                if all[from] < LEAST_SHARE {
                    continue;
                }
                all.truncate(n);
                let left = self.left(chosen, &all);
                if best.as_ref().map_or(least, |(_, best)| *best) > left * (1.0 + 1e-9) {
                    best = Some((all, left));
                }
            }
            match best {
                Some((better, left)) => (shares, least) = (better, left),
                None => step /= 2.0,
            }
        }
        shares
    }

    fn left(&self, chosen: &[usize], shares: &[f64]) -> f64 {
        self.variance(chosen, shares).iter().sum()
    }

    /// The variances of all candidates after an experiment.
    fn variance(&self, chosen: &[usize], shares: &[f64]) -> Vec<f64> {
        let (n, k) = (self.n, chosen.len());
        let diagonal = |candidate: usize| self.covariance[candidate * n + candidate];
        let control = (1.0 - shares.iter().sum::<f64>()).max(1e-12) * self.rows;
        let noise = self.deviation * self.deviation;
        let mut seen: Vec<f64> = (0..k * k)
            .map(|cell| self.covariance[chosen[cell / k] * n + chosen[cell % k]] + noise / control)
            .collect();
        (0..k).for_each(|own| seen[own * k + own] += noise / (shares[own] * self.rows));
        let Some(factor) = Cholesky::new(seen, k) else { return (0..n).map(diagonal).collect() };
        let after = |candidate: usize| {
            let mut shared: Vec<f64> =
                chosen.iter().map(|own| self.covariance[own * n + candidate]).collect();
            factor.forward(&mut shared);
            (diagonal(candidate) - shared.iter().map(|value| value * value).sum::<f64>()).max(0.0)
        };
        (0..n).map(after).collect()
    }
}

/// Policies alike, and control as large as the square root of their number: the best where nothing is known.
fn even(n: usize) -> Vec<f64> {
    vec![1.0 / (n as f64 + (n as f64).sqrt()); n]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_and_shared_is_run() {
        // Three policies that move together, one that is known, one that stands alone and is as unknown.
        let n = 5;
        let mut covariance = vec![0.0; n * n];
        for (a, b, value) in [
            (0, 0, 1.0),
            (1, 1, 1.0),
            (2, 2, 1.0),
            (3, 3, 0.001),
            (4, 4, 1.0),
            (0, 1, 0.9),
            (0, 2, 0.9),
            (1, 2, 0.8),
        ] {
            covariance[a * n + b] = value;
            covariance[b * n + a] = value;
        }
        let knowledge = Knowledge { covariance: &covariance, n, deviation: 1.0, rows: 1000.0 };
        let batch = knowledge.batch(2);
        assert_eq!(batch.chosen, [0, 4]);
        assert!(
            batch.variance[1] < 0.3 && batch.variance[3] <= 0.001 && batch.variance[4] < 0.02,
            "{batch:?}"
        );
        let control = 1.0 - batch.shares.iter().sum::<f64>();
        assert!(batch.shares.iter().chain([&control]).all(|share| *share >= LEAST_SHARE - 1e-12));
        // More users leave less.
        let more = Knowledge { rows: 10_000.0, ..knowledge }.batch(2);
        assert!(more.variance.iter().sum::<f64>() < batch.variance.iter().sum::<f64>());
    }

    #[test]
    fn control_is_the_largest_arm_where_policies_are_independent() {
        let n = 4;
        let covariance: Vec<f64> =
            (0..n * n).map(|cell| if cell / n == cell % n { 1.0 } else { 0.0 }).collect();
        let batch = Knowledge { covariance: &covariance, n, deviation: 1.0, rows: 10_000.0 }.batch(4);
        let control = 1.0 - batch.shares.iter().sum::<f64>();
        // √4 : 1 : 1 : 1 : 1.
        assert!((control - 1.0 / 3.0).abs() < 0.02, "{batch:?}");
    }
}
