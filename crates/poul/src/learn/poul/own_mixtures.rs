//! Mixtures by each row's own exposure: α_i(s,a; t) = w_i(s)·Π_t(a|s) in place of Eq. 2's w(s)·Π_t(a|s), so that
//! z_i(t) = Σ_s w_i(s) Σ_a (Π_t(a|s) − Π̄(a|s))·φ(s,a) / κ and h_i(t) = ρ(z_i(t)).
//!
//! Every context is centred by itself, at the mean policy Π̄ of training: what φ has of the context alone cancels for
//! every row, and a row that meets no context, or only contexts in which policies agree, has z = 0.

use std::sync::Arc;

use super::space::{Mixtures, TreatmentSpace};
use crate::net::{RowSource, SparseRows, Tape, Var};
use crate::policy::PolicySet;
use crate::{Error, Result};

/// The mean exposure of the training rows to each context, w̄(s), and its mean square.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeanExposure {
    pub(super) mean: Vec<f64>,
    pub(super) square: Vec<f64>,
}

/// Policies in every context by itself, as rows with their own weights of contexts mix them.
#[derive(Clone, Debug)]
pub(super) struct OwnMixtures {
    /// Π_t(a|s) / κ by policy, and Π̄(a|s) / κ: a whole in every context.
    pub(super) mixtures: Mixtures,
    /// (Π_t − Π̄)(a|s) / κ by policy.
    centred: SparseRows,
    /// The context of each atom, as a number among those of the policies.
    context_of: Vec<u32>,
    /// Π̄(a|s) / κ of each atom.
    mean: Vec<f32>,
}

impl MeanExposure {
    /// Of all rows; none where contexts weigh the same for every row.
    pub(super) fn of(
        x: &dyn RowSource,
        weight: Option<&[f64]>,
        policies: &PolicySet,
    ) -> Result<Option<Self>> {
        let n_rows = x.n_rows();
        if n_rows == 0 || x.exposure(0).is_none() {
            return Ok(None);
        }
        let n_contexts = policies.contexts().len();
        let (mut mean, mut square, mut mass) = (vec![0.0; n_contexts], vec![0.0; n_contexts], 0.0);
        for row in 0..n_rows {
            let own = x.exposure(row).filter(|own| own.len() == n_contexts);
            let Some(own) = own else {
                return Err(Error::other("exposures that are not those of the contexts"));
            };
            let weight = weight.map_or(1.0, |weight| weight[row]);
            mass += weight;
            for (context, own) in own.iter().enumerate() {
                mean[context] += weight * f64::from(*own);
                square[context] += weight * f64::from(*own).powi(2);
            }
        }
        mean.iter_mut().chain(&mut square).for_each(|sum| *sum /= f64::max(mass, f64::MIN_POSITIVE));
        Ok(Some(Self { mean, square }))
    }

    /// The policies under w̄.
    pub(super) fn weighted(&self, policies: &PolicySet) -> PolicySet {
        weighted(policies, &self.mean)
    }

    /// κ = √E‖α_{i,T} − ᾱ_i‖², over rows and over policies by their shares.
    pub(super) fn spread(&self, policies: &PolicySet, shares: &[f64]) -> f64 {
        let atoms = policies.atoms();
        let (mut mean, mut square) = (vec![0.0; atoms.len()], vec![0.0; atoms.len()]);
        for (policy, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let own = policies.mixture(policy).atoms.iter().zip(policies.conditional(policy));
            for (atom, probability) in own {
                mean[*atom as usize] += share * probability;
                square[*atom as usize] += share * probability * probability;
            }
        }
        let of_atom = |(number, atom): (usize, &crate::policy::Atom)| {
            self.square[atom.context as usize] * (square[number] - mean[number].powi(2)).max(0.0)
        };
        atoms.iter().enumerate().map(of_atom).sum::<f64>().max(1e-12).sqrt()
    }
}

/// Policies under mean exposures, in the order of their contexts, brought to sum 1.
pub(super) fn weighted(policies: &PolicySet, mean: &[f64]) -> PolicySet {
    let total = mean.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    policies.under_weights(&mean.iter().map(|mean| mean / total).collect::<Vec<_>>())
}

