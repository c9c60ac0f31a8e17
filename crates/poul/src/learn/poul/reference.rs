//! A few training rows that a model with own exposure keeps, so that effects of any policies, run or not, have the
//! population average that they should.
//!
//! With own exposure mean_i g_iᵀ(h_i(t1) − h_i(t0)) is no product of means. Its part in the linear part of ρ is
//! Σ_s E[w_i(s)·g_i]ᵀ(D_s(t1) − D_s(t0))·S, where D_s(t) = Σ_a (Π_t − Π̄)(a|s)·φ(s,a) / κ: exact by one vector for each
//! context, a mean over all rows. The rest, tanh, is a mean over the rows kept.

use serde::{Deserialize, Serialize};

use super::own_mixtures::{OwnMixtures, weighted};
use super::treatment_net::TreatmentNet;
use super::uplift_net::UpliftNet;
use crate::effect::{Tensor, Tensors};
use crate::net::{Layout, RowSource, Workspace, filled_rows, predict};
use crate::nuisance::SomeRows;
use crate::policy::PolicySet;
use crate::{Error, Result};

/// Rows kept at most, evenly spaced.
const MOST_KEPT: usize = 2048;
/// Rows that means are taken over at most, evenly spaced: those of `anchor`.
const MOST_ROWS: usize = 1 << 18;
/// Pairs of row and policy that are computed together.
const BLOCK_PAIRS: usize = 1 << 14;

/// What is kept of the rows.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The contexts, sorted.
    contexts: Vec<String>,
    /// w̄(s).
    pub(super) mean: Vec<f64>,
    /// w_i(s) of the rows kept.
    exposure: Vec<f32>,
    /// What they count.
    weight: Vec<f32>,
    /// By member g of the rows kept, every outcome side by side.
    gains: Vec<Vec<f32>>,
    /// By member and context E[w_i(s)·g_i], every outcome side by side.
    moments: Vec<Vec<f32>>,
}

/// What the model file keeps of it besides the tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReferenceManifest {
    contexts: Vec<String>,
    mean: Vec<f64>,
    rows: usize,
}

impl Reference {
    /// Of members in their final axes, on rows that have exposures.
    pub(super) fn new(
        policies: &PolicySet,
        mean: Vec<f64>,
        network: &UpliftNet,
        layout: &Layout,
        members: &[Vec<f32>],
        (x, weight): (&dyn RowSource, Option<&[f32]>),
    ) -> Result<Self> {
        let (width, n_contexts) = (network.width() * network.n_outcomes(), mean.len());
        let evenly = |n: usize, of: usize| (0..n.min(of)).map(move |i| i * of / n.min(of));
        let rows: Vec<u32> = evenly(MOST_ROWS, x.n_rows()).map(|row| row as u32).collect();
        let weight_of = |row: u32| weight.map_or(1.0, |weight| weight[row as usize]);
        let counted: Vec<usize> = (0..rows.len()).filter(|place| weight_of(rows[*place]) > 0.0).collect();
        let kept: Vec<usize> = evenly(MOST_KEPT, counted.len()).map(|place| counted[place]).collect();
        let exposure_of = |row: u32| x.exposure(row as usize).unwrap_or(&[]);
        let (mut gains, mut moments) = (Vec::new(), Vec::new());
        for (number, weights) in members.iter().enumerate() {
            let g = predict(layout, weights, network, &SomeRows { x, rows: &rows }, width, number)?;
            let (mut sums, mut mass) = (vec![0.0; n_contexts * width], 0.0);
            for (g, row) in g.chunks_exact(width).zip(&rows) {
                let weight = f64::from(weight_of(*row));
                mass += weight;
                let by_context = exposure_of(*row).iter().zip(sums.chunks_exact_mut(width));
                for (exposure, sums) in by_context.filter(|(exposure, _)| **exposure > 0.0) {
                    let share = weight * f64::from(*exposure);
                    sums.iter_mut().zip(g).for_each(|(sum, g)| *sum += share * f64::from(*g));
                }
            }
            let mass = f64::max(mass, f64::MIN_POSITIVE);
            moments.push(sums.iter().map(|sum| (sum / mass) as f32).collect());
            gains.push(kept.iter().flat_map(|place| g[place * width..][..width].to_vec()).collect());
        }
        Ok(Self {
            contexts: policies.contexts().to_vec(),
            mean,
            exposure: kept.iter().flat_map(|place| exposure_of(rows[*place]).to_vec()).collect(),
            weight: kept.iter().map(|place| weight_of(rows[*place])).collect(),
            gains,
            moments,
        })
    }

