//! What a scenario provides: units, how they are assigned, what happens to them, and the truth.
//!
//! Every scenario has the form of Assumption 1 of the method paper: E[Y(t) | x] = m(x) + g(x)ᵀ F(μ_t), for each
//! outcome. Written against control: E[Y(t) | x] = baseline(x) + gain(x)ᵀ contrast(t) with
//! contrast(t) = F(μ_t) − F(μ_control), so that the effect of control is exactly 0.

use arrow_array::ArrayRef;
use arrow_schema::Field;

use super::policies::PolicyTable;
use crate::{Rng, Seed};

/// One random world, drawn from the seed.
pub(super) trait World: Sync {
    /// A block of units before assignment.
    type Units: Send + Sync;

    /// The parts of the world that the files describe.
    fn setting(&self) -> &Setting;

    /// The same world with other policies, control first, assigned at random by these shares: the truth is the same function of
    /// what a policy does.
    fn with_policies(self, policies: PolicyTable, shares: Vec<f64>) -> Self
    where
        Self: Sized;

    /// Draws `n_rows` units of a part.
    fn units(&self, part: Part, n_rows: usize, seed: Seed) -> Self::Units;

    /// The columns known before assignment, in the order of [`Setting::fields`].
    fn columns(&self, units: &Self::Units) -> Vec<ArrayRef>;

    /// The probability of each policy for a unit; 0 for a held-out one.
    fn propensities<'a>(&'a self, units: &'a Self::Units, row: usize) -> &'a [f64];

    /// The expected outcomes of the units, one response for each outcome.
    fn responses<'a>(&self, units: &'a Self::Units) -> &'a [Response];

    /// Draws the outcomes of a unit under a policy; their means are the expected outcomes.
    fn draw(&self, units: &Self::Units, row: usize, policy_idx: usize, rng: &mut Rng, outcomes: &mut [f64]);

    /// E[Y(t) − Y(control) | x].
    fn effect(&self, units: &Self::Units, outcome_idx: usize, row: usize, policy_idx: usize) -> f64 {
        self.responses(units)[outcome_idx].effect(row, &self.setting().contrasts[outcome_idx], policy_idx)
    }

    /// E[Y(t) | x].
    fn expected(&self, units: &Self::Units, outcome_idx: usize, row: usize, policy_idx: usize) -> f64 {
        self.responses(units)[outcome_idx].baseline[row] + self.effect(units, outcome_idx, row, policy_idx)
    }
}

/// Which table a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What learners see.
    Train,
    /// What they are judged on.
    Test,
}

impl Part {
    /// The name of the part's file and random stream.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// The parts of a world that the files describe.
pub(super) struct Setting {
    /// All policies, control first, the held-out ones included.
    pub(super) policies: PolicyTable,
    /// The expected share of each policy in the training table; 0 for a held-out one.
    pub(super) shares: Vec<f64>,
    /// Names of the outcomes.
    pub(super) outcomes: Vec<&'static str>,
    /// F(μ_t) − F(μ_control), for each outcome.
    pub(super) contrasts: Vec<Contrasts>,
    /// The columns known before assignment: features, then other roles.
    pub(super) fields: Vec<Field>,
}

impl Setting {
    /// Policies that no row is assigned to.
    pub(super) fn held_out(&self) -> Vec<usize> {
        (0..self.shares.len()).filter(|&policy_idx| self.shares[policy_idx] == 0.0).collect()
    }

    /// `control`, `frequent` (the most exposed third of the others that are run), `rare` or `unseen`.
    pub(super) fn tiers(&self) -> Vec<&'static str> {
        let mut seen: Vec<usize> = (1..self.shares.len()).filter(|&idx| self.shares[idx] > 0.0).collect();
        seen.sort_by(|&a, &b| self.shares[b].total_cmp(&self.shares[a]).then(a.cmp(&b)));
        let mut tiers = vec!["unseen"; self.shares.len()];
        tiers[0] = "control";
        for (rank, &policy_idx) in seen.iter().enumerate() {
            tiers[policy_idx] = if rank < seen.len().div_ceil(3) { "frequent" } else { "rare" };
        }
        tiers
    }
}

/// One vector for each policy, zero for control.
pub(super) struct Contrasts {
    rank: usize,
    values: Vec<f64>,
}

impl Contrasts {
    /// Takes F(μ_t) for all policies, control first.
    pub(super) fn against_control(functional: &[Vec<f64>]) -> Self {
        let control = &functional[0];
        let differences = functional.iter().flat_map(|policy| policy.iter().zip(control).map(|(a, b)| a - b));
        Self { rank: control.len(), values: differences.collect() }
    }

    /// The vector of a policy.
    pub(super) fn of(&self, policy_idx: usize) -> &[f64] {
        &self.values[policy_idx * self.rank..(policy_idx + 1) * self.rank]
    }

    /// Multiplies all of them.
    pub(super) fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|value| *value *= factor);
    }
}

/// How an outcome of the units depends on the policy.
pub(super) struct Response {
    /// E[Y(control) | x] by row.
    pub(super) baseline: Vec<f64>,
    /// g(x), row after row.
    pub(super) gain: Vec<f64>,
}

impl Response {
    /// E[Y(t) − Y(control) | x].
    pub(super) fn effect(&self, row: usize, contrasts: &Contrasts, policy_idx: usize) -> f64 {
        let gain = &self.gain[row * contrasts.rank..(row + 1) * contrasts.rank];
        dot(gain, contrasts.of(policy_idx))
    }
}

/// Σ aᵢ bᵢ.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() + 0.0
}

/// Mean and standard deviation.
pub(super) fn mean_and_sd(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        n += 1.0;
        let delta = value - mean;
        mean += delta / n;
        squares += delta * (value - mean);
    }
    (mean, if n > 0.0 { f64::sqrt(squares / n) } else { 0.0 })
}
