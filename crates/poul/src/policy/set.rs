//! The canonical set of policies: names in byte order, sparse mixtures α_t(s,a) = w(s)Π_t(a|s) (Sec. 2.1).

use std::collections::BTreeMap;

use super::attributes::Attributes;
use super::builder::PolicySetBuilder;
use super::weights::ContextWeights;
use crate::{Error, Kind, Result};

/// Policies over common contexts, in one canonical order.
///
/// Contexts, actions, atoms and policies are sorted by name (byte order), so indices do not depend on the order
/// of a file. Equality is equality of the canonical form: how a set was written does not count.
#[derive(Clone, Debug)]
pub struct PolicySet {
    pub(super) contexts: Vec<String>,
    pub(super) weights: Vec<f64>,
    /// Whether the weights were given rather than assumed uniform.
    pub(super) weights_declared: bool,
    pub(super) actions: Vec<String>,
    pub(super) atoms: Vec<Atom>,
    pub(super) names: Vec<String>,
    /// Row `policy_idx` is `offsets[policy_idx]..offsets[policy_idx + 1]` of the three arrays below.
    pub(super) offsets: Vec<usize>,
    pub(super) entry_atoms: Vec<u32>,
    pub(super) entry_mass: Vec<f64>,
    pub(super) entry_conditional: Vec<f64>,
    /// What `"*"` stood for, by policy: needed only to extend a policy to contexts its file did not know.
    pub(super) rest: BTreeMap<u32, Vec<(String, f64)>>,
    pub(super) attributes: Attributes,
    /// By context, the column of the data that says how much each row meets it.
    pub(super) exposure: BTreeMap<String, String>,
}

/// A context and an action taken in it, as indices into [`PolicySet::contexts`] and [`PolicySet::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom {
    /// Index of the context.
    pub context: u32,
    /// Index of the action.
    pub action: u32,
}

/// The sparse mixture α_t of one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture<'a> {
    /// Atoms with Π_t(a|s) > 0, ascending.
    pub atoms: &'a [u32],
    /// α_t of each of them; 0 where the context has weight 0.
    pub mass: &'a [f64],
}

impl PolicySet {
    /// Starts an empty set.
    pub fn builder() -> PolicySetBuilder {
        PolicySetBuilder::default()
    }

    /// The contexts s, sorted.
    pub fn contexts(&self) -> &[String] {
        &self.contexts
    }

    /// w(s) in the order of [`contexts`](Self::contexts); the sum is 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Whether the weights were given (in the file or beside it) rather than assumed uniform.
    pub fn weights_declared(&self) -> bool {
        self.weights_declared
    }

    /// The actions a that some policy takes, sorted.
    pub fn actions(&self) -> &[String] {
        &self.actions
    }

    /// The (context, action) pairs with a positive probability in at least one policy, sorted.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// `context:action`, for people to read; names that contain a colon can make two atoms look alike.
    pub fn atom_name(&self, atom_idx: usize) -> String {
        let Atom { context, action } = self.atoms[atom_idx];
        format!("{}:{}", self.contexts[context as usize], self.actions[action as usize])
    }

    /// The index of the atom made of these two names.
    pub fn atom_index(&self, context: &str, action: &str) -> Option<usize> {
        let context = position(&self.contexts, context)? as u32;
        let action = position(&self.actions, action)? as u32;
        self.atoms.binary_search(&Atom { context, action }).ok()
    }

    /// Number of policies.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no policy; never true of a set that was built.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names of the policies, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Name of one policy.
    pub fn name(&self, policy_idx: usize) -> &str {
        &self.names[policy_idx]
    }

    /// The index of the policy called `name`.
    pub fn index(&self, name: &str) -> Option<usize> {
        position(&self.names, name)
    }

    /// The index of the policy called `name`, or an error that suggests the nearest name.
    pub fn require(&self, name: &str) -> Result<usize> {
        self.index(name).ok_or_else(|| {
            let known = self.names.iter().map(String::as_str);
            Error::unknown(Kind::Input, "policy", name, "policies", known)
        })
    }

    /// α_t of one policy.
    pub fn mixture(&self, policy_idx: usize) -> Mixture<'_> {
        let row = self.row(policy_idx);
        Mixture { atoms: &self.entry_atoms[row.clone()], mass: &self.entry_mass[row] }
    }

    /// Π_t(a|s) of one policy, in the order of its [`mixture`](Self::mixture).
    pub fn conditional(&self, policy_idx: usize) -> &[f64] {
        &self.entry_conditional[self.row(policy_idx)]
    }

    /// What is known of contexts and actions.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// By context, the column of the data that says how much each row meets it, as the policy file names them.
    pub(crate) fn exposure(&self) -> &BTreeMap<String, String> {
        &self.exposure
    }

    /// The same policies under other context weights; every context needs one and no other may have one.
    pub fn with_weights(&self, weights: &ContextWeights) -> Result<PolicySet> {
        let mut builder = self.to_builder();
        builder.replace_weights(weights);
        builder.build()
    }

    /// The same policies under weights in the order of the contexts, which sum to 1.
    pub(crate) fn under_weights(&self, weights: &[f64]) -> PolicySet {
        let mut set = self.clone();
        set.weights.iter_mut().zip(weights).for_each(|(own, weight)| *own = *weight);
        let entries = set.entry_atoms.iter().zip(&set.entry_conditional);
        set.entry_mass = entries
            .map(|(atom, probability)| set.weights[set.atoms[*atom as usize].context as usize] * probability)
            .collect();
        set
    }

    /// A builder that holds this set's policies, weights and attributes.
    pub(super) fn to_builder(&self) -> PolicySetBuilder {
        let mut builder = PolicySetBuilder::default();
        for (context, weight) in self.contexts.iter().zip(&self.weights) {
            builder.weight(context, *weight);
        }
        for policy_idx in 0..self.len() {
            for (context, action, probability) in self.rows(policy_idx) {
                builder.add(self.name(policy_idx), context, action, probability);
            }
        }
        builder.attributes(self.attributes.clone());
        builder.exposure.clone_from(&self.exposure);
        builder
    }

    /// (context, action, Π_t(a|s)) by name.
    pub(super) fn rows(&self, policy_idx: usize) -> impl Iterator<Item = (&str, &str, f64)> {
        let row = self.row(policy_idx);
        self.entry_atoms[row.clone()].iter().zip(&self.entry_conditional[row]).map(|(atom, probability)| {
            let Atom { context, action } = self.atoms[*atom as usize];
            let context = self.contexts[context as usize].as_str();
            (context, self.actions[action as usize].as_str(), *probability)
        })
    }

    pub(super) fn row(&self, policy_idx: usize) -> std::ops::Range<usize> {
        self.offsets[policy_idx]..self.offsets[policy_idx + 1]
    }
}

impl PartialEq for PolicySet {
    fn eq(&self, other: &Self) -> bool {
        // Masses follow from weights and conditionals; atoms of equal names have equal indices.
        self.contexts == other.contexts
            && self.weights == other.weights
            && self.actions == other.actions
            && self.atoms == other.atoms
            && self.names == other.names
            && self.offsets == other.offsets
            && self.entry_atoms == other.entry_atoms
            && self.entry_conditional == other.entry_conditional
            && self.attributes == other.attributes
            && self.exposure == other.exposure
    }
}

fn position(sorted: &[String], name: &str) -> Option<usize> {
    sorted.binary_search_by(|candidate| candidate.as_str().cmp(name)).ok()
}
