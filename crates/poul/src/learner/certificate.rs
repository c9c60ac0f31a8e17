//! Proposition 3 of the paper for a trained model: L_ρ and B_φ of each member, and how large g(x) is over rows.
//!
//! z(t) − z(t′) = Σ (α_t − α_t′)(s,a)·(φ(s,a) − c_s) / κ for any c_s, since both policies spend w(s) in every context. So
//! ‖z(t) − z(t′)‖ ≤ B_φ·d_Π(t, t′), B_φ being the largest distance of an atom's φ from the mean of its context.

use std::collections::BTreeMap;

use super::params::Loss;
use super::poul::Poul;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::effect::{GainDeciles, PolicyEmbedding, StabilityConstants};
use crate::net::{Layout, RowSource, Workspace, predict};
use crate::policy::PolicySet;

/// Parts into which rows are cut by the size of g.
const N_PARTS: usize = 10;

impl PolicyEmbedding for Poul {
    fn embeddings(&self, policies: &PolicySet, chosen: &[usize], outcome: usize) -> Result<Vec<Vec<f32>>> {
        Poul::embeddings(self, policies, chosen, outcome)
    }

    fn constants(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
        outcome: usize,
    ) -> Result<Vec<StabilityConstants>> {
        let mixtures = self.space().mixtures(policies, chosen)?;
        // An atom of which nothing is known counts as zero: so does its φ.
        let has_nothing = |(row, policy): (usize, &usize)| {
            let carried = policies.mixture(*policy).mass.iter().filter(|mass| **mass > 0.0).count();
            mixtures.rows.row(row).count() < carried
        };
        let with_zero = chosen.iter().enumerate().any(has_nothing);
        let treatment = self.treatment_net(outcome);
        let mut workspace = Workspace::default();
        let of = |weights: &Vec<f32>| {
            let phi = workspace.value(self.layout(), weights, |tape| treatment.atoms(tape, &mixtures))?;
            Ok(StabilityConstants {
                lipschitz: treatment.rho.lipschitz(self.layout(), weights),
                embedding_bound: embedding_bound(&phi, &mixtures.atoms, with_zero) / self.space().spread,
            })
        };
        self.weights().iter().map(of).collect()
    }

    fn gains(&self, outcome: usize) -> &[GainDeciles] {
        let n_members = self.weights().len();
        self.gain_deciles().get(outcome * n_members..(outcome + 1) * n_members).unwrap_or(&[])
    }

    fn link_slope(&self) -> f64 {
        match self.model_params().loss {
            // The logistic function is nowhere steeper.
            Loss::Logistic => 0.25,
            Loss::Squared => 1.0,
        }
    }

    fn axes(&self, outcome: usize) -> &[f64] {
        self.geometry().get(self.treatment_of(outcome)).map_or(&[], |geometry| &geometry.axes)
    }
}

/// The largest distance of an atom's φ from the mean of its context; `with_zero` adds an atom at 0 to every context.
pub(super) fn embedding_bound(phi: &[f32], atoms: &[(u32, u32)], with_zero: bool) -> f64 {
    let r = phi.len() / atoms.len().max(1);
    let mut by_context: BTreeMap<u32, Vec<&[f32]>> = BTreeMap::new();
    for (vector, (context, _)) in phi.chunks_exact(r.max(1)).zip(atoms) {
        by_context.entry(*context).or_default().push(vector);
    }
    let zero = vec![0.0; r];
    let mut most = 0.0_f64;
    for vectors in by_context.values_mut() {
        if with_zero {
            vectors.push(&zero);
        }
        let n = vectors.len() as f64;
        let mean: Vec<f64> =
            (0..r).map(|k| vectors.iter().map(|vector| f64::from(vector[k])).sum::<f64>() / n).collect();
        for vector in vectors {
            let square: f64 = vector.iter().zip(&mean).map(|(v, mean)| (f64::from(*v) - mean).powi(2)).sum();
            most = most.max(square);
        }
    }
    most.sqrt()
}

/// ‖g(x)‖ of every outcome and member, in the units of `scales`, by decile of the rows; outcomes first.
pub(super) fn gain_deciles(
    network: &UpliftNet,
    layout: &Layout,
    members: &[Vec<f32>],
    x: &dyn RowSource,
    scales: &[f64],
) -> Result<Vec<GainDeciles>> {
    let (d, n_outcomes, n_rows) = (network.width(), scales.len(), x.n_rows());
    if n_rows == 0 {
        return Ok(Vec::new());
    }
    let mut sizes = vec![Vec::with_capacity(n_rows); n_outcomes * members.len()];
    for (member, weights) in members.iter().enumerate() {
        let g = predict(layout, weights, network, x, d * n_outcomes, member)?;
        for (place, g) in g.chunks_exact(d).enumerate() {
            let outcome = place % n_outcomes;
            let square: f64 = g.iter().map(|g| f64::from(*g).powi(2)).sum();
            sizes[outcome * members.len() + member].push(square.sqrt() * scales[outcome]);
        }
    }
    let of_outcome = |sizes: &[Vec<f64>]| {
        let total: Vec<f64> = (0..n_rows).map(|row| sizes.iter().map(|own| own[row]).sum()).collect();
        let mut order: Vec<usize> = (0..n_rows).collect();
        order.sort_by(|a, b| total[*a].total_cmp(&total[*b]));
        sizes.iter().map(|own| deciles(own, &order)).collect::<Vec<_>>()
    };
    Ok(sizes.chunks(members.len().max(1)).flat_map(of_outcome).collect())
}

fn deciles(sizes: &[f64], order: &[usize]) -> GainDeciles {
    let n = order.len();
    let part = |part: usize| {
        let first = (part * n / N_PARTS).min(n - 1);
        &order[first..((part + 1) * n / N_PARTS).max(first + 1)]
    };
    let mean = |rows: &[usize]| rows.iter().map(|row| sizes[*row]).sum::<f64>() / rows.len() as f64;
    let most = |rows: &[usize]| rows.iter().fold(0.0_f64, |most, row| most.max(sizes[*row]));
    GainDeciles {
        mean: (0..N_PARTS).map(|number| mean(part(number))).collect(),
        most: (0..N_PARTS).map(|number| most(part(number))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciles_cover_all_rows_and_few_rows_fill_them() {
        let sizes: Vec<f64> = (0..40).map(|row| f64::from((row * 7) % 40)).collect();
        let mut order: Vec<usize> = (0..40).collect();
        order.sort_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
        let found = deciles(&sizes, &order);
        assert_eq!((found.mean[0], found.most[0]), (1.5, 3.0));
        assert_eq!((found.mean[9], found.most[9]), (37.5, 39.0));
        let few = deciles(&[2.0, 1.0], &[1, 0]);
        assert_eq!((few.mean[0], few.most[9]), (1.0, 2.0));
    }

    #[test]
    fn what_all_atoms_of_a_context_share_does_not_count() {
        let atoms = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let phi = [1.0, 0.0, -1.0, 0.0, 10.0, 2.0, 10.0, -2.0];
        assert_eq!(embedding_bound(&phi, &atoms, false), 2.0);
        let shifted: Vec<f32> = phi.iter().enumerate().map(|(i, v)| v + (i / 4 * 5) as f32).collect();
        assert_eq!(embedding_bound(&shifted, &atoms, false), 2.0);
        // An atom at 0 is far from the second context.
        assert!(embedding_bound(&phi, &atoms, true) > 6.0);
    }
}
