//! DR-CFR: three representations, of what drives the treatment alone (Γ), both (Δ) and the outcome alone (Υ).
//!
//! `separation = "mmd"` is Hassanpour and Greiner (2020): outcome heads on (Δ, Υ), treatment on (Γ, Δ), Υ balanced
//! between arms, rows weighted by ω = 1 + Pr(t)/(1 − Pr(t)) · (1 − π₀(t|Δ))/π₀(t|Δ). `separation = "information"` is
//! reconstructed from the paper of Cheng et al. (2022), whose code is not public: the three pairs are kept apart by an
//! upper bound of their mutual information (vCLUB; Cheng et al. 2020) with Gaussian q(b|a). What the papers fit in
//! alternation, π₀ and q, is fitted here in the same step on representations held fixed.

use serde::{Deserialize, Serialize};

use super::heads::Heads;
use super::imbalance::Imbalance;
use super::params::{RepresentationParams, Rule, check_rules};
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use super::trunk::{Trunk, elu_heads};
use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, LayoutBuilder, Tape, Var};

/// How the three representations are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Separation {
    /// Υ has the same distribution in all arms.
    #[default]
    Mmd,
    /// Little mutual information between the pairs.
    Information,
}

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DrCfrParams {
    /// Each of the three trunks, and the heads; 100, 100 each by default.
    #[serde(flatten)]
    pub(super) network: RepresentationParams,
    /// How the representations are kept apart. Default `mmd`.
    pub(super) separation: Separation,
    /// Weight of the separation. Default 1 for `mmd`; at least 0. Try 0.01 for `information`.
    pub(super) alpha: f32,
    /// Weight of the treatment's cross-entropy. Default 1; at least 0.
    pub(super) beta: f32,
    /// π₀ below this counts as this in ω. Default 0.05; in (0, 0.5).
    pub(super) clip: f32,
}

impl Default for DrCfrParams {
    fn default() -> Self {
        let network = RepresentationParams {
            trunk: vec![100; 2],
            heads: vec![100; 2],
            ..RepresentationParams::default()
        };
        Self { network, separation: Separation::Mmd, alpha: 1.0, beta: 1.0, clip: 0.05 }
    }
}

/// The weights.
pub(super) struct DrCfr {
    gamma: Trunk,
    delta: Trunk,
    upsilon: Trunk,
    heads: Heads,
    treatment: Dense,
    weighting: Dense,
    /// For each pair (a, b): mean and log-variance of q(b|a).
    pairs: Vec<(Dense, Dense)>,
    model: DrCfrParams,
    shares: Vec<f32>,
    control: u32,
}

impl DrCfr {
    /// Δ and Υ side by side: what outcomes are read from.
    fn for_outcome(&self, tape: &mut Tape<'_>) -> Var {
        let (delta, upsilon) = (self.delta.forward(tape), self.upsilon.forward(tape));
        tape.concat(&[delta, upsilon])
    }

    /// ω of each row, as numbers.
    fn omega(&self, tape: &mut Tape<'_>, logits: Var, own: &[u32]) -> Vec<f32> {
        let propensity = tape.softmax(logits);
        let n_arms = self.shares.len();
        let rows = tape.value(propensity).chunks(n_arms).zip(own);
        let omega = |(row, own): (&[f32], &u32)| {
            let own = *own as usize;
            let (share, p) = (self.shares[own], row[own].clamp(self.model.clip, 1.0));
            1.0 + share / (1.0 - share).max(1e-3) * (1.0 - p) / p
        };
        rows.map(omega).collect()
    }

    /// The bound of the mutual information of the three pairs, and the loss that fits q.
    fn information(&self, tape: &mut Tape<'_>, parts: [Var; 3], scale: f32) -> (Var, Var) {
        let [gamma, delta, upsilon] = parts;
        let pairs = [(gamma, delta), (delta, upsilon), (gamma, upsilon)];
        let (mut bounds, mut fits) = (Vec::new(), Vec::new());
        for ((a, b), (mean, spread)) in pairs.into_iter().zip(&self.pairs) {
            // q learns from representations that do not move.
            let (still_a, still_b) = (tape.stop_gradient(a), tape.stop_gradient(b));
            let (m, s) = (q(tape, still_a, *mean, false), q(tape, still_a, *spread, false));
            let fit = log_likelihood(tape, still_b, m, s);
            fits.push(tape.scale(fit, -scale));
            // Representations move against a q that does not.
            let (m, s) = (q(tape, a, *mean, true), q(tape, a, *spread, true));
            let own = log_likelihood(tape, b, m, s);
            let n_rows = tape.shape(b).0 as u32;
            let others = tape.gather(b, (0..n_rows).map(|row| (row + 1) % n_rows));
            let other = log_likelihood(tape, others, m, s);
            let bound = tape.sub(own, other);
            bounds.push(tape.scale(bound, scale));
        }
        let sum = |tape: &mut Tape<'_>, terms: Vec<Var>| {
            terms.into_iter().reduce(|a, b| tape.add(a, b)).unwrap_or_else(|| tape.constant(1, 1, &[0.0]))
        };
        (sum(tape, bounds), sum(tape, fits))
    }
}

impl Surface for DrCfr {
    const NAME: &'static str = "drcfr";
    type Model = DrCfrParams;

