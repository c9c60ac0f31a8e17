//! The canonical form of a member: of all (A⁻ᵀg, Ah + b), which give the same effects (Sec. 2.3 of the paper), the one
//! whose axes mean something.
//!
//! Under the shares p(t) of training, h has mean 0 and variance 1 along every axis, without correlation; E[g gᵀ] over rows
//! and outcomes, in standard units, is diagonal with the largest entry first; the mean of g is positive on every axis. So
//! E[g gᵀ] along an axis is the variance of effects over rows and policies that the axis carries.
//!
//! - Axes along which training policies do not differ (less than [`LEAST_VARIANCE`] of the largest) come last. They keep
//!   their scale beside the largest: a policy that was never run may still move along them.
//! - Where L_ρ is bounded, h is centred and turned only: another scale would undo the bound.

use serde::{Deserialize, Serialize};

use super::eigen::SymmetricEigen;
use super::fit::Problem;
use super::space::{Mixtures, TreatmentSpace};
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::net::{Layout, Weight, Workspace, predict};
use crate::nuisance::SomeRows;

/// Variance of h along an axis, relative to the largest, below which training policies count as the same.
const LEAST_VARIANCE: f64 = 1e-6;
/// Most rows over which E[g gᵀ] is taken, evenly spaced.
const MOST_ROWS: usize = 4096;

/// What the canonical form of a member tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// Of the variance of effects over rows and training policies, the share that each axis of h carries.
    pub axes: Vec<f64>,
    /// L_ρ of Proposition 3, by singular values; none where ρ's hidden layer is normalised.
    pub lipschitz: Option<f64>,
    /// B_φ of Proposition 3: ‖z(t) − z(t′)‖ ≤ B_φ·d_Π(t, t′). The largest distance of an atom's φ from the mean of its
    /// context, which cancels, in the units of z.
    pub embedding_bound: f64,
}

/// Brings every member to its canonical form; effects stay the same.
pub(super) fn canonicalise(
    problem: &Problem<'_>,
    space: &TreatmentSpace,
    network: &UpliftNet,
    layout: &Layout,
    members: &mut [Vec<f32>],
) -> Result<Vec<Geometry>> {
    let shares = problem.shares();
    let all: Vec<usize> = (0..shares.len()).collect();
    let mixtures = space.mixtures(problem.policies, &all)?;
    let n_rows = problem.x.n_rows();
    let n_sample = n_rows.min(MOST_ROWS);
    let rows: Vec<u32> = (0..n_sample).map(|i| (i * n_rows / n_sample) as u32).collect();
    let sample = Sample { problem, space, mixtures: &mixtures, shares: &shares, rows: &rows };
    members.iter_mut().map(|weights| sample.canonicalise(network, layout, weights)).collect()
}

/// What expectations are taken over.
struct Sample<'a> {
    problem: &'a Problem<'a>,
    space: &'a TreatmentSpace,
    mixtures: &'a Mixtures,
    shares: &'a [f64],
    rows: &'a [u32],
}

