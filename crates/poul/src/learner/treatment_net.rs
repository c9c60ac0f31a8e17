//! The treatment net h(t) = ρ(Σ α_t(s,a) φ(s,a)) (Eqs. 1 and 2 of the paper).

use std::sync::Arc;

use super::params::{Embedding, Params};
use crate::Result;
use crate::net::{Activation, Dense, Init, LayoutBuilder, Mlp, SparseRows, Tape, Var, Weight};
use crate::policy::PolicySet;

/// The mixtures of a set of policies, in the scale of the net.
///
/// z is taken relative to the mean policy and divided by the spread κ = √E‖α_T − ᾱ‖², so that it has unit variance
/// over policies when the entries of φ do, whatever the number of contexts.
#[derive(Clone, Debug)]
pub struct Mixtures {
    rows: Arc<SparseRows>,
    mean: Arc<SparseRows>,
    atoms: Vec<(u32, u32)>,
    n_contexts: usize,
    n_actions: usize,
}

impl Mixtures {
    /// Mixtures of `policies`, centred and scaled by the training `shares` of the policies.
    pub fn new(policies: &PolicySet, shares: &[f32]) -> Result<Self> {
        let n_atoms = policies.atoms().len();
        let mut mean = vec![0.0_f64; n_atoms];
        for (policy, share) in shares.iter().enumerate() {
            let mixture = policies.mixture(policy);
            for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
                mean[*atom as usize] += f64::from(*share) * mass;
            }
        }
        let norm: f64 = mean.iter().map(|mean| mean * mean).sum();
        let mut spread = 0.0;
        for (policy, share) in shares.iter().enumerate() {
            let mixture = policies.mixture(policy);
            let entries = mixture.atoms.iter().zip(mixture.mass);
            let shift: f64 =
                entries.map(|(atom, mass)| mass * mass - 2.0 * mass * mean[*atom as usize]).sum();
            spread += f64::from(*share) * (shift + norm);
        }
        let scale = 1.0 / spread.max(1e-12).sqrt();
        let row = |policy: usize| {
            let mixture = policies.mixture(policy);
            let entries: Vec<(u32, f32)> =
                mixture.atoms.iter().zip(mixture.mass).map(|(atom, mass)| (*atom, (mass * scale) as f32)).collect();
            entries
        };
        let rows = Arc::new(SparseRows::new(n_atoms, (0..policies.len()).map(row))?);
        let mean = mean.iter().enumerate().map(|(atom, mass)| (atom as u32, (mass * scale) as f32));
        Ok(Self {
            rows,
            mean: Arc::new(SparseRows::new(n_atoms, [mean])?),
            atoms: policies.atoms().iter().map(|atom| (atom.context, atom.action)).collect(),
            n_contexts: policies.contexts().len(),
            n_actions: policies.actions().len(),
        })
    }
}

/// Weights of φ and ρ.
#[derive(Clone, Debug)]
pub struct TreatmentNet {
    phi: Phi,
    skip: Option<Dense>,
    rho: Option<Mlp>,
    /// Width of h.
    pub n_out: usize,
}

#[derive(Clone, Debug)]
struct Phi {
    /// Vectors of actions, and how contexts bend them.
    shared: Option<(Weight, Weight, Weight)>,
    delta: Option<Weight>,
}

impl TreatmentNet {
    /// Declares the weights.
    pub fn new(layout: &mut LayoutBuilder, name: &str, mixtures: &Mixtures, params: &Params) -> Self {
        let r = params.embedding_dim;
        let (phi, delta, rho) = (layout.group("phi"), layout.group("delta"), layout.group("rho"));
        let shared = (params.embedding != Embedding::Lookup).then(|| {
            (
                layout.matrix(&format!("{name}.action"), mixtures.n_actions, r, Init::Normal(1.0), phi),
                layout.matrix(&format!("{name}.bend"), mixtures.n_actions, r, Init::Normal(0.5), phi),
                layout.matrix(&format!("{name}.context"), mixtures.n_contexts, r, Init::Normal(0.5), phi),
            )
        });
        let start = if shared.is_some() { params.delta_start } else { 1.0 };
        let delta = (params.embedding != Embedding::Additive)
            .then(|| layout.matrix(&format!("{name}.atom"), mixtures.atoms.len(), r, Init::Normal(start), delta));
        let n_out = params.effect_dim;
        let skip = (params.rho_skip || params.rho_hidden == 0)
            .then(|| layout.linear(&format!("{name}.skip"), r, n_out, Init::Uniform, rho));
        let hidden = (params.rho_hidden > 0).then(|| {
            let widths = [r, params.rho_hidden, n_out];
            Mlp::new(layout, &format!("{name}.rho"), &widths, Activation::Tanh, Init::Uniform, rho)
        });
        Self { phi: Phi { shared, delta }, skip, rho: hidden, n_out }
    }

    /// h of every policy, one row each.
    pub fn forward(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        let phi = self.phi.forward(tape, mixtures);
        let z = tape.mix(&mixtures.rows, phi);
        let mean = tape.mix(&mixtures.mean, phi);
        let z = tape.sub(z, mean);
        let linear = self.skip.map(|skip| tape.dense(z, skip, Activation::Identity));
        let bent = self.rho.as_ref().map(|rho| rho.forward(tape, z));
        match (linear, bent) {
            (Some(linear), Some(bent)) => tape.add(linear, bent),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => z,
        }
    }
}

impl Phi {
    fn forward(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        let shared = self.shared.map(|(action, bend, context)| {
            let actions = || mixtures.atoms.iter().map(|atom| atom.1);
            let (action, bend, context) = (tape.weight(action), tape.weight(bend), tape.weight(context));
            let action = tape.gather(action, actions());
            let bend = tape.gather(bend, actions());
            let context = tape.gather(context, mixtures.atoms.iter().map(|atom| atom.0));
            let bent = tape.mul(bend, context);
            tape.add(action, bent)
        });
        let delta = self.delta.map(|delta| tape.weight(delta));
        match (shared, delta) {
            (Some(shared), Some(delta)) => tape.add(shared, delta),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => tape.constant(0, 0, &[]),
        }
    }
}
