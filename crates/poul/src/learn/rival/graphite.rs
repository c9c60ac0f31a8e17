//! GraphITE-style: encoders of the unit and of the policy, side by side into one head, and a penalty κ·HSIC that keeps
//! the two encodings independent over the rows, against assignment by x (Harada and Kashima 2021).
//!
//! The published encoder of treatments reads a molecule's graph; here it reads the mixture over atoms (`spec`) or the
//! name (`id`).

use serde::{Deserialize, Serialize};

use super::heads::{HeadParams, Heads};
use super::independence::hsic;
use super::params::{Rule, are_widths, check_rules};
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Activation, Batch, Init, LayoutBuilder, Mlp, Tape, Var};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct GraphiteParams {
    /// What is seen of a policy. Default `spec`.
    pub(super) tier: Tier,
    /// Widths of the layers of the unit's encoder. Default 128, 64; at least one.
    pub(super) trunk: Vec<usize>,
    /// Widths of the layers of the policy's encoder. Default 64, 32; at least one.
    pub(super) encoder: Vec<usize>,
    /// Widths of the hidden layers of the head. Default 64, 32; at least one.
    pub(super) heads: Vec<usize>,
    /// Weight of HSIC. Default 1; at least 0.
    pub(super) kappa: f32,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub(super) members: usize,
}

impl Default for GraphiteParams {
    fn default() -> Self {
        Self {
            tier: Tier::Spec,
            trunk: vec![128, 64],
            encoder: vec![64, 32],
            heads: vec![64, 32],
            kappa: 1.0,
            dropout: 0.1,
            members: 2,
        }
    }
}

/// Two encoders and a head.
pub(super) struct Graphite {
    unit: Mlp,
    policy: Mlp,
    head: Heads,
    kappa: f32,
}

impl Surface for Graphite {
    const NAME: &'static str = "graphite";
    type Model = GraphiteParams;

    fn check(model: &GraphiteParams) -> Result<()> {
        let widths = "one or more widths of 1 to 65,536";
        check_rules(&[
            Rule("model.trunk", are_widths(&model.trunk), widths),
            Rule("model.encoder", are_widths(&model.encoder), widths),
            Rule("model.heads", are_widths(&model.heads), widths),
            Rule("model.kappa", (0.0..1e6).contains(&model.kappa), "at least 0"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
        ])
    }

    fn tier(model: &GraphiteParams) -> Tier {
        model.tier
    }

    fn members(model: &GraphiteParams) -> usize {
        model.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &GraphiteParams) -> Self {
        let group = layout.group("encoders");
        let mut encoder = |name: &str, n_in: usize, layers: &[usize]| {
            let widths: Vec<usize> = [n_in].iter().chain(layers).copied().collect();
            let mlp = Mlp::new(layout, name, &widths, Activation::Elu, Init::Uniform, group);
            (mlp.dropout(model.dropout).output(Activation::Elu), widths[widths.len() - 1])
        };
        let (unit, unit_width) = encoder("unit", shape.n_features, &model.trunk);
        let (policy, policy_width) = encoder("policy", shape.treatments.width(), &model.encoder);
        let (activation, dropout) = (Activation::Elu, model.dropout);
        let params = HeadParams { hidden: &model.heads, activation, dropout, min_arm_rows: 0 };
        let group = layout.group("head");
        let head = Heads::by_vector(layout, "head", unit_width, policy_width, &params, group);
        Self { unit, policy, head, kappa: model.kappa }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let vectors = treatments.vectors(tape);
        let encoded = self.policy.forward(tape, vectors);
        let encoded = tape.unit_rows(encoded);
        self.head.share_vectors(tape, encoded);
        tape.share(encoded);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let unit = self.encode(tape);
        self.head.factual(tape, unit, treatments, own, 0)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let unit = self.encode(tape);
        self.head.all(tape, unit, treatments, 0)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let unit = self.encode(tape);
        let prediction = self.head.factual(tape, unit, rows.treatments, &own, 0);
        let loss = rows.squared_loss(tape, prediction, batch);
        // Rows without weight are no part of the sample.
        let counted: Vec<u32> = (0..batch.rows.len() as u32)
            .filter(|row| rows.weight.is_none_or(|weight| weight[batch.rows[*row as usize] as usize] > 0.0))
            .collect();
        let policies = tape.shared(self.head.n_shared());
        let policies = tape.gather(policies, counted.iter().map(|row| own[*row as usize]));
        let unit = tape.gather(unit, counted);
        match hsic(tape, unit, policies) {
            Some(dependence) => {
                // Each shard gives its own estimate; weighted by its share of the batch they average.
                let share = batch.rows.len() as f32 / batch.batch_rows.len().max(1) as f32;
                let penalty = tape.scale(dependence, self.kappa * share);
                tape.add(loss, penalty)
            }
            None => loss,
        }
    }
}

impl Graphite {
    fn encode(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let unit = self.unit.forward(tape, x);
        tape.unit_rows(unit)
    }
}
