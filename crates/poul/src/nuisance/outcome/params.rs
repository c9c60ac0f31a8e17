//! Settings of the outcome model.

use serde::{Deserialize, Serialize};

use crate::net::{AdamParams, Schedule};
use crate::nuisance::boosted::BoostedParams;
use crate::{Error, Result};

/// What predicts outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// A network for each outcome.
    #[default]
    Mlp,
    /// A trunk that all outcomes share, a head for each outcome, and a softmax over policies on the same trunk.
    ///
    /// Our reading of "Stage 1 may be a DragonNet" (Sec. 2.2 of the paper; Shi et al. 2019): what stage 2 needs is the
    /// *marginal* E[Y | X], so the heads are not split by policy and there is no targeted term. What is kept is the
    /// idea: predicting the policy from the trunk keeps the features there that drive both assignment and outcome,
    /// which an outcome-only fit may drop when they matter little to the outcome.
    Dragonnet,
    /// Boosted trees for each outcome.
    Boosted,
    /// For each outcome a ridge, a network as in `mlp`, boosted trees, or a convex combination of the three, by out-of-fold
    /// loss. Needs at least two folds.
    Auto,
}

/// What an outcome is fitted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeLoss {
    /// Squared error: m is the mean.
    #[default]
    Squared,
    /// Negative log-likelihood of a 0/1 outcome (or a share): m is a probability, strictly between 0 and 1.
    Logistic,
}

/// Settings of the outcome model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutcomeParams {
    /// What predicts. Default `mlp`. All settings but `boosted` are those of networks.
    pub kind: OutcomeKind,
    /// Widths of the hidden layers; of the trunk, for `dragonnet`. Default 128, 64; at least one, each 1 to 65,536.
    pub hidden: Vec<usize>,
    /// Widths of the hidden layers of each head of `dragonnet`. Default 64; may be empty, each 1 to 65,536.
    pub head_hidden: Vec<usize>,
    /// Weight of the cross-entropy over policies in `dragonnet`, beside outcomes in standard units. Default 0.1; at
    /// least 0.
    pub policy_weight: f32,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub dropout: f32,
    /// Learning rate. Default 2e-3; above 0.
    pub learning_rate: f32,
    /// Decoupled weight decay, for passes of up to 64 batches; less per step where they are longer. Default 1; at least 0.
    pub weight_decay: f32,
    /// Decay of the running average of weights. Default 0.995; in [0, 1); 0: no average.
    pub average: f32,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub members: usize,
    /// How long to train. Default at most 40 epochs, patience 4; without patience no row is held out.
    pub schedule: Schedule,
    /// How boosted trees are fitted, for `boosted` and `auto`.
    pub boosted: BoostedParams,
}

impl Default for OutcomeParams {
    fn default() -> Self {
        Self {
            kind: OutcomeKind::Mlp,
            hidden: vec![128, 64],
            head_hidden: vec![64],
            policy_weight: 0.1,
            dropout: 0.1,
            learning_rate: 2e-3,
            weight_decay: 1.0,
            average: 0.995,
            members: 2,
            schedule: Schedule { epochs: 40, patience: 4, ..Schedule::default() },
            boosted: BoostedParams::default(),
        }
    }
}

/// [`OutcomeParams`] whose settings are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidOutcomeParams(pub(super) OutcomeParams);

impl OutcomeParams {
    /// Checks that every setting is in range.
    pub fn check(self) -> Result<ValidOutcomeParams> {
        if self.hidden.is_empty() {
            return Err(Error::usage("`hidden` is empty").hint("give at least one width, such as 128"));
        }
        check_widths("hidden", &self.hidden)?;
        check_widths("head_hidden", &self.head_hidden)?;
        if !(self.policy_weight >= 0.0 && self.policy_weight.is_finite()) {
            let error = Error::usage(format!("`policy_weight` is {}", self.policy_weight));
            return Err(error.hint("it must be at least 0"));
        }
        check_dropout(self.dropout)?;
        check_members(self.members)?;
        self.schedule.check()?;
        self.adam().check()?;
        self.boosted.check()?;
        Ok(ValidOutcomeParams(self))
    }

    pub(super) fn adam(&self) -> AdamParams {
        AdamParams {
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            average: (self.average > 0.0).then_some(self.average),
            ..AdamParams::default()
        }
    }
}

/// The widest layer.
pub(in crate::nuisance) const MAX_WIDTH: usize = 1 << 16;

pub(in crate::nuisance) fn check_widths(name: &str, widths: &[usize]) -> Result<()> {
    match widths.iter().find(|width| !(1..=MAX_WIDTH).contains(*width)) {
        Some(width) => {
            let error = Error::usage(format!("`{name}` has a layer of width {width}"));
            Err(error.hint(format!("widths are 1 to {MAX_WIDTH}")))
        }
        None => Ok(()),
    }
}

pub(in crate::nuisance) fn check_dropout(dropout: f32) -> Result<()> {
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    Err(Error::usage(format!("`dropout` is {dropout}")).hint("it must be in [0, 1)"))
}

pub(in crate::nuisance) fn check_members(members: usize) -> Result<()> {
    if (1..=256).contains(&members) {
        return Ok(());
    }
    Err(Error::usage(format!("`members` is {members}")).hint("it must be 1 to 256"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = |change: fn(&mut OutcomeParams)| {
            let mut params = OutcomeParams::default();
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert!(wrong(|params| params.hidden = vec![]).contains("`hidden`"));
        assert!(wrong(|params| params.hidden = vec![4, 0]).contains("`hidden`"));
        assert!(wrong(|params| params.head_hidden = vec![1 << 20]).contains("`head_hidden`"));
        assert!(wrong(|params| params.policy_weight = f32::NAN).contains("`policy_weight`"));
        assert!(wrong(|params| params.dropout = 1.0).contains("`dropout`"));
        assert!(wrong(|params| params.members = 0).contains("`members`"));
        assert!(wrong(|params| params.learning_rate = -1.0).contains("`learning_rate`"));
        assert!(wrong(|params| params.average = 1.0).contains("`average`"));
        assert!(wrong(|params| params.schedule.epochs = 0).contains("`epochs`"));
        assert!(OutcomeParams::default().check().is_ok());
    }
}
