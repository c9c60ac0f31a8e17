//! S-learner: one network μ(x, t) of features and treatment; the effect is the difference of two predictions
//! (Künzel et al. 2019).

use serde::{Deserialize, Serialize};

use super::heads::{HeadParams, Heads};
use super::params::{Rule, are_widths, check_rules};
use super::surface::{Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Activation, LayoutBuilder, Tape, Var};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SLearnerParams {
    /// What it sees of a policy. Default `spec`.
    pub(super) tier: Tier,
    /// Widths of the hidden layers. Default 128, 64; at least one.
    pub(super) hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Networks trained side by side and averaged. Default 6; 1 to 256.
    pub(super) members: usize,
}

impl Default for SLearnerParams {
    fn default() -> Self {
        Self { tier: Tier::Spec, hidden: vec![128, 64], dropout: 0.1, members: 6 }
    }
}

/// The network: features are the representation, and one head reads the policy.
pub(super) struct SLearner(Heads);

impl Surface for SLearner {
    const NAME: &'static str = "s-learner";
    type Model = SLearnerParams;

    fn check(model: &SLearnerParams) -> Result<()> {
        check_rules(&[
            Rule("model.hidden", are_widths(&model.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
        ])
    }

    fn tier(model: &SLearnerParams) -> Tier {
        model.tier
    }

    fn members(model: &SLearnerParams) -> usize {
        model.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &SLearnerParams) -> Self {
        let group = layout.group("mu");
        let (hidden, dropout) = (model.hidden.as_slice(), model.dropout);
        let params = HeadParams { hidden, activation: Activation::Relu, dropout, min_arm_rows: 0 };
        let width = shape.treatments.width();
        Self(Heads::by_vector(layout, "mu", shape.n_features, width, &params, group))
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.0.share(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let x = tape.features();
        self.0.factual(tape, x, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let x = tape.features();
        self.0.all(tape, x, treatments, 0)
    }
}
