//! The propensity π(t | x): the probability that a row was given each policy (Sec. 2.2 of the paper).
//!
//! [`fit_propensity`] turns what is known of the assignment ([`AssignmentDesign`]) into a [`Propensity`]: shares where
//! it was random, a table by stratum where it was random within strata, a cross-fitted softmax network or boosted trees where
//! nobody randomised, or the user's own columns.

mod assignment;
mod boosted;
mod clip;
mod columns;
mod cross_fit;
mod network;
mod params;
mod report;
mod stored;
mod stratum_table;

use std::sync::Arc;

pub use assignment::{Assignment, AssignmentDesign, PropensityFit, PropensityOrigin, fit_propensity};
pub use columns::PropensityColumn;
pub use params::{PropensityKind, PropensityParams, ValidPropensityParams};
pub use report::{AbsentPolicies, PolicyOverlap, PropensityReport};
pub use stored::{PropensityManifest, PropensityModels};
pub use stratum_table::StratumTable;

use super::classes::masses;

/// π(t | x) over the policies of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Propensity {
    /// The same for every row.
    Shares(Vec<f32>),
    /// A row-major table of strata × policies, and the stratum of each row.
    Strata {
        /// π(t | stratum).
        table: Arc<Vec<f32>>,
        /// Stratum of each row.
        of_row: Vec<u32>,
    },
    /// A row-major table of rows × policies: 4 · rows · policies bytes, 800 MB for a million rows and 200 policies.
    Rows(Arc<Vec<f32>>),
}

impl Propensity {
    /// Shares of the policies among the rows, by weight.
    pub fn shares(policy: &[u32], weight: Option<&[f32]>, n_policies: usize) -> Self {
        Self::Shares(normalised(&masses(policy, weight, n_policies)).unwrap_or_else(|| vec![0.0; n_policies]))
    }

    /// Shares of the policies within each stratum, by weight. A stratum that weighs nothing has the shares of all
    /// rows.
    pub fn strata(
        policy: &[u32],
        stratum: &[u32],
        n_strata: usize,
        weight: Option<&[f32]>,
        n_policies: usize,
    ) -> Self {
        let mut mass = vec![0.0; n_strata * n_policies];
        for (row, (policy, stratum)) in policy.iter().zip(stratum).enumerate() {
            let weight = weight.map_or(1.0, |weight| f64::from(weight[row]));
            mass[*stratum as usize * n_policies + *policy as usize] += weight;
        }
        let all = normalised(&masses(policy, weight, n_policies)).unwrap_or_else(|| vec![0.0; n_policies]);
        let shares = |mass: &[f64]| normalised(mass).unwrap_or_else(|| all.clone());
        let table = mass.chunks(n_policies.max(1)).flat_map(shares).collect();
        Self::Strata { table: Arc::new(table), of_row: stratum.to_vec() }
    }

    /// π(· | x) of one row. Panics beyond the last, as slices do.
    pub fn of_row(&self, row: usize, n_policies: usize) -> &[f32] {
        match self {
            Self::Shares(shares) => shares,
            Self::Strata { table, of_row } => &table[of_row[row] as usize * n_policies..][..n_policies],
            Self::Rows(table) => &table[row * n_policies..][..n_policies],
        }
    }

    /// The propensity of some rows, in their order. Panics beyond the last, as slices do.
    #[must_use]
    pub(crate) fn subset(&self, rows: &[u32], n_policies: usize) -> Self {
        match self {
            Self::Shares(shares) => Self::Shares(shares.clone()),
            Self::Strata { table, of_row } => Self::Strata {
                table: Arc::clone(table),
                of_row: rows.iter().map(|row| of_row[*row as usize]).collect(),
            },
            Self::Rows(_) => {
                let mut table = Vec::with_capacity(rows.len() * n_policies);
                rows.iter().for_each(|row| table.extend_from_slice(self.of_row(*row as usize, n_policies)));
                Self::Rows(Arc::new(table))
            }
        }
    }
}

/// Masses as shares; `None` where there is none.
fn normalised(mass: &[f64]) -> Option<Vec<f32>> {
    let total: f64 = mass.iter().sum();
    (total > 0.0).then(|| mass.iter().map(|mass| (mass / total) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_strata_are_what_one_counts_by_hand() {
        let policy = [0, 1, 1, 2, 0, 1, 1, 1];
        let stratum = [0, 0, 0, 0, 1, 1, 1, 1];
        let shares = Propensity::shares(&policy, None, 4);
        assert_eq!(shares, Propensity::Shares(vec![0.25, 0.625, 0.125, 0.0]));
        let strata = Propensity::strata(&policy, &stratum, 3, None, 4);
        assert_eq!(strata.of_row(0, 4), [0.25, 0.5, 0.25, 0.0]);
        assert_eq!(strata.of_row(7, 4), [0.25, 0.75, 0.0, 0.0]);
        let Propensity::Strata { table, .. } = &strata else { panic!("not strata") };
        // Nobody is in the third stratum.
        assert_eq!(table[8..], [0.25, 0.625, 0.125, 0.0]);
    }

    #[test]
    fn weights_are_duplicated_rows() {
        let (policy, stratum) = ([0, 1, 2, 1], [1, 0, 1, 1]);
        let weight = [3.0, 1.0, 0.0, 2.0];
        let copies: Vec<usize> = (0..4).flat_map(|row| vec![row; weight[row] as usize]).collect();
        let repeat = |values: [u32; 4]| copies.iter().map(|row| values[*row]).collect::<Vec<u32>>();
        let (policies, strata) = (repeat(policy), repeat(stratum));
        assert_eq!(Propensity::shares(&policy, Some(&weight), 3), Propensity::shares(&policies, None, 3));
        let weighted = Propensity::strata(&policy, &stratum, 2, Some(&weight), 3);
        let repeated = Propensity::strata(&policies, &strata, 2, None, 3);
        for (row, copy) in copies.iter().enumerate() {
            assert_eq!(weighted.of_row(*copy, 3), repeated.of_row(row, 3));
        }
    }

    #[test]
    fn a_subset_keeps_each_rows_propensity() {
        let strata = Propensity::strata(&[0, 1, 1, 0], &[0, 1, 0, 1], 2, None, 2);
        let rows: Vec<f32> = (0..4).flat_map(|row| strata.of_row(row, 2).to_vec()).collect();
        for propensity in [strata, Propensity::Rows(Arc::new(rows)), Propensity::Shares(vec![0.5, 0.5])] {
            let subset = propensity.subset(&[3, 0, 3], 2);
            for (new, old) in [3, 0, 3].into_iter().enumerate() {
                assert_eq!(subset.of_row(new, 2), propensity.of_row(old, 2));
            }
        }
    }
}
