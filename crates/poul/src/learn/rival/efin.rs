//! EFIN: features are tokens e_j = x_j·E_j; a control net reads them through self-attention, and the treatment attends to
//! them for the uplift (Liu et al. 2023).
//!
//! Loss: (y − (1 − t)·c − t·(c̄ + u))² + BCE(logit, 1 − t), where c̄ is c without its gradient. For several arms, u reads the
//! vector of the row's own policy, and a control row takes that of one treated arm, by turns: with two arms this is the
//! published loss. The cost of the self-attention grows with the square of the number of features.

use serde::{Deserialize, Serialize};

use super::params::{Rule, are_widths, check_rules};
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, LayoutBuilder, Mlp, Tape, Var, Weight};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct EfinParams {
    /// What is seen of a policy. Default `id`: a vector for each arm; `spec`: a linear map of the mixture.
    pub(super) tier: Tier,
    /// Width of tokens and of treatments. Default 16; 1 to 65,536.
    pub(super) token_dim: usize,
    /// Widths of the hidden layers after each attention. Default 64, 32; at least one.
    pub(super) hidden: Vec<usize>,
    /// Weight of the constraint BCE(logit, 1 − t). Default 1; at least 0.
    pub(super) alpha: f32,
    /// Dropout after each hidden layer. Default 0; in [0, 1).
    pub(super) dropout: f32,
    /// Networks trained side by side and averaged. Default 1; 1 to 256.
    pub(super) members: usize,
}

impl Default for EfinParams {
    fn default() -> Self {
        Self { tier: Tier::Id, token_dim: 16, hidden: vec![64, 32], alpha: 1.0, dropout: 0.0, members: 1 }
    }
}

/// Tokens, two attentions, two nets.
pub(super) struct Efin {
    tokens: Weight,
    query: Dense,
    key: Dense,
    value: Dense,
    control_net: Mlp,
    treatment: Dense,
    from_token: Dense,
    from_treatment: Dense,
    score: Dense,
    uplift_net: Mlp,
    n_features: usize,
    token_dim: usize,
    alpha: f32,
    control: u32,
    n_arms: usize,
}

impl Surface for Efin {
    const NAME: &'static str = "efin";
    type Model = EfinParams;

