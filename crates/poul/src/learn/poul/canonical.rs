//! The canonical form of a member: of all (A⁻ᵀg, Ah + b), which give the same effects (Sec. 2.3 of the paper), the one
//! whose axes mean something.
//!
//! Under the shares p(t) of training, h has mean 0 and variance 1 along every axis, without correlation; E[g gᵀ] over rows
//! and outcomes, in standard units, is diagonal with the largest entry first; the mean of g is positive on every axis. So
//! E[g gᵀ] along an axis is the variance of effects over rows and policies that the axis carries.
//!
//! - Axes along which training policies do not differ come last, with their scale beside the largest: a policy that was
//!   never run may still move along them.
//! - Where L_ρ is bounded, h is centred and turned only: another scale would undo the bound.

use serde::{Deserialize, Serialize};

use super::axes::Scaling;
use super::certificate::embedding_bound;
use super::space::{Mixtures, TreatmentSpace};
use super::treatment_net::TreatmentNet;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::net::{Layout, RowSource, Weight, Workspace, predict};
use crate::nuisance::SomeRows;

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

/// What expectations are taken over.
pub(super) struct Population<'a> {
    /// Encoded features.
    pub(super) x: &'a dyn RowSource,
    /// Sample weights.
    pub(super) weight: Option<&'a [f32]>,
    /// The training policies.
    pub(super) mixtures: &'a Mixtures,
    /// p(t).
    pub(super) shares: &'a [f64],
}

impl Population<'_> {
    /// Rows over which moments are taken, evenly spaced.
    pub(super) fn sample_rows(&self) -> Vec<u32> {
        let n_rows = self.x.n_rows();
        let n_sample = n_rows.min(MOST_ROWS);
        (0..n_sample).map(|i| (i * n_rows / n_sample) as u32).collect()
    }

    /// Whether a row weighs anything.
    pub(super) fn counts(&self, row: u32) -> bool {
        self.weight.is_none_or(|weight| weight[row as usize] > 0.0)
    }

    /// Brings every member to its canonical form; effects stay the same. What it tells, by member and treatment net.
    pub(super) fn canonicalise(
        &self,
        space: &TreatmentSpace,
        network: &UpliftNet,
        layout: &Layout,
        members: &mut [Vec<f32>],
    ) -> Result<Vec<Geometry>> {
        let rows = self.sample_rows();
        let sample = Sample { population: self, space, rows: &rows };
        let mut geometry = Vec::new();
        for weights in members {
            for net in 0..network.treatments.len() {
                geometry.push(sample.canonicalise(network, net, layout, weights)?);
            }
        }
        Ok(geometry)
    }
}

/// The rows over which moments of g are taken.
struct Sample<'a> {
    population: &'a Population<'a>,
    space: &'a TreatmentSpace,
    rows: &'a [u32],
}

