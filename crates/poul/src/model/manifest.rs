//! What a model says of itself: roles, encoder, policies, settings, history, data, command; by version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::{Encoder, Roles};
use crate::effect::{Phase, Settings};
use crate::policy::{Exposure, PolicySet};
use crate::{Error, Result};

/// The version of the format that is written. Every older one is read.
pub const FORMAT: u32 = 1;

/// Everything in a model file but the tensors.
///
/// Nothing in it depends on the clock, the machine or the number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// The version of the library that wrote it.
    pub poul: String,
    /// The learner's name.
    pub learner: String,
    /// The outcomes, in the order of all effects.
    pub outcomes: Vec<OutcomeRecord>,
    /// The policy that others are compared with, where there is one.
    pub control: Option<String>,
    /// The roles of columns, as given.
    pub roles: Roles,
    /// The settings, complete.
    pub settings: Settings,
    /// The root of all random streams.
    pub seed: u64,
    /// The data it was trained on.
    pub data: Vec<DataRecord>,
    /// The command that fitted it, without what does not matter to the result; empty where there was none.
    pub command: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// How training went.
    pub history: Vec<Phase>,
    /// How many training rows each policy had.
    pub policy_rows: Vec<u64>,
    /// The policies.
    pub policies: PolicySet,
    /// How exposure columns become each row's weights of contexts; none where contexts weigh the same for every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub exposure: Option<Exposure>,
    /// How features become numbers.
    #[doc(hidden)]
    pub encoder: Encoder,
    /// What the learner itself keeps.
    #[doc(hidden)]
    pub model: Value,
}

/// An outcome in the training data, weighted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// Its name.
    pub name: String,
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
}

/// A table that was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// The names of its files, without folders.
    pub files: Vec<String>,
    /// The rows that counted.
    pub rows: u64,
    /// A digest of the content: see [`Source::fingerprint`](crate::data::Source::fingerprint).
    pub fingerprint: String,
    /// What it was used for.
    #[serde(default, skip_serializing_if = "DataUse::is_experiment")]
    pub used_for: DataUse,
}

/// What a table was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataUse {
    /// The rows with policies, from which everything is learned.
    #[default]
    Experiment,
    /// Rows without a treatment, from which the outcome model learned too.
    Baseline,
}

impl DataUse {
    fn is_experiment(&self) -> bool {
        *self == Self::Experiment
    }
}

/// Refuses a document with a number that what was read from it could not hold: it became infinite, which is stored as nothing.
pub(super) fn require_held(document: &Value, held: &Value) -> Result<()> {
    match (document, held) {
        (Value::Number(number), Value::Null) => {
            Err(Error::input(format!("the manifest is damaged: {number} is out of range"))
                .hint("fit the model again"))
        }
        (Value::Array(all), Value::Array(held)) => {
            all.iter().zip(held).try_for_each(|(own, held)| require_held(own, held))
        }
        (Value::Object(all), Value::Object(held)) => all
            .iter()
            .filter_map(|(name, own)| Some((own, held.get(name)?)))
            .try_for_each(|(own, held)| require_held(own, held)),
        _ => Ok(()),
    }
}

impl Manifest {
    /// Reads a manifest of this format or any older one.
    pub fn parse(text: &str) -> Result<Self> {
        let damaged = |error: serde_json::Error| {
            let error = Error::input(format!("the manifest is damaged: {error}")).source(error);
            error.hint("fit the model again")
        };
        /// What every version has.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            poul: String,
        }
        let document: Value = serde_json::from_str(text).map_err(damaged)?;
        let head = Head::deserialize(&document).map_err(damaged)?;
        if head.format > FORMAT {
            let Head { format, poul } = head;
            let what = format!(
                "the model is of format {format}, written by poul {poul}; this version reads formats up to {FORMAT}"
            );
            return Err(Error::input(what).hint(format!("use poul {poul} or newer")));
        }
        // Formats that are older than this one would be brought up to it here, one step after the other.
        let manifest = Self::deserialize(&document).map_err(damaged)?;
        require_held(&document, &serde_json::to_value(&manifest).map_err(damaged)?)?;
        Ok(manifest)
    }

    /// The manifest as it is stored.
    pub fn to_text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::other(format!("cannot store the manifest: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_single_precision_cannot_hold_are_damage() {
        let document = serde_json::json!({ "a": [1.0, { "b": -1e308 }], "c": null, "d": 2 });
        #[derive(Serialize, Deserialize)]
        struct Inner {
            b: f32,
        }
        let read = Inner::deserialize(&document["a"][1]).unwrap();
        let held = serde_json::json!({ "a": [1.0, read], "c": null, "d": 2 });
        let error = require_held(&document, &held).unwrap_err().to_string();
        assert!(
            error.contains("-1e308 is out of range") || error.contains("-1e+308 is out of range"),
            "{error}"
        );
        assert!(require_held(&document, &document).is_ok());
    }
}
