//! Attention among scaled tokens, in closed form.
//!
//! Where the tokens of a row are x_j·E_j, the product of query i and key j is x_i·x_j·A_ij, and A = (E·Q)(E·K)ᵀ is the same
//! for all rows: no product of queries and keys is needed for each. The values are x_j·V_j, and V = E·V the same too.

use super::{Back, Op};
use crate::net::kernel::attention::{
    Attended, Tokens, add_turned, attend, attend_gradients, attend_input_gradient, turned,
};
use crate::net::kernel::elementwise::add;
use crate::net::kernel::token_scores::{Scored, token_score_gradients, token_scores};
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// Σ_j P_ij·x_j·v_j, where P_i = softmax over j of x_i·x_j·a_ij: for each row of x, which has n columns, a block of n
    /// rows as wide as v.
    pub fn token_attention(&mut self, x: Var, a: Var, v: Var) -> Var {
        let ((n_rows, n), shape_a, (n_values, dim)) = (self.shape(x), self.shape(a), self.shape(v));
        let fits = shape_a == (n, n) && n_values == n && n > 0;
        if !self.require(fits, || format!("attention among {n} tokens by {shape_a:?} and {n_values} values"))
        {
            return self.nothing();
        }
        let op = Op::TokenAttention { x, a, v };
        self.push(op, (n_rows * n, dim), self.tracks(&[x, a, v]), |inputs, y, scales| {
            scales.resize(2 * n_rows * n, 0.0);
            let tokens = Tokens::new(n, inputs.value(a), inputs.value(v));
            attend(&tokens, inputs.value(x), scales.as_chunks_mut().0, y);
        })
    }
}

impl Tape<'_> {
    /// Σ_k relu(x_j·p_jk + t_k)·w_k of each token j: how a row of its own, t, attends to the row's tokens. x is rows × n, p is
    /// n × k, `own` has a row t for each row of x, and w is a column.
    pub fn token_scores(&mut self, x: Var, p: Var, own: Var, w: Var) -> Var {
        let ((n_rows, n), shape_p, shape_own) = (self.shape(x), self.shape(p), self.shape(own));
        let (dim, w_cols) = self.shape(w);
        let fits = shape_p == (n, dim) && shape_own == (n_rows, dim) && w_cols == 1 && n > 0;
        if !self
            .require(fits, || format!("scores of {n} tokens by {shape_p:?}, {shape_own:?} and {dim} weights"))
        {
            return self.nothing();
        }
        let op = Op::TokenScores { x, p, own, w };
        self.push(op, (n_rows, n), self.tracks(&[x, p, own, w]), |inputs, y, _| {
            let [x, p, own, w] = [x, p, own, w].map(|var| inputs.value(var));
            token_scores(Scored { n, turned: &turned(n, p), x, own, w }, y);
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn token_scores(&mut self, vars: [Var; 4], dy: &[f32]) {
        let n = self.inputs.node(vars[0]).n_cols;
        let [x, p, own, w] = vars.map(|var| self.value(var));
        let scored = Scored { n, turned: &turned(n, p), x, own, w };
        let mut gradients = scored.gradients();
        token_score_gradients(scored, dy, &mut gradients);
        for (var, sums) in
            [vars[0], vars[2], vars[3]].into_iter().zip([&gradients.x, &gradients.own, &gradients.w])
        {
            if let Some((slot, _)) = self.zeroed(var) {
                add(sums, slot);
            }
        }
        if let Some((dp, _)) = self.zeroed(vars[1]) {
            add_turned(n, &gradients.turned, dp);
        }
    }

    pub(super) fn token_attention(&mut self, x: Var, a: Var, v: Var, dy: &[f32]) {
        let tokens = Tokens::new(self.inputs.node(x).n_cols, self.value(a), self.value(v));
        let (x_values, scales) = (self.value(x), self.extras().as_chunks().0);
        let attended = Attended { x: x_values, scales, y: self.output(), dy };
        if let Some((dx, _)) = self.zeroed(x) {
            attend_input_gradient(&tokens, &attended, dx);
        }
        let mut gradients = tokens.gradients();
        attend_gradients(&tokens, &attended, &mut gradients);
        if let Some((da, _)) = self.zeroed(a) {
            tokens.add_a(&gradients, da);
        }
        if let Some((dv, _)) = self.zeroed(v) {
            tokens.add_v(&gradients, dv);
        }
    }
}
