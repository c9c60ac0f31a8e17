//! A check of rows that are never in one place: what sums can tell. Arms, the sample ratio, outcomes, coverage, missing values, and
//! how far the means of numbers differ between policies.

use serde::Serialize;

use super::arms::{declared_shares, sample_ratio};
use super::coverage::atom_coverage;
use super::findings::sample_ratio_found;
use super::{
    Arm, AtomCoverage, Finding, Imbalance, LEAST_ROWS, Level, MOST_POLICY_GROUPS, OutcomeSummary, Params,
    SampleRatio, aliases, require_two_arms,
};
use crate::data::{ColumnKind, Design, RowReader, Source, numbers};
use crate::experiment::Experiment;
use crate::policy::Assigner;
use crate::stats::Exact;
use crate::wire::{from_bytes, to_bytes, wire};
use crate::{Error, Result};

const KIND: &str = "check";
/// Standard errors that the means of two arms may differ by: of a thousand columns one in a thousand experiments has one.
const FAR: f64 = 5.0;
const MOST_SHOWN: usize = 20;

/// Sums over some of the rows, or over all.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckSums {
    /// By policy.
    rows: Vec<u64>,
    /// By outcome.
    outcomes: Vec<OutcomeSums>,
    /// By feature.
    features: Vec<FeatureSums>,
}

#[derive(Clone, Debug, PartialEq)]
struct OutcomeSums {
    squares: Exact,
    least: f64,
    most: f64,
    zeros: u64,
    is_binary: bool,
    /// By policy.
    sums: Vec<Exact>,
}

#[derive(Clone, Debug, PartialEq)]
struct FeatureSums {
    missing: u64,
    squares: Exact,
    least: f64,
    most: f64,
    /// By policy: weights and weighted sums of the cells that have a value; nothing of text.
    mass: Vec<Exact>,
    sums: Vec<Exact>,
}

