//! The networks behind m, their loss and their outputs.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, Layout, Mlp, Network, Tape, Var};
use crate::stored::damaged;

use super::params::{MAX_WIDTH, OutcomeKind, OutcomeLoss, check_dropout, check_widths};

/// Everything that decides which weights a network has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) kind: OutcomeKind,
    pub(super) n_features: usize,
    pub(super) hidden: Vec<usize>,
    pub(super) head_hidden: Vec<usize>,
    pub(super) dropout: f32,
    /// One per fitted outcome.
    pub(super) losses: Vec<OutcomeLoss>,
    /// Classes of policies; 0 where they are not predicted.
    pub(super) n_classes: usize,
}

impl Shape {
    /// Declares the weights. A shape may come from a file, so sizes are checked.
    pub(super) fn build(&self) -> Result<(OutcomeNet, Layout)> {
        check_widths("hidden", &self.hidden)?;
        check_widths("head_hidden", &self.head_hidden)?;
        check_dropout(self.dropout)?;
        if self.n_features > 1 << 24 || self.n_classes > MAX_WIDTH || self.losses.len() > MAX_WIDTH {
            return Err(damaged("the outcome model is of an impossible size"));
        }
        let mut layout = Layout::builder();
        let group = layout.group("m");
        let (mut trunk, mut classes) = (None, None);
        let widths = |first: usize, hidden: &[usize]| {
            let mut widths = vec![first];
            widths.extend(hidden);
            widths
        };
        let mut stem = widths(self.n_features, &self.hidden);
        let mut activation = Activation::Relu;
        if self.kind == OutcomeKind::Dragonnet {
            activation = Activation::Elu;
            let mlp = Mlp::new(&mut layout, "trunk", &stem, activation, Init::Uniform, group);
            trunk = Some(mlp.dropout(self.dropout).output(activation));
            let n_trunk = stem.last().copied().unwrap_or(self.n_features);
            if self.n_classes > 0 {
                classes = Some(layout.dense("policy", n_trunk, self.n_classes, Init::Uniform, group));
            }
            stem = widths(n_trunk, &self.head_hidden);
        }
        stem.push(1);
        let head = |outcome: usize| {
            let name = format!("y{outcome}");
            Mlp::new(&mut layout, &name, &stem, activation, Init::Uniform, group).dropout(self.dropout)
        };
        let heads = (0..self.losses.len()).map(head).collect();
        let net = OutcomeNet { trunk, classes, heads, losses: self.losses.clone(), dropout: self.dropout };
        Ok((net, layout.finish()?))
    }
}

/// A network for the fitted outcomes.
#[derive(Clone, Debug)]
pub(super) struct OutcomeNet {
    trunk: Option<Mlp>,
    classes: Option<Dense>,
    heads: Vec<Mlp>,
    losses: Vec<OutcomeLoss>,
    dropout: f32,
}

impl OutcomeNet {
    /// What the heads read.
    fn stem(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        match &self.trunk {
            None => x,
            Some(trunk) => {
                let trunk = trunk.forward(tape, x);
                tape.dropout(trunk, self.dropout)
            }
        }
    }

    /// The heads of one loss side by side: means, or logits.
    fn heads(&self, tape: &mut Tape<'_>, stem: Var, loss: OutcomeLoss) -> Option<Var> {
        let heads = self.heads.iter().zip(&self.losses).filter(|(_, own)| **own == loss);
        let parts: Vec<Var> = heads.map(|(head, _)| head.forward(tape, stem)).collect();
        if parts.is_empty() { None } else { Some(tape.concat(&parts)) }
    }
}

/// m of each row in standard units, one column per fitted outcome; probabilities for logistic ones.
impl Network for OutcomeNet {
    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        let stem = self.stem(tape);
        let heads = self.heads.iter().zip(&self.losses);
        let parts: Vec<Var> = heads
            .map(|(head, loss)| {
                let value = head.forward(tape, stem);
                match loss {
                    OutcomeLoss::Squared => value,
                    OutcomeLoss::Logistic => tape.activate(value, Activation::Sigmoid),
                }
            })
            .collect();
        tape.concat(&parts)
    }
}

/// The loss on rows.
pub(super) struct Training<'a> {
    pub(super) net: &'a OutcomeNet,
    /// Targets of each loss, row-major, and how many columns they have.
    pub(super) squared: (&'a [f32], usize),
    pub(super) logistic: (&'a [f32], usize),
    pub(super) weight: Option<&'a [f32]>,
    pub(super) policy: Option<&'a PolicyTarget>,
}

/// What the softmax over policies is fitted to.
pub(super) struct PolicyTarget {
    /// Class of each row; anything where the weight is 0.
    pub(super) class: Vec<u32>,
    /// Weight of each row; 0 where its policy is not known.
    pub(super) weight: Vec<f32>,
    /// Weight of the whole term.
    pub(super) factor: f32,
}

impl Network for Training<'_> {
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let stem = self.net.stem(tape);
        let (weights, scale) = match self.weight {
            None => (None, batch.scale()),
            Some(weight) => (Some(tape.column(batch.pick(weight))), batch.weighted_scale(weight)),
        };
        let mut terms = Vec::with_capacity(3);
        if let Some(prediction) = self.net.heads(tape, stem, OutcomeLoss::Squared) {
            let target = tape.table_rows(self.squared.0, self.squared.1, batch.rows);
            terms.push(tape.squared_loss(prediction, target, weights, scale));
        }
        if let Some(logit) = self.net.heads(tape, stem, OutcomeLoss::Logistic) {
            let target = tape.table_rows(self.logistic.0, self.logistic.1, batch.rows);
            terms.push(tape.logistic_loss(logit, target, weights, scale));
        }
        if let (Some(classes), Some(policy)) = (self.net.classes, self.policy) {
            let logits = tape.dense(stem, classes, Activation::Identity);
            let weights = tape.column(batch.pick(&policy.weight));
            let scale = policy.factor * batch.weighted_scale(&policy.weight);
            terms.push(tape.cross_entropy(logits, batch.pick(&policy.class), Some(weights), scale));
        }
        let Some((first, rest)) = terms.split_first() else {
            tape.fail("an outcome model without outcomes");
            return stem;
        };
        rest.iter().fold(*first, |total, term| tape.add(total, *term))
    }
}
