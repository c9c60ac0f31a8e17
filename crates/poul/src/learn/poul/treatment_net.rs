//! The treatment net h(t) = ρ(Σ α_t(s,a) φ(s,a)) (Eqs. 1 and 2 of the paper).

use super::attributes::AttributeEncoder;
use super::params::{Embedding, Params};
use super::rho::Rho;
use super::space::{Mixtures, Names, TreatmentSpace};
use crate::net::{Group, Init, LayoutBuilder, Tape, Var, Weight};

/// Weights of φ and ρ.
#[derive(Clone, Debug)]
pub(super) struct TreatmentNet {
    phi: Phi,
    pub(super) rho: Rho,
    /// Width of h.
    pub(super) n_out: usize,
}

#[derive(Clone, Debug)]
struct Phi {
    shared: Option<Shared>,
    delta: Option<Weight>,
}

/// What atoms share: vectors of actions, and how contexts bend them.
#[derive(Clone, Copy, Debug)]
struct Shared {
    action: Part,
    bend: Part,
    context: Part,
}

/// A vector for each context or action: what its attributes explain, and its own, shrunk like a deviation; its own alone
/// where nothing has attributes.
#[derive(Clone, Copy, Debug)]
struct Part {
    own: Weight,
    explained: Option<Weight>,
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
        let (phi, delta) = (layout.group("phi"), layout.group("delta"));
        let delta_start = params.training.delta_start;
        let mut part = |part: &str, n_names: usize, attributes: &AttributeEncoder, start: f32| {
            let name = format!("{name}.{part}");
            let (init, group): (Init, Group) = match attributes.is_empty() {
                true => (Init::Normal(start), phi),
                false => (Init::Normal(start * delta_start), delta),
            };
            let own = layout.matrix(&name, n_names, r, init, group);
            let explained = (!attributes.is_empty()).then(|| {
                let init = Init::Normal(start / (attributes.width() as f32).sqrt());
                layout.matrix(&format!("{name}.attributes"), attributes.width(), r, init, phi)
            });
            Part { own, explained }
        };
        let shared = (params.model.embedding != Embedding::Lookup).then(|| Shared {
            action: part("action", space.actions.len(), &space.action_attributes, 1.0),
            bend: part("bend", space.actions.len(), &space.action_attributes, 0.5),
            context: part("context", space.contexts.len(), &space.context_attributes, 0.5),
        });
        let start = if shared.is_some() { delta_start } else { 1.0 };
        let delta = (params.model.embedding != Embedding::Additive).then(|| {
            layout.matrix(&format!("{name}.atom"), space.atoms.len(), r, Init::Normal(start), delta)
        });
        let rho = Rho::new(layout, name, &params.model);
        Self { phi: Phi { shared, delta }, rho, n_out: params.model.effect_dim }
    }

    /// h of every policy, one row each.
    pub(super) fn forward(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        let phi = self.atoms(tape, mixtures);
        let z = tape.mix(&mixtures.rows, phi);
        self.of_mixtures(tape, mixtures, phi, z)
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
        self.rho.forward(tape, z)
    }

    /// φ of every atom, one row each; the seen ones first.
    pub(super) fn atoms(&self, tape: &mut Tape<'_>, mixtures: &Mixtures) -> Var {
        let shared = self.phi.shared.map(|Shared { action, bend, context }| {
            let actions = || mixtures.atoms.iter().map(|atom| atom.1);
            let action = action.forward(tape, &mixtures.actions);
            let bend = bend.forward(tape, &mixtures.actions);
            let context = context.forward(tape, &mixtures.contexts);
            let action = tape.gather(action, actions());
            let bend = tape.gather(bend, actions());
            let context = tape.gather(context, mixtures.atoms.iter().map(|atom| atom.0));
            let bent = tape.mul(bend, context);
            tape.add(action, bent)
        });
        let delta = self.phi.delta.map(|delta| {
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

impl Part {
    fn forward(self, tape: &mut Tape<'_>, names: &Names) -> Var {
        let own = tape.weight(self.own);
        let Some(explained) = self.explained else { return own };
        let own = tape.mix(&names.seen, own);
        let explained = tape.weight(explained);
        let explained = tape.mix(&names.attributes, explained);
        tape.add(explained, own)
    }
}
