//! Settings of the propensity model.

use serde::{Deserialize, Serialize};

use crate::net::{AdamParams, Schedule};
use crate::nuisance::boosted::BoostedParams;
use crate::nuisance::outcome::params::{MAX_WIDTH, check_dropout, check_members, check_widths};
use crate::{Error, Result};

/// What predicts the policy of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PropensityKind {
    /// A softmax network.
    #[default]
    Network,
    /// Boosted trees, for at most 64 classes: beyond, the rarer policies share one.
    Boosted,
    /// The network, boosted trees, or a mixture of both, by out-of-fold log loss. Needs at least two folds.
    Auto,
}

/// Settings of the propensity model for observational data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PropensityParams {
    /// What predicts. Default `network`.
    pub kind: PropensityKind,
    /// Widths of the hidden layers beside the linear part; none: multinomial logistic regression. Default 64, 32;
    /// each 1 to 65,536.
    pub hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub dropout: f32,
    /// Learning rate. Default 4e-3; above 0.
    pub learning_rate: f32,
    /// Decoupled weight decay, which pulls π(t | x) towards the shares of policies; for passes of up to 64 batches, less per step
    /// where they are longer. Default 1; at least 0.
    pub weight_decay: f32,
    /// Decay of the running average of weights. Default 0.995; in [0, 1).
    pub average: f32,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub members: usize,
    /// Least probability of a policy. The floor of a policy is the smaller of this and a tenth of its share, so that a
    /// rare policy is never lifted above its share, and the stabilised weight share / π never exceeds 10. With many
    /// policies of equal share the floor is 0.1 / |T|. Default 0.01; in [0, 0.5).
    pub clip: f32,
    /// Policies with fewer rows share one class, within which they keep their shares. Default 20; at least 1.
    pub min_rows: usize,
    /// Most classes of the softmax: of more policies, the most frequent have classes of their own and the rest share
    /// one. Default 512; 2 to 65,536.
    pub max_classes: usize,
    /// How long to train. Default at most 40 epochs, patience 4.
    pub schedule: Schedule,
    /// How boosted trees are fitted, for `boosted` and `auto`.
    pub boosted: BoostedParams,
}

impl Default for PropensityParams {
    fn default() -> Self {
        Self {
            kind: PropensityKind::Network,
            hidden: vec![64, 32],
            dropout: 0.1,
            learning_rate: 4e-3,
            weight_decay: 1.0,
            average: 0.995,
            members: 2,
            clip: 0.01,
            min_rows: 20,
            max_classes: 512,
            schedule: Schedule { epochs: 40, patience: 4, ..Schedule::default() },
            boosted: BoostedParams::default(),
        }
    }
}

/// [`PropensityParams`] whose settings are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidPropensityParams(pub(super) PropensityParams);

impl PropensityParams {
    /// Checks that every setting is in range.
    pub fn check(self) -> Result<ValidPropensityParams> {
        check_widths("hidden", &self.hidden)?;
        check_dropout(self.dropout)?;
        check_members(self.members)?;
        if !(0.0..0.5).contains(&self.clip) {
            return Err(Error::usage(format!("`clip` is {}", self.clip)).hint("it must be in [0, 0.5)"));
        }
        if self.min_rows == 0 {
            return Err(Error::usage("`min_rows` is 0").hint("it must be at least 1"));
        }
        if !(2..=MAX_WIDTH).contains(&self.max_classes) {
            let error = Error::usage(format!("`max_classes` is {}", self.max_classes));
            return Err(error.hint(format!("it must be 2 to {MAX_WIDTH}")));
        }
        self.schedule.check()?;
        self.adam().check()?;
        self.boosted.check()?;
        Ok(ValidPropensityParams(self))
    }

    pub(super) fn adam(&self) -> AdamParams {
        AdamParams {
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            average: Some(self.average),
            // At the start π is the shares, so the gradient of the intercepts is 0 but for rounding, which the usual
            // 1e-8 would turn into full steps.
            epsilon: 1e-6,
            ..AdamParams::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = |change: fn(&mut PropensityParams)| {
            let mut params = PropensityParams::default();
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert!(wrong(|params| params.clip = 0.5).contains("`clip`"));
        assert!(wrong(|params| params.clip = f32::NAN).contains("`clip`"));
        assert!(wrong(|params| params.min_rows = 0).contains("`min_rows`"));
        assert!(wrong(|params| params.max_classes = 1).contains("`max_classes`"));
        assert!(wrong(|params| params.hidden = vec![0]).contains("`hidden`"));
        assert!(wrong(|params| params.members = 1000).contains("`members`"));
        assert!(PropensityParams { hidden: vec![], ..Default::default() }.check().is_ok());
    }
}
