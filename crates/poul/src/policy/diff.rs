//! What changes between two policies, context by context.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::distance::SAME_MIXTURE;
use super::set::PolicySet;
use crate::{Error, Result};

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
    /// What changes from policy `from` to policy `to` of another set over the same contexts, whose weights are shown.
    ///
    /// Where the weights of the sets differ, mass moves in contexts with the same actions too.
    pub fn diff_with(&self, from: usize, other: &PolicySet, to: usize) -> Result<Diff> {
        for (own, theirs) in [(self, other), (other, self)] {
            if let Some(name) = own.contexts.iter().find(|name| !theirs.contexts.contains(name)) {
                return Err(Error::input(format!("only one of the two has the context `{name}`"))
                    .hint("policies can be compared over the same contexts only"));
            }
        }
        let mut contexts = Vec::new();
        // Contexts are sorted by name in both.
        for (place, (from, to)) in self.by_context(from).into_iter().zip(other.by_context(to)).enumerate() {
            let (before, weight) = (self.weights[place], other.weights[place]);
            let scaled = |actions: &[(&'_ str, f64)], weight: f64| -> Vec<(String, f64)> {
                actions.iter().map(|(action, p)| ((*action).to_owned(), p * weight)).collect()
            };
            let (mass_from, mass_to) = (scaled(&from, before), scaled(&to, weight));
            let mass_moved = half_l1(&borrowed(&mass_from), &borrowed(&mass_to));
            if mass_moved >= SAME_MIXTURE || half_l1(&from, &to) >= SAME_MIXTURE {
                let context = self.contexts[place].clone();
                let (from, to) = (scaled(&from, 1.0), scaled(&to, 1.0));
                contexts.push(ContextChange { context, weight, from, to, mass_moved });
            }
        }
        let mass_moved = contexts.iter().map(|change| change.mass_moved).sum::<f64>();
        let (from, to) = (self.name(from).to_owned(), other.name(to).to_owned());
        Ok(Diff { from, to, contexts, distance: 2.0 * mass_moved, mass_moved })
    }

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

fn borrowed(actions: &[(String, f64)]) -> Vec<(&str, f64)> {
    actions.iter().map(|(action, p)| (action.as_str(), *p)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> PolicySet {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        std::fs::write(&path, text).unwrap();
        PolicySet::read(&path, None).unwrap()
    }

    const POLICIES: &str = "[policies.a]\n'*' = 'x'\n[policies.b]\npeak = 'y'\noff = 'x'\n";

    #[test]
    fn sets_over_the_same_contexts_are_compared_as_one_set_is() {
        let one = set(&format!("[contexts]\npeak = 3\noff = 1\n{POLICIES}"));
        assert_eq!(one.diff_with(0, &one, 1).unwrap(), one.diff(0, 1));
        assert!(one.diff_with(1, &one, 1).unwrap().contexts.is_empty());
        let other = set("[contexts]\npeak = 3\noff = 1\n[policies.b]\npeak = 'y'\noff = 'z'\n");
        let diff = one.diff_with(1, &other, 0).unwrap();
        assert_eq!((diff.contexts.len(), diff.distance), (1, 0.5));
    }

    #[test]
    fn weights_and_contexts_that_differ_are_told() {
        let one = set(&format!("[contexts]\npeak = 3\noff = 1\n{POLICIES}"));
        let even = set(&format!("[contexts]\npeak = 1\noff = 1\n{POLICIES}"));
        let diff = one.diff_with(0, &even, 0).unwrap();
        // A quarter of the mass moves from peak to off, counted in both contexts.
        assert_eq!((diff.contexts.len(), diff.mass_moved), (2, 0.25));
        let more = set(&format!("[contexts]\npeak = 3\noff = 1\nnight = 1\n{POLICIES}")
            .replace("off = 'x'", "off = 'x'\nnight = 'x'"));
        let error = one.diff_with(0, &more, 0).unwrap_err();
        assert_eq!(error.to_string(), "only one of the two has the context `night`");
    }
}
