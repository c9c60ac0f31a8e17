//! How trustworthy a propensity is: clipping, overlap, and whether assignment can be predicted at all.

use serde::{Deserialize, Serialize};

use super::Propensity;
use super::assignment::Assignment;
use super::clip::Clipped;
use crate::counted;
use crate::nuisance::classes::masses;

/// What [`fit_propensity`](super::fit_propensity) found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PropensityReport {
    /// Rows with at least one probability that was lifted to its floor.
    pub clipped_rows: usize,
    /// Their share of all rows.
    pub clipped_share: f64,
    /// Rows whose own policy's probability was lifted: these are the ones without overlap.
    pub clipped_own_rows: usize,
    /// Smallest probability of a row's own policy.
    pub min: f64,
    /// Effective share of the rows under stabilised weights share(T) / π(T | x): 1 where assignment does not depend on
    /// x, near 0 where a few rows carry all weight.
    pub effective_share: f64,
    /// Mean −ln π(T | x); out of fold where the propensity was cross-fitted.
    pub log_loss: f64,
    /// The same for the policies' shares: where `log_loss` is not clearly below, assignment looks random.
    pub log_loss_of_shares: f64,
    /// Overlap by policy, for policies that were run.
    pub policies: Vec<PolicyOverlap>,
    /// Policies that shared one class of the softmax because they are rare, or too many.
    pub pooled_policies: usize,
    /// Classes that a fold's training part lacked: there they have their share of all rows.
    pub absent: Vec<AbsentPolicies>,
}

/// Overlap of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyOverlap {
    /// The policy.
    pub policy: String,
    /// Its rows.
    pub n_rows: usize,
    /// Its weighted share of all rows.
    pub share: f64,
    /// Smallest π(T | x) among its rows.
    pub min: f64,
    /// Effective share of its rows under weights 1 / π.
    pub effective_share: f64,
}

/// Policies without a row in a fold's training part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbsentPolicies {
    /// The fold, from 0.
    pub fold: usize,
    /// The policies.
    pub policies: Vec<String>,
    /// How many rows each of them has in all.
    pub rows: Vec<u64>,
}

impl AbsentPolicies {
    /// What the user should know about it.
    pub(crate) fn note(&self) -> String {
        let named = self.policies.iter().zip(&self.rows).map(|(name, rows)| match rows {
            1 => format!("`{name}` (1 row)"),
            rows => format!("`{name}` ({rows} rows)"),
        });
        let mut shown: Vec<String> = named.take(5).collect();
        let more = self.policies.len() - shown.len();
        if more > 0 {
            shown.push(format!("{more} more"));
        }
        format!(
            "the propensity of fold {} was fitted without a row of {}: it is taken to be the share of all rows there; fewer folds may help",
            self.fold + 1,
            shown.join(", "),
        )
    }
}

/// Sums of weights and their squares.
#[derive(Clone, Copy, Default)]
struct Moments {
    n_rows: usize,
    min: f64,
    mass: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, propensity: f64, weight: f64, inverse: f64) {
        self.min = if self.n_rows == 0 { propensity } else { self.min.min(propensity) };
        self.n_rows += 1;
        self.mass += weight;
        self.sum += weight * inverse;
        self.squares += weight * inverse * inverse;
    }

    /// (Σw/π)² / (Σw · Σw/π²): 1 where all inverse propensities are equal, whatever the sample weights.
    fn effective_share(&self) -> f64 {
        let denominator = self.mass * self.squares;
        if denominator > 0.0 { self.sum * self.sum / denominator } else { 0.0 }
    }
}

impl PropensityReport {
    /// What to say where propensities were lifted to the floor.
    pub(crate) fn clipping_note(&self, clip: f32, n_rows: usize) -> Option<String> {
        let own_share = self.clipped_own_rows as f64 / n_rows as f64;
        (self.clipped_rows > 0).then(|| {
            format!(
                "{} ({:.1} %) received a policy whose estimated probability was below the floor (`clip` = {clip}), and {} \
                 ({:.1} %) had some policy below it: there is little overlap there",
                counted(self.clipped_own_rows, "row", "rows"),
                100.0 * own_share,
                counted(self.clipped_rows, "row", "rows"),
                100.0 * self.clipped_share,
            )
        })
    }

