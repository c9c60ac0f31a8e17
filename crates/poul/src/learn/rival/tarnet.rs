//! TARNet: a representation that all arms share and a head for each arm; arms weigh the same in the loss (Shalit,
//! Johansson and Sontag 2017).

use super::heads::Heads;
use super::params::RepresentationParams;
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use super::trunk::{Trunk, elu_heads};
use crate::Result;
use crate::net::{Batch, LayoutBuilder, Tape, Var};

/// Trunk and heads.
pub(super) struct TarNet {
    pub(super) trunk: Trunk,
    pub(super) heads: Heads,
}

impl Surface for TarNet {
    const NAME: &'static str = "tarnet";
    type Model = RepresentationParams;

    fn check(model: &RepresentationParams) -> Result<()> {
        model.check()
    }

    fn tier(model: &RepresentationParams) -> Tier {
        model.tier
    }

    fn members(model: &RepresentationParams) -> usize {
        model.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &RepresentationParams) -> Self {
        let (trunk, heads) = (layout.group("trunk"), layout.group("heads"));
        let trunk = Trunk::new(layout, "trunk", shape.n_features, model, true, trunk);
        let heads = elu_heads(layout, "head", trunk.width, shape, model, heads);
        Self { trunk, heads }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.heads.share(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let unit = self.trunk.forward(tape);
        self.heads.factual(tape, unit, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let unit = self.trunk.forward(tape);
        self.heads.all(tape, unit, treatments, 0)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let prediction = self.factual(tape, rows.treatments, &own);
        rows.balanced_loss(tape, prediction, batch)
    }
}