    fn check(model: &EfinParams) -> Result<()> {
        check_rules(&[
            Rule("model.token_dim", are_widths(&[model.token_dim]), "1 to 65,536"),
            Rule("model.hidden", are_widths(&model.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.alpha", (0.0..1e6).contains(&model.alpha), "at least 0"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
        ])
    }

    fn tier(model: &EfinParams) -> Tier {
        model.tier
    }

    fn members(model: &EfinParams) -> usize {
        model.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &EfinParams) -> Self {
        let group = layout.group("efin");
        let (n_features, dim) = (shape.n_features, model.token_dim);
        let spread = 1.0 / (dim as f32).sqrt();
        let tokens = layout.matrix("tokens", n_features, dim, Init::Normal(spread), group);
        let mut linear = |name: &str, n_in: usize| layout.linear(name, n_in, dim, Init::Uniform, group);
        let (query, key, value) = (linear("query", dim), linear("key", dim), linear("value", dim));
        let treatment = linear("treatment", shape.treatments.width());
        let (from_token, from_treatment) = (linear("from_token", dim), linear("from_treatment", dim));
        let score = layout.linear("score", dim, 1, Init::Uniform, group);
        let mut net = |name: &str, n_in: usize, n_out: usize| {
            let widths: Vec<usize> = [n_in].iter().chain(&model.hidden).chain(&[n_out]).copied().collect();
            Mlp::new(layout, name, &widths, Activation::Elu, Init::Uniform, group).dropout(model.dropout)
        };
        let control_net = net("control", n_features.saturating_mul(dim), 1);
        // The uplift and the logit of the constraint.
        let uplift_net = net("uplift", dim, 2);
        Self {
            tokens,
            query,
            key,
            value,
            control_net,
            treatment,
            from_token,
            from_treatment,
            score,
            uplift_net,
            n_features,
            token_dim: dim,
            alpha: model.alpha,
            control: shape.treatments.control as u32,
            n_arms: shape.treatments.arms.len(),
        }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let vectors = treatments.vectors(tape);
        let embedded = tape.dense(vectors, self.treatment, Activation::Identity);
        let parts = tape.dense(embedded, self.from_treatment, Activation::Identity);
        tape.share(parts);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let level = self.control_level(tape);
        let uplift = self.uplift(tape, own);
        let uplift = tape.slice_cols(uplift, 0, 1);
        let is_treated = |own: &u32| f32::from(!treatments.is_control[*own as usize]);
        let treated = tape.column(own.iter().map(is_treated));
        let uplift = tape.mul(uplift, treated);
        tape.add(level, uplift)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let level = self.control_level(tape);
        let n_rows = tape.shape(level).0;
        let column = |(treatment, is_control): (usize, &bool)| {
            if *is_control {
                return level;
            }
            let uplift = self.uplift(tape, &vec![treatment as u32; n_rows]);
            let uplift = tape.slice_cols(uplift, 0, 1);
            tape.add(level, uplift)
        };
        let columns: Vec<Var> = treatments.is_control.iter().enumerate().map(column).collect();
        tape.concat(&columns)
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        // The arm whose uplift is asked for: a control row's by turns.
        let asked = |row: &u32| match rows.arm[*row as usize] {
            own if own == self.control => {
                let turn = row % (self.n_arms as u32 - 1).max(1);
                if turn < self.control { turn } else { turn + 1 }
            }
            own => own,
        };
        let asked: Vec<u32> = batch.rows.iter().map(asked).collect();
        let treated: Vec<f32> = batch.pick(rows.arm).map(|own| f32::from(own != self.control)).collect();
        let level = self.control_level(tape);
        let outputs = self.uplift(tape, &asked);
        let (uplift, logit) = (tape.slice_cols(outputs, 0, 1), tape.slice_cols(outputs, 1, 1));
        let is_treated = tape.column(treated.iter().copied());
        let is_control = tape.column(treated.iter().map(|treated| 1.0 - treated));
        let still = tape.stop_gradient(level);
        let raised = tape.add(still, uplift);
        let raised = tape.mul(raised, is_treated);
        let plain = tape.mul(level, is_control);
        let prediction = tape.add(plain, raised);
        let loss = rows.squared_loss(tape, prediction, batch);
        let weights = rows.weights(tape, batch);
        let scale = self.alpha * rows.scale(batch);
        let constraint = tape.logistic_loss(logit, is_control, Some(weights), scale);
        tape.add(loss, constraint)
    }
}

impl Efin {
    /// c: self-attention over a row's tokens x_j·E_j, then a network of all of them. The products of queries and keys, and
    /// the values, are those of E, the same for all rows (see [`Tape::token_attention`]).
    fn control_level(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let n_rows = tape.shape(x).0;
        let tokens = tape.weight(self.tokens);
        let [query, key, value] =
            [self.query, self.key, self.value].map(|layer| tape.dense(tokens, layer, Activation::Identity));
        let key = tape.scale(key, 1.0 / (self.token_dim as f32).sqrt());
        let products = tape.matmul_nt(query, key);
        let mixed = tape.token_attention(x, products, value);
        let mixed = tape.reshape(mixed, n_rows, self.n_features * self.token_dim);
        self.control_net.forward(tape, mixed)
    }

    /// u and the logit of each row under the treatment asked for, which attends to the row's tokens.
    fn uplift(&self, tape: &mut Tape<'_>, asked: &[u32]) -> Var {
        let x = tape.features();
        let tokens = tape.weight(self.tokens);
        // W·(x_j·E_j) = x_j·(W·E_j): the product is the same for all rows.
        let part = tape.dense(tokens, self.from_token, Activation::Identity);
        let parts = tape.shared(0);
        let from_treatment = tape.gather(parts, asked.iter().copied());
        let score = tape.weight(self.score.weight);
        let scores = tape.token_scores(x, part, from_treatment, score);
        let attention = tape.softmax(scores);
        let weighted = tape.mul(attention, x);
        let pooled = tape.matmul(weighted, tokens);
        self.uplift_net.forward(tape, pooled)
    }
}
