//! Functions of one and of two matrices, element by element; dropout; and the end of a gradient.

use super::{Back, Op};
use crate::net::kernel::dropout::dropout;
use crate::net::kernel::elementwise::{
    Activation, Binary, Repeat, Unary, binary, binary_gradient_left, binary_gradient_right, unary,
    unary_gradient,
};
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// An activation by itself.
    pub fn activate(&mut self, x: Var, activation: Activation) -> Var {
        match activation {
            Activation::Identity => x,
            Activation::Relu => self.unary(Unary::Relu, x),
            Activation::Elu => self.unary(Unary::Elu, x),
            Activation::Tanh => self.unary(Unary::Tanh, x),
            Activation::Sigmoid => self.unary(Unary::Sigmoid, x),
            Activation::Softplus => self.unary(Unary::Softplus, x),
        }
    }

    /// eˣ, within the range of normal numbers.
    pub fn exp(&mut self, x: Var) -> Var {
        self.unary(Unary::Exp, x)
    }

    /// Natural logarithm.
    pub fn log(&mut self, x: Var) -> Var {
        self.unary(Unary::Log, x)
    }

    /// x².
    pub fn square(&mut self, x: Var) -> Var {
        self.unary(Unary::Square, x)
    }

    /// √x; the gradient at 0 is infinite.
    pub fn sqrt(&mut self, x: Var) -> Var {
        self.unary(Unary::Sqrt, x)
    }

    /// 1 / x.
    pub fn reciprocal(&mut self, x: Var) -> Var {
        self.unary(Unary::Reciprocal, x)
    }

    /// |x|.
    pub fn abs(&mut self, x: Var) -> Var {
        self.unary(Unary::Abs, x)
    }

    /// x · factor.
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        self.unary(Unary::Affine(factor, 0.0), x)
    }

    /// x · factor + shift: `affine(x, -1.0, 1.0)` is 1 − x.
    pub fn affine(&mut self, x: Var, factor: f32, shift: f32) -> Var {
        self.unary(Unary::Affine(factor, shift), x)
    }

    /// x held within [low, high]; no gradient outside.
    pub fn clamp(&mut self, x: Var, low: f32, high: f32) -> Var {
        self.unary(Unary::Clamp(low, high), x)
    }

    /// a + b. Here and below, b has the shape of a, or is one row, one column or one number, repeated.
    pub fn add(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Add, a, b)
    }

    /// a − b.
    pub fn sub(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Sub, a, b)
    }

    /// a · b, element by element.
    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Mul, a, b)
    }

    /// a / b, element by element.
    pub fn div(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Div, a, b)
    }

    /// In training, zeroes each element with this probability and scales the rest so that the mean stays.
    ///
    /// The mask is a function of the stream, the step, the place on the tape and the position in the batch: the same
    /// for any number of threads.
    pub fn dropout(&mut self, x: Var, probability: f32) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        if !self.require((0.0..1.0).contains(&probability), || format!("a dropout of {probability}"))
            || probability == 0.0
            || !self.setting.training
        {
            return x;
        }
        let keep = 1.0 - probability;
        // The comparison is with 32 random bits.
        let (threshold, scale) = ((f64::from(keep) * f64::from(u32::MAX)) as u32, 1.0 / keep);
        let key = self.setting.stream.index(self.graph.nodes.len() as u64).value();
        let first = self.setting.first_row.wrapping_mul(n_cols) as u32;
        let op = Op::Dropout { x, key, first, threshold, scale };
        self.push(op, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, _| {
            dropout(key, first, threshold, scale, inputs.value(x), y, false);
        })
    }

    /// The same values; gradients end here.
    pub fn stop_gradient(&mut self, x: Var) -> Var {
        let shape = self.shape(x);
        self.push(Op::Constant, shape, false, |inputs, y, _| y.copy_from_slice(inputs.value(x)))
    }

    pub(in crate::net) fn unary(&mut self, f: Unary, x: Var) -> Var {
        let shape = self.shape(x);
        self.push(Op::Unary { f, x }, shape, self.tracks(&[x]), |inputs, y, _| unary(f, inputs.value(x), y))
    }

    fn binary(&mut self, f: Binary, a: Var, b: Var) -> Var {
        let ((n_rows, n_cols), shape_b) = (self.shape(a), self.shape(b));
        // Equal shapes are one long row; a single number is a column beside one long row.
        let n_values = n_rows * n_cols;
        let repeat = match shape_b {
            shape if shape == (n_rows, n_cols) => Some((Repeat::Row, n_values)),
            (1, 1) => Some((Repeat::Column, n_values)),
            (1, cols) if cols == n_cols => Some((Repeat::Row, n_cols)),
            (rows, 1) if rows == n_rows => Some((Repeat::Column, n_cols)),
            _ => None,
        };
        let Some((repeat, width)) = repeat else {
            let (rows_b, cols_b) = shape_b;
            self.fail(format!("{f:?} of {n_rows} × {n_cols} and {rows_b} × {cols_b}"));
            return self.nothing();
        };
        let width = width.max(1);
        let op = Op::Binary { f, repeat, n_cols: width, a, b };
        self.push(op, (n_rows, n_cols), self.tracks(&[a, b]), |inputs, y, _| {
            binary(f, repeat, width, inputs.value(a), inputs.value(b), y);
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn unary(&mut self, f: Unary, x: Var, dy: &[f32]) {
        let (x_values, y) = (self.value(x), self.output());
        if let Some((dx, _)) = self.zeroed(x) {
            unary_gradient(f, x_values, y, dy, dx);
        }
    }

    pub(super) fn binary(
        &mut self,
        f: Binary,
        (repeat, n_cols): (Repeat, usize),
        (a, b): (Var, Var),
        dy: &[f32],
    ) {
        let (a_values, b_values) = (self.value(a), self.value(b));
        if let Some((da, _)) = self.zeroed(a) {
            binary_gradient_left(f, repeat, n_cols, dy, b_values, da);
        }
        if let Some((db, _)) = self.zeroed(b) {
            binary_gradient_right(f, repeat, n_cols, dy, a_values, b_values, db);
        }
    }

    pub(super) fn dropout(
        &mut self,
        x: Var,
        key: u64,
        first: u32,
        (threshold, scale): (u32, f32),
        dy: &[f32],
    ) {
        if let Some((dx, accumulate)) = self.slot(x) {
            dropout(key, first, threshold, scale, dy, dx, accumulate);
        }
    }
}
