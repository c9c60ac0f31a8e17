//! DESCN: towers for the propensity, the outcomes and a pseudo-effect on one representation, trained on the entire
//! space and across arms (Zhong et al. 2022).
//!
//! The published form is for two arms and 0/1 outcomes by their logits. This is an adaptation: outcomes are standardised
//! and fitted by squared error, arms other than control have an outcome and a pseudo-effect each, and the propensity is a
//! softmax over arms.

use serde::{Deserialize, Serialize};

use super::heads::Heads;
use super::params::{RepresentationParams, Rule, check_rules};
use super::surface::{Rows, Shape, Surface, one_hot};
use super::treatments::{Chosen, Tier};
use super::trunk::{Trunk, elu_heads};
use crate::Result;
use crate::net::{Activation, Batch, Init, LayoutBuilder, Mlp, Tape, Var};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DescnParams {
    /// Trunk and towers; 128 throughout by default.
    #[serde(flatten)]
    pub(super) network: RepresentationParams,
    /// Weight of the propensity. Default 0.5; at least 0.
    pub(super) weight_propensity: f32,
    /// Weight of treated outcomes over the entire space. Default 0.5; at least 0.
    pub(super) weight_treated: f32,
    /// Weight of control outcomes over the entire space. Default 1; at least 0.
    pub(super) weight_control: f32,
    /// Weight of treated outcomes against control plus pseudo-effect. Default 1; at least 0.
    pub(super) weight_cross_treated: f32,
    /// Weight of control outcomes against treated less pseudo-effect. Default 0.5; at least 0.
    pub(super) weight_cross_control: f32,
}

impl Default for DescnParams {
    fn default() -> Self {
        Self {
            network: RepresentationParams {
                trunk: vec![128; 3],
                heads: vec![64; 3],
                ..RepresentationParams::default()
            },
            weight_propensity: 0.5,
            weight_treated: 0.5,
            weight_control: 1.0,
            weight_cross_treated: 1.0,
            weight_cross_control: 0.5,
        }
    }
}

/// The towers.
pub(super) struct Descn {
    trunk: Trunk,
    outcomes: Heads,
    pseudo_effects: Heads,
    propensity: Mlp,
    model: DescnParams,
    n_arms: usize,
    control: usize,
}

impl Surface for Descn {
    const NAME: &'static str = "descn";
    type Model = DescnParams;

    fn check(model: &DescnParams) -> Result<()> {
        model.network.check()?;
        let weight = |name, value: f32| Rule(name, (0.0..1e6).contains(&value), "at least 0");
        check_rules(&[
            weight("model.weight_propensity", model.weight_propensity),
            weight("model.weight_treated", model.weight_treated),
            weight("model.weight_control", model.weight_control),
            weight("model.weight_cross_treated", model.weight_cross_treated),
            weight("model.weight_cross_control", model.weight_cross_control),
        ])
    }

    fn tier(model: &DescnParams) -> Tier {
        model.network.tier
    }

