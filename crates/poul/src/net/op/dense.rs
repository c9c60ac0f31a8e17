//! Dense layers and matrix products.

use super::{Back, Op};
use crate::net::kernel::elementwise::{
    Activation, activate, activation_gradient, biased_activation_gradient,
};
use crate::net::kernel::few_rows::{FEW_ROWS, multiply_few};
use crate::net::kernel::product::{
    Matrix, column_input_gradient, column_weight_gradient, multiply, multiply_column,
};
use crate::net::layout::Dense;
use crate::net::tape::{Tape, Var};

/// A bias for layers that have none.
const NO_BIAS: [f32; 1] = [0.0];

impl Tape<'_> {
    /// activation(x·W + b).
    pub fn dense(&mut self, x: Var, layer: Dense, activation: Activation) -> Var {
        let (n_rows, n_in) = self.shape(x);
        let segments = self.setting.layout.segments();
        let Some(weight) = segments.get(layer.weight.0) else {
            self.fail("a layer of another network");
            return self.nothing();
        };
        let n_out = weight.n_cols;
        if !self.require(weight.n_rows == n_in, || {
            format!("`{}` takes {} columns and was given {n_in}", weight.name, weight.n_rows)
        }) {
            return self.nothing();
        }
        self.push(Op::Dense { x, layer, activation }, (n_rows, n_out), true, |inputs, y, _| {
            let (x, w) = (inputs.value(x), inputs.weight(layer.weight));
            if n_out == 1 {
                multiply_column(x, w, y);
            } else if n_rows <= FEW_ROWS && !inputs.setting.training {
                multiply_few(x, Matrix::new(w, n_in, n_out), y);
            } else {
                multiply(Matrix::new(x, n_rows, n_in), Matrix::new(w, n_in, n_out), y, false);
            }
            match layer.bias {
                Some(bias) => activate(activation, inputs.weight(bias), y),
                None if activation == Activation::Identity => {}
                None => activate(activation, &NO_BIAS, y),
            }
        })
    }

    /// a·b.
    pub fn matmul(&mut self, a: Var, b: Var) -> Var {
        self.product((a, b), (false, false), 1)
    }

    /// a·bᵀ.
    pub fn matmul_nt(&mut self, a: Var, b: Var) -> Var {
        self.product((a, b), (false, true), 1)
    }

    /// aᵀ·b.
    pub fn matmul_tn(&mut self, a: Var, b: Var) -> Var {
        self.product((a, b), (true, false), 1)
    }

    /// Products of corresponding blocks: a and b are each `n_blocks` matrices stacked on each other, and so is the
    /// result. With `flip_b`, a·bᵀ: for attention, where each unit has a block of tokens.
    pub fn matmul_blocks(&mut self, a: Var, b: Var, flip_b: bool, n_blocks: usize) -> Var {
        self.product((a, b), (false, flip_b), n_blocks)
    }

    fn product(&mut self, (a, b): (Var, Var), (flip_a, flip_b): (bool, bool), n_blocks: usize) -> Var {
        let ((rows_a, cols_a), (rows_b, cols_b)) = (self.shape(a), self.shape(b));
        let blocks = n_blocks.max(1);
        let (block_a, block_b) = ((rows_a / blocks, cols_a), (rows_b / blocks, cols_b));
        let turn = |(rows, cols), flip| if flip { (cols, rows) } else { (rows, cols) };
        let ((n_rows, inner_a), (inner_b, n_cols)) = (turn(block_a, flip_a), turn(block_b, flip_b));
        let fits = inner_a == inner_b && rows_a % blocks == 0 && rows_b % blocks == 0;
        if !self.require(fits, || {
            format!("a product of {n_rows} × {inner_a} and {inner_b} × {n_cols} ({blocks} blocks)")
        }) {
            return self.nothing();
        }
        let op = Op::Product { a, b, flip_a, flip_b, n_blocks: blocks };
        self.push(op, (n_rows * blocks, n_cols), self.tracks(&[a, b]), |inputs, y, _| {
            let (a, b) = (inputs.value(a), inputs.value(b));
            if blocks == 1 && !flip_a && n_rows <= FEW_ROWS && !inputs.setting.training {
                return multiply_few(a, view(b, 0, block_b).transpose_if(flip_b), y);
            }
            for block in 0..blocks {
                let a = view(a, block, block_a).transpose_if(flip_a);
                let b = view(b, block, block_b).transpose_if(flip_b);
                multiply(a, b, &mut y[block * n_rows * n_cols..][..n_rows * n_cols], false);
            }
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn dense(&mut self, x: Var, layer: Dense, activation: Activation, dy: &mut [f32]) {
        let (layout, y) = (self.inputs.setting.layout, self.output());
        match layer.bias {
            Some(bias) => {
                let (db, accumulate) = self.gradients.weight_slot(layout, bias);
                if !accumulate {
                    db.fill(0.0);
                }
                biased_activation_gradient(activation, y, dy, db);
            }
            None => activation_gradient(activation, y, dy),
        }
        let (n_rows, n_in) = (self.inputs.node(x).n_rows, self.inputs.node(x).n_cols);
        let n_out = self.inputs.graph.nodes[self.index].n_cols;
        let x_values = self.value(x);
        let (dw, accumulate) = self.gradients.weight_slot(layout, layer.weight);
        if n_out == 1 {
            column_weight_gradient(x_values, dy, dw, accumulate);
        } else {
            let x_transposed = Matrix::new(x_values, n_rows, n_in).transpose();
            multiply(x_transposed, Matrix::new(dy, n_rows, n_out), dw, accumulate);
        }
        let w = self.inputs.weight(layer.weight);
        if let Some((dx, accumulate)) = self.slot(x) {
            if n_out == 1 {
                column_input_gradient(dy, w, dx, accumulate);
            } else {
                let w_transposed = Matrix::new(w, n_in, n_out).transpose();
                multiply(Matrix::new(dy, n_rows, n_out), w_transposed, dx, accumulate);
            }
        }
    }

    pub(super) fn product(
        &mut self,
        (a, b): (Var, Var),
        (flip_a, flip_b): (bool, bool),
        n_blocks: usize,
        dy: &[f32],
    ) {
        let node = &self.inputs.graph.nodes[self.index];
        let shape = |var: Var| (self.inputs.node(var).n_rows / n_blocks, self.inputs.node(var).n_cols);
        let (block_a, block_b, block_y) = (shape(a), shape(b), (node.n_rows / n_blocks, node.n_cols));
        let (a_values, b_values) = (self.value(a), self.value(b));
        if let Some((da, accumulate)) = self.slot(a) {
            for (block, da) in da.chunks_exact_mut((block_a.0 * block_a.1).max(1)).enumerate() {
                let (dy, b) = (view(dy, block, block_y), view(b_values, block, block_b).transpose_if(flip_b));
                // d(a) = dy·bᵀ; where a was flipped, its own gradient is the transpose, b·dyᵀ.
                let (left, right) = if flip_a { (b, dy.transpose()) } else { (dy, b.transpose()) };
                multiply(left, right, da, accumulate);
            }
        }
        if let Some((db, accumulate)) = self.slot(b) {
            for (block, db) in db.chunks_exact_mut((block_b.0 * block_b.1).max(1)).enumerate() {
                let (dy, a) = (view(dy, block, block_y), view(a_values, block, block_a).transpose_if(flip_a));
                let (left, right) = if flip_b { (dy.transpose(), a) } else { (a.transpose(), dy) };
                multiply(left, right, db, accumulate);
            }
        }
    }
}

fn view(values: &[f32], block: usize, (n_rows, n_cols): (usize, usize)) -> Matrix<'_> {
    Matrix::new(&values[block * n_rows * n_cols..][..n_rows * n_cols], n_rows, n_cols)
}
