//! Self-attention among scaled tokens, in closed form.
//!
//! Where the tokens of a row are x_j·E_j, the product of query i and key j is x_i·x_j·A_ij, and A = (E·Q)(E·K)ᵀ is the same
//! for all rows: no product of queries and keys is needed for each, and the values are mixed by one product for all.

use super::{Back, Op};
use crate::net::kernel::attention::{attention_shares, pair_gradients, score_gradients, x_gradients};
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// P_ij·x_j, where P_i = softmax over j of x_i·x_j·A_ij: a block of n × n for each row of x, with n its columns.
    /// Times the values of the tokens, E·V, this is the row's self-attention.
    pub fn token_attention(&mut self, x: Var, a: Var) -> Var {
        let ((n_rows, n), shape_a) = (self.shape(x), self.shape(a));
        if !self.require(shape_a == (n, n), || format!("attention among {n} tokens by {shape_a:?}")) {
            return self.nothing();
        }
        let op = Op::TokenAttention { x, a };
        self.push(op, (n_rows * n, n), self.tracks(&[x, a]), |inputs, y, shares| {
            shares.resize(y.len(), 0.0);
            attention_shares(n, inputs.value(x), inputs.value(a), shares, y);
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn token_attention(&mut self, x: Var, a: Var, dy: &mut [f32]) {
        let (x_values, a_values, shares) = (self.value(x), self.value(a), self.extras());
        let n = self.inputs.node(x).n_cols;
        if let Some((dx, _)) = self.zeroed(x) {
            x_gradients(n, x_values, a_values, shares, dy, dx);
        }
        if let Some((da, _)) = self.zeroed(a) {
            score_gradients(n, x_values, shares, dy);
            pair_gradients(n, x_values, dy, da);
        }
    }
}
