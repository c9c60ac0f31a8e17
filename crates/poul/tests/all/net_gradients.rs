//! Every operation of the tape against central differences of its own values.

use std::sync::Arc;

use poul::Seed;
use poul::net::{Activation, Dense, Init, Layout, SparseRows, Tape, Var, Weight, Workspace};
use rand::RngExt;

/// Steps and tolerance suit single precision: rounding is about 1e-7 / step, and the formula's own error step⁴.
const STEP: f32 = 1e-2;
const TOLERANCE: f64 = 1e-3;

/// Checks the gradient of Σ c·f(weights) for fixed random c, over all weights of the shapes given.
pub(super) fn check(
    name: &str,
    shapes: &[(usize, usize)],
    shift: f32,
    f: impl Fn(&mut Tape<'_>, &[Var]) -> Var,
) {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let matrix = |(index, (rows, cols)): (usize, &(usize, usize))| {
        builder.matrix(&index.to_string(), *rows, *cols, Init::Normal(0.7), group)
    };
    let weights: Vec<Weight> = shapes.iter().enumerate().map(matrix).collect();
    let layout = builder.finish().unwrap();
    let mut values = layout.init(Seed::new(7).child(name));
    for value in &mut values {
        // Away from the kinks at 0, or positive throughout where `shift` asks for it.
        *value = if shift > 0.0 { value.abs() + shift } else { *value + 0.03 * value.signum() };
    }
    compare(name, &layout, values, |tape| {
        let vars: Vec<Var> = weights.iter().map(|weight| tape.weight(*weight)).collect();
        let y = f(tape, &vars);
        let (n_rows, n_cols) = tape.shape(y);
        let mut rng = Seed::new(11).child(name).rng();
        let factors: Vec<f32> = (0..n_rows * n_cols).map(|_| rng.random_range(-1.0..1.0)).collect();
        let factors = tape.constant(n_rows, n_cols, &factors);
        let product = tape.mul(y, factors);
        tape.sum(product)
    });
}

/// Checks the gradient of a loss at every weight, by a difference of fourth order.
fn compare(name: &str, layout: &Layout, mut values: Vec<f32>, loss: impl Fn(&mut Tape<'_>) -> Var) {
    let mut workspace = Workspace::default();
    workspace.loss_and_gradient(layout, &values, &loss).unwrap();
    let gradient = workspace.gradient().to_vec();
    let mut largest = 0.0_f64;
    for index in layout.segments().iter().flat_map(poul::net::Segment::range) {
        let kept = values[index];
        let mut at = |value: f32| {
            values[index] = value;
            workspace.loss_and_gradient(layout, &values, &loss).unwrap()
        };
        let near = at(kept + STEP) - at(kept - STEP);
        let far = at(kept + 2.0 * STEP) - at(kept - 2.0 * STEP);
        values[index] = kept;
        let numeric = (8.0 * near - far) / (12.0 * f64::from(STEP));
        let error = (numeric - f64::from(gradient[index])).abs();
        let ours = gradient[index];
        assert!(error < TOLERANCE * (1.0 + numeric.abs()), "{name}: {ours} against {numeric} at {index}");
        largest = largest.max(numeric.abs());
    }
    assert!(largest > 1e-2, "{name}: a gradient of zero everywhere tests nothing");
}

#[test]
fn unary_functions() {
    let shape = [(3, 5)];
    for activation in
        [Activation::Elu, Activation::Tanh, Activation::Sigmoid, Activation::Softplus, Activation::Identity]
    {
        check(&format!("{activation:?}"), &shape, 0.0, |tape, x| {
            let y = tape.activate(x[0], activation);
            tape.square(y)
        });
    }
    check("exp", &shape, 0.0, |tape, x| tape.exp(x[0]));
    check("log", &shape, 0.5, |tape, x| tape.log(x[0]));
    check("sqrt", &shape, 0.5, |tape, x| tape.sqrt(x[0]));
    check("reciprocal", &shape, 0.7, |tape, x| tape.reciprocal(x[0]));
    check("square", &shape, 0.0, |tape, x| tape.square(x[0]));
    check("affine", &shape, 0.0, |tape, x| tape.affine(x[0], -2.0, 1.0));
    check("scale", &shape, 0.0, |tape, x| tape.scale(x[0], 3.0));
}

#[test]
fn functions_with_kinks() {
    check("relu", &[(4, 5)], 0.0, |tape, x| {
        let y = tape.activate(x[0], Activation::Relu);
        tape.square(y)
    });
    check("abs", &[(4, 5)], 0.0, |tape, x| tape.abs(x[0]));
    // All inside, then all outside on both sides.
    check("clamp inside", &[(4, 5)], 0.3, |tape, x| tape.clamp(x[0], 0.1, 9.0));
    check("clamp outside", &[(4, 5)], 0.3, |tape, x| {
        let (low, high) = (tape.clamp(x[0], 10.0, 11.0), tape.clamp(x[0], -2.0, -1.0));
        let constant = tape.mul(low, high);
        tape.add(constant, x[0])
    });
}

#[test]
fn binary_functions_with_every_repetition() {
    for (kind, shape) in [("same", (4, 6)), ("row", (1, 6)), ("column", (4, 1)), ("number", (1, 1))] {
        let shapes = [(4, 6), shape];
        check(&format!("add {kind}"), &shapes, 0.0, |tape, x| {
            let y = tape.add(x[0], x[1]);
            tape.square(y)
        });
        check(&format!("sub {kind}"), &shapes, 0.0, |tape, x| {
            let y = tape.sub(x[0], x[1]);
            tape.square(y)
        });
        check(&format!("mul {kind}"), &shapes, 0.0, |tape, x| tape.mul(x[0], x[1]));
        check(&format!("div {kind}"), &shapes, 0.8, |tape, x| tape.div(x[0], x[1]));
    }
}

/// The same layer twice on the same input: gradients of input, matrix and bias must add up.
fn check_layer(name: &str, n_out: usize, has_bias: bool, f: impl Fn(&mut Tape<'_>, Var, Dense) -> Var) {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let x = builder.matrix("x", 5, 3, Init::Normal(0.7), group);
    let layer = if has_bias {
        builder.dense("layer", 3, n_out, Init::Uniform, group)
    } else {
        builder.linear("layer", 3, n_out, Init::Uniform, group)
    };
    let layout = builder.finish().unwrap();
    let values = layout.init(Seed::new(3).child(name));
    compare(name, &layout, values, |tape| {
        let x = tape.weight(x);
        let (y, again) = (f(tape, x, layer), f(tape, x, layer));
        let y = tape.mul(y, again);
        tape.sum(y)
    });
}

#[test]
fn dense_layers() {
    for activation in
        [Activation::Identity, Activation::Elu, Activation::Tanh, Activation::Sigmoid, Activation::Softplus]
    {
        for (n_out, has_bias) in [(1, true), (1, false), (4, true), (4, false)] {
            check_layer(&format!("{activation:?} {n_out} {has_bias}"), n_out, has_bias, |tape, x, layer| {
                tape.dense(x, layer, activation)
            });
        }
    }
}

#[test]
fn products() {
    check("matmul", &[(3, 4), (4, 5)], 0.0, |tape, x| tape.matmul(x[0], x[1]));
    check("matmul_nt", &[(3, 4), (5, 4)], 0.0, |tape, x| tape.matmul_nt(x[0], x[1]));
    check("matmul_tn", &[(4, 3), (4, 5)], 0.0, |tape, x| tape.matmul_tn(x[0], x[1]));
    check("gram", &[(4, 3)], 0.0, |tape, x| tape.matmul_nt(x[0], x[0]));
    check("blocks", &[(6, 4), (8, 2)], 0.0, |tape, x| tape.matmul_blocks(x[0], x[1], false, 2));
    check("attention", &[(6, 4), (6, 4), (6, 5)], 0.0, |tape, x| {
        let scores = tape.matmul_blocks(x[0], x[1], true, 3);
        let shares = tape.softmax(scores);
        tape.matmul_blocks(shares, x[2], false, 3)
    });
    // Widths within a tile, of exactly one, and of several with a rest.
    for (n, dim) in [(5, 3), (16, 16), (19, 21)] {
        let name = format!("token attention {n} {dim}");
        check(&name, &[(2, n), (n, n), (n, dim)], 0.0, |tape, x| tape.token_attention(x[0], x[1], x[2]));
    }
    // Kinks lie where x_j·p_jk + t_k is 0: positive throughout, there are none.
    for (n, dim) in [(5, 3), (19, 21)] {
        let name = format!("token scores {n} {dim}");
        check(&name, &[(2, n), (n, dim), (2, dim), (dim, 1)], 0.1, |tape, x| {
            tape.token_scores(x[0], x[1], x[2], x[3])
        });
    }
}

#[test]
fn rows() {
    check("gather", &[(4, 3)], 0.0, |tape, x| {
        let y = tape.gather(x[0], [3, 0, 3, 3, 1]);
        tape.square(y)
    });
    let mixtures = [vec![(4, 0.25), (1, 0.75)], vec![], vec![(0, 1.0), (1, -2.0)]];
    let mixtures = Arc::new(SparseRows::new(5, mixtures).unwrap());
    check("mix", &[(5, 3)], 0.0, |tape, x| {
        let z = tape.mix(&mixtures, x[0]);
        tape.square(z)
    });
    check("mix_selected", &[(5, 3)], 0.0, |tape, x| {
        let z = tape.mix_selected(&mixtures, x[0], [2, 0, 2]);
        tape.square(z)
    });
    check("row_dot", &[(4, 7), (4, 7)], 0.0, |tape, x| tape.row_dot(x[0], x[1]));
    check("row_dot with itself", &[(4, 7)], 0.0, |tape, x| tape.row_dot(x[0], x[0]));
    check("concat and slice", &[(4, 2), (4, 3)], 0.0, |tape, x| {
        let y = tape.concat(&[x[0], x[1], x[0]]);
        let y = tape.slice_cols(y, 1, 5);
        tape.square(y)
    });
    check("transpose", &[(4, 3), (3, 4)], 0.0, |tape, x| {
        let y = tape.transpose(x[0]);
        tape.mul(y, x[1])
    });
    check("reshape", &[(4, 3), (6, 2)], 0.0, |tape, x| {
        let y = tape.reshape(x[0], 6, 2);
        tape.mul(y, x[1])
    });
}

#[test]
fn sums_and_scales() {
    check("sum", &[(4, 3)], 0.0, |tape, x| {
        let y = tape.square(x[0]);
        tape.sum(y)
    });
    check("mean", &[(4, 3)], 0.0, |tape, x| {
        let y = tape.square(x[0]);
        tape.mean(y)
    });
    check("row_sums", &[(4, 3)], 0.0, |tape, x| {
        let y = tape.row_sums(x[0]);
        tape.square(y)
    });
    check("col_sums", &[(4, 3)], 0.0, |tape, x| {
        let y = tape.col_sums(x[0]);
        tape.square(y)
    });
    check("softmax", &[(4, 5)], 0.0, |tape, x| tape.softmax(x[0]));
    check("unit_rows", &[(4, 5)], 0.0, |tape, x| tape.unit_rows(x[0]));
    check("standard_rows", &[(4, 9)], 0.0, |tape, x| tape.standard_rows(x[0]));
}

#[test]
fn layer_norm_with_gain_and_shift() {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let norm = builder.layer_norm("norm", 6, group);
    let x = builder.matrix("x", 3, 6, Init::Normal(1.0), group);
    let layout = builder.finish().unwrap();
    let values = layout.init(Seed::new(1));
    compare("layer_norm", &layout, values, |tape| {
        let x = tape.weight(x);
        let y = tape.layer_norm(x, norm);
        // A sum of squares alone would not depend on x.
        let y = tape.exp(y);
        tape.sum(y)
    });
}

#[test]
fn dropout_with_its_mask() {
    check("dropout", &[(6, 7)], 0.0, |tape, x| {
        let y = tape.dropout(x[0], 0.4);
        let y = tape.square(y);
        tape.dropout(y, 0.3)
    });
}

#[test]
fn losses() {
    let weights = [0.5, 2.0, 0.0, 1.0];
    for weighted in [false, true] {
        let column = |tape: &mut Tape<'_>| weighted.then(|| tape.column(weights));
        check(&format!("squared {weighted}"), &[(4, 3), (4, 3)], 0.0, |tape, x| {
            let weights = column(tape);
            tape.squared_loss(x[0], x[1], weights, 0.3)
        });
        check(&format!("logistic {weighted}"), &[(4, 1)], 0.0, |tape, x| {
            let (weights, target) = (column(tape), tape.column([1.0, 0.0, 1.0, 0.3]));
            let logit = tape.scale(x[0], 3.0);
            tape.logistic_loss(logit, target, weights, 0.7)
        });
        check(&format!("cross-entropy {weighted}"), &[(4, 3)], 0.0, |tape, x| {
            let weights = column(tape);
            tape.cross_entropy(x[0], [2, 0, 1, 1], weights, 0.7)
        });
    }
}

#[test]
fn loss_values_are_their_definitions() {
    let layout = Layout::builder().finish().unwrap();
    let mut workspace = Workspace::default();
    let mut value = |build: &dyn Fn(&mut Tape<'_>) -> Var| workspace.value(&layout, &[], build).unwrap()[0];
    let squared = value(&|tape| {
        let (a, b) = (tape.constant(2, 2, &[1.0, 2.0, 3.0, 4.0]), tape.constant(2, 2, &[0.0; 4]));
        let weights = tape.column([1.0, 10.0]);
        tape.squared_loss(a, b, Some(weights), 0.5)
    });
    assert_eq!(squared, 0.5 * (5.0 + 250.0));
    let logistic = value(&|tape| {
        let (logit, target) = (tape.column([0.0, 100.0, -100.0]), tape.column([1.0, 1.0, 1.0]));
        tape.logistic_loss(logit, target, None, 1.0)
    });
    assert!((logistic - (2.0_f32.ln() + 100.0)).abs() < 1e-5);
    let entropy = value(&|tape| {
        let logits = tape.constant(1, 4, &[0.0; 4]);
        tape.cross_entropy(logits, [2], None, 1.0)
    });
    assert!((entropy - 4.0_f32.ln()).abs() < 1e-6);
}

#[test]
fn gradients_end_where_they_are_stopped() {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let weight = builder.matrix("w", 2, 2, Init::Normal(1.0), group);
    let layout = builder.finish().unwrap();
    let values = layout.init(Seed::new(5));
    let mut workspace = Workspace::default();
    let build = |tape: &mut Tape<'_>| {
        let x = tape.weight(weight);
        let stopped = tape.stop_gradient(x);
        let y = tape.mul(x, stopped);
        tape.sum(y)
    };
    workspace.loss_and_gradient(&layout, &values, build).unwrap();
    assert_eq!(workspace.gradient()[..4], values[..4]);
}

#[test]
fn mistakes_are_reported_and_nothing_panics() {
    type Build<'b> = &'b dyn Fn(&mut Tape<'_>, Var) -> Var;
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let layer = builder.dense("g.0", 3, 2, Init::Uniform, group);
    let layout = builder.finish().unwrap();
    let values = layout.init(Seed::new(5));
    let mut workspace = Workspace::default();
    let column = |tape: &mut Tape<'_>| tape.column([1.0; 3]);
    let mistakes: [(Build<'_>, &str); 9] = [
        (&|tape, x| tape.dense(x, layer, Activation::Relu), "`g.0.weight` takes 3 columns and was given 2"),
        (
            &|tape, x| {
                let y = column(tape);
                tape.add(x, y)
            },
            "Add of 2 × 2 and 3 × 1",
        ),
        (&|tape, x| tape.gather(x, [0, 2]), "row 2 of a matrix with 2 rows"),
        (&|tape, x| tape.cross_entropy(x, [0, 2], None, 1.0), "labels up to 2"),
        (&|tape, _| tape.shared(0), "no matrix number 0"),
        (&|tape, _| tape.features(), "no features"),
        (&|tape, _| tape.constant(2, 2, &[1.0]), "1 values"),
        (&|tape, x| tape.dropout(x, 1.0), "a dropout of 1"),
        (&|_, x| x, "a loss of 2 × 2"),
    ];
    for (build, message) in mistakes {
        let later = |tape: &mut Tape<'_>| {
            let x = tape.constant(2, 2, &[1.0; 4]);
            let y = build(tape, x);
            // Everything after the mistake is carried along without effect.
            let z = tape.exp(y);
            let _ = (tape.concat(&[y, z]), tape.matmul(y, z), tape.row_sums(z), tape.softmax(z));
            y
        };
        let error = workspace.loss_and_gradient(&layout, &values, later).unwrap_err().to_string();
        assert!(error.contains(message), "{error} should contain {message}");
    }
    // The same buffers work again after a mistake.
    let fine = workspace.loss_and_gradient(&layout, &values, |tape| {
        let x = tape.constant(1, 3, &[1.0; 3]);
        let y = tape.dense(x, layer, Activation::Identity);
        tape.sum(y)
    });
    assert!(fine.is_ok());
}
