//! How alike two policies are: k(t, t′) = a·(actions) + b·(atoms) + c·exp(−d_Π/ℓ).
//!
//! The first two are products of mixtures, summed over contexts and atom by atom: an action that does the same wherever
//! it is taken, and one that does its own in every context. The third knows nothing but how far policies are apart.

use std::cmp::Ordering;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::described::Described;
use crate::policy::Mixture;

/// The parts of a kernel.
pub(super) const N_PARTS: usize = 3;

/// A kernel over policies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kernel {
    /// What the products over actions, the products over atoms and exp(−d_Π/ℓ) are multiplied with.
    pub(super) scales: [f64; N_PARTS],
    /// ℓ.
    pub(super) length: f64,
}

/// What kernels are made of, for each pair of some policies with some others, row after row.
pub(super) struct Likeness {
    pub(super) n_cols: usize,
    actions: Vec<f64>,
    atoms: Vec<f64>,
    distance: Vec<f64>,
}

impl Likeness {
    /// Of the policies `rows` with the policies `cols`, all of one set.
    pub(super) fn new(policies: &Described<'_>, rows: &[usize], cols: &[usize]) -> Self {
        let by_action = |policy: &usize| actions(policies, *policy);
        let of_rows: Vec<Vec<(u32, f64)>> = rows.iter().map(by_action).collect();
        let of_cols: Vec<Vec<(u32, f64)>> = cols.iter().map(by_action).collect();
        let of_row = |(row, own): (&usize, &Vec<(u32, f64)>)| -> Vec<[f64; 3]> {
            let one = |(col, other): (&usize, &Vec<(u32, f64)>)| {
                let (atoms, distance) = compare(policies.mixture(*row), policies.mixture(*col));
                [product(policies, own, other), atoms, distance]
            };
            cols.iter().zip(&of_cols).map(one).collect()
        };
        let pairs: Vec<[f64; 3]> = rows.par_iter().zip(&of_rows).flat_map_iter(of_row).collect();
        Self {
            n_cols: cols.len(),
            actions: pairs.iter().map(|pair| pair[0]).collect(),
            atoms: pairs.iter().map(|pair| pair[1]).collect(),
            distance: pairs.iter().map(|pair| pair[2]).collect(),
        }
    }

    /// Each policy with itself.
    pub(super) fn own(policies: &Described<'_>, of: &[usize]) -> Self {
        let square = |mass: &[f64]| mass.iter().map(|mass| mass * mass).sum::<f64>();
        let by_action = |policy: &usize| {
            let own = actions(policies, *policy);
            product(policies, &own, &own)
        };
        Self {
            n_cols: 1,
            actions: of.iter().map(by_action).collect(),
            atoms: of.iter().map(|policy| square(policies.mixture(*policy).mass)).collect(),
            distance: vec![0.0; of.len()],
        }
    }

    /// d_Π of every pair.
    pub(super) fn distances(&self) -> &[f64] {
        &self.distance
    }

    /// One part of a kernel of scale 1.
    pub(super) fn part(&self, part: usize, length: f64) -> Vec<f64> {
        match part {
            0 => self.actions.clone(),
            1 => self.atoms.clone(),
            _ => self.distance.iter().map(|distance| (-distance / length).exp()).collect(),
        }
    }

    /// k of every pair.
    pub(super) fn kernel(&self, kernel: &Kernel) -> Vec<f64> {
        let [a, b, c] = kernel.scales;
        let linear = self.actions.iter().zip(&self.atoms).map(|(actions, atoms)| a * actions + b * atoms);
        let smooth = self.distance.iter().map(|distance| c * (-distance / kernel.length).exp());
        linear.zip(smooth).map(|(linear, smooth)| linear + smooth).collect()
    }
}

/// The mass of each action over all contexts.
fn actions(policies: &Described<'_>, policy: usize) -> Vec<(u32, f64)> {
    let Mixture { atoms, mass } = policies.mixture(policy);
    let mut own: Vec<(u32, f64)> =
        atoms.iter().zip(mass).map(|(atom, mass)| (policies.atoms()[*atom as usize].action, *mass)).collect();
    // Stable, so that sums do not depend on anything but the mixture.
    own.sort_by_key(|(action, _)| *action);
    own.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        if is_same {
            first.1 += next.1;
        }
        is_same
    });
    own
}

/// Σ over pairs of actions of their masses and of how alike they are.
fn product(policies: &Described<'_>, a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    if !policies.is_by_name() {
        let with = |(action, mass): &(u32, f64)| {
            b.iter().map(|(other, own)| own * policies.alike(*action, *other)).sum::<f64>() * mass
        };
        return a.iter().map(with).sum();
    }
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        match a[i].0.cmp(&b[j].0) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                sum += a[i].1 * b[j].1;
                i += 1;
                j += 1;
            }
        }
    }
    sum
}

/// αᵀα′ and ‖α − α′‖₁ of two mixtures by one merge.
fn compare(a: Mixture<'_>, b: Mixture<'_>) -> (f64, f64) {
    let (mut i, mut j, mut product, mut distance) = (0, 0, 0.0, 0.0);
    while i < a.atoms.len() && j < b.atoms.len() {
        match a.atoms[i].cmp(&b.atoms[j]) {
            Ordering::Less => {
                distance += a.mass[i];
                i += 1;
            }
            Ordering::Greater => {
                distance += b.mass[j];
                j += 1;
            }
            Ordering::Equal => {
                product += a.mass[i] * b.mass[j];
                distance += (a.mass[i] - b.mass[j]).abs();
                i += 1;
                j += 1;
            }
        }
    }
    (product, distance + a.mass[i..].iter().chain(&b.mass[j..]).sum::<f64>())
}