    fn check(model: &DrCfrParams) -> Result<()> {
        model.network.check()?;
        check_rules(&[
            Rule("model.alpha", (0.0..1e6).contains(&model.alpha), "at least 0"),
            Rule("model.beta", (0.0..1e6).contains(&model.beta), "at least 0"),
            Rule("model.clip", model.clip > 0.0 && model.clip < 0.5, "above 0 and below 0.5"),
        ])
    }

    fn tier(model: &DrCfrParams) -> Tier {
        model.network.tier
    }

    fn members(model: &DrCfrParams) -> usize {
        model.network.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &DrCfrParams) -> Self {
        let (trunks, towers) = (layout.group("trunk"), layout.group("heads"));
        let network = &model.network;
        let mut trunk = |name: &str| Trunk::new(layout, name, shape.n_features, network, true, trunks);
        let (gamma, delta, upsilon) = (trunk("gamma"), trunk("delta"), trunk("upsilon"));
        let width = gamma.width;
        let heads = elu_heads(layout, "head", 2 * width, shape, network, towers);
        let n_arms = shape.treatments.arms.len();
        let treatment = layout.dense("treatment", 2 * width, n_arms, Init::Uniform, towers);
        let weighting = layout.dense("weighting", width, n_arms, Init::Uniform, towers);
        let n_pairs = if model.separation == Separation::Information { 3 } else { 0 };
        let pairs = (0..n_pairs)
            .map(|pair| {
                let mean = layout.dense(&format!("q.{pair}.mean"), width, width, Init::Uniform, towers);
                let spread = layout.dense(&format!("q.{pair}.spread"), width, width, Init::Uniform, towers);
                (mean, spread)
            })
            .collect();
        let total: u64 = shape.treatments.arm_rows.iter().sum();
        let shares =
            shape.treatments.arm_rows.iter().map(|rows| *rows as f32 / total.max(1) as f32).collect();
        let control = shape.treatments.control as u32;
        Self {
            gamma,
            delta,
            upsilon,
            heads,
            treatment,
            weighting,
            pairs,
            model: model.clone(),
            shares,
            control,
        }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.heads.share(tape, treatments);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let input = self.for_outcome(tape);
        self.heads.factual(tape, input, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let input = self.for_outcome(tape);
        self.heads.all(tape, input, treatments, 0)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let (gamma, delta) = (self.gamma.forward(tape), self.delta.forward(tape));
        let upsilon = self.upsilon.forward(tape);
        let (weights, scale) = (rows.weights(tape, batch), rows.scale(batch));

        let still = tape.stop_gradient(delta);
        let weighting = tape.dense(still, self.weighting, Activation::Identity);
        let weighting_fit = tape.cross_entropy(weighting, own.iter().copied(), Some(weights), scale);
        let omega = self.omega(tape, weighting, &own);
        let omega = tape.column(omega);
        let weighted = tape.mul(omega, weights);

        let input = tape.concat(&[delta, upsilon]);
        let prediction = self.heads.factual(tape, input, rows.treatments, &own, 0);
        let target = tape.column(batch.pick(rows.outcome));
        // ω averages 2 where π₀ = Pr(t): halved, outcomes weigh as they do elsewhere.
        let fit = tape.squared_loss(prediction, target, Some(weighted), 0.5 * scale);

        let both = tape.concat(&[gamma, delta]);
        let logits = tape.dense(both, self.treatment, Activation::Identity);
        let treatment =
            tape.cross_entropy(logits, own.iter().copied(), Some(weights), self.model.beta * scale);
        let mut total = tape.add(fit, treatment);
        total = tape.add(total, weighting_fit);

        let share = batch.rows.len() as f32 / batch.batch_rows.len().max(1) as f32;
        match self.model.separation {
            Separation::Mmd => {
                if let Some(distance) = Imbalance::Mmd.between_arms(tape, upsilon, &own, self.control) {
                    let penalty = tape.scale(distance, self.model.alpha * share);
                    total = tape.add(total, penalty);
                }
            }
            Separation::Information => {
                let (bound, fit) = self.information(tape, [gamma, delta, upsilon], share);
                let bound = tape.scale(bound, self.model.alpha);
                total = tape.add(total, bound);
                total = tape.add(total, fit);
            }
        }
        total
    }
}

/// A linear map of a, whose weights are held fixed where `still`.
fn q(tape: &mut Tape<'_>, a: Var, layer: Dense, still: bool) -> Var {
    let weight = tape.weight(layer.weight);
    let weight = if still { tape.stop_gradient(weight) } else { weight };
    let product = tape.matmul(a, weight);
    let Some(bias) = layer.bias else { return product };
    let bias = tape.weight(bias);
    let bias = if still { tape.stop_gradient(bias) } else { bias };
    tape.add(product, bias)
}

/// The mean over rows of ln q(b | mean, e^spread), without its constant; the spread is bounded.
fn log_likelihood(tape: &mut Tape<'_>, b: Var, mean: Var, spread: Var) -> Var {
    let n_rows = tape.shape(b).0.max(1) as f32;
    let spread = tape.activate(spread, Activation::Tanh);
    let error = tape.sub(b, mean);
    let squares = tape.square(error);
    let precision = tape.scale(spread, -1.0);
    let precision = tape.exp(precision);
    let squares = tape.mul(squares, precision);
    let sum = tape.add(squares, spread);
    let total = tape.sum(sum);
    tape.scale(total, -0.5 / n_rows)
}
