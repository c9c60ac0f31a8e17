//! Some rows with their predicted effects, as both passes take them.

use crate::{Error, Result};

/// What all parts have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Names of the outcomes.
    pub(crate) outcomes: &'a [String],
    /// Names of all policies.
    pub(crate) policies: &'a [String],
    /// The policies with predicted effects, as indices.
    pub(crate) targets: &'a [usize],
    /// The policy compared with.
    pub(crate) against: usize,
}

/// Some rows.
pub(crate) struct Part<'a> {
    /// The policy of each row.
    pub(crate) policy: &'a [u32],
    /// Weights; all 1 where there are none.
    pub(crate) weight: Option<&'a [f64]>,
    /// By outcome.
    pub(crate) outcomes: &'a [Vec<f64>],
    /// By outcome, m̂ where the user gave it.
    pub(crate) predictions: &'a [Option<&'a [f64]>],
    /// By outcome, then by target.
    pub(crate) effects: &'a [&'a [f64]],
}

impl Shape<'_> {
    /// Outcomes and targets: the outcome's number and the target's policy, in the order of everything by comparison.
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.outcomes.len()).flat_map(|outcome| self.targets.iter().map(move |target| (outcome, *target)))
    }

    /// 1 for the policy, 0 for the one compared with, none for another.
    #[inline(always)]
    pub(super) fn arm(&self, target: usize, policy: u32) -> Option<usize> {
        let policy = policy as usize;
        if policy == target { Some(1) } else { (policy == self.against).then_some(0) }
    }
}

impl Part<'_> {
    #[inline(always)]
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weight.map_or(1.0, |weight| weight[row])
    }

    /// y, and y − m̂.
    #[inline(always)]
    pub(super) fn outcome(&self, outcome: usize, row: usize) -> [f64; 2] {
        let y = self.outcomes[outcome][row];
        [y, y - self.predictions[outcome].map_or(0.0, |prediction| prediction[row])]
    }

    /// An error if it is not of this shape, or an effect is not finite.
    pub(super) fn check(&self, shape: &Shape<'_>) -> Result<()> {
        let n_rows = self.policy.len();
        let fits = self.outcomes.len() == shape.outcomes.len()
            && self.predictions.len() == shape.outcomes.len()
            && self.effects.len() == shape.outcomes.len() * shape.targets.len()
            && self.outcomes.iter().all(|own| own.len() == n_rows)
            && self.predictions.iter().flatten().all(|own| own.len() == n_rows)
            && self.effects.iter().all(|own| own.len() == n_rows)
            && self.weight.is_none_or(|own| own.len() == n_rows)
            && self.policy.iter().all(|policy| (*policy as usize) < shape.policies.len());
        if !fits {
            return Err(Error::other("rows of another shape"));
        }
        for ((outcome, target), effects) in shape.comparisons().zip(self.effects) {
            if let Some(row) = effects.iter().position(|effect| !(*effect as f32).is_finite()) {
                let (policy, name) = (&shape.policies[target], &shape.outcomes[outcome]);
                let what = format!("the effect of `{policy}` on `{name}` is {}", effects[row]);
                return Err(Error::input(what).at_row(row).hint("look at the effects of the model first"));
            }
        }
        Ok(())
    }
}
