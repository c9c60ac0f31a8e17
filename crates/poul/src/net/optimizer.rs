//! How weights move: AdamW with clipping, one rate and decay per group, and a running average of the weights.

use super::layout::Group;
use crate::{Error, Result};

/// Settings of [`Adam`].
#[derive(Clone, Debug, PartialEq)]
pub struct AdamParams {
    /// Learning rate. Default 1e-3; above 0.
    pub learning_rate: f32,
    /// Decay of the mean of gradients. Default 0.9; in [0, 1).
    pub beta1: f32,
    /// Decay of the mean of squared gradients. Default 0.999; in [0, 1).
    pub beta2: f32,
    /// Keeps the division by small gradients in bounds. Default 1e-8; above 0.
    pub epsilon: f32,
    /// Decoupled weight decay of groups that set none: each step multiplies weights by 1 − rate · decay.
    /// [`train`](super::train) lessens it where passes are longer than 64 steps. Biases do not decay. Default 0; at
    /// least 0.
    pub weight_decay: f32,
    /// Gradients longer than this are shortened to it (Euclidean length over all weights). Default none; above 0.
    pub clip_norm: Option<f32>,
    /// Decay of the running average of weights. In early steps the decay is (1 + t)/(10 + t) where that is less, so
    /// that the starting point is forgotten. Default none; in [0, 1).
    pub average: Option<f32>,
}

impl Default for AdamParams {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip_norm: None,
            average: None,
        }
    }
}

impl AdamParams {
    /// The optimiser, if every setting is in range.
    pub fn check(self) -> Result<Adam> {
        let ranges = [
            ("learning_rate", self.learning_rate, self.learning_rate > 0.0, "above 0"),
            ("beta1", self.beta1, (0.0..1.0).contains(&self.beta1), "in [0, 1)"),
            ("beta2", self.beta2, (0.0..1.0).contains(&self.beta2), "in [0, 1)"),
            ("epsilon", self.epsilon, self.epsilon > 0.0, "above 0"),
            ("weight_decay", self.weight_decay, self.weight_decay >= 0.0, "at least 0"),
            (
                "clip_norm",
                self.clip_norm.unwrap_or(1.0),
                self.clip_norm.is_none_or(|norm| norm > 0.0),
                "above 0",
            ),
            (
                "average",
                self.average.unwrap_or(0.0),
                self.average.is_none_or(|decay| (0.0..1.0).contains(&decay)),
                "in [0, 1)",
            ),
        ];
        for (name, value, inside, range) in ranges {
            if !inside || !value.is_finite() {
                return Err(Error::usage(format!("`{name}` is {value}")).hint(format!("it must be {range}")));
            }
        }
        Ok(Adam { params: self, rules: Vec::new(), decay_factor: 1.0 })
    }
}

/// How a group differs from the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupRule {
    /// What the learning rate is multiplied by; 0 freezes the group.
    pub rate_factor: f32,
    /// The group's own decay.
    pub weight_decay: f32,
}

/// A checked optimiser.
#[derive(Clone, Debug)]
pub struct Adam {
    pub(super) params: AdamParams,
    /// What every decay is multiplied by.
    pub(super) decay_factor: f32,
    rules: Vec<(Group, GroupRule)>,
}

impl Adam {
    /// Gives a group its own rule; a later rule for the same group replaces an earlier one.
    #[must_use]
    pub fn group(mut self, group: Group, rule: GroupRule) -> Self {
        self.set_rule(group, rule);
        self
    }

    pub(super) fn set_rule(&mut self, group: Group, rule: GroupRule) {
        self.rules.retain(|(other, _)| *other != group);
        self.rules.push((group, rule));
    }

    pub(super) fn rule(&self, group: Group) -> GroupRule {
        let own = self.rules.iter().find(|(other, _)| *other == group).map(|(_, rule)| *rule);
        own.unwrap_or(GroupRule { rate_factor: 1.0, weight_decay: self.params.weight_decay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = |change: fn(&mut AdamParams)| {
            let mut params = AdamParams::default();
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert!(wrong(|params| params.learning_rate = 0.0).contains("learning_rate"));
        assert!(wrong(|params| params.learning_rate = f32::INFINITY).contains("learning_rate"));
        assert!(wrong(|params| params.beta2 = 1.0).contains("beta2"));
        assert!(wrong(|params| params.weight_decay = f32::NAN).contains("weight_decay"));
        assert!(wrong(|params| params.clip_norm = Some(0.0)).contains("clip_norm"));
        assert!(wrong(|params| params.average = Some(1.0)).contains("average"));
        assert!(AdamParams::default().check().is_ok());
    }
}
