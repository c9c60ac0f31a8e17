//! How far the representations of two arms are apart: kernel distance (MMD) or transport (Wasserstein), as penalties
//! (Shalit, Johansson and Sontag 2017; Cuturi 2013).

use serde::{Deserialize, Serialize};

use crate::net::{Tape, Var};

/// Arms with fewer rows in a shard are left out: their distance would be noise.
const MIN_ROWS: usize = 8;
/// Width of the Gaussian kernel, on representations of unit length.
const KERNEL_WIDTH: f32 = 0.5;
/// Sharpness of the transport plan, relative to the mean distance, and its iterations.
const SHARPNESS: f64 = 10.0;
const ITERATIONS: usize = 10;

/// A distance between two samples of representations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Imbalance {
    /// Squared maximum mean discrepancy with a Gaussian kernel.
    Mmd,
    /// Wasserstein distance by Sinkhorn's iterations; the plan is held fixed in the gradient.
    #[default]
    Wasserstein,
}

impl Imbalance {
    /// The mean distance of arms from `control`, over the arms with enough rows; `None` where there are none.
    pub(super) fn between_arms(
        self,
        tape: &mut Tape<'_>,
        representation: Var,
        arm: &[u32],
        control: u32,
    ) -> Option<Var> {
        let rows_of = |wanted: u32| -> Vec<u32> {
            (0..arm.len() as u32).filter(|row| arm[*row as usize] == wanted).collect()
        };
        let base = rows_of(control);
        if base.len() < MIN_ROWS {
            return None;
        }
        let mut others: Vec<u32> = arm.iter().copied().filter(|arm| *arm != control).collect();
        others.sort_unstable();
        others.dedup();
        let base = tape.gather(representation, base);
        let mut distances = Vec::new();
        for other in others {
            let rows = rows_of(other);
            if rows.len() >= MIN_ROWS {
                let own = tape.gather(representation, rows);
                distances.push(self.distance(tape, own, base));
            }
        }
        let n_distances = distances.len();
        let total = distances.into_iter().reduce(|total, distance| tape.add(total, distance))?;
        Some(tape.scale(total, 1.0 / n_distances as f32))
    }

    fn distance(self, tape: &mut Tape<'_>, a: Var, b: Var) -> Var {
        match self {
            Self::Mmd => mmd(tape, a, b),
            Self::Wasserstein => wasserstein(tape, a, b),
        }
    }
}

/// E k(a, a′) + E k(b, b′) − 2 E k(a, b), pairs of a row with itself left out.
fn mmd(tape: &mut Tape<'_>, a: Var, b: Var) -> Var {
    let own = |tape: &mut Tape<'_>, x: Var| {
        let n_rows = tape.shape(x).0 as f32;
        let kernel = kernel(tape, x, x);
        let total = tape.sum(kernel);
        // The diagonal is 1 each.
        tape.affine(total, 1.0 / (n_rows * (n_rows - 1.0)), -1.0 / (n_rows - 1.0))
    };
    let (within_a, within_b) = (own(tape, a), own(tape, b));
    let between = kernel(tape, a, b);
    let between = tape.mean(between);
    let within = tape.add(within_a, within_b);
    let between = tape.scale(between, 2.0);
    tape.sub(within, between)
}

/// The Gaussian kernel of every row of a with every row of b.
pub(super) fn kernel(tape: &mut Tape<'_>, a: Var, b: Var) -> Var {
    let squares = squared_distances(tape, a, b);
    let exponent = tape.scale(squares, -0.5 / (KERNEL_WIDTH * KERNEL_WIDTH));
    tape.exp(exponent)
}

/// Twice the cost of moving a onto b, as in the reference implementation.
fn wasserstein(tape: &mut Tape<'_>, a: Var, b: Var) -> Var {
    let squares = squared_distances(tape, a, b);
    let squares = tape.clamp(squares, 0.0, f32::MAX);
    let squares = tape.affine(squares, 1.0, 1e-8);
    let cost = tape.sqrt(squares);
    let (n_a, n_b) = tape.shape(cost);
    let plan = transport(tape.value(cost), n_a, n_b);
    let plan = tape.constant(n_a, n_b, &plan);
    let moved = tape.mul(cost, plan);
    let total = tape.sum(moved);
    tape.scale(total, 2.0)
}