impl OwnMixtures {
    /// Of the chosen policies in a space.
    pub(super) fn new(space: &TreatmentSpace, policies: &PolicySet, chosen: &[usize]) -> Result<Self> {
        let (mixtures, context_of) = space.whole_in_every_context(policies, chosen)?;
        let n_atoms = mixtures.atoms.len();
        let mut mean = vec![0.0; n_atoms];
        mixtures.mean.row(0).for_each(|(atom, value)| mean[atom] = value);
        let mut dense = vec![0.0; n_atoms];
        let rows = (0..chosen.len()).map(|policy| {
            dense.iter_mut().zip(&mean).for_each(|(own, mean)| *own = -mean);
            mixtures.rows.row(policy).for_each(|(atom, value)| dense[atom] += value);
            let entries = dense.iter().enumerate().filter(|(_, value)| **value != 0.0);
            entries.map(|(atom, value)| (atom as u32, *value)).collect::<Vec<_>>()
        });
        let centred = SparseRows::new(n_atoms, rows)?;
        Ok(Self { mixtures, centred, context_of, mean })
    }

    /// z of rows under policies, one for each pair of a row's exposure and a policy; from φ.
    pub(super) fn z<'w>(
        &self,
        tape: &mut Tape<'_>,
        phi: Var,
        pairs: impl Iterator<Item = (&'w [f32], usize)>,
    ) -> Var {
        let rows = pairs.map(|(exposure, policy)| {
            let own = self.centred.row(policy);
            own.map(|(atom, value)| (atom as u32, exposure[self.context_of[atom] as usize] * value))
                .filter(|(_, value)| *value != 0.0)
        });
        self.mixed(tape, phi, SparseRows::new(self.context_of.len(), rows))
    }

    /// z of rows under expected mixtures E[Π_T(a|s)] / κ over the atoms.
    pub(super) fn z_of_mass<'w>(
        &self,
        tape: &mut Tape<'_>,
        phi: Var,
        pairs: impl Iterator<Item = (&'w [f32], &'w [f32])>,
    ) -> Var {
        let rows = pairs.map(|(exposure, mass)| {
            let own = mass.iter().zip(&self.mean).zip(&self.context_of).enumerate();
            own.map(|(atom, ((mass, mean), context))| {
                (atom as u32, exposure[*context as usize] * (mass - mean))
            })
            .filter(|(_, value)| *value != 0.0)
        });
        self.mixed(tape, phi, SparseRows::new(self.context_of.len(), rows))
    }

    fn mixed(&self, tape: &mut Tape<'_>, phi: Var, rows: Result<SparseRows>) -> Var {
        match rows {
            Ok(rows) => tape.mix(&Arc::new(rows), phi),
            Err(error) => {
                tape.fail(error.to_string());
                phi
            }
        }
    }

    /// Σ_t share_t·Π_t(a|s) / κ over the atoms.
    pub(super) fn expected(&self, shares: &[f32]) -> Vec<f32> {
        let mut mass = vec![0.0; self.context_of.len()];
        for (policy, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            self.mixtures.rows.row(policy).for_each(|(atom, value)| mass[atom] += share * value);
        }
        mass
    }
}

/// By context Σ_a |Π_t(a|s) − Π_t′(a|s)|: with weights of contexts it is d_Π.
pub(super) fn distance_by_context(policies: &PolicySet, policy: usize, other: usize) -> Vec<f64> {
    let mut difference = vec![0.0; policies.atoms().len()];
    for (policy, sign) in [(policy, 1.0), (other, -1.0)] {
        let own = policies.mixture(policy).atoms.iter().zip(policies.conditional(policy));
        own.for_each(|(atom, probability)| difference[*atom as usize] += sign * probability);
    }
    let mut distance = vec![0.0; policies.contexts().len()];
    for (atom, difference) in policies.atoms().iter().zip(difference) {
        distance[atom.context as usize] += difference.abs();
    }
    distance
}