    /// The policies under w̄; they have the contexts of training.
    pub(super) fn weighted(&self, policies: &PolicySet) -> Result<PolicySet> {
        if policies.contexts() != self.contexts {
            return Err(Error::other("policies over other contexts than the model's"));
        }
        Ok(weighted(policies, &self.mean))
    }

    pub(super) fn n_contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Contexts that no row of training met.
    pub(super) fn unmet(&self) -> impl Iterator<Item = &str> {
        let own = self.contexts.iter().zip(&self.mean);
        own.filter(|(_, mean)| **mean <= 0.0).map(|(context, _)| context.as_str())
    }

    pub(super) fn n_rows(&self) -> usize {
        self.weight.len()
    }

    /// w_i(s) of a row kept.
    pub(super) fn exposure(&self, row: usize) -> &[f32] {
        &self.exposure[row * self.n_contexts()..][..self.n_contexts()]
    }

    /// g of a row kept for one outcome.
    pub(super) fn gain(&self, member: usize, row: usize, outcome: usize, d: usize) -> &[f32] {
        let width = self.gains[member].len() / self.n_rows().max(1);
        &self.gains[member][row * width + outcome * d..][..d]
    }

    /// Mean over the population of g̃_iᵀ(h_i(t) − h_i(against)) of a member, for all policies but the last, which is the
    /// one compared with; g̃ = `along`(g) is linear in g up to a constant, which its second argument multiplies.
    pub(super) fn mean_effects(
        &self,
        own: &OwnNet<'_>,
        mixtures: &OwnMixtures,
        n_chosen: usize,
        (member, outcome): (usize, usize),
        along: &dyn Fn(f64, f64, usize) -> f64,
    ) -> Result<Vec<f64>> {
        let (d, n_targets) = (own.net.n_out, n_chosen - 1);
        let mut means = vec![0.0; n_targets];
        let mut add = |h: &[f32], g: &dyn Fn(usize) -> f64| {
            let against = &h[n_targets * d..][..d];
            for (mean, h) in means.iter_mut().zip(h.chunks_exact(d)) {
                let product = |k: usize| g(k) * (f64::from(h[k]) - f64::from(against[k]));
                *mean += (0..d).map(product).sum::<f64>();
            }
        };
        // One row for each context that meets nothing else.
        let mut single = vec![0.0; self.n_contexts() * self.n_contexts()];
        (0..self.n_contexts()).for_each(|context| single[context * (self.n_contexts() + 1)] = 1.0);
        let of_single = |row: usize| &single[row * self.n_contexts()..][..self.n_contexts()];
        let width = self.moments[member].len() / self.n_contexts().max(1);
        let has_linear = own.each_row(
            Part::Linear,
            mixtures,
            self.n_contexts(),
            n_chosen,
            &of_single,
            &mut |context, h| {
                let moment = &self.moments[member][context * width + outcome * d..][..d];
                add(h, &|k| along(f64::from(moment[k]), self.mean[context], k));
            },
        )?;
        if own.net.rho.is_linear() {
            return Ok(means);
        }
        let part = if has_linear { Part::Bent } else { Part::Whole };
        let total: f64 = self.weight.iter().map(|weight| f64::from(*weight)).sum();
        let of_row = |row: usize| self.exposure(row);
        own.each_row(part, mixtures, self.n_rows(), n_chosen, &of_row, &mut |row, h| {
            let share = f64::from(self.weight[row]) / total.max(f64::MIN_POSITIVE);
            let g = self.gain(member, row, outcome, d);
            add(h, &|k| share * along(f64::from(g[k]), 1.0, k));
        })?;
        Ok(means)
    }

    pub(super) fn manifest(&self) -> ReferenceManifest {
        ReferenceManifest { contexts: self.contexts.clone(), mean: self.mean.clone(), rows: self.n_rows() }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        let (n_rows, n_contexts) = (self.n_rows(), self.n_contexts());
        let mut tensors = vec![
            Tensor::new(name("rows"), &[n_rows, n_contexts], &self.exposure),
            Tensor::new(name("weight"), &[n_rows, 1], &self.weight),
        ];
        for (member, (gains, moments)) in self.gains.iter().zip(&self.moments).enumerate() {
            let width = moments.len() / n_contexts.max(1);
            tensors.push(Tensor::new(name(&format!("{member}.gains")), &[n_rows, width], gains));
            tensors.push(Tensor::new(name(&format!("{member}.moments")), &[n_contexts, width], moments));
        }
        tensors
    }

