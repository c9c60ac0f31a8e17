//! What the sums of a check tell: arms, the sample ratio, outcomes, coverage, missing values, and how far the means of numbers
//! differ between policies.

use serde::Serialize;

use super::arms::{declared_shares, sample_ratio};
use super::coverage::atom_coverage;
use super::findings::sample_ratio_found;
use super::in_parts::{CheckSums, FeatureSums};
use super::{
    Arm, AtomCoverage, Finding, Imbalance, Level, MOST_POLICY_GROUPS, OutcomeSummary, Params, SampleRatio,
    aliases, require_two_arms,
};
use crate::Result;
use crate::data::{Columns, Design};
use crate::policy::PolicySet;

/// Standard errors that the means of two arms may differ by: of a thousand columns one in a thousand experiments has one.
const FAR: f64 = 5.0;
const MOST_SHOWN: usize = 20;

/// What the sums of all rows tell; the names are those of a [`Profile`](super::Profile).
#[derive(Clone, Debug, Serialize)]
pub struct SummedProfile {
    /// Rows that pass the population filter.
    pub rows: u64,
    /// Each outcome.
    pub outcomes: Vec<OutcomeSummary>,
    /// The policy others are compared with, if it is in the data.
    pub control: Option<String>,
    /// Each policy that has rows.
    pub arms: Vec<Arm>,
    /// Defined policies without a row.
    pub unused_policies: Vec<String>,
    /// Rows against declared shares, where rows were assigned one by one.
    pub sample_ratio: Option<SampleRatio>,
    /// Each feature.
    pub features: Vec<FeatureSummary>,
    /// The twenty largest standardised differences of numbers between policies.
    pub imbalances: Vec<Imbalance>,
    /// Nothing: a permutation test needs rows.
    pub balance: (),
    /// Rows behind each atom.
    pub atoms: Vec<AtomCoverage>,
    /// Policies that are the same mixture under different names.
    pub aliases: Vec<Vec<String>>,
    /// What to look at, most serious first.
    pub findings: Vec<Finding>,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

/// A feature.
#[derive(Clone, Debug, Serialize)]
pub struct FeatureSummary {
    /// The column.
    pub column: String,
    /// Share of the rows without a value.
    pub missing: f64,
    /// Mean of the values, of numbers.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub sd: Option<f64>,
}

impl CheckSums {
    /// What the sums of all rows tell. Of `params` the declared shares count alone.
    pub(crate) fn profile(
        &self,
        columns: &Columns,
        policies: &PolicySet,
        params: &Params,
    ) -> Result<SummedProfile> {
        let rows = &self.rows;
        require_two_arms(rows, policies)?;
        let total: u64 = rows.iter().sum();
        let mut notes =
            vec!["no permutation test of balance, and no correlations: they need rows".to_owned()];
        let declared = declared_shares(&params.shares, policies, rows)?;
        let sample_ratio = match (&declared, &columns.cluster) {
            (Some(_), Some(_)) => {
                notes.push(
                    "no test of the sample ratio: clusters were assigned, and rows were counted".to_owned(),
                );
                None
            }
            (declared, _) => declared.as_ref().map(|declared| sample_ratio(rows, declared, policies)),
        };
        let arm = |policy: usize| Arm {
            policy: policies.name(policy).to_owned(),
            rows: rows[policy],
            units: rows[policy],
            share: rows[policy] as f64 / total as f64,
            declared: declared.as_ref().map(|declared| declared[policy]),
            outcome_means: self
                .outcomes
                .iter()
                .map(|own| own.sums[policy].value() / rows[policy] as f64)
                .collect(),
        };
        let has_rows = |policy: &usize| rows[*policy] > 0;
        let reference =
            columns.control.as_deref().and_then(|control| policies.index(control)).filter(has_rows);
        if policies.len() > MOST_POLICY_GROUPS {
            notes.push(format!("no differences between policies: there are more than {MOST_POLICY_GROUPS}"));
        }
        let mut far = Vec::new();
        let mut imbalances: Vec<Imbalance> = Vec::new();
        if policies.len() <= MOST_POLICY_GROUPS {
            for (feature, sums) in columns.features.iter().zip(&self.features) {
                for (policy, difference, errors) in sums.differences(reference) {
                    if errors.abs() > FAR {
                        far.push(feature.name.clone());
                    }
                    let group = policies.name(policy).to_owned();
                    imbalances.push(Imbalance { column: feature.name.clone(), group, difference });
                }
            }
        }
        imbalances.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        imbalances.truncate(MOST_SHOWN);
        far.dedup();
        let unused = (0..policies.len()).filter(|policy| !has_rows(policy));
        Ok(SummedProfile {
            rows: total,
            outcomes: self
                .outcomes
                .iter()
                .zip(&columns.outcomes)
                .map(|(own, name)| own.summary(name, total))
                .collect(),
            control: columns.control.clone(),
            arms: (0..policies.len()).filter(has_rows).map(arm).collect(),
            unused_policies: unused.map(|policy| policies.name(policy).to_owned()).collect(),
            findings: self.findings(columns, sample_ratio.as_ref(), &far),
            sample_ratio,
            features: columns
                .features
                .iter()
                .zip(&self.features)
                .map(|(own, sums)| sums.summary(&own.name, total))
                .collect(),
            imbalances,
            balance: (),
            atoms: atom_coverage(policies, rows),
            aliases: aliases(policies),
            notes,
        })
    }

    fn findings(&self, columns: &Columns, ratio: Option<&SampleRatio>, far: &[String]) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(ratio.and_then(sample_ratio_found));
        if columns.design == Design::Randomized && !far.is_empty() {
            findings.push(Finding {
                level: Level::Warning,
                what: format!("means that differ between policies by more than {FAR} standard errors: {}", far.join(", ")),
                hint: "were these columns measured after assignment, or was it not random? Leave such columns out: ‹exclude=COL›"
                    .to_owned(),
            });
        }
        let total: u64 = self.rows.iter().sum();
        let is_constant =
            |sums: &FeatureSums| sums.missing == total || (sums.missing == 0 && sums.least == sums.most);
        let constant: Vec<&str> = columns
            .features
            .iter()
            .zip(&self.features)
            .filter(|(_, sums)| is_constant(sums))
            .map(|(feature, _)| feature.name.as_str())
            .collect();
        if !constant.is_empty() {
            findings.push(Finding {
                level: Level::Note,
                what: format!("features with a single value: {}", constant.join(", ")),
                hint: "they tell nothing, and can be left out".to_owned(),
            });
        }
        findings
    }
}
