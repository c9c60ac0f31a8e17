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
            Unary::Relu => chain(x, y, dy, dx, |_, y, dy| relu_gradient(dy, y)),
            Unary::Elu => chain(x, y, dy, dx, |_, y, dy| elu_gradient(dy, y)),
            Unary::Tanh => chain(x, y, dy, dx, |_, y, dy| tanh_gradient(dy, y)),
            Unary::Sigmoid => chain(x, y, dy, dx, |_, y, dy| sigmoid_gradient(dy, y)),
            Unary::Softplus => chain(x, y, dy, dx, |_, y, dy| softplus_gradient(dy, y)),
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
            Activation::Relu => update(dy, y, relu_gradient),
            Activation::Elu => update(dy, y, elu_gradient),
            Activation::Tanh => update(dy, y, tanh_gradient),
            Activation::Sigmoid => update(dy, y, sigmoid_gradient),
            Activation::Softplus => update(dy, y, softplus_gradient),
        }
    }

    /// The same, with the bias's gradient, the sums of the columns of dy, added to `db` in the same pass.
    fn biased_activation_gradient(activation: Activation, y: &[f32], dy: &mut [f32], db: &mut [f32]) {
        match activation {
            Activation::Identity => update_and_sum(dy, y, db, |dy, _| dy),
            Activation::Relu => update_and_sum(dy, y, db, relu_gradient),
            Activation::Elu => update_and_sum(dy, y, db, elu_gradient),
            Activation::Tanh => update_and_sum(dy, y, db, tanh_gradient),
            Activation::Sigmoid => update_and_sum(dy, y, db, sigmoid_gradient),
            Activation::Softplus => update_and_sum(dy, y, db, softplus_gradient),
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

    /// y = a + b.
    fn sum(a: &[f32], b: &[f32], y: &mut [f32]) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a + b;
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

/// dy or a zero of its sign. A choice between dy and 0 in place would become a masked store ("leave it, or store 0"),
/// for which some processors take tens of cycles: it was 3 % of a training step.
#[inline(always)]
fn relu_gradient(dy: f32, y: f32) -> f32 {
    const SIGN: u32 = 1 << 31;
    f32::from_bits(dy.to_bits() & if y > 0.0 { u32::MAX } else { SIGN })
}

/// A factor is chosen, not a value, for the same reason.
#[inline(always)]
fn elu_gradient(dy: f32, y: f32) -> f32 {
    dy * if y > 0.0 { 1.0 } else { y + 1.0 }
}

#[inline(always)]
fn tanh_gradient(dy: f32, y: f32) -> f32 {
    dy * (1.0 - y * y)
}

#[inline(always)]
fn sigmoid_gradient(dy: f32, y: f32) -> f32 {
    dy * y * (1.0 - y)
}

#[inline(always)]
fn softplus_gradient(dy: f32, y: f32) -> f32 {
    dy * (1.0 - exp(-y))
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
fn update_and_sum(y: &mut [f32], x: &[f32], sums: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for (y, x) in y.chunks_exact_mut(sums.len()).zip(x.chunks_exact(sums.len())) {
        for ((y, x), sum) in y.iter_mut().zip(x).zip(&mut *sums) {
            *y = f(*y, *x);
            *sum += *y;
        }
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
