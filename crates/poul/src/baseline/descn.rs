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
        let n_shared = self.outcomes.n_shared();
        let pseudo_effects = self.pseudo_effects.all(tape, stem, rows.treatments, n_shared);
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

        // Across arms: treated rows against μ_0 + τ′_t, control rows against μ_t − τ′_t for every t.
        let base = tape.slice_cols(outcomes, control, 1);
        let treated = tape.add(pseudo_effects, base);
        let untreated = tape.sub(outcomes, pseudo_effects);
        let treated_mask: Vec<f32> = mask(&own, n_arms, |own, arm| own == arm && arm != control);
        let control_mask: Vec<f32> = mask(&own, n_arms, |own, arm| own == control && arm != control);
        let others = (n_arms - 1).max(1) as f32;
        let cross_treated =
            masked_squares(tape, treated, column, &treated_mask, weights, model.weight_cross_treated * scale);
        let cross_control = masked_squares(
            tape,
            untreated,
            column,
            &control_mask,
            weights,
            model.weight_cross_control * scale / others,
        );
        [entire, cross_treated, cross_control].into_iter().fold(arms, |total, term| tape.add(total, term))
    }
}

fn mask(own: &[u32], n_arms: usize, keep: impl Fn(usize, usize) -> bool) -> Vec<f32> {
    let row = |own: &u32| {
        let own = *own as usize;
        (0..n_arms).map(|arm| f32::from(keep(own, arm))).collect::<Vec<_>>()
    };
    own.iter().flat_map(row).collect()
}

/// scale · Σ weight · (prediction − y)² where the mask is 1.
fn masked_squares(
    tape: &mut Tape<'_>,
    prediction: Var,
    y: Var,
    mask: &[f32],
    weights: Var,
    scale: f32,
) -> Var {
    let (n_rows, n_cols) = tape.shape(prediction);
    let mask = tape.constant(n_rows, n_cols, mask);
    let error = tape.sub(prediction, y);
    let error = tape.mul(error, mask);
    let nothing = tape.constant(n_rows, n_cols, &vec![0.0; n_rows * n_cols]);
    tape.squared_loss(error, nothing, Some(weights), scale)
}
