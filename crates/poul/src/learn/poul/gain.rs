//! g(x) of one outcome (Eq. 4 of the paper). Features enter through gates, one each, that are pulled to zero: of many
//! features few change effects.

use super::params::Params;
use crate::net::{Activation, Dense, Init, LayoutBuilder, Mlp, Tape, Var, Weight};

/// Weights of g.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    gate: Option<Weight>,
    first: Dense,
    rest: Mlp,
    dropout: f32,
}

impl Gain {
    /// Declares the weights.
    pub(super) fn new(
        layout: &mut LayoutBuilder,
        n_features: usize,
        outcome: usize,
        params: &Params,
    ) -> Self {
        let (group, gates) = (layout.group("g"), layout.group("gate"));
        let name = format!("g.{outcome}");
        let gate = (params.training.gate_penalty > 0.0)
            .then(|| layout.matrix(&format!("{name}.gate"), n_features, 1, Init::Constant(1.0), gates));
        let first =
            layout.dense(&format!("{name}.first"), n_features, params.model.hidden[0], Init::Uniform, group);
        let mut widths = params.model.hidden.clone();
        widths.push(params.model.effect_dim);
        let rest = Mlp::new(layout, &name, &widths, Activation::Relu, Init::Uniform, group)
            .dropout(params.model.dropout);
        Self { gate, first, rest, dropout: params.model.dropout }
    }

    /// The layer whose outputs are the axes of g.
    pub(super) fn last(&self) -> Option<Dense> {
        self.rest.last()
    }

    /// How many matrices [`share`](Self::share) hands over.
    pub(super) fn n_shared(&self) -> usize {
        usize::from(self.gate.is_some())
    }

    /// The gated first layer, shared by all rows.
    pub(super) fn share(&self, tape: &mut Tape<'_>) {
        let Some(gate) = self.gate else { return };
        let (gate, weight) = (tape.weight(gate), tape.weight(self.first.weight));
        let gated = tape.mul(weight, gate);
        tape.share(gated);
    }

    /// Σ|gate|, where there are gates.
    pub(super) fn gate_size(&self, tape: &mut Tape<'_>) -> Option<Var> {
        let gate = tape.weight(self.gate?);
        let size = tape.abs(gate);
        Some(tape.sum(size))
    }

    /// g of each row; `shared` is the number of the first matrix that it shared.
    pub(super) fn forward(&self, tape: &mut Tape<'_>, x: Var, shared: usize) -> Var {
        let first = match (self.gate, self.first.bias) {
            (Some(_), Some(bias)) => {
                let weight = tape.shared(shared);
                let product = tape.matmul(x, weight);
                let bias = tape.weight(bias);
                let sum = tape.add(product, bias);
                tape.activate(sum, Activation::Relu)
            }
            _ => tape.dense(x, self.first, Activation::Relu),
        };
        let first = tape.dropout(first, self.dropout);
        self.rest.forward(tape, first)
    }
}
