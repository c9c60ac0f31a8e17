//! T-learner: a network for each arm, fitted on its own rows; the effect is the difference of two predictions
//! (Künzel et al. 2019). Arms with few rows share a network.

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
pub(super) struct TLearnerParams {
    /// Widths of the hidden layers of each network. Default 64, 32; at least one.
    pub(super) hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Arms with fewer rows share one network. Default 200.
    pub(super) min_arm_rows: u64,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub(super) members: usize,
}

impl Default for TLearnerParams {
    fn default() -> Self {
        Self { hidden: vec![64, 32], dropout: 0.1, min_arm_rows: 200, members: 2 }
    }
}

/// A head for each arm, on the features themselves.
pub(super) struct TLearner(Heads);

impl Surface for TLearner {
    const NAME: &'static str = "t-learner";
    type Model = TLearnerParams;

    fn check(model: &TLearnerParams) -> Result<()> {
        check_rules(&[
            Rule("model.hidden", are_widths(&model.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
        ])
    }

    fn tier(_model: &TLearnerParams) -> Tier {
        Tier::Id
    }

    fn members(model: &TLearnerParams) -> usize {
        model.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &TLearnerParams) -> Self {
        let group = layout.group("mu");
        let params = HeadParams {
            hidden: &model.hidden,
            activation: Activation::Relu,
            dropout: model.dropout,
            min_arm_rows: model.min_arm_rows,
        };
        Self(Heads::new(layout, "arm", shape.n_features, shape, &params, group))
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
