//! DragonNet: trunk, a head for each arm, and the propensity as one layer on the same trunk, with targeted
//! regularisation (Shi, Blei and Veitch 2019).
//!
//! For two arms this is the published loss: Σ(y − Q)² + Σ CE(t, π) + Σ(y − Q − εH)², H = t/π − (1 − t)/(1 − π). For more,
//! π is a softmax over arms and H = ±1/π(own arm), minus for control.

use serde::{Deserialize, Serialize};

use super::heads::Heads;
use super::params::{RepresentationParams, Rule, check_rules};
use super::surface::{Rows, Shape, Surface, one_hot};
use super::treatments::{Chosen, Tier};
use super::trunk::{Trunk, elu_heads};
use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, LayoutBuilder, Tape, Var, Weight};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DragonNetParams {
    /// Trunk and heads; heads are 100, 100 by default.
    #[serde(flatten)]
    pub(super) network: RepresentationParams,
    /// Weight of the cross-entropy over arms. Default 1; at least 0.
    pub(super) alpha: f32,
    /// Weight of the targeted term. Default 1; at least 0.
    pub(super) beta: f32,
    /// Propensities below this count as this in H. Default 0.01; in (0, 0.5).
    pub(super) clip: f32,
}

impl Default for DragonNetParams {
    fn default() -> Self {
        let network = RepresentationParams { heads: vec![100; 2], ..RepresentationParams::default() };
        Self { network, alpha: 1.0, beta: 1.0, clip: 0.01 }
    }
}

/// The weights.
pub(super) struct DragonNet {
    trunk: Trunk,
    heads: Heads,
    propensity: Dense,
    epsilon: Weight,
    model: DragonNetParams,
    n_arms: usize,
    control: u32,
}

impl Surface for DragonNet {
    const NAME: &'static str = "dragonnet";
    type Model = DragonNetParams;

    fn check(model: &DragonNetParams) -> Result<()> {
        model.network.check()?;
        check_rules(&[
            Rule("model.alpha", (0.0..1e6).contains(&model.alpha), "at least 0"),
            Rule("model.beta", (0.0..1e6).contains(&model.beta), "at least 0"),
            Rule("model.clip", model.clip > 0.0 && model.clip < 0.5, "above 0 and below 0.5"),
        ])
    }

    fn tier(model: &DragonNetParams) -> Tier {
        model.network.tier
    }

    fn members(model: &DragonNetParams) -> usize {
        model.network.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &DragonNetParams) -> Self {
        let (trunk_group, head_group) = (layout.group("trunk"), layout.group("heads"));
        let epsilon_group = layout.group("epsilon");
        let trunk = Trunk::new(layout, "trunk", shape.n_features, &model.network, false, trunk_group);
        let heads = elu_heads(layout, "head", trunk.width, shape, &model.network, head_group);
        let n_arms = shape.treatments.arms.len();
        let propensity = layout.dense("propensity", trunk.width, n_arms, Init::Uniform, trunk_group);
        let epsilon = layout.matrix("epsilon", 1, 1, Init::Constant(0.0), epsilon_group);
        let control = shape.treatments.control as u32;
        Self { trunk, heads, propensity, epsilon, model: model.clone(), n_arms, control }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.heads.share(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let stem = self.trunk.forward(tape);
        self.heads.factual(tape, stem, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let stem = self.trunk.forward(tape);
        self.heads.all(tape, stem, treatments, 0)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let stem = self.trunk.forward(tape);
        let prediction = self.heads.factual(tape, stem, rows.treatments, &own, 0);
        let (weights, scale) = (rows.weights(tape, batch), rows.scale(batch));
        let target = tape.column(batch.pick(rows.outcome));
        let fit = tape.squared_loss(prediction, target, Some(weights), scale);

        let logits = tape.dense(stem, self.propensity, Activation::Identity);
        let arms = tape.cross_entropy(logits, own.iter().copied(), Some(weights), self.model.alpha * scale);

        let propensity = tape.softmax(logits);
        let sign = |arm: &u32| if *arm == self.control { -1.0 } else { 1.0 };
        let signs = tape.column(own.iter().map(sign));
        let chosen = one_hot(tape, &own, self.n_arms);
        let propensity = tape.row_dot(propensity, chosen);
        let propensity = tape.clamp(propensity, self.model.clip, 1.0);
        let tilt = tape.div(signs, propensity);
        let epsilon = tape.weight(self.epsilon);
        let tilt = tape.mul(tilt, epsilon);
        let tilted = tape.add(prediction, tilt);
        let targeted = tape.squared_loss(tilted, target, Some(weights), self.model.beta * scale);

        let total = tape.add(fit, arms);
        tape.add(total, targeted)
    }
}