impl Sample<'_> {
    fn canonicalise(&self, network: &UpliftNet, layout: &Layout, weights: &mut [f32]) -> Result<Geometry> {
        let d = network.treatment.n_out;
        let rho = &network.treatment.rho;
        let h = Workspace::default()
            .value(layout, weights, |tape| network.treatment.forward(tape, self.mixtures))?;
        let (mean, covariance) = self.moments_of_h(&h, d);
        let scaling = Scaling::of(&covariance, d, !rho.is_bounded());
        let (g_mean, g_second) = self.moments_of_g(network, layout, weights)?;
        let turn = scaling.turn(&g_second, &g_mean, d);
        let (matrices, bias) = rho.outputs();
        let factor = rho.factor(layout, weights);
        if let Some(bias) = bias {
            // The mean is that of h as the network gives it, which is `factor` times what the weights say.
            let values = &mut weights[layout.segment(bias).range()];
            values.iter_mut().zip(&mean).for_each(|(v, mean)| *v = (f64::from(*v) - mean / factor) as f32);
        }
        let forward: Vec<f64> = turn.forward.iter().map(|value| value * factor).collect();
        for weight in matrices.into_iter().chain(bias) {
            multiply(layout, weights, weight, &forward, d);
        }
        for layer in network.g.iter().filter_map(|g| g.last()) {
            for weight in std::iter::once(layer.weight).chain(layer.bias) {
                multiply(layout, weights, weight, &turn.backward, d);
            }
        }
        Ok(Geometry {
            axes: turn.axes,
            lipschitz: rho.lipschitz(layout, weights),
            embedding_bound: self.embedding_bound(network, layout, weights)?,
        })
    }

    fn moments_of_h(&self, h: &[f32], d: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut mean, mut covariance) = (vec![0.0; d], vec![0.0; d * d]);
        let run = || h.chunks_exact(d).zip(self.shares).filter(|(_, share)| **share > 0.0);
        for (h, share) in run() {
            mean.iter_mut().zip(h).for_each(|(mean, h)| *mean += share * f64::from(*h));
        }
        for (h, share) in run() {
            let centred: Vec<f64> = h.iter().zip(&mean).map(|(h, mean)| f64::from(*h) - mean).collect();
            add_square(&mut covariance, &centred, *share);
        }
        (mean, covariance)
    }

    /// E[g] and E[g gᵀ], summed over outcomes.
    fn moments_of_g(
        &self,
        network: &UpliftNet,
        layout: &Layout,
        weights: &[f32],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (d, n_outcomes) = (network.treatment.n_out, network.g.len());
        let some = SomeRows { x: self.problem.x, rows: self.rows };
        let g = predict(layout, weights, network, &some, d * n_outcomes, 0)?;
        let weight_of = |row: u32| self.problem.weight.map_or(1.0, |weight| f64::from(weight[row as usize]));
        let total: f64 = self.rows.iter().map(|row| weight_of(*row)).sum();
        let (mut mean, mut second) = (vec![0.0; d], vec![0.0; d * d]);
        for (g, row) in g.chunks_exact(d * n_outcomes).zip(self.rows) {
            let share = weight_of(*row) / total.max(f64::MIN_POSITIVE);
            for g in g.chunks_exact(d) {
                let g: Vec<f64> = g.iter().map(|g| f64::from(*g)).collect();
                mean.iter_mut().zip(&g).for_each(|(mean, g)| *mean += share * g);
                add_square(&mut second, &g, share);
            }
        }
        Ok((mean, second))
    }

    fn embedding_bound(&self, network: &UpliftNet, layout: &Layout, weights: &[f32]) -> Result<f64> {
        let phi = Workspace::default()
            .value(layout, weights, |tape| network.treatment.atoms(tape, self.mixtures))?;
        let atoms = &self.space.atoms;
        let r = phi.len() / self.mixtures.atoms.len().max(1);
        let mut most = 0.0_f64;
        // Atoms are sorted, so those of a context follow each other.
        let mut first = 0;
        for group in atoms.chunk_by(|a, b| a.0 == b.0) {
            let vectors = &phi[first * r..(first + group.len()) * r];
            first += group.len();
            let mean: Vec<f64> = (0..r)
                .map(|k| vectors.iter().skip(k).step_by(r).map(|v| f64::from(*v)).sum::<f64>())
                .map(|sum| sum / group.len() as f64)
                .collect();
            for vector in vectors.chunks_exact(r) {
                let square: f64 = vector.iter().zip(&mean).map(|(v, m)| (f64::from(*v) - m).powi(2)).sum();
                most = most.max(square);
            }
        }
        Ok(most.sqrt() / self.space.spread)
    }
}

/// The axes of h by its covariance, and what each is divided by.
struct Scaling {
    eigen: SymmetricEigen,
    scales: Vec<f64>,
    /// Axes along which training policies differ; they come first.
    n_significant: usize,
}

