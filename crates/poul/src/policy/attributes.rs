//! What is known of contexts and actions beyond their names, so that new ones can be scored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One property of a context or an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttributeValue {
    /// Yes or no.
    Flag(bool),
    /// A finite number.
    Number(#[serde(with = "super::manifest::exact")] f64),
    /// A category.
    Text(String),
}

/// Properties by name of the context or action, then by name of the property.
///
/// Names that no policy uses yet are kept: they describe atoms of policies to come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attributes {
    /// Properties of contexts.
    pub contexts: BTreeMap<String, BTreeMap<String, AttributeValue>>,
    /// Properties of actions.
    pub actions: BTreeMap<String, BTreeMap<String, AttributeValue>>,
}

impl Attributes {
    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.actions.is_empty()
    }

    /// What either knows; a property that both know must be the same.
    pub(super) fn merge(&self, other: &Self) -> Result<Self> {
        let mut merged = self.clone();
        merge_group("context", &mut merged.contexts, &other.contexts)?;
        merge_group("action", &mut merged.actions, &other.actions)?;
        Ok(merged)
    }
}

type Group = BTreeMap<String, BTreeMap<String, AttributeValue>>;

fn merge_group(kind: &str, ours: &mut Group, theirs: &Group) -> Result<()> {
    for (name, properties) in theirs {
        let known = ours.entry(name.clone()).or_default();
        for (property, value) in properties {
            match known.get(property) {
                Some(present) if present != value => {
                    return Err(Error::input(format!(
                        "attribute `{property}` of {kind} `{name}` differs between the two policy sets"
                    ))
                    .hint("give it the same value in both, or leave it out of the new file"));
                }
                Some(_) => {}
                None => {
                    known.insert(property.clone(), value.clone());
                }
            }
        }
    }
    Ok(())
}
