//! The second pass: everything that numbers are read off, by comparison, as sums that merge.

use super::buckets::Bucket;
use super::part::{Part, Shape};
use super::plan::Plan;
use super::powers::{Fourths, Squares};
use super::sketch::key_of;
use crate::wire::{from_bytes, to_bytes, wire};
use crate::{Error, Result};

const KIND: &str = "summary";

/// The sums of the second pass, of some of the rows or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// By outcome, then by target.
    pub(super) comparisons: Vec<ComparisonSums>,
}

/// The sums of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparisonSums {
    /// Rows of the policy compared with, then of the policy.
    pub(super) arms: [ArmSums; 2],
    /// The same, then rows of all other policies: what averages over all rows are made of.
    pub(super) averaged: [AveragedSums; 3],
    /// By bucket of the predicted effect, ascending.
    pub(super) buckets: Vec<Bucket>,
}

/// τ̂ and y, or y − m̂, of an arm's rows around their centres.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ArmSums {
    /// By w: τ̂ and y.
    pub(super) outcome: Squares,
    /// By w²: τ̂ and y.
    pub(super) outcome_squared: Fourths,
    /// By w: τ̂ and y − m̂.
    pub(super) residual: Squares,
}

/// τ̂ and y − μ̂ of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AveragedSums {
    pub(super) n_rows: u64,
    /// By w.
    pub(super) plain: Squares,
    /// By w².
    pub(super) squared: Squares,
}

wire!(Sums { comparisons });
wire!(ComparisonSums { arms, averaged, buckets });
wire!(ArmSums { outcome, outcome_squared, residual });
wire!(AveragedSums { n_rows, plain, squared });

impl Sums {
    /// Of no rows.
    pub(crate) fn new(plan: &Plan) -> Self {
        let comparison = |own: &super::plan::ComparisonPlan| ComparisonSums {
            arms: Default::default(),
            averaged: Default::default(),
            buckets: vec![Bucket::default(); own.cuts.len()],
        };
        Self { comparisons: plan.comparisons.iter().map(comparison).collect() }
    }

    /// Adds some rows.
    pub(crate) fn add(&mut self, part: &Part<'_>, shape: &Shape<'_>, plan: &Plan) -> Result<()> {
        part.check(shape)?;
        let n_targets = shape.targets.len();
        for outcome in 0..shape.outcomes.len() {
            let own = outcome * n_targets..(outcome + 1) * n_targets;
            let residuals = averaged_residuals(part, shape, plan, outcome, &part.effects[own.clone()]);
            for (comparison, target) in own.zip(shape.targets) {
                self.add_comparison(part, shape, plan, (outcome, *target, comparison), &residuals)?;
            }
        }
        Ok(())
    }

    fn add_comparison(
        &mut self,
        part: &Part<'_>,
        shape: &Shape<'_>,
        plan: &Plan,
        (outcome, target, comparison): (usize, usize, usize),
        residuals: &[f64],
    ) -> Result<()> {
        let (sums, own) = (&mut self.comparisons[comparison], &plan.comparisons[comparison]);
        let [centre, residual_centre] = plan.outcomes[outcome].centre;
        let treated_share = own.share();
        let effects = part.effects[comparison];
        for (row, policy) in part.policy.iter().enumerate() {
            let weight = part.weight(row);
            if weight <= 0.0 {
                continue;
            }
            let effect = effects[row];
            let x = effect - own.middle;
            let arm = shape.arm(target, *policy);
            let averaged = &mut sums.averaged[arm.unwrap_or(2)];
            averaged.n_rows += 1;
            // Of the rows of other policies the effect alone counts.
            let residual = if arm.is_some() { residuals[row] } else { 0.0 };
            averaged.plain.add(weight, x, residual);
            averaged.squared.add(weight * weight, x, residual);
            let Some(arm) = arm else { continue };
            let [y, residual] = part.outcome(outcome, row);
            sums.arms[arm].outcome.add(weight, x, y - centre);
            sums.arms[arm].outcome_squared.add(weight * weight, x, y - centre);
            sums.arms[arm].residual.add(weight, x, residual - residual_centre);
            let key = key_of(effect as f32);
            let bucket = own.cuts.partition_point(|cut| *cut <= key).checked_sub(1);
            let Some(bucket) = bucket.and_then(|place| sums.buckets.get_mut(place)) else {
                return Err(Error::input("the rows are others than in the first pass").hint(
                    "store the table before it is evaluated, if it differs from one reading to the next",
                ));
            };
            let means = &own.arms[arm];
            let share = if arm == 1 { treated_share } else { treated_share - 1.0 };
            bucket.add(arm, weight, key, y - means.mean, (residual - means.residual) / share);
        }
        Ok(())
    }

    /// Adds the rows of another.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let n_buckets =
            |sums: &Self| sums.comparisons.iter().map(|own| own.buckets.len()).collect::<Vec<_>>();
        if n_buckets(self) != n_buckets(other) {
            return Err(Error::other("summaries of different questions"));
        }
        for (own, other) in self.comparisons.iter_mut().zip(&other.comparisons) {
            for (own, other) in own.arms.iter_mut().zip(&other.arms) {
                own.outcome.merge(&other.outcome);
                own.outcome_squared.merge(&other.outcome_squared);
                own.residual.merge(&other.residual);
            }
            for (own, other) in own.averaged.iter_mut().zip(&other.averaged) {
                own.n_rows += other.n_rows;
                own.plain.merge(&other.plain);
                own.squared.merge(&other.squared);
            }
            own.buckets.iter_mut().zip(&other.buckets).for_each(|(own, other)| own.merge(other));
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

/// y − μ̂ of every row's own policy, μ̂ = m̂ − Σ_s π_s·τ̂_s + τ̂_T, around the mean of y − m̂: see `average::score`.
fn averaged_residuals(
    part: &Part<'_>,
    shape: &Shape<'_>,
    plan: &Plan,
    outcome: usize,
    effects: &[&[f64]],
) -> Vec<f64> {
    let own = &plan.outcomes[outcome];
    let by_constants: f64 =
        plan.unpredicted.iter().map(|policy| plan.shares[*policy] * own.constant[*policy]).sum();
    let place = |policy: usize| shape.targets.iter().position(|target| *target == policy);
    let places: Vec<Option<usize>> = (0..shape.policies.len()).map(place).collect();
    let residual = |row: usize| {
        let policy = part.policy[row] as usize;
        let by_columns: f64 = shape
            .targets
            .iter()
            .zip(effects)
            .map(|(target, values)| plan.shares[*target] * values[row])
            .sum();
        let effect = places[policy].map_or(own.constant[policy], |place| effects[place][row]);
        part.outcome(outcome, row)[1] - own.centre[1] + by_columns + by_constants - effect
    };
    (0..part.policy.len()).map(residual).collect()
}