/// Row vectors are multiplied by these: h by `forward`, g by `backward`.
struct Turn {
    forward: Vec<f64>,
    backward: Vec<f64>,
    axes: Vec<f64>,
}

impl Scaling {
    fn of(covariance: &[f64], d: usize, whiten: bool) -> Self {
        let eigen = SymmetricEigen::of(covariance.to_vec(), d);
        let largest = eigen.values.first().copied().unwrap_or(0.0);
        if largest <= 0.0 || !whiten {
            return Self { scales: vec![1.0; d], n_significant: d, eigen };
        }
        let is_significant = |value: &&f64| **value > LEAST_VARIANCE * largest;
        let n_significant = eigen.values.iter().take_while(is_significant).count();
        let scales = eigen.values.iter().enumerate();
        let scales = scales.map(|(k, value)| if k < n_significant { *value } else { largest }.sqrt());
        Self { scales: scales.collect(), n_significant, eigen }
    }

    /// Turns the scaled axes so that E[g gᵀ] is diagonal among those that count, and among the others.
    fn turn(&self, g_second: &[f64], g_mean: &[f64], d: usize) -> Turn {
        // Along scaled axis i, h is h·v_i / scale_i and g is g·v_i · scale_i.
        let back = |i: usize, of: &[f64]| -> f64 {
            self.scales[i] * of.iter().zip(self.eigen.vector(i)).map(|(a, b)| a * b).sum::<f64>()
        };
        let rotated: Vec<Vec<f64>> = (0..d)
            .map(|i| {
                let by_row: Vec<f64> = g_second.chunks_exact(d).map(|row| back(i, row)).collect();
                (0..d).map(|j| back(j, &by_row)).collect()
            })
            .collect();
        let (mut forward, mut backward) = (vec![0.0; d * d], vec![0.0; d * d]);
        let mut axes = Vec::with_capacity(d);
        for block in [0..self.n_significant, self.n_significant..d] {
            let n = block.len();
            let inner = block.clone().flat_map(|i| rotated[i][block.clone()].to_vec()).collect();
            let turned = SymmetricEigen::of(inner, n);
            for k in 0..n {
                let vector = turned.vector(k);
                let mean: f64 = block.clone().zip(vector).map(|(i, v)| v * back(i, g_mean)).sum();
                let sign = if mean < 0.0 { -1.0 } else { 1.0 };
                let (axis, mut variance) = (block.start + k, 0.0);
                for (i, v) in block.clone().zip(vector) {
                    variance += v * v * self.eigen.values[i].max(0.0) / self.scales[i].powi(2);
                    for (row, e) in self.eigen.vector(i).iter().enumerate() {
                        forward[row * d + axis] += sign * v * e / self.scales[i];
                        backward[row * d + axis] += sign * v * e * self.scales[i];
                    }
                }
                axes.push(turned.values[k].max(0.0) * variance);
            }
        }
        let total: f64 = axes.iter().sum();
        axes.iter_mut().for_each(|axis| *axis /= total.max(f64::MIN_POSITIVE));
        Turn { forward, backward, axes }
    }
}

/// sum += share · v vᵀ.
fn add_square(sum: &mut [f64], v: &[f64], share: f64) {
    for (row, a) in sum.chunks_exact_mut(v.len()).zip(v) {
        row.iter_mut().zip(v).for_each(|(sum, b)| *sum += share * a * b);
    }
}

/// Multiplies every row of a matrix of weights by a d × d matrix, in f64.
fn multiply(layout: &Layout, weights: &mut [f32], weight: Weight, by: &[f64], d: usize) {
    let mut product = vec![0.0_f64; d];
    for row in weights[layout.segment(weight).range()].chunks_exact_mut(d) {
        product.fill(0.0);
        for (value, by) in row.iter().zip(by.chunks_exact(d)) {
            product.iter_mut().zip(by).for_each(|(sum, by)| *sum += f64::from(*value) * by);
        }
        row.iter_mut().zip(&product).for_each(|(value, product)| *value = *product as f32);
    }
}
