//! Elementwise functions of one and two matrices, with their derivatives.

use super::special::{elu, exp, ln, sigmoid, softplus, tanh};
use crate::dispatch::kernels;

/// A function of one number. Every derivative is a function of the argument and the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::net) enum Unary {
    Relu,
    Elu,
    Tanh,
    Sigmoid,
    Softplus,
    Exp,
    Log,
    Square,
    Sqrt,
    Reciprocal,
    Abs,
    /// x · factor + shift.
    Affine(f32, f32),
    /// x held within a range; no gradient outside.
    Clamp(f32, f32),
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
}

/// How the second operand is repeated to the shape of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Repeat {
    /// A row, the same for all rows.
    Row,
    /// A column, the same for all columns.
    Column,
}

/// What a dense layer does to its sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Nothing.
    Identity,
    /// max(x, 0).
    #[default]
    Relu,
    /// x above 0, eˣ − 1 below.
    Elu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e⁻ˣ).
    Sigmoid,
    /// ln(1 + eˣ).
    Softplus,
}

kernels! {
    /// y = f(x).
    fn unary(f: Unary, x: &[f32], y: &mut [f32]) {
        match f {
            Unary::Relu => map(x, y, relu),
            Unary::Elu => map(x, y, elu),
            Unary::Tanh => map(x, y, tanh),
            Unary::Sigmoid => map(x, y, sigmoid),
            Unary::Softplus => map(x, y, softplus),
            Unary::Exp => map(x, y, exp),
            Unary::Log => map(x, y, ln),
            Unary::Square => map(x, y, |x| x * x),
            Unary::Sqrt => map(x, y, f32::sqrt),
            Unary::Reciprocal => map(x, y, |x| 1.0 / x),
            Unary::Abs => map(x, y, f32::abs),
            Unary::Affine(factor, shift) => map(x, y, |x| x * factor + shift),
            Unary::Clamp(low, high) => map(x, y, |x| if x < low { low } else if x > high { high } else { x }),
        }
    }

    /// dx += dy · f′(x), with y = f(x).
    fn unary_gradient(f: Unary, x: &[f32], y: &[f32], dy: &[f32], dx: &mut [f32]) {
        match f {
            Unary::Relu => chain(x, y, dy, dx, |_, y, dy| if y > 0.0 { dy } else { 0.0 }),
            Unary::Elu => chain(x, y, dy, dx, |_, y, dy| if y > 0.0 { dy } else { dy * (y + 1.0) }),
            Unary::Tanh => chain(x, y, dy, dx, |_, y, dy| dy * (1.0 - y * y)),
            Unary::Sigmoid => chain(x, y, dy, dx, |_, y, dy| dy * y * (1.0 - y)),
            Unary::Softplus => chain(x, y, dy, dx, |_, y, dy| dy * (1.0 - exp(-y))),
            Unary::Exp => chain(x, y, dy, dx, |_, y, dy| dy * y),
            Unary::Log => chain(x, y, dy, dx, |x, _, dy| dy / x),
            Unary::Square => chain(x, y, dy, dx, |x, _, dy| dy * 2.0 * x),
            Unary::Sqrt => chain(x, y, dy, dx, |_, y, dy| dy * 0.5 / y),
            Unary::Reciprocal => chain(x, y, dy, dx, |_, y, dy| -dy * y * y),
            Unary::Abs => chain(x, y, dy, dx, |x, _, dy| if x < 0.0 { -dy } else { dy }),
            Unary::Affine(factor, _) => chain(x, y, dy, dx, |_, _, dy| dy * factor),
            Unary::Clamp(low, high) => {
                chain(x, y, dy, dx, |x, _, dy| if x >= low && x <= high { dy } else { 0.0 });
            }
        }
    }

    /// y = activation(y + bias), row by row.
    fn activate(activation: Activation, bias: &[f32], y: &mut [f32]) {
        match activation {
            Activation::Identity => bias_map(y, bias, |x| x),
            Activation::Relu => bias_map(y, bias, relu),
            Activation::Elu => bias_map(y, bias, elu),
            Activation::Tanh => bias_map(y, bias, tanh),
            Activation::Sigmoid => bias_map(y, bias, sigmoid),
            Activation::Softplus => bias_map(y, bias, softplus),
        }
    }

    /// dy becomes the gradient of the sums beneath the activation whose values are y.
    fn activation_gradient(activation: Activation, y: &[f32], dy: &mut [f32]) {
        match activation {
            Activation::Identity => {}
            Activation::Relu => update(dy, y, |dy, y| if y > 0.0 { dy } else { 0.0 }),
            Activation::Elu => update(dy, y, |dy, y| if y > 0.0 { dy } else { dy * (y + 1.0) }),
            Activation::Tanh => update(dy, y, |dy, y| dy * (1.0 - y * y)),
            Activation::Sigmoid => update(dy, y, |dy, y| dy * y * (1.0 - y)),
            Activation::Softplus => update(dy, y, |dy, y| dy * (1.0 - exp(-y))),
        }
    }

    /// y = f(a, b) with b repeated; `n_cols` is the width of a and y.
    fn binary(f: Binary, repeat: Repeat, n_cols: usize, a: &[f32], b: &[f32], y: &mut [f32]) {
        match f {
            Binary::Add => map_pair(repeat, n_cols, a, b, y, |a, b| a + b),
            Binary::Sub => map_pair(repeat, n_cols, a, b, y, |a, b| a - b),
            Binary::Mul => map_pair(repeat, n_cols, a, b, y, |a, b| a * b),
            Binary::Div => map_pair(repeat, n_cols, a, b, y, |a, b| a / b),
        }
    }

    /// da += dy · ∂f/∂a.
    fn binary_gradient_left(f: Binary, repeat: Repeat, n_cols: usize, dy: &[f32], b: &[f32], da: &mut [f32]) {
        match f {
            Binary::Add | Binary::Sub => update(da, dy, |da, dy| da + dy),
            Binary::Mul => add_pair(repeat, n_cols, dy, b, da, |dy, b| dy * b),
            Binary::Div => add_pair(repeat, n_cols, dy, b, da, |dy, b| dy / b),
        }
    }

    /// db += Σ dy · ∂f/∂b over the elements that each b was repeated to.
    fn binary_gradient_right(
        f: Binary,
        repeat: Repeat,
        n_cols: usize,
        dy: &[f32],
        a: &[f32],
        b: &[f32],
        db: &mut [f32],
    ) {
        match f {
            Binary::Add => fold_pair(repeat, n_cols, dy, a, b, db, |dy, _, _| dy),
            Binary::Sub => fold_pair(repeat, n_cols, dy, a, b, db, |dy, _, _| -dy),
            Binary::Mul => fold_pair(repeat, n_cols, dy, a, b, db, |dy, a, _| dy * a),
            Binary::Div => fold_pair(repeat, n_cols, dy, a, b, db, |dy, a, b| -dy * a / (b * b)),
        }
    }

    /// y += factor · x.
    fn add_scaled(factor: f32, x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += factor * x;
        }
    }

    /// y += x.
    fn add(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += x;
        }
    }
}

