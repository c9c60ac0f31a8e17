//! SIN with categorical treatments: Y = m(x) + g(x)ᵀ(h(t) − e_h(x)), where h is a vector for each policy's name and
//! e_h(x) ≈ E[h(T)|x] is a network of its own (Kaddour et al. 2021).
//!
//! The published steps alternate: g and h against the residual with e_h held fixed, then e_h against h(t) with h held
//! fixed. Here both are taken on the same batch, each with the other's weights held fixed.

use serde::{Deserialize, Serialize};

use super::first_stage::Needs;
use super::params::{Rule, are_widths, check_rules};
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Activation, Batch, Init, LayoutBuilder, Mlp, Tape, Var, Weight};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SinParams {
    /// Widths of the hidden layers of g and e_h. Default 128, 64; at least one.
    pub(super) hidden: Vec<usize>,
    /// Width of g, h and e_h. Default 16; 1 to 65,536.
    pub(super) effect_dim: usize,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub(super) members: usize,
}

impl Default for SinParams {
    fn default() -> Self {
        Self { hidden: vec![128, 64], effect_dim: 16, dropout: 0.1, members: 2 }
    }
}

/// g, h and e_h.
pub(super) struct SinCat {
    gain: Mlp,
    embedding: Weight,
    expected: Mlp,
}

impl Surface for SinCat {
    const NAME: &'static str = "sin-cat";
    const HAS_FIRST_STAGE: bool = true;
    type Model = SinParams;

    fn check(model: &SinParams) -> Result<()> {
        check_rules(&[
            Rule("model.hidden", are_widths(&model.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.effect_dim", are_widths(&[model.effect_dim]), "1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
        ])
    }

    fn tier(_model: &SinParams) -> Tier {
        Tier::Id
    }

    fn members(model: &SinParams) -> usize {
        model.members
    }

    fn needs(_model: &SinParams) -> Needs<'_> {
        Needs { residual: true, ..Needs::default() }
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &SinParams) -> Self {
        let mut widths = vec![shape.n_features];
        widths.extend(&model.hidden);
        widths.push(model.effect_dim);
        let mut mlp = |name: &str| {
            let group = layout.group(name);
            Mlp::new(layout, name, &widths, Activation::Relu, Init::Uniform, group).dropout(model.dropout)
        };
        let (gain, expected) = (mlp("g"), mlp("e"));
        let group = layout.group("h");
        let n_arms = shape.treatments.arms.len();
        let embedding = layout.matrix("h", n_arms, model.effect_dim, Init::Normal(1.0), group);
        Self { gain, embedding, expected }
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let x = tape.features();
        let gain = self.gain.forward(tape, x);
        let embedding = tape.weight(self.embedding);
        let chosen = tape.gather(embedding, treatments.arm.iter().copied());
        tape.matmul_nt(gain, chosen)
    }

    /// g(x)ᵀ(h(t) − e_h(x)), which the residual outcome is compared with.
    fn fitted(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let expected = self.expected.forward(tape, x);
        self.centred(tape, rows, batch, expected)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let expected = self.expected.forward(tape, x);
        let fitted = self.centred(tape, rows, batch, expected);
        let loss = rows.squared_loss(tape, fitted, batch);
        let embedding = tape.weight(self.embedding);
        let own = tape.gather(embedding, batch.pick(rows.arm));
        let own = tape.stop_gradient(own);
        let weights = rows.weights(tape, batch);
        let expectation = tape.squared_loss(expected, own, Some(weights), rows.scale(batch));
        tape.add(loss, expectation)
    }
}

impl SinCat {
    fn centred(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>, expected: Var) -> Var {
        let x = tape.features();
        let gain = self.gain.forward(tape, x);
        let embedding = tape.weight(self.embedding);
        let own = tape.gather(embedding, batch.pick(rows.arm));
        let expected = tape.stop_gradient(expected);
        let change = tape.sub(own, expected);
        tape.row_dot(gain, change)
    }
}
