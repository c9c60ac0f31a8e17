//! Rows behind each policy, and the sample-ratio test against declared shares.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::policy::PolicySet;
use crate::stats::chi_square;
use crate::{Error, Kind, Result};

/// What the data holds of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Arm {
    /// The policy.
    pub policy: String,
    /// Rows assigned to it.
    pub rows: u64,
    /// Units of assignment (clusters, or rows) assigned to it.
    pub units: u64,
    /// Share of the units.
    pub share: f64,
    /// Share that was declared.
    pub declared: Option<f64>,
    /// Mean of each outcome, in the order of the roles.
    pub outcome_means: Vec<f64>,
}

/// Pearson's χ² of assigned units against declared shares.
#[derive(Clone, Debug, Serialize)]
pub struct SampleRatio {
    /// The χ² statistic.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub degrees: usize,
    /// Probability of a statistic as large if the declared shares are right.
    pub p_value: f64,
    /// The policy that adds most to the statistic.
    pub worst_policy: String,
}

/// Declared shares by policy index, normalised to sum 1; every policy seen in the data needs one.
pub(super) fn declared_shares(
    shares: &BTreeMap<String, f64>,
    policies: &PolicySet,
    units: &[u64],
) -> Result<Option<Vec<f64>>> {
    if shares.is_empty() {
        return Ok(None);
    }
    let mut declared = vec![0.0; policies.len()];
    for (name, &share) in shares {
        let Some(policy) = policies.index(name) else {
            let known = policies.names().iter().map(String::as_str);
            return Err(Error::unknown(
                Kind::Usage,
                "policy in the declared shares:",
                name,
                "policies",
                known,
            ));
        };
        if !(share.is_finite() && share >= 0.0) {
            return Err(Error::usage(format!("the declared share of `{name}` is {share}"))
                .hint("shares are numbers from 0 up; they are normalised"));
        }
        declared[policy] = share;
    }
    let total: f64 = declared.iter().sum();
    if total <= 0.0 {
        return Err(Error::usage("the declared shares are all zero"));
    }
    for (policy, &n_units) in units.iter().enumerate() {
        if n_units > 0 && declared[policy] == 0.0 {
            let name = policies.name(policy);
            return Err(Error::usage(format!(
                "no share is declared for `{name}`, which has {n_units} units in the data"
            ))
            .hint("declare a share for every policy that was run, or leave the shares out"));
        }
    }
    Ok(Some(declared.iter().map(|share| share / total).collect()))
}

/// Compares units per policy with the declared shares.
pub(super) fn sample_ratio(units: &[u64], declared: &[f64], policies: &PolicySet) -> SampleRatio {
    let total: u64 = units.iter().sum();
    let part = |policy: usize| {
        let expected = declared[policy] * total as f64;
        if expected > 0.0 { (units[policy] as f64 - expected).powi(2) / expected } else { 0.0 }
    };
    let parts: Vec<f64> = (0..units.len()).map(part).collect();
    let worst = (0..parts.len()).max_by(|a, b| parts[*a].total_cmp(&parts[*b])).unwrap_or(0);
    let statistic = parts.iter().sum();
    let degrees = declared.iter().filter(|share| **share > 0.0).count().saturating_sub(1);
    SampleRatio {
        statistic,
        degrees,
        p_value: chi_square::upper_tail(statistic, degrees),
        worst_policy: policies.name(worst).to_string(),
    }
}
