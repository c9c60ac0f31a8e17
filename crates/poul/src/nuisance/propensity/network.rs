//! The softmax network: logits are the log-shares of classes, plus a linear part, plus hidden layers.
//!
//! The last layers start at 0, so π starts at the shares; weight decay pulls it back there.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, Layout, Mlp, Network, Tape, Var};
use crate::nuisance::outcome::params::{MAX_WIDTH, check_dropout, check_widths};
use crate::stored::damaged;

/// Everything that decides which weights a network has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) n_features: usize,
    pub(super) hidden: Vec<usize>,
    pub(super) dropout: f32,
    pub(super) n_classes: usize,
}

impl Shape {
    /// Declares the weights. A shape may come from a file, so sizes are checked.
    pub(super) fn build(&self, log_shares: Vec<f32>) -> Result<(PropensityNet, Layout)> {
        check_widths("hidden", &self.hidden)?;
        check_dropout(self.dropout)?;
        if self.n_features > 1 << 24 || self.n_classes > MAX_WIDTH || log_shares.len() != self.n_classes {
            return Err(damaged("the propensity model is of an impossible size"));
        }
        let mut layout = Layout::builder();
        let group = layout.group("pi");
        let zero = Init::Constant(0.0);
        let linear = layout.linear("linear", self.n_features, self.n_classes, zero, group);
        let stack = self.hidden.last().map(|last| {
            let mut widths = vec![self.n_features];
            widths.extend(&self.hidden);
            let hidden = Mlp::new(&mut layout, "hidden", &widths, Activation::Relu, Init::Uniform, group);
            let output = layout.dense("output", *last, self.n_classes, zero, group);
            (hidden.dropout(self.dropout).output(Activation::Relu), output)
        });
        Ok((PropensityNet { linear, stack, dropout: self.dropout, log_shares }, layout.finish()?))
    }
}

/// The weights of a network, and the shares it starts from.
#[derive(Clone, Debug)]
pub(super) struct PropensityNet {
    linear: Dense,
    stack: Option<(Mlp, Dense)>,
    dropout: f32,
    pub(super) log_shares: Vec<f32>,
}

impl PropensityNet {
    fn logits(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let linear = tape.dense(x, self.linear, Activation::Identity);
        let start = tape.constant(1, self.log_shares.len(), &self.log_shares);
        let logits = tape.add(linear, start);
        let Some((hidden, output)) = &self.stack else { return logits };
        let hidden = hidden.forward(tape, x);
        let hidden = tape.dropout(hidden, self.dropout);
        let bent = tape.dense(hidden, *output, Activation::Identity);
        tape.add(logits, bent)
    }
}

/// Probabilities of the classes.
impl Network for PropensityNet {
    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        let logits = self.logits(tape);
        tape.softmax(logits)
    }
}

/// Cross-entropy on rows.
pub(super) struct Training<'a> {
    pub(super) net: &'a PropensityNet,
    pub(super) class: &'a [u32],
    pub(super) weight: Option<&'a [f32]>,
}

impl Network for Training<'_> {
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let logits = self.net.logits(tape);
        match self.weight {
            None => tape.cross_entropy(logits, batch.pick(self.class), None, batch.scale()),
            Some(weight) => {
                let weights = tape.column(batch.pick(weight));
                let scale = batch.weighted_scale(weight);
                tape.cross_entropy(logits, batch.pick(self.class), Some(weights), scale)
            }
        }
    }
}
