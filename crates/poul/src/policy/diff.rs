//! What changes between two policies, context by context.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::distance::SAME_MIXTURE;
use super::set::PolicySet;

/// What changes from one policy to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Name of the policy before.
    pub from: String,
    /// Name of the policy after.
    pub to: String,
    /// The contexts in which something changes, in order of names.
    pub contexts: Vec<ContextChange>,
    /// d_Π between the two.
    pub distance: f64,
    /// The share of exposure that gets another action: d_Π / 2.
    pub mass_moved: f64,
}

/// What changes in one context.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextChange {
    /// Name of the context.
    pub context: String,
    /// w(s); a change in a context of weight 0 is listed, and moves nothing.
    pub weight: f64,
    /// Actions and probabilities before.
    #[serde(serialize_with = "as_table")]
    pub from: Vec<(String, f64)>,
    /// Actions and probabilities after.
    #[serde(serialize_with = "as_table")]
    pub to: Vec<(String, f64)>,
    /// The share of exposure that gets another action here.
    pub mass_moved: f64,
}

impl PolicySet {
    /// What changes from policy `from` to policy `to`.
    pub fn diff(&self, from: usize, to: usize) -> Diff {
        let (before, after) = (self.by_context(from), self.by_context(to));
        let mut contexts = Vec::new();
        for (context, (from, to)) in before.into_iter().zip(after).enumerate() {
            let moved = half_l1(&from, &to);
            if moved >= SAME_MIXTURE {
                let weight = self.weights[context];
                let owned = |actions: Vec<(&str, f64)>| {
                    actions
                        .into_iter()
                        .map(|(action, probability)| (action.to_owned(), probability))
                        .collect()
                };
                let context = self.contexts[context].clone();
                let (from, to) = (owned(from), owned(to));
                contexts.push(ContextChange { context, weight, from, to, mass_moved: weight * moved });
            }
        }
        let distance = self.distance(from, to);
        let (from, to) = (self.name(from).to_owned(), self.name(to).to_owned());
        Diff { from, to, contexts, distance, mass_moved: distance / 2.0 }
    }

    /// The actions of a policy in each context, with Π_t(a|s), sorted by name.
    pub fn by_context(&self, policy_idx: usize) -> Vec<Vec<(&str, f64)>> {
        let mut contexts = vec![Vec::new(); self.contexts.len()];
        for (atom, probability) in self.mixture(policy_idx).atoms.iter().zip(self.conditional(policy_idx)) {
            let atom = self.atoms[*atom as usize];
            contexts[atom.context as usize].push((self.actions[atom.action as usize].as_str(), *probability));
        }
        contexts
    }
}

/// The total variation between two distributions sorted by action.
fn half_l1(a: &[(&str, f64)], b: &[(&str, f64)]) -> f64 {
    let probability = |actions: &[(&str, f64)], wanted: &str| {
        actions.binary_search_by(|(action, _)| action.cmp(&wanted)).map_or(0.0, |found| actions[found].1)
    };
    let kept: f64 = a.iter().map(|(action, p)| (p - probability(b, action)).abs()).sum();
    let new: f64 = b.iter().filter(|(action, _)| probability(a, action) == 0.0).map(|(_, p)| p).sum();
    (kept + new) / 2.0
}

fn as_table<S: Serializer>(actions: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut table = serializer.serialize_map(Some(actions.len()))?;
    for (action, probability) in actions {
        table.serialize_entry(action, probability)?;
    }
    table.end()
}