    pub(super) fn new(propensity: &Propensity, assignment: &Assignment<'_>, clipped: Clipped) -> Self {
        let n_policies = assignment.policy_names.len();
        let mass = masses(assignment.policy, assignment.weight, n_policies);
        let total: f64 = mass.iter().sum();
        let mut all = Moments::default();
        let mut by_policy = vec![Moments::default(); n_policies];
        let (mut log_loss, mut log_loss_of_shares) = (0.0, 0.0);
        for (row, policy) in assignment.policy.iter().enumerate() {
            let policy = *policy as usize;
            let weight = assignment.weight.map_or(1.0, |weight| f64::from(weight[row]));
            let own = f64::from(propensity.of_row(row, n_policies)[policy]);
            // A row without weight may have a policy without a probability.
            if weight > 0.0 {
                let inverse = 1.0 / own.max(f64::MIN_POSITIVE.sqrt());
                let share = mass[policy] / total;
                all.add(own, weight, share * inverse);
                by_policy[policy].add(own, weight, inverse);
                log_loss += weight * inverse.ln();
                log_loss_of_shares -= weight * share.ln();
            }
        }
        let overlap = |(policy, moments): (usize, &Moments)| PolicyOverlap {
            policy: assignment.policy_names[policy].clone(),
            n_rows: moments.n_rows,
            share: mass[policy] / total,
            min: moments.min,
            effective_share: moments.effective_share(),
        };
        let run = by_policy.iter().enumerate().filter(|(_, moments)| moments.n_rows > 0);
        Self {
            clipped_rows: clipped.n_rows,
            clipped_share: clipped.n_rows as f64 / assignment.policy.len().max(1) as f64,
            clipped_own_rows: clipped.n_own,
            min: all.min,
            effective_share: all.effective_share(),
            log_loss: log_loss / total,
            log_loss_of_shares: log_loss_of_shares / total,
            policies: run.map(overlap).collect(),
            pooled_policies: 0,
            absent: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn random_assignment_has_full_overlap() {
        let (names, policy) = (["a", "b", "c"].map(String::from), [0, 1, 1, 0, 1, 1, 1, 1]);
        let assignment = Assignment::new(&names, &policy);
        let shares = Propensity::shares(&policy, None, 3);
        let report = PropensityReport::new(&shares, &assignment, Clipped::default());
        assert!((report.effective_share - 1.0).abs() < 1e-12 && (report.min - 0.25).abs() < 1e-12);
        assert!((report.log_loss - report.log_loss_of_shares).abs() < 1e-12);
        assert_eq!(report.policies.len(), 2);
        assert_eq!((report.policies[1].policy.as_str(), report.policies[1].n_rows), ("b", 6));
    }

    #[test]
    fn a_rare_assignment_takes_overlap_away() {
        let (names, policy) = (["a", "b"].map(String::from), [0, 0, 0, 1]);
        let assignment = Assignment::new(&names, &policy);
        let table = vec![0.9, 0.1, 0.9, 0.1, 0.1, 0.9, 0.5, 0.5];
        let report = PropensityReport::new(
            &Propensity::Rows(Arc::new(table)),
            &assignment,
            Clipped { n_rows: 1, n_own: 1 },
        );
        let a = &report.policies[0];
        // Weights 1/0.9, 1/0.9, 10.
        let expected = (2.0 / 0.9 + 10.0_f64).powi(2) / (3.0 * (2.0 / 0.81 + 100.0));
        assert!((a.effective_share - expected).abs() < 1e-6 && (a.min - 0.1).abs() < 1e-6, "{a:?}");
        assert_eq!((report.clipped_rows, report.clipped_share), (1, 0.25));
    }
}