    fn members(model: &DescnParams) -> usize {
        model.network.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &DescnParams) -> Self {
        let (trunk_group, tower_group) = (layout.group("trunk"), layout.group("towers"));
        let network = &model.network;
        let trunk = Trunk::new(layout, "trunk", shape.n_features, network, true, trunk_group);
        let outcomes = elu_heads(layout, "outcome", trunk.width, shape, network, tower_group);
        let pseudo_effects = elu_heads(layout, "pseudo", trunk.width, shape, network, tower_group);
        let n_arms = shape.treatments.arms.len();
        let mut widths = vec![trunk.width];
        widths.extend(&network.heads);
        widths.push(n_arms);
        let propensity = Mlp::new(layout, "propensity", &widths, Activation::Elu, Init::Uniform, tower_group);
        let control = shape.treatments.control;
        Self { trunk, outcomes, pseudo_effects, propensity, model: model.clone(), n_arms, control }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.outcomes.share(tape, treatments);
        self.pseudo_effects.share(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let stem = self.trunk.forward(tape);
        self.outcomes.factual(tape, stem, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let stem = self.trunk.forward(tape);
        self.outcomes.all(tape, stem, treatments, 0)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let (model, n_arms, control) = (&self.model, self.n_arms, self.control);
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let stem = self.trunk.forward(tape);
        let outcomes = self.outcomes.all(tape, stem, rows.treatments, 0);
        let (weights, scale) = (rows.weights(tape, batch), rows.scale(batch));
        let y: Vec<f32> = batch.pick(rows.outcome).collect();

        let logits = self.propensity.forward(tape, stem);
        let arms =
            tape.cross_entropy(logits, own.iter().copied(), Some(weights), model.weight_propensity * scale);

        // Entire space: Y·1[T = t] against π_t·μ_t, each arm's square weighted by the root of its weight.
        let root = |arm: usize| {
            if arm == control { model.weight_control.sqrt() } else { model.weight_treated.sqrt() }
        };
        let roots: Vec<f32> = (0..n_arms).map(root).collect();
        let roots = tape.constant(1, n_arms, &roots);
        let propensity = tape.softmax(logits);
        let expected = tape.mul(propensity, outcomes);
        let expected = tape.mul(expected, roots);
        let chosen = one_hot(tape, &own, n_arms);
        let column = tape.column(y.iter().copied());
        let observed = tape.mul(chosen, column);
        let observed = tape.mul(observed, roots);
        let entire = tape.squared_loss(expected, observed, Some(weights), scale);

        let across = Across { stem, outcomes, y: column, weights, scale };
        let (controls, treated): (Vec<u32>, Vec<u32>) =
            (0..own.len() as u32).partition(|row| own[*row as usize] as usize == control);
        let mut total = tape.add(arms, entire);
        if !treated.is_empty() {
            let term = self.across_treated(tape, rows, &across, &treated, &own);
            total = tape.add(total, term);
        }
        if !controls.is_empty() {
            let term = self.across_control(tape, rows, &across, &controls);
            total = tape.add(total, term);
        }
        total
    }
}

/// What the losses across arms take from the others.
struct Across {
    stem: Var,
    outcomes: Var,
    y: Var,
    weights: Var,
    scale: f32,
}

impl Descn {
    /// Treated rows against μ_0 + τ′_t of their own t: no other τ′ is needed.
    fn across_treated(
        &self,
        tape: &mut Tape<'_>,
        rows: &Rows<'_>,
        across: &Across,
        treated: &[u32],
        own: &[u32],
    ) -> Var {
        let [stem, outcomes, y, weights] = across.of_rows(tape, treated);
        let own: Vec<u32> = treated.iter().map(|row| own[*row as usize]).collect();
        let n_shared = self.outcomes.n_shared();
        let effect = self.pseudo_effects.factual(tape, stem, rows.treatments, &own, n_shared);
        let base = tape.slice_cols(outcomes, self.control, 1);
        let level = tape.add(effect, base);
        tape.squared_loss(level, y, Some(weights), self.model.weight_cross_treated * across.scale)
    }

    /// Control rows against μ_t − τ′_t for every t.
    fn across_control(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, across: &Across, controls: &[u32]) -> Var {
        let [stem, outcomes, y, weights] = across.of_rows(tape, controls);
        let n_shared = self.outcomes.n_shared();
        let effects = self.pseudo_effects.all(tape, stem, rows.treatments, n_shared);
        let error = tape.sub(outcomes, effects);
        let error = tape.sub(error, y);
        let is_treated: Vec<f32> = (0..self.n_arms).map(|arm| f32::from(arm != self.control)).collect();
        let is_treated = tape.constant(1, self.n_arms, &is_treated);
        let error = tape.mul(error, is_treated);
        let nothing = tape.constant(controls.len(), self.n_arms, &vec![0.0; controls.len() * self.n_arms]);
        let scale = self.model.weight_cross_control * across.scale / (self.n_arms - 1).max(1) as f32;
        tape.squared_loss(error, nothing, Some(weights), scale)
    }
}

impl Across {
    /// Stem, outcomes, y and weights of some rows.
    fn of_rows(&self, tape: &mut Tape<'_>, rows: &[u32]) -> [Var; 4] {
        [self.stem, self.outcomes, self.y, self.weights].map(|var| tape.gather(var, rows.iter().copied()))
    }
}