impl Sample<'_> {
    /// Changes the axes of one treatment net, and of g of the outcomes that it serves.
    fn canonicalise(
        &self,
        network: &UpliftNet,
        net: usize,
        layout: &Layout,
        weights: &mut [f32],
    ) -> Result<Geometry> {
        let treatment = &network.treatments[net];
        let (d, rho) = (treatment.n_out, &treatment.rho);
        let h = Workspace::default()
            .value(layout, weights, |tape| treatment.forward(tape, self.population.mixtures))?;
        let (mean, covariance) = self.moments_of_h(&h, d);
        let scaling = Scaling::of(&covariance, d, !rho.is_bounded());
        let (g_mean, g_second) = self.moments_of_g(network, net, layout, weights)?;
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
        if let Some(running) = network.running.get(net) {
            let values = &mut weights[layout.segment(running.mean).range()];
            values.iter_mut().zip(&mean).for_each(|(v, mean)| *v = (f64::from(*v) - mean) as f32);
            multiply(layout, weights, running.mean, &turn.forward, d);
        }
        let served = (0..network.g.len()).filter(|outcome| network.treatment_of(*outcome) == net);
        for layer in served.filter_map(|outcome| network.g[outcome].last()) {
            for weight in std::iter::once(layer.weight).chain(layer.bias) {
                multiply(layout, weights, weight, &turn.backward, d);
            }
        }
        Ok(Geometry {
            axes: turn.axes,
            lipschitz: rho.lipschitz(layout, weights),
            embedding_bound: self.embedding_bound(treatment, layout, weights)?,
        })
    }

    fn moments_of_h(&self, h: &[f32], d: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut mean, mut covariance) = (vec![0.0; d], vec![0.0; d * d]);
        let run = || h.chunks_exact(d).zip(self.population.shares).filter(|(_, share)| **share > 0.0);
        for (h, share) in run() {
            mean.iter_mut().zip(h).for_each(|(mean, h)| *mean += share * f64::from(*h));
        }
        for (h, share) in run() {
            let centred: Vec<f64> = h.iter().zip(&mean).map(|(h, mean)| f64::from(*h) - mean).collect();
            add_square(&mut covariance, &centred, *share);
        }
        (mean, covariance)
    }

    /// E[g] and E[g gᵀ], summed over the outcomes of a treatment net.
    fn moments_of_g(
        &self,
        network: &UpliftNet,
        net: usize,
        layout: &Layout,
        weights: &[f32],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (d, n_outcomes) = (network.width(), network.n_outcomes());
        let Population { x, weight, .. } = self.population;
        let some = SomeRows { x: *x, rows: self.rows };
        let g = predict(layout, weights, network, &some, d * n_outcomes, 0)?;
        let weight_of = |row: u32| weight.map_or(1.0, |weight| f64::from(weight[row as usize]));
        let total: f64 = self.rows.iter().map(|row| weight_of(*row)).sum();
        let (mut mean, mut second) = (vec![0.0; d], vec![0.0; d * d]);
        for (g, row) in g.chunks_exact(d * n_outcomes).zip(self.rows) {
            let share = weight_of(*row) / total.max(f64::MIN_POSITIVE);
            let outcomes = g.chunks_exact(d).enumerate();
            for (_, g) in outcomes.filter(|(outcome, _)| network.treatment_of(*outcome) == net) {
                let g: Vec<f64> = g.iter().map(|g| f64::from(*g)).collect();
                mean.iter_mut().zip(&g).for_each(|(mean, g)| *mean += share * g);
                add_square(&mut second, &g, share);
            }
        }
        Ok((mean, second))
    }

    fn embedding_bound(&self, treatment: &TreatmentNet, layout: &Layout, weights: &[f32]) -> Result<f64> {
        let mixtures = self.population.mixtures;
        let phi = Workspace::default().value(layout, weights, |tape| treatment.atoms(tape, mixtures))?;
        // The atoms that were seen come first.
        let atoms = &self.space.atoms;
        let r = phi.len() / mixtures.atoms.len().max(1);
        Ok(embedding_bound(&phi[..atoms.len() * r], atoms, false) / self.space.spread)
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

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::params::{Params, ValidParams};
    use super::*;
    use crate::Seed;
    use crate::net::DenseRows;
    use crate::policy::PolicySet;

    const N_ROWS: usize = 300;
    const D: usize = 5;

    /// Members at their start, before and after, under policies of unequal shares; the last policy is never run.
    struct Case {
        params: ValidParams,
        policies: PolicySet,
        policy: Vec<u32>,
        x: Vec<f32>,
    }

    impl Case {
        fn new(n_policies: usize, change: impl FnOnce(&mut Params)) -> Self {
            let mut rng = Seed::new(21).rng();
            let mut builder = PolicySet::builder();
            builder.weight("a", 2.0).weight("b", 1.0).weight("c", 1.0);
            for policy in 0..n_policies {
                for context in ["a", "b", "c"] {
                    let action = if policy == 0 { 0 } else { rng.random_range(0..4) };
                    builder.add(&format!("t{policy:02}"), context, &format!("a{action}"), 1.0);
                }
            }
            let mut params = Params::default();
            params.model.effect_dim = D;
            params.model.members = 2;
            change(&mut params);
            let n_run = (n_policies - 1) as u32;
            Self {
                params: params.check().unwrap(),
                policies: builder.build().unwrap(),
                policy: (0..N_ROWS)
                    .map(|_| rng.random_range(0..n_run).min(rng.random_range(0..n_run)))
                    .collect(),
                x: (0..N_ROWS * 3).map(|_| rng.random_range(-1.0..1.0)).collect(),
            }
        }

        /// Calls `check` with the weights of both members before, after, and after a second time.
        fn check(&self, check: impl Fn(&Sample<'_>, &UpliftNet, &Layout, [&[f32]; 3], &Geometry)) {
            let x = DenseRows::new(&self.x, 3).unwrap();
            let mut shares = vec![0.0; self.policies.len()];
            self.policy.iter().for_each(|policy| shares[*policy as usize] += 1.0 / N_ROWS as f64);
            let space = TreatmentSpace::new(&self.policies, &shares);
            let all: Vec<usize> = (0..shares.len()).collect();
            let mixtures = space.mixtures(&self.policies, &all).unwrap();
            let population = Population { x: &x, weight: None, mixtures: &mixtures, shares: &shares };
            let (network, layout, _) = UpliftNet::new(3, 2, &space, &self.params).unwrap();
            let before: Vec<Vec<f32>> =
                (0..2).map(|member| layout.init(Seed::new(3).index(member))).collect();
            let mut after = before.clone();
            let geometry = population.canonicalise(&space, &network, &layout, &mut after).unwrap();
            let mut again = after.clone();
            population.canonicalise(&space, &network, &layout, &mut again).unwrap();
            let rows: Vec<u32> = (0..N_ROWS as u32).collect();
            let sample = Sample { population: &population, space: &space, rows: &rows };
            for (member, geometry) in geometry.iter().enumerate() {
                let weights = [&before, &after, &again].map(|weights| weights[member].as_slice());
                check(&sample, &network, &layout, weights, geometry);
            }
        }
    }

    fn cases() -> Vec<Case> {
        vec![
            Case::new(40, |_| ()),
            Case::new(4, |_| ()),
            Case::new(40, |params| params.model.rho_hidden = 0),
            Case::new(40, |params| params.model.rho_skip = false),
            Case::new(40, |params| params.model.layer_norm = true),
            Case::new(40, |params| params.model.lipschitz = 0.1),
        ]
    }

    fn h_and_g(sample: &Sample<'_>, network: &UpliftNet, layout: &Layout, weights: &[f32]) -> [Vec<f32>; 2] {
        let h =
            |tape: &mut crate::net::Tape<'_>| network.treatments[0].forward(tape, sample.population.mixtures);
        let h = Workspace::default().value(layout, weights, h).unwrap();
        [h, predict(layout, weights, network, sample.population.x, 2 * D, 0).unwrap()]
    }

    fn effects(h_and_g: &[Vec<f32>; 2]) -> Vec<f64> {
        let [h, g] = h_and_g;
        let of = |g: &[f32], h0: &[f32], h1: &[f32]| -> f64 {
            g.iter().zip(h1.iter().zip(h0)).map(|(g, (h1, h0))| f64::from(*g) * f64::from(h1 - h0)).sum()
        };
        g.chunks(D).flat_map(|g| h.chunks(D).map(move |h1| of(g, &h[..D], h1))).collect()
    }

    fn furthest(a: &[f64], b: &[f64]) -> f64 {
        let size = a.iter().fold(0.0_f64, |size, a| size.max(a.abs()));
        a.iter().zip(b).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs())) / size
    }

    #[test]
    fn effects_stay_and_a_second_time_changes_nothing() {
        for (number, case) in cases().iter().enumerate() {
            case.check(|sample, network, layout, weights, _| {
                let [before, after, again] = weights.map(|weights| h_and_g(sample, network, layout, weights));
                assert!(furthest(&effects(&before), &effects(&after)) < 1e-5, "case {number}");
                let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
                assert!(furthest(&wide(&before[0]), &wide(&after[0])) > 1e-2, "case {number}");
                for part in 0..2 {
                    let far = furthest(&wide(&after[part]), &wide(&again[part]));
                    assert!(far < 1e-4, "case {number}, part {part}: {far}");
                }
            });
        }
    }

    #[test]
    fn axes_are_white_ordered_and_signed() {
        for (number, case) in cases().iter().enumerate() {
            let is_bounded = case.params.model.lipschitz > 0.0;
            // Three policies that were run differ along two axes.
            let n_axes = if case.policies.len() == 4 { 2 } else { D };
            case.check(|sample, network, layout, [_, after, _], geometry| {
                let [h, _] = h_and_g(sample, network, layout, after);
                let (mean, covariance) = sample.moments_of_h(&h, D);
                let (g_mean, g_second) = sample.moments_of_g(network, 0, layout, after).unwrap();
                let size = g_second[0].max(f64::MIN_POSITIVE);
                for i in 0..n_axes {
                    assert!(mean[i].abs() < 1e-4, "case {number}: {mean:?}");
                    assert!(g_mean[i] >= 0.0, "case {number}: {g_mean:?}");
                    for j in 0..n_axes {
                        let one = f64::from(u8::from(i == j));
                        assert!(is_bounded || (covariance[i * D + j] - one).abs() < 1e-3, "case {number}");
                        assert!(i == j || g_second[i * D + j].abs() < 1e-4 * size, "case {number}");
                    }
                    assert!(i == 0 || g_second[i * D + i] <= g_second[(i - 1) * D + i - 1], "case {number}");
                }
                let total: f64 = geometry.axes.iter().sum();
                assert!((total - 1.0).abs() < 1e-9, "case {number}: {:?}", geometry.axes);
                assert!(geometry.axes[n_axes..].iter().all(|axis| *axis < 1e-3), "{:?}", geometry.axes);
                assert_eq!(geometry.lipschitz.is_none(), case.params.model.layer_norm);
                assert!(!is_bounded || geometry.lipschitz.is_some_and(|own| own <= 0.1), "{geometry:?}");
            });
        }
    }
}
