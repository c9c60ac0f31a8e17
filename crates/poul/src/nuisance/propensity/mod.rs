//! The propensity π(t | x): shares, by stratum, or by row.

use std::sync::Arc;

/// π(t | x) over the policies of a set.
#[derive(Clone, Debug)]
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
    /// A row-major table of rows × policies.
    Rows(Arc<Vec<f32>>),
}

impl Propensity {
    /// Shares of the policies among the rows.
    pub fn shares(policy: &[u32], weight: Option<&[f32]>, n_policies: usize) -> Self {
        let mut mass = vec![0.0_f64; n_policies];
        for (row, policy) in policy.iter().enumerate() {
            mass[*policy as usize] += weight.map_or(1.0, |weight| f64::from(weight[row]));
        }
        let total: f64 = mass.iter().sum();
        Self::Shares(mass.iter().map(|mass| (mass / total) as f32).collect())
    }
}
