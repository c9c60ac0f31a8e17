//! A stack of dense layers: g, m, ρ, trunks, towers and heads.

use super::kernel::elementwise::Activation;
use super::layout::{Dense, Group, Init, LayoutBuilder};
use super::tape::{Tape, Var};

/// Dense layers with an activation and dropout between them; the last is linear.
#[derive(Clone, Debug)]
pub struct Mlp {
    layers: Vec<Dense>,
    activation: Activation,
    output: Activation,
    dropout: f32,
}

impl Mlp {
    /// Layers of these widths, inputs first and outputs last, named `<name>.0`, `<name>.1`, …
    pub fn new(
        layout: &mut LayoutBuilder,
        name: &str,
        widths: &[usize],
        activation: Activation,
        init: Init,
        group: Group,
    ) -> Self {
        let layer = |(index, pair): (usize, &[usize])| {
            layout.dense(&format!("{name}.{index}"), pair[0], pair[1], init, group)
        };
        let layers = widths.windows(2).enumerate().map(layer).collect();
        Self { layers, activation, output: Activation::Identity, dropout: 0.0 }
    }

    /// Dropout after each hidden layer, in [0, 1).
    #[must_use]
    pub fn dropout(mut self, probability: f32) -> Self {
        self.dropout = probability;
        self
    }

    /// An activation of the last layer: a trunk ends with one.
    #[must_use]
    pub(crate) fn output(mut self, activation: Activation) -> Self {
        self.output = activation;
        self
    }

    /// The last layer; none where there is no layer at all.
    pub fn last(&self) -> Option<Dense> {
        self.layers.last().copied()
    }

    /// The outputs for each row of x.
    pub fn forward(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let Some((last, hidden)) = self.layers.split_last() else {
            return x;
        };
        let mut x = x;
        for layer in hidden {
            x = tape.dense(x, *layer, self.activation);
            x = tape.dropout(x, self.dropout);
        }
        tape.dense(x, *last, self.output)
    }
}
