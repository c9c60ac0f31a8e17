//! Rows behind each atom: what the data can say about each part of a policy.

use serde::Serialize;

use crate::policy::PolicySet;

/// The evidence on one (context, action) atom.
#[derive(Clone, Debug, Serialize)]
pub struct AtomCoverage {
    /// The context.
    pub context: String,
    /// The action.
    pub action: String,
    /// Rows whose policy carries the atom.
    pub rows: u64,
    /// Policies with rows in the data that carry it.
    pub policies: usize,
    /// Its share of the data: the mean of α_T(s, a) over rows, relative to w(s).
    pub share: f64,
}

/// Coverage of every atom of the set, in the set's order.
pub(super) fn atom_coverage(policies: &PolicySet, rows: &[u64]) -> Vec<AtomCoverage> {
    let total: u64 = rows.iter().sum();
    let mut coverage: Vec<AtomCoverage> = policies
        .atoms()
        .iter()
        .map(|atom| AtomCoverage {
            context: policies.contexts()[atom.context as usize].clone(),
            action: policies.actions()[atom.action as usize].clone(),
            rows: 0,
            policies: 0,
            share: 0.0,
        })
        .collect();
    for (policy, &n_rows) in rows.iter().enumerate().filter(|(_, n_rows)| **n_rows > 0) {
        let atoms = policies.mixture(policy).atoms;
        for (&atom, &probability) in atoms.iter().zip(policies.conditional(policy)) {
            let entry = &mut coverage[atom as usize];
            entry.rows += n_rows;
            entry.policies += 1;
            entry.share += probability * n_rows as f64 / total as f64;
        }
    }
    coverage
}
