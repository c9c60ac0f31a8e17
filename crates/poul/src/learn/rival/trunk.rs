//! A representation of units that all heads share (Shalit, Johansson and Sontag 2017).

use super::heads::{HeadParams, Heads};
use super::params::RepresentationParams;
use super::surface::Shape;
use crate::net::{Activation, Group, Init, LayoutBuilder, Mlp, Tape, Var};

/// ELU layers; the last is brought to unit length, so that distances between arms mean something.
pub(super) struct Trunk {
    mlp: Mlp,
    unit: bool,
    pub(super) width: usize,
}

impl Trunk {
    /// Declares the weights.
    pub(super) fn new(
        layout: &mut LayoutBuilder,
        name: &str,
        n_features: usize,
        model: &RepresentationParams,
        unit: bool,
        group: Group,
    ) -> Self {
        let mut widths = vec![n_features];
        widths.extend(&model.trunk);
        let mlp = Mlp::new(layout, name, &widths, Activation::Elu, Init::Uniform, group);
        let mlp = mlp.dropout(model.dropout).output(Activation::Elu);
        Self { mlp, unit, width: model.trunk.last().copied().unwrap_or(n_features) }
    }

    /// The representation of each row.
    pub(super) fn forward(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let last = self.mlp.forward(tape, x);
        if self.unit { tape.unit_rows(last) } else { last }
    }
}

/// ELU heads on representations of width `n_in`.
pub(super) fn elu_heads(
    layout: &mut LayoutBuilder,
    name: &str,
    n_in: usize,
    shape: &Shape<'_>,
    model: &RepresentationParams,
    group: Group,
) -> Heads {
    let params = HeadParams {
        hidden: &model.heads,
        activation: Activation::Elu,
        dropout: model.dropout,
        min_arm_rows: model.min_arm_rows,
    };
    Heads::new(layout, name, n_in, shape, &params, group)
}