#[inline(always)]
fn relu(x: f32) -> f32 {
    // Written so that NaN stays NaN: a diverging network must not look healthy.
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(*x);
    }
}

#[inline(always)]
fn chain(x: &[f32], y: &[f32], dy: &[f32], dx: &mut [f32], f: impl Fn(f32, f32, f32) -> f32) {
    for (((dx, x), y), dy) in dx.iter_mut().zip(x).zip(y).zip(dy) {
        *dx += f(*x, *y, *dy);
    }
}

#[inline(always)]
fn update(y: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(*y, *x);
    }
}

#[inline(always)]
fn bias_map(y: &mut [f32], bias: &[f32], f: impl Fn(f32) -> f32) {
    for row in y.chunks_exact_mut(bias.len()) {
        for (y, bias) in row.iter_mut().zip(bias) {
            *y = f(*y + bias);
        }
    }
}

#[inline(always)]
fn map_pair(repeat: Repeat, n_cols: usize, a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for (i, (a, y)) in a.chunks_exact(n_cols).zip(y.chunks_exact_mut(n_cols)).enumerate() {
        match repeat {
            Repeat::Row => y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = f(*a, *b)),
            Repeat::Column => y.iter_mut().zip(a).for_each(|(y, a)| *y = f(*a, b[i])),
        }
    }
}

#[inline(always)]
fn add_pair(repeat: Repeat, n_cols: usize, a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for (i, (a, y)) in a.chunks_exact(n_cols).zip(y.chunks_exact_mut(n_cols)).enumerate() {
        match repeat {
            Repeat::Row => y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y += f(*a, *b)),
            Repeat::Column => y.iter_mut().zip(a).for_each(|(y, a)| *y += f(*a, b[i])),
        }
    }
}

#[inline(always)]
fn fold_pair(
    repeat: Repeat,
    n_cols: usize,
    dy: &[f32],
    a: &[f32],
    b: &[f32],
    db: &mut [f32],
    f: impl Fn(f32, f32, f32) -> f32,
) {
    for (i, (dy, a)) in dy.chunks_exact(n_cols).zip(a.chunks_exact(n_cols)).enumerate() {
        match repeat {
            Repeat::Row => {
                for (((db, dy), a), b) in db.iter_mut().zip(dy).zip(a).zip(b) {
                    *db += f(*dy, *a, *b);
                }
            }
            Repeat::Column => {
                let total: f64 = dy.iter().zip(a).map(|(dy, a)| f64::from(f(*dy, *a, b[i]))).sum();
                db[i] += total as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diverged_value_is_not_hidden_by_relu() {
        let mut y = [f32::NAN, -1.0, 2.0];
        activate(Activation::Relu, &[0.0], &mut y);
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [0.0, 2.0]);
    }

    #[test]
    fn repeats_follow_rows_and_columns() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut y = [0.0; 6];
        binary(Binary::Sub, Repeat::Row, 3, &a, &[1.0, 2.0, 3.0], &mut y);
        assert_eq!(y, [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
        binary(Binary::Mul, Repeat::Column, 3, &a, &[1.0, -1.0], &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0, -4.0, -5.0, -6.0]);
        let mut db = [0.0; 2];
        binary_gradient_right(Binary::Mul, Repeat::Column, 3, &[1.0; 6], &a, &[1.0, -1.0], &mut db);
        assert_eq!(db, [6.0, 15.0]);
    }
}
