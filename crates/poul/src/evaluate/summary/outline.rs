//! The first pass: what must be known of all rows before they are summed up. Sizes and means of arms, and how effects are
//! distributed.

use super::part::{Part, Shape};
use super::sketch::{Sketch, key_of};
use crate::stats::Exact;
use crate::wire::{from_bytes, to_bytes, wire};
use crate::{Error, Result};

const KIND: &str = "outline";

/// The sums of the first pass, of some of the rows or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// By policy.
    pub(super) arms: Vec<Arm>,
    /// By outcome, then by policy.
    pub(super) outcomes: Vec<Means>,
    /// By outcome, then by target: the effects of rows of both arms.
    pub(super) effects: Vec<Sketch>,
}

/// The rows of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Arm {
    pub(super) n_rows: u64,
    /// Those of positive weight.
    pub(super) n_counted: u64,
    pub(super) mass: Exact,
    /// The same of weights in single precision: what shares are taken of.
    pub(super) single_mass: Exact,
}

/// Sums of w·y and w·(y − m̂).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Means {
    pub(super) outcome: Exact,
    pub(super) residual: Exact,
}

wire!(Arm { n_rows, n_counted, mass, single_mass });
wire!(Means { outcome, residual });
wire!(Outline { arms, outcomes, effects });

impl Outline {
    /// Of no rows.
    pub(crate) fn new(shape: &Shape<'_>) -> Self {
        let (n_policies, n_outcomes) = (shape.policies.len(), shape.outcomes.len());
        Self {
            arms: vec![Arm::default(); n_policies],
            outcomes: vec![Means::default(); n_outcomes * n_policies],
            effects: vec![Sketch::default(); n_outcomes * shape.targets.len()],
        }
    }

    /// Adds some rows.
    pub(crate) fn add(&mut self, part: &Part<'_>, shape: &Shape<'_>) -> Result<()> {
        part.check(shape)?;
        for (row, policy) in part.policy.iter().enumerate() {
            let (arm, weight) = (&mut self.arms[*policy as usize], part.weight(row));
            arm.n_rows += 1;
            arm.n_counted += u64::from(weight > 0.0);
            arm.mass.add(weight);
            arm.single_mass.add(f64::from(weight as f32));
        }
        for (outcome, means) in self.outcomes.chunks_mut(shape.policies.len()).enumerate() {
            for (row, policy) in part.policy.iter().enumerate() {
                let ([y, residual], weight) = (part.outcome(outcome, row), part.weight(row));
                let means = &mut means[*policy as usize];
                means.outcome.add(weight * y);
                means.residual.add(weight * residual);
            }
        }
        for (((_, target), effects), sketch) in shape.comparisons().zip(part.effects).zip(&mut self.effects) {
            let counts =
                |row: &usize| shape.arm(target, part.policy[*row]).is_some() && part.weight(*row) > 0.0;
            let rows = (0..part.policy.len()).filter(counts);
            sketch.add(rows.map(|row| key_of(effects[row] as f32)).collect());
        }
        Ok(())
    }

    /// Adds the rows of another.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        let is_alike = self.arms.len() == other.arms.len()
            && self.outcomes.len() == other.outcomes.len()
            && self.effects.len() == other.effects.len();
        if !is_alike {
            return Err(Error::other("outlines of different questions"));
        }
        for (own, other) in self.arms.iter_mut().zip(&other.arms) {
            own.n_rows += other.n_rows;
            own.n_counted += other.n_counted;
            own.mass.merge(&other.mass);
            own.single_mass.merge(&other.single_mass);
        }
        for (own, other) in self.outcomes.iter_mut().zip(&other.outcomes) {
            own.outcome.merge(&other.outcome);
            own.residual.merge(&other.residual);
        }
        self.effects.iter_mut().zip(other.effects).for_each(|(own, other)| own.merge(other));
        Ok(())
    }

    /// How many rows there are, whatever they weigh.
    pub fn n_rows(&self) -> u64 {
        self.arms.iter().map(|arm| arm.n_rows).sum()
    }

    /// The rows of each policy.
    pub(crate) fn policy_rows(&self) -> Vec<u64> {
        self.arms.iter().map(|arm| arm.n_rows).collect()
    }

    /// As bytes, for another process of the same version.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(KIND, self)
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        from_bytes(KIND, bytes)
    }

    /// The same with the effects of some of the targets only, by their places among those it was made for.
    pub(crate) fn with_targets(&self, places: &[usize], n_targets: usize) -> Self {
        let of_outcome = |own: &[Sketch]| places.iter().map(|place| own[*place].clone()).collect::<Vec<_>>();
        Self { effects: self.effects.chunks(n_targets.max(1)).flat_map(of_outcome).collect(), ..self.clone() }
    }
}
