//! Sums of a check of rows that are never in one place: of parts, which merge.

use super::summed::FeatureSummary;
use super::{LEAST_ROWS, OutcomeSummary};
use crate::data::{ColumnKind, Columns, RowReader, Source, numbers};
use crate::policy::{Assigner, PolicySet};
use crate::stats::Exact;
use crate::wire::{from_bytes, to_bytes, wire};
use crate::{Error, Result};

const KIND: &str = "check";

/// Sums over some of the rows, or over all.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckSums {
    /// By policy.
    pub(super) rows: Vec<u64>,
    /// By outcome.
    pub(super) outcomes: Vec<OutcomeSums>,
    /// By feature.
    pub(super) features: Vec<FeatureSums>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct OutcomeSums {
    squares: Exact,
    least: f64,
    most: f64,
    zeros: u64,
    is_binary: bool,
    /// By policy.
    pub(super) sums: Vec<Exact>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FeatureSums {
    pub(super) missing: u64,
    squares: Exact,
    pub(super) least: f64,
    pub(super) most: f64,
    /// By policy: weights and weighted sums of the cells that have a value; nothing of text.
    mass: Vec<Exact>,
    sums: Vec<Exact>,
}

wire!(CheckSums { rows, outcomes, features });
wire!(OutcomeSums { squares, least, most, zeros, is_binary, sums });
wire!(FeatureSums { missing, squares, least, most, mass, sums });

impl CheckSums {
    /// Of no rows.
    pub(crate) fn new(columns: &Columns, policies: &PolicySet) -> Self {
        let n_policies = policies.len();
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
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

    /// Adds the rows of a table.
    pub(crate) fn add(&mut self, columns: &Columns, policies: &PolicySet, source: &Source) -> Result<()> {
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(policies, columns);
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

    pub(super) fn summary(&self, name: &str, n_rows: u64) -> OutcomeSummary {
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
    pub(super) fn differences(&self, reference: Option<usize>) -> Vec<(usize, f64, f64)> {
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

    pub(super) fn summary(&self, column: &str, n_rows: u64) -> FeatureSummary {
        let (mean, sd) = self.moments().unzip();
        FeatureSummary { column: column.to_owned(), missing: self.missing as f64 / n_rows as f64, mean, sd }
    }
}