    /// From the parts of a model file; none where they do not fit together.
    pub(super) fn from_parts(
        manifest: ReferenceManifest,
        (n_members, width): (usize, usize),
        tensors: &mut Tensors,
    ) -> Result<Option<Self>> {
        let ReferenceManifest { contexts, mean, rows } = manifest;
        let is_sound = !contexts.is_empty()
            && contexts.is_sorted()
            && mean.len() == contexts.len()
            && mean.iter().all(|mean| mean.is_finite() && *mean >= 0.0);
        let n_contexts = contexts.len();
        let exposure = tensors.take(&name("rows"), &[rows, n_contexts])?;
        let weight = tensors.take(&name("weight"), &[rows, 1])?;
        let (mut gains, mut moments) = (Vec::new(), Vec::new());
        for member in 0..n_members {
            gains.push(tensors.take(&name(&format!("{member}.gains")), &[rows, width])?);
            moments.push(tensors.take(&name(&format!("{member}.moments")), &[n_contexts, width])?);
        }
        Ok(is_sound.then_some(Self { contexts, mean, exposure, weight, gains, moments }))
    }
}

fn name(part: &str) -> String {
    format!("poul.exposure.{part}")
}

/// Which part of h.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// The linear part of ρ.
    Linear,
    /// All but that.
    Bent,
}

/// h of a member for rows with exposures of their own.
pub(super) struct OwnNet<'m> {
    pub(super) net: &'m TreatmentNet,
    layout: &'m Layout,
    weights: &'m [f32],
    /// φ of the atoms.
    phi: Vec<f32>,
    n_atoms: usize,
}

impl<'m> OwnNet<'m> {
    pub(super) fn new(
        net: &'m TreatmentNet,
        layout: &'m Layout,
        weights: &'m [f32],
        mixtures: &OwnMixtures,
    ) -> Result<Self> {
        let phi = Workspace::default().value(layout, weights, |tape| net.atoms(tape, &mixtures.mixtures))?;
        Ok(Self { net, layout, weights, phi, n_atoms: mixtures.mixtures.atoms.len() })
    }

    /// h(0), that of a row that nothing moves.
    pub(super) fn at_rest(&self) -> Result<Vec<f32>> {
        Workspace::default().value(self.layout, self.weights, |tape| {
            let r = self.phi.len() / self.n_atoms.max(1);
            let zero = tape.constant(1, r, &vec![0.0; r]);
            self.net.rho.forward(tape, zero)
        })
    }

    /// Hands h of every policy, one after the other, to `act` row after row; a row's bits do not depend on the others.
    /// Whether there is such a part.
    pub(super) fn each_row<'w>(
        &self,
        part: Part,
        mixtures: &OwnMixtures,
        n_rows: usize,
        n_chosen: usize,
        exposure: &dyn Fn(usize) -> &'w [f32],
        act: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<bool> {
        let mut workspace = Workspace::default();
        let block_rows = (BLOCK_PAIRS / n_chosen.max(1)).max(1);
        for first in (0..n_rows).step_by(block_rows) {
            let n_block = block_rows.min(n_rows - first);
            let n_pairs = n_block * n_chosen;
            let mut is_there = true;
            let h = workspace.value(self.layout, self.weights, |tape| {
                let phi = tape.constant(self.n_atoms, self.phi.len() / self.n_atoms.max(1), &self.phi);
                let pair = |i: usize| i.min(n_pairs - 1);
                let pairs = (0..filled_rows(n_pairs))
                    .map(|i| (exposure(first + pair(i) / n_chosen), pair(i) % n_chosen));
                let z = mixtures.z(tape, phi, pairs);
                match part {
                    Part::Whole => self.net.rho.forward(tape, z),
                    Part::Linear => self.net.rho.linear(tape, z).unwrap_or_else(|| {
                        is_there = false;
                        z
                    }),
                    Part::Bent => {
                        let h = self.net.rho.forward(tape, z);
                        let linear = self.net.rho.linear(tape, z);
                        linear.map_or(h, |linear| tape.sub(h, linear))
                    }
                }
            })?;
            if !is_there {
                return Ok(false);
            }
            let of_row = h.chunks_exact(n_chosen * self.net.n_out).take(n_block).enumerate();
            of_row.for_each(|(place, h)| act(first + place, h));
        }
        Ok(true)
    }
}