wire!(CheckSums { rows, outcomes, features });
wire!(OutcomeSums { squares, least, most, zeros, is_binary, sums });
wire!(FeatureSums { missing, squares, least, most, mass, sums });

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
    /// Of no rows. `experiment` is of a table with the same columns, and names the policies.
    pub fn new(experiment: &Experiment) -> Self {
        let n_policies = experiment.policies().len();
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
        let columns = experiment.columns();
        let none = vec![Exact::default(); n_policies];
        let outcome = OutcomeSums {
            squares: Exact::default(),
            least,
            most,
            zeros: 0,
            is_binary: true,
            sums: none.clone(),
        };
        let feature = FeatureSums {
            missing: 0,
            squares: Exact::default(),
            least,
            most,
            mass: none.clone(),
            sums: none,
        };
        Self {
            rows: vec![0; n_policies],
            outcomes: vec![outcome; columns.outcomes.len()],
            features: vec![feature; columns.features.len()],
        }
    }

    /// The columns that are read of a table.
    pub fn columns(experiment: &Experiment) -> Vec<String> {
        experiment.columns().needed().into_iter().map(str::to_owned).collect()
    }

    /// Adds the rows of a table.
    pub fn add(&mut self, experiment: &Experiment, source: &Source) -> Result<()> {
        let columns = experiment.columns();
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(experiment.policies(), columns);
        while let Some(batch) = reader.next_batch()? {
            let policy = assigner.assign_batch(&batch, &reader)?;
            policy.iter().for_each(|policy| self.rows[*policy as usize] += 1);
            for (sums, values) in self.outcomes.iter_mut().zip(&batch.outcomes) {
                sums.add(values, &policy);
            }
            for ((sums, feature), cells) in
                self.features.iter_mut().zip(&columns.features).zip(&batch.features)
            {
                match feature.kind {
                    ColumnKind::Text => {
                        sums.missing += cells.logical_nulls().map_or(0, |nulls| nulls.null_count() as u64);
                    }
                    _ => {
                        let values = numbers(cells).ok_or_else(|| {
                            Error::other(format!("column `{}` is not numeric", feature.name))
                        })?;
                        sums.add(&values, &policy, batch.weight.as_deref());
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the rows of another.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let is_alike = self.rows.len() == other.rows.len()
            && self.outcomes.len() == other.outcomes.len()
            && self.features.len() == other.features.len();
        if !is_alike {
            return Err(Error::other("sums of different questions"));
        }
        self.rows.iter_mut().zip(&other.rows).for_each(|(own, other)| *own += other);
        for (own, other) in self.outcomes.iter_mut().zip(&other.outcomes) {
            own.squares.merge(&other.squares);
            (own.least, own.most) = (own.least.min(other.least), own.most.max(other.most));
            own.zeros += other.zeros;
            own.is_binary &= other.is_binary;
            own.sums.iter_mut().zip(&other.sums).for_each(|(own, other)| own.merge(other));
        }
        for (own, other) in self.features.iter_mut().zip(&other.features) {
            own.missing += other.missing;
            own.squares.merge(&other.squares);
            (own.least, own.most) = (own.least.min(other.least), own.most.max(other.most));
            own.mass.iter_mut().zip(&other.mass).for_each(|(own, other)| own.merge(other));
            own.sums.iter_mut().zip(&other.sums).for_each(|(own, other)| own.merge(other));
        }
        Ok(())
    }

    /// What the sums of all rows tell. Of `params` the declared shares count alone.
    pub fn profile(&self, experiment: &Experiment, params: &Params) -> Result<SummedProfile> {
        let (columns, policies) = (experiment.columns(), experiment.policies());
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
        let reference = experiment.control().and_then(|control| policies.index(control)).filter(has_rows);
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
            findings: self.findings(experiment, sample_ratio.as_ref(), &far),
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

    fn findings(&self, experiment: &Experiment, ratio: Option<&SampleRatio>, far: &[String]) -> Vec<Finding> {
        let columns = experiment.columns();
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

    /// As bytes, for another process of the same version.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(KIND, self)
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        from_bytes(KIND, bytes)
    }
}

impl OutcomeSums {
    fn add(&mut self, values: &[f64], policy: &[u32]) {
        for (value, policy) in values.iter().zip(policy) {
            self.squares.add(value * value);
            (self.least, self.most) = (self.least.min(*value), self.most.max(*value));
            self.zeros += u64::from(*value == 0.0);
            self.is_binary &= *value == 0.0 || *value == 1.0;
            self.sums[*policy as usize].add(*value);
        }
    }

    fn summary(&self, name: &str, n_rows: u64) -> OutcomeSummary {
        let n = n_rows as f64;
        let mut sum = Exact::default();
        self.sums.iter().for_each(|own| sum.merge(own));
        let mean = sum.value() / n;
        OutcomeSummary {
            outcome: name.to_owned(),
            mean,
            sd: (self.squares.value() / n - mean * mean).max(0.0).sqrt(),
            min: self.least,
            max: self.most,
            zeros: self.zeros as f64 / n,
            binary: self.is_binary,
        }
    }
}

impl FeatureSums {
    fn add(&mut self, values: &[f64], policy: &[u32], weight: Option<&[f64]>) {
        for (row, (value, policy)) in values.iter().zip(policy).enumerate() {
            if !value.is_finite() {
                self.missing += 1;
                continue;
            }
            let weight = weight.map_or(1.0, |weight| weight[row]);
            self.squares.add(weight * value * value);
            (self.least, self.most) = (self.least.min(*value), self.most.max(*value));
            self.mass[*policy as usize].add(weight);
            self.sums[*policy as usize].add(weight * value);
        }
    }

    /// Mean and standard deviation of the values; none of none.
    fn moments(&self) -> Option<(f64, f64)> {
        let (mut mass, mut sum) = (Exact::default(), Exact::default());
        self.mass.iter().for_each(|own| mass.merge(own));
        self.sums.iter().for_each(|own| sum.merge(own));
        let mean = sum.value() / mass.value();
        let variance = (self.squares.value() / mass.value() - mean * mean).max(0.0);
        mean.is_finite().then(|| (mean, variance.sqrt()))
    }

    /// By policy, how far its mean is from that of the reference, or of all: in standard deviations, and in standard errors.
    fn differences(&self, reference: Option<usize>) -> Vec<(usize, f64, f64)> {
        let Some((mean, sd)) = self.moments().filter(|(_, sd)| *sd > 1e-6) else { return Vec::new() };
        let mass = |policy: usize| self.mass[policy].value();
        let of = |policy: usize| self.sums[policy].value() / mass(policy);
        if reference.is_some_and(|reference| mass(reference) < LEAST_ROWS) {
            return Vec::new();
        }
        let (base, over) = reference.map_or((mean, 0.0), |reference| (of(reference), 1.0 / mass(reference)));
        let others =
            (0..self.mass.len()).filter(|policy| Some(*policy) != reference && mass(*policy) >= LEAST_ROWS);
        others
            .map(|policy| {
                let difference = (of(policy) - base) / sd;
                (policy, difference, difference / (1.0 / mass(policy) + over).sqrt())
            })
            .collect()
    }

    fn summary(&self, column: &str, n_rows: u64) -> FeatureSummary {
        let (mean, sd) = self.moments().unzip();
        FeatureSummary { column: column.to_owned(), missing: self.missing as f64 / n_rows as f64, mean, sd }
    }
}
