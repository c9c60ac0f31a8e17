//! A warm start: training goes on from a saved model, on new data with other policies.
//!
//! Before its first step the new model gives every policy the saved one knew the same effects: weights are carried over
//! by name, the saved ᾱ and κ stay the origin and unit of z, and outcomes are learned in the saved units. Atoms that
//! are new start from what their context and action share with others (δ = 0), or at random where φ is a lookup or
//! where their context or action is new too; atoms that are gone are kept.

use serde_json::Value;

use super::fitted::Poul;
use super::params::ValidParams;
use super::space::TreatmentSpace;
use crate::effect::{EffectModel, Tensors};
use crate::net::{Layout, Segment};
use crate::policy::Attributes;
use crate::{Error, Result};

/// Settings of the model that do not change its weights' shapes or meaning.
const MAY_DIFFER: [&str; 4] = ["dropout", "shared_gain", "centring", "centring_draws"];

/// A saved model to start from.
pub(super) struct WarmStart {
    saved: Poul,
    /// Where each outcome that is learned lies among those of the saved model.
    places: Vec<usize>,
}

impl WarmStart {
    /// From a model of this learner with the same outcomes, features and settings.
    pub(super) fn new(
        model: &dyn EffectModel,
        (outcomes, learned): (&[String], &[String]),
        n_features: usize,
        params: &ValidParams,
    ) -> Result<Self> {
        let mut tensors: Tensors = model.tensors().into_iter().collect();
        let saved = Poul::from_parts(&model.manifest()?, &mut tensors)?;
        if saved.outcomes() != outcomes {
            let (saved, ours) = (saved.outcomes().join(", "), outcomes.join(", "));
            let what = format!("the saved model is of the outcomes {saved}, not {ours}");
            return Err(Error::usage(what).hint("name the same outcomes in the same order, or fit afresh"));
        }
        if saved.n_features() != n_features {
            let what =
                format!("the saved model has {} encoded features, not {n_features}", saved.n_features());
            return Err(Error::other(what).hint("encode the data by the encoder of the saved model"));
        }
        if saved.has_own_exposure() {
            let error = Error::usage("training cannot start from a model with exposures of rows yet");
            return Err(error.hint("fit afresh"));
        }
        check_settings(&saved, params)?;
        let place = |name: &String| {
            saved.learned().iter().position(|own| own == name).ok_or_else(|| {
                let what = format!("the saved model has not learned from the outcome `{name}`");
                Error::usage(what).hint("name the same outcomes and auxiliary outcomes, or fit afresh")
            })
        };
        let places = learned.iter().map(place).collect::<Result<_>>()?;
        Ok(Self { saved, places })
    }

    /// The units of the outcomes: their standard deviations where the saved model was fitted.
    pub(super) fn scales(&self) -> Vec<f64> {
        self.places.iter().map(|place| self.saved.learned_scales()[*place]).collect()
    }

    /// The saved space with the atoms of the new data added; its origin, its unit and what its attributes mean stay.
    pub(super) fn space(&self, new: &TreatmentSpace, known: &Attributes) -> TreatmentSpace {
        let old = self.saved.space();
        let union = |ours: &[String], theirs: &[String]| {
            let mut names: Vec<String> = ours.iter().chain(theirs).cloned().collect();
            names.sort();
            names.dedup();
            names
        };
        let contexts = union(&old.contexts, &new.contexts);
        let actions = union(&old.actions, &new.actions);
        let find = |names: &[String], name: &String| names.partition_point(|other| other < name) as u32;
        let place = |space: &TreatmentSpace, (context, action): (u32, u32)| {
            let context = find(&contexts, &space.contexts[context as usize]);
            (context, find(&actions, &space.actions[action as usize]))
        };
        let kept = old.atoms.iter().zip(&old.mean).map(|(atom, mean)| (place(old, *atom), *mean));
        let mut atoms: Vec<((u32, u32), f64)> = kept.collect();
        for (context, action) in &new.atoms {
            let names = (&new.contexts[*context as usize], &new.actions[*action as usize]);
            if old.place(names.0, names.1).is_none() {
                atoms.push((place(new, (*context, *action)), 0.0));
            }
        }
        atoms.sort_by_key(|(atom, _)| *atom);
        let (atoms, mean) = atoms.into_iter().unzip();
        let context_attributes = old.context_attributes.for_names(&old.contexts, &contexts, &known.contexts);
        let action_attributes = old.action_attributes.for_names(&old.actions, &actions, &known.actions);
        let spread = old.spread;
        TreatmentSpace { contexts, actions, atoms, mean, spread, context_attributes, action_attributes }
    }

