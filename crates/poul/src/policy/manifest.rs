//! A policy set inside a model's manifest: columns of indices, checked again when read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use self::exact::list as exact_list;
use super::attributes::Attributes;
use super::builder::PolicySetBuilder;
use super::set::{Atom, PolicySet};
use crate::{Error, Result};

/// The stored form. A mixture is stored as Π_t(a|s); masses follow from the weights.
#[derive(Serialize, Deserialize)]
struct Stored {
    contexts: Vec<String>,
    #[serde(with = "exact_list")]
    weights: Vec<f64>,
    weights_declared: bool,
    actions: Vec<String>,
    /// Pairs of a context and an action.
    atoms: Vec<(u32, u32)>,
    policies: Vec<String>,
    /// Number of entries of each policy.
    n_entries: Vec<u32>,
    entry_atoms: Vec<u32>,
    #[serde(with = "exact_list")]
    probabilities: Vec<f64>,
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    exposure: BTreeMap<String, String>,
}

impl Serialize for PolicySet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            contexts: self.contexts.clone(),
            weights: self.weights.clone(),
            weights_declared: self.weights_declared,
            actions: self.actions.clone(),
            atoms: self.atoms.iter().map(|atom| (atom.context, atom.action)).collect(),
            policies: self.names.clone(),
            n_entries: self.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect(),
            entry_atoms: self.entry_atoms.clone(),
            probabilities: self.entry_conditional.clone(),
            attributes: self.attributes.clone(),
            exposure: self.exposure.clone(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PolicySet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        rebuild(Stored::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Builds the set anew, so that a damaged manifest meets the same checks as a policy file.
fn rebuild(stored: Stored) -> Result<PolicySet> {
    let damaged = || Error::input("the stored policies contradict each other").hint("fit the model again");
    let n_entries: u64 = stored.n_entries.iter().map(|n| u64::from(*n)).sum();
    if stored.weights.len() != stored.contexts.len()
        || stored.n_entries.len() != stored.policies.len()
        || stored.entry_atoms.len() as u64 != n_entries
        || stored.probabilities.len() as u64 != n_entries
    {
        return Err(damaged());
    }
    let mut builder = PolicySetBuilder::default();
    for (context, weight) in stored.contexts.iter().zip(&stored.weights) {
        builder.weight(context, *weight);
    }
    let mut entries = stored.entry_atoms.iter().zip(&stored.probabilities);
    for (policy, n) in stored.policies.iter().zip(&stored.n_entries) {
        for (atom, probability) in entries.by_ref().take(*n as usize) {
            let (context, action) = *stored.atoms.get(*atom as usize).ok_or_else(damaged)?;
            let context = stored.contexts.get(context as usize).ok_or_else(damaged)?;
            let action = stored.actions.get(action as usize).ok_or_else(damaged)?;
            builder.add(policy, context, action, *probability);
        }
    }
    builder.attributes(stored.attributes);
    builder.exposure = stored.exposure;
    let mut set = builder.build()?;
    set.weights_declared = stored.weights_declared;
    // Weights, tensors and indices elsewhere in a model refer to atoms by number.
    let same_atoms = set.atoms.iter().map(|Atom { context, action }| (*context, *action)).eq(stored.atoms);
    let same = same_atoms
        && set.contexts == stored.contexts
        && set.actions == stored.actions
        && set.names == stored.policies
        && set.entry_atoms == stored.entry_atoms;
    if same { Ok(set) } else { Err(damaged()) }
}

/// A float that survives any JSON reader to the last bit.
///
/// Some readers are off by one unit in the last place from the sixteenth digit on; such numbers are written as
/// strings.
pub(super) mod exact {
    use super::{Deserialize, Deserializer, Serialize, Serializer, de};

    const SAFE_DIGITS: usize = 15;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Exact {
        Number(f64),
        Text(String),
    }

    pub(in super::super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        wrap(*value).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        unwrap(Exact::deserialize(deserializer)?)
    }

    fn wrap(value: f64) -> Exact {
        let text = format!("{value:e}");
        let mantissa = text.split('e').next().unwrap_or_default();
        let n_digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
        // Beyond 10^±22 powers of ten are not exact in a float.
        let moderate = value == 0.0 || (1e-6..1e16).contains(&value.abs());
        if n_digits <= SAFE_DIGITS && moderate {
            Exact::Number(value)
        } else {
            Exact::Text(format!("{value:?}"))
        }
    }

    fn unwrap<E: de::Error>(value: Exact) -> Result<f64, E> {
        match value {
            Exact::Number(number) => Ok(number),
            Exact::Text(text) => text.parse().map_err(|_| E::custom(format!("`{text}` is not a number"))),
        }
    }

    pub(super) mod list {
        use super::{Deserialize, Deserializer, Exact, Serializer, unwrap, wrap};

        pub(in super::super) fn serialize<S: Serializer>(
            values: &[f64],
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(values.iter().map(|value| wrap(*value)))
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Vec<f64>, D::Error> {
            Vec::<Exact>::deserialize(deserializer)?.into_iter().map(unwrap).collect()
        }
    }
}
