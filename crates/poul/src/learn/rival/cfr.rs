//! CFR: TARNet with a penalty on how far the arms' representations are apart (Shalit, Johansson and Sontag 2017).

use serde::{Deserialize, Serialize};

use super::imbalance::Imbalance;
use super::params::{RepresentationParams, Rule, check_rules};
use super::surface::{Rows, Shape, Surface};
use super::tarnet::TarNet;
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Batch, LayoutBuilder, Tape, Var};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CfrParams {
    /// Trunk and heads.
    #[serde(flatten)]
    pub(super) network: RepresentationParams,
    /// The distance between arms. Default `wasserstein`.
    pub(super) imbalance: Imbalance,
    /// Weight of the distance. Default 0.3; at least 0.
    pub(super) alpha: f32,
}

impl Default for CfrParams {
    fn default() -> Self {
        Self { network: RepresentationParams::default(), imbalance: Imbalance::Wasserstein, alpha: 0.3 }
    }
}

/// TARNet and its penalty.
pub(super) struct Cfr {
    net: TarNet,
    imbalance: Imbalance,
    alpha: f32,
    control: u32,
}

impl Surface for Cfr {
    const NAME: &'static str = "cfr";
    type Model = CfrParams;

    fn check(model: &CfrParams) -> Result<()> {
        model.network.check()?;
        check_rules(&[Rule("model.alpha", (0.0..1e6).contains(&model.alpha), "at least 0")])
    }

    fn tier(model: &CfrParams) -> Tier {
        model.network.tier
    }

    fn members(model: &CfrParams) -> usize {
        model.network.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &CfrParams) -> Self {
        let net = TarNet::build(layout, shape, &model.network);
        let control = shape.treatments.control as u32;
        Self { net, imbalance: model.imbalance, alpha: model.alpha, control }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.net.shared(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        self.net.factual(tape, treatments, own)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        self.net.all(tape, treatments)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let unit = self.net.trunk.forward(tape);
        let prediction = self.net.heads.factual(tape, unit, rows.treatments, &own, 0);
        let loss = rows.balanced_loss(tape, prediction, batch);
        let Some(distance) = self.imbalance.between_arms(tape, unit, &own, self.control) else {
            return loss;
        };
        // Each shard gives its own distance; weighted by its share of the batch they average.
        let share = batch.rows.len() as f32 / batch.batch_rows.len().max(1) as f32;
        let penalty = tape.scale(distance, self.alpha * share);
        tape.add(loss, penalty)
    }
}
