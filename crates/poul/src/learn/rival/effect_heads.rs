//! Networks of effects themselves, τ_t(x): the second stage of the X-, R- and DR-learner, and their settings.

use serde::{Deserialize, Serialize};

use super::heads::{HeadParams, Heads};
use super::params::{Rule, are_widths, check_rules};
use super::surface::Shape;
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Activation, Group, LayoutBuilder, Tape, Var};

/// `[model]` of learners in two stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MetaParams {
    /// What is seen of a policy. Default `id`: a network for each arm; `spec`: one that reads the mixture.
    pub(super) tier: Tier,
    /// Widths of the hidden layers, in both stages. Default 64, 32; at least one.
    pub(super) hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Arms with fewer rows share one network. Default 200.
    pub(super) min_arm_rows: u64,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub(super) members: usize,
    /// Least propensity, a tenth of its share for a rare policy. Default 0.01; in [0, 0.5).
    pub(super) clip: f32,
}

impl Default for MetaParams {
    fn default() -> Self {
        Self { tier: Tier::Id, hidden: vec![64, 32], dropout: 0.1, min_arm_rows: 200, members: 2, clip: 0.01 }
    }
}

impl MetaParams {
    pub(super) fn check(&self) -> Result<()> {
        check_rules(&[
            Rule("model.hidden", are_widths(&self.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&self.dropout), "in [0, 1)"),
            Rule("model.clip", (0.0..0.5).contains(&self.clip), "in [0, 0.5)"),
        ])
    }
}

/// τ of policies as levels: 0 under control where each arm has a network, near 0 where one reads the mixture.
pub(super) struct EffectHeads {
    heads: Heads,
    tier: Tier,
    control: u32,
}

impl EffectHeads {
    /// Declares the weights.
    pub(super) fn new(
        layout: &mut LayoutBuilder,
        name: &str,
        shape: &Shape<'_>,
        model: &MetaParams,
        group: Group,
    ) -> Self {
        let params = HeadParams {
            hidden: &model.hidden,
            activation: Activation::Relu,
            dropout: model.dropout,
            min_arm_rows: model.min_arm_rows,
        };
        let heads = Heads::new(layout, name, shape.n_features, shape, &params, group);
        Self { heads, tier: shape.treatments.tier, control: shape.treatments.control as u32 }
    }

    /// Hands over what all rows share; gives how many matrices.
    pub(super) fn share(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> usize {
        self.heads.share(tape, treatments);
        self.heads.n_shared()
    }

    /// How many matrices [`share`](Self::share) hands over.
    pub(super) fn n_shared(&self) -> usize {
        self.heads.n_shared()
    }

    /// τ of each row under every treatment.
    pub(super) fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen, shared: usize) -> Var {
        let x = tape.features();
        self.all_of(tape, x, treatments, shared)
    }

    /// [`all`](Self::all) for rows with the features `x`.
    pub(super) fn all_of(&self, tape: &mut Tape<'_>, x: Var, treatments: &Chosen, shared: usize) -> Var {
        let effects = self.heads.all(tape, x, treatments, shared);
        self.without_control(tape, effects, treatments)
    }

    /// τ of each row under its own treatment.
    pub(super) fn factual(
        &self,
        tape: &mut Tape<'_>,
        treatments: &Chosen,
        own: &[u32],
        shared: usize,
    ) -> Var {
        let x = tape.features();
        let effects = self.heads.factual(tape, x, treatments, own, shared);
        if self.tier == Tier::Spec {
            return effects;
        }
        let is_treated = |own: &u32| f32::from(treatments.arm[*own as usize] != self.control);
        let treated = tape.column(own.iter().map(is_treated));
        tape.mul(effects, treated)
    }

    /// How much the goal of an arm counts, of the arms' shares: control's is 0 for sure by arm.
    pub(super) fn counts(&self, arm: usize) -> bool {
        self.tier == Tier::Spec || arm as u32 != self.control
    }

    fn without_control(&self, tape: &mut Tape<'_>, effects: Var, treatments: &Chosen) -> Var {
        if self.tier == Tier::Spec {
            return effects;
        }
        let treated: Vec<f32> = treatments.arm.iter().map(|arm| f32::from(*arm != self.control)).collect();
        let treated = tape.constant(1, treated.len(), &treated);
        tape.mul(effects, treated)
    }
}
