//! The operations of the tape, by subject: each file has the calls that compute and the gradients that go back.

mod attention;
mod dense;
mod elementwise;
mod leaf;
mod loss;
mod reduce;
mod rows;
mod scale;

use std::sync::Arc;

use super::gradients::Gradients;
use super::kernel::elementwise::{Activation, Binary, Repeat, Unary};
use super::layout::{Dense, Weight};
use super::sparse::SparseRows;
use super::tape::{Inputs, Var};

/// How a node was computed.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Constant,
    Features,
    Shared(usize),
    Weight(Weight),
    Dense { x: Var, layer: Dense, activation: Activation },
    Product { a: Var, b: Var, flip_a: bool, flip_b: bool, n_blocks: usize },
    Unary { f: Unary, x: Var },
    Binary { f: Binary, repeat: Repeat, n_cols: usize, a: Var, b: Var },
    Dropout { x: Var, key: u64, first: u32, threshold: u32, scale: f32 },
    Gather { x: Var },
    Mix { rows: Arc<SparseRows>, table: Var, selected: bool },
    RowDot { a: Var, b: Var },
    Concat,
    SliceCols { x: Var, first: usize },
    Transpose { x: Var },
    Reshape { x: Var },
    RowSums { x: Var },
    ColSums { x: Var },
    Sum { x: Var, factor: f32 },
    Softmax { x: Var },
    TokenAttention { x: Var, a: Var, v: Var },
    TokenScores { x: Var, p: Var, own: Var, w: Var },
    UnitRows { x: Var },
    StandardRows { x: Var },
    SquaredLoss { prediction: Var, target: Var, weights: Option<Var>, scale: f32 },
    LogisticLoss { logit: Var, target: Var, weights: Option<Var>, scale: f32 },
    CrossEntropy { logits: Var, weights: Option<Var>, scale: f32 },
}

/// Sends the gradient `dy` of node `index` to the node's inputs. May use `dy` as scratch.
pub(super) fn backward(inputs: &Inputs<'_>, gradients: &mut Gradients, index: usize, dy: &mut [f32]) {
    let mut back = Back { inputs, gradients, index };
    match &inputs.graph.nodes[index].op {
        Op::Constant | Op::Features | Op::Shared(_) | Op::Weight(_) => {}
        Op::Dense { x, layer, activation } => back.dense(*x, *layer, *activation, dy),
        Op::Product { a, b, flip_a, flip_b, n_blocks } => {
            back.product((*a, *b), (*flip_a, *flip_b), *n_blocks, dy);
        }
        Op::Unary { f, x } => back.unary(*f, *x, dy),
        Op::Binary { f, repeat, n_cols, a, b } => back.binary(*f, (*repeat, *n_cols), (*a, *b), dy),
        Op::Dropout { x, key, first, threshold, scale } => {
            back.dropout(*x, *key, *first, (*threshold, *scale), dy);
        }
        Op::Gather { x } => back.gather(*x, dy),
        Op::Mix { rows, table, selected } => back.mix(rows, *table, *selected, dy),
        Op::RowDot { a, b } => back.row_dot(*a, *b, dy),
        Op::Concat => back.concat(dy),
        Op::SliceCols { x, first } => back.slice_cols(*x, *first, dy),
        Op::Transpose { x } => back.transpose(*x, dy),
        Op::Reshape { x } => back.reshape(*x, dy),
        Op::RowSums { x } => back.row_sums(*x, dy),
        Op::ColSums { x } => back.col_sums(*x, dy),
        Op::Sum { x, factor } => back.sum(*x, *factor, dy),
        Op::Softmax { x } => back.softmax(*x, dy),
        Op::TokenAttention { x, a, v } => back.token_attention(*x, *a, *v, dy),
        Op::TokenScores { x, p, own, w } => back.token_scores([*x, *p, *own, *w], dy),
        Op::UnitRows { x } => back.unit_rows(*x, dy),
        Op::StandardRows { x } => back.standard_rows(*x, dy),
        Op::SquaredLoss { prediction, target, weights, scale } => {
            back.squared_loss((*prediction, *target), *weights, scale * dy[0]);
        }
        Op::LogisticLoss { logit, target, weights, scale } => {
            back.logistic_loss(*logit, *target, *weights, scale * dy[0]);
        }
        Op::CrossEntropy { logits, weights, scale } => back.cross_entropy(*logits, *weights, scale * dy[0]),
    }
}

/// What a gradient needs: the inputs, the outputs, and where to add.
struct Back<'b, 'v> {
    inputs: &'b Inputs<'v>,
    gradients: &'b mut Gradients,
    index: usize,
}

impl<'v> Back<'_, 'v> {
    /// The values of a node.
    fn value(&self, var: Var) -> &'v [f32] {
        self.inputs.value(var)
    }

    /// The values of the node itself.
    fn output(&self) -> &'v [f32] {
        self.inputs.value(Var::from_index(self.index as u32))
    }

    /// What the node kept for its gradient.
    fn extras(&self) -> &'v [f32] {
        &self.inputs.graph.extras[self.index]
    }

    /// The numbers the node was given.
    fn indices(&self) -> &'v [u32] {
        &self.inputs.graph.indices[self.index]
    }

    /// The gradient of an input, zero at first; and how many columns it has.
    fn zeroed(&mut self, var: Var) -> Option<(&mut [f32], usize)> {
        self.gradients.zeroed(self.inputs.graph, &self.inputs.setting, var)
    }

    /// The gradient of an input, and whether to add to what it holds.
    fn slot(&mut self, var: Var) -> Option<(&mut [f32], bool)> {
        self.gradients.slot(self.inputs.graph, &self.inputs.setting, var)
    }
}