    /// The saved weights of every member laid over `fresh` ones.
    pub(super) fn weights(
        &self,
        space: &TreatmentSpace,
        layout: &Layout,
        fresh: &[&[f32]],
    ) -> Result<Vec<Vec<f32>>> {
        let has_shared = layout.segments().iter().any(|segment| part(segment) == Some("action"));
        let mut all: Vec<Vec<f32>> = fresh.iter().map(|fresh| fresh.to_vec()).collect();
        for segment in layout.segments() {
            let (saved_layout, name) = (self.saved.layout(), self.saved_name(&segment.name));
            let Some(saved) = saved_layout.segments().iter().find(|saved| saved.name == name) else {
                return Err(other_shape(&segment.name));
            };
            let rows = self.rows(segment, space);
            let fits = rows.len() == segment.n_rows && saved.n_cols == segment.n_cols;
            if !fits || rows.iter().flatten().any(|row| *row >= saved.n_rows) {
                return Err(other_shape(&segment.name));
            }
            for (weights, saved_weights) in all.iter_mut().zip(self.saved.weights()) {
                let from = &saved_weights[saved.range()];
                let to = &mut weights[segment.range()];
                for (to, row) in to.chunks_exact_mut(segment.n_cols).zip(&rows) {
                    match row {
                        Some(row) => to.copy_from_slice(&from[row * segment.n_cols..][..segment.n_cols]),
                        // What is new is what others share with it, or what its attributes say.
                        None if explained(segment, space, has_shared) => to.fill(0.0),
                        None => {}
                    }
                }
            }
        }
        Ok(all)
    }

    /// What a matrix is called in the saved model, where outcomes may be in another order.
    fn saved_name(&self, name: &str) -> String {
        let mut parts = name.splitn(3, '.');
        match (parts.next(), parts.next().and_then(|number| number.parse::<usize>().ok()), parts.next()) {
            (Some("g"), Some(number), Some(rest)) if number < self.places.len() => {
                format!("g.{}.{rest}", self.places[number])
            }
            _ => name.to_owned(),
        }
    }

    /// For each row of a matrix, the row of the saved one that it goes on from.
    fn rows(&self, segment: &Segment, space: &TreatmentSpace) -> Vec<Option<usize>> {
        let old = self.saved.space();
        let of = |names: &[String], old: &[String]| {
            names.iter().map(|name| old.binary_search(name).ok()).collect::<Vec<_>>()
        };
        match part(segment) {
            Some("action" | "bend") => of(&space.actions, &old.actions),
            Some("context") => of(&space.contexts, &old.contexts),
            Some("atom") => {
                let name =
                    |atom: &(u32, u32)| (&space.contexts[atom.0 as usize], &space.actions[atom.1 as usize]);
                let names = space.atoms.iter().map(name);
                names.map(|(context, action)| old.place(context, action)).collect()
            }
            _ => (0..segment.n_rows).map(Some).collect(),
        }
    }
}

/// What the rows of a matrix of φ stand for; `None` for every other matrix.
fn part(segment: &Segment) -> Option<&str> {
    let (net, part) = segment.name.rsplit_once('.')?;
    let is_phi = net.split('.').next() == Some("h") && ["action", "bend", "context", "atom"].contains(&part);
    is_phi.then_some(part)
}

/// Whether a new row of a matrix of φ has something beside it that speaks for it.
fn explained(segment: &Segment, space: &TreatmentSpace, has_shared: bool) -> bool {
    match part(segment) {
        Some("atom") => has_shared,
        Some("context") => !space.context_attributes.is_empty(),
        Some(_) => !space.action_attributes.is_empty(),
        None => false,
    }
}

fn other_shape(name: &str) -> Error {
    let error = Error::usage(format!("the saved model has no weights `{name}` of that shape"));
    error.hint("train with the settings of the saved model (poul show), or fit afresh")
}

fn check_settings(saved: &Poul, params: &ValidParams) -> Result<()> {
    let of = |model| serde_json::to_value(model).unwrap_or_default();
    let (saved, ours) = (of(saved.model_params()), of(&params.model));
    let names = ours.as_object().into_iter().flat_map(|ours| ours.keys());
    for name in names.filter(|name| !MAY_DIFFER.contains(&name.as_str())) {
        let (saved, ours): (&Value, &Value) = (&saved[name], &ours[name]);
        if saved != ours {
            let error = Error::usage(format!("`model.{name}` is {ours}, and {saved} in the saved model"));
            return Err(error.hint("leave the setting out: a warm start takes those of the saved model"));
        }
    }
    Ok(())
}