/// The entropic plan between uniform samples, by Sinkhorn's iterations.
fn transport(cost: &[f32], n_a: usize, n_b: usize) -> Vec<f32> {
    let mean = cost.iter().map(|cost| f64::from(*cost)).sum::<f64>() / cost.len() as f64;
    let sharpness = SHARPNESS / mean.max(1e-12);
    let kernel: Vec<f64> = cost.iter().map(|cost| (-sharpness * f64::from(*cost)).exp() + 1e-12).collect();
    let (mut u, mut v) = (vec![1.0; n_a], vec![1.0; n_b]);
    for _ in 0..ITERATIONS {
        for (j, v) in v.iter_mut().enumerate() {
            let sum: f64 = u.iter().enumerate().map(|(i, u)| u * kernel[i * n_b + j]).sum();
            *v = 1.0 / (n_b as f64 * sum);
        }
        for (u, row) in u.iter_mut().zip(kernel.chunks(n_b)) {
            let sum: f64 = row.iter().zip(&v).map(|(kernel, v)| kernel * v).sum();
            *u = 1.0 / (n_a as f64 * sum);
        }
    }
    let rows = kernel.chunks(n_b).zip(&u);
    rows.flat_map(|(row, u)| row.iter().zip(&v).map(move |(kernel, v)| (u * kernel * v) as f32)).collect()
}

fn squared_distances(tape: &mut Tape<'_>, a: Var, b: Var) -> Var {
    let lengths = |tape: &mut Tape<'_>, x: Var| {
        let squares = tape.square(x);
        tape.row_sums(squares)
    };
    let (length_a, length_b) = (lengths(tape, a), lengths(tape, b));
    let length_b = tape.transpose(length_b);
    let products = tape.matmul_nt(a, b);
    let products = tape.scale(products, -2.0);
    let sum = tape.add(products, length_a);
    tape.add(sum, length_b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::net::{Init, Layout, Workspace};
    use rand::RngExt;

    /// The distance of a sample from a second one that is shifted.
    fn distance(kind: Imbalance, shift: f32) -> f32 {
        let mut rng = Seed::new(3).rng();
        let values: Vec<f32> = (0..80).map(|_| rng.random_range(-1.0..1.0)).collect();
        let shifted = values.iter().enumerate().map(|(i, value)| if i < 40 { *value } else { value + shift });
        let values: Vec<f32> = shifted.collect();
        let arm: Vec<u32> = (0..40).map(|row| u32::from(row < 20)).collect();
        let layout = Layout::builder().finish().unwrap();
        let value = Workspace::default().value(&layout, &[], |tape| {
            let representation = tape.constant(40, 2, &values);
            kind.between_arms(tape, representation, &arm, 0).unwrap()
        });
        value.unwrap()[0]
    }

    #[test]
    fn distances_grow_with_the_shift() {
        for kind in [Imbalance::Mmd, Imbalance::Wasserstein] {
            let [near, far, farther] = [0.0, 0.5, 1.0].map(|shift| distance(kind, shift));
            assert!(near < far && far < farther, "{kind:?}: {near} {far} {farther}");
        }
        assert!(distance(Imbalance::Mmd, 0.0).abs() < 0.1);
    }

    #[test]
    fn transport_moves_all_mass() {
        let cost = [0.0, 1.0, 2.0, 1.0, 0.5, 0.25];
        let plan = transport(&cost, 2, 3);
        let rows: Vec<f32> = plan.chunks(3).map(|row| row.iter().sum()).collect();
        assert!(rows.iter().all(|row| (row - 0.5).abs() < 1e-5), "{rows:?}");
        assert!((plan.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn gradients_bring_arms_together() {
        let mut layout = Layout::builder();
        let group = layout.group("r");
        let weight = layout.matrix("r", 40, 2, Init::Normal(1.0), group);
        let layout = layout.finish().unwrap();
        let arm: Vec<u32> = (0..40).map(|row| u32::from(row < 20)).collect();
        for kind in [Imbalance::Mmd, Imbalance::Wasserstein] {
            let mut weights = layout.init(Seed::new(1));
            weights[..40].iter_mut().for_each(|weight| *weight += 1.0);
            let mut workspace = Workspace::default();
            let mut step = |weights: &mut Vec<f32>, rate: f32| {
                let loss = workspace.loss_and_gradient(&layout, weights, |tape| {
                    let representation = tape.weight(weight);
                    kind.between_arms(tape, representation, &arm, 0).unwrap()
                });
                let gradient = workspace.gradient();
                weights.iter_mut().zip(gradient).for_each(|(weight, gradient)| *weight -= rate * gradient);
                loss.unwrap()
            };
            let first = step(&mut weights, 1.0);
            let mut last = first;
            for _ in 0..20 {
                last = step(&mut weights, 1.0);
            }
            assert!(last < 0.9 * first, "{kind:?}: {first} to {last}");
        }
    }
}
