//! The treatment net h(t) = ρ(Σ α_t(s,a) φ(s,a)) (Eqs. 1 and 2 of the paper).

use super::params::{Embedding, Params};
use super::space::{Mixtures, TreatmentSpace};
use crate::net::{Activation, Dense, Init, LayoutBuilder, Mlp, Tape, Var, Weight};

/// Weights of φ and ρ.
#[derive(Clone, Debug)]
pub(super) struct TreatmentNet {
    phi: Phi,
    skip: Option<Dense>,
    rho: Option<Mlp>,
    /// Width of h.
    pub(super) n_out: usize,
}

#[derive(Clone, Debug)]
struct Phi {
    /// Vectors of actions, and how contexts bend them.
    shared: Option<(Weight, Weight, Weight)>,
    delta: Option<Weight>,
}

impl TreatmentNet {
    /// Declares the weights.
    pub(super) fn new(
        layout: &mut LayoutBuilder,
        name: &str,
        space: &TreatmentSpace,
        params: &Params,
    ) -> Self {
        let r = params.model.embedding_dim;
        let (phi, delta, rho) = (layout.group("phi"), layout.group("delta"), layout.group("rho"));
        let shared = (params.model.embedding != Embedding::Lookup).then(|| {
            (
                layout.matrix(&format!("{name}.action"), space.actions.len(), r, Init::Normal(1.0), phi),
                layout.matrix(&format!("{name}.bend"), space.actions.len(), r, Init::Normal(0.5), phi),
                layout.matrix(&format!("{name}.context"), space.contexts.len(), r, Init::Normal(0.5), phi),
            )
        });
        let start = if shared.is_some() { params.training.delta_start } else { 1.0 };
        let delta = (params.model.embedding != Embedding::Additive).then(|| {
            layout.matrix(&format!("{name}.atom"), space.atoms.len(), r, Init::Normal(start), delta)
        });
        let n_out = params.model.effect_dim;
        let skip = (params.model.rho_skip || params.model.rho_hidden == 0)
            .then(|| layout.linear(&format!("{name}.skip"), r, n_out, Init::Uniform, rho));
        let hidden = (params.model.rho_hidden > 0).then(|| {
            let widths = [r, params.model.rho_hidden, n_out];
            Mlp::new(layout, &format!("{name}.rho"), &widths, Activation::Tanh, Init::Uniform, rho)
        });
        Self { phi: Phi { shared, delta }, skip, rho: hidden, n_out }
    }

    /// h of every policy, one row each.
    pub(super) fn forward(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        let phi = self.atoms(tape, mixtures);
        let z = tape.mix(&mixtures.rows, phi);
        self.of_mixtures(tape, mixtures, phi, z)
    }

    /// φ of every atom, one row each.
    pub(super) fn atoms(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        self.phi.forward(tape, mixtures)
    }

    /// h of some policies by number, one row each, from φ: the cost does not depend on how many others there are.
    pub(super) fn of_policies(
        &self,
        tape: &mut Tape<'_>,
        mixtures: &Mixtures,
        phi: Var,
        policies: impl IntoIterator<Item = u32>,
    ) -> Var {
        let z = tape.mix_selected(&mixtures.rows, phi, policies);
        self.of_mixtures(tape, mixtures, phi, z)
    }

    /// ρ(z − z̄) of mixtures z = Σ α φ / κ, one row each.
    pub(super) fn of_mixtures(&self, tape: &mut Tape<'_>, mixtures: &Mixtures, phi: Var, z: Var) -> Var {
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
        let delta = self.delta.map(|delta| {
            let delta = tape.weight(delta);
            tape.mix(&mixtures.seen, delta)
        });
        match (shared, delta) {
            (Some(shared), Some(delta)) => tape.add(shared, delta),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => tape.constant(0, 0, &[]),
        }
    }
}
