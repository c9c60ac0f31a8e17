//! Settings as they come from Python, as JSON of the tables of `poul.toml`; and what can be set, by learner.

use std::collections::BTreeMap;
use std::path::PathBuf;

use poul::data::{Budget, EncoderParams, Roles};
use poul::effect::{Settings, wrong_value};
use poul::model::{LEARNERS, learner};
use poul::policy::exposure_weights;
use poul::{Error, Result};
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::checkpoint::CheckpointSettings;
use crate::failure::guarded;

/// What every fit needs beside the table and the policies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FitSettings {
    pub(crate) roles: Roles,
    pub(crate) learner: Option<String>,
    #[serde(default)]
    pub(crate) settings: Settings,
    #[serde(default)]
    pub(crate) encoder: EncoderParams,
    /// Context weights for policies that come from the data.
    #[serde(default)]
    pub(crate) contexts: Option<BTreeMap<String, f64>>,
    pub(crate) seed: u64,
    #[serde(default)]
    pub(crate) memory: Option<String>,
    #[serde(default)]
    pub(crate) threads: Option<usize>,
    /// Where the work leaves what it has done; nowhere where there is none.
    #[serde(default)]
    pub(crate) checkpoint: Option<CheckpointSettings>,
}

/// Settings from JSON.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        // The place in JSON that nobody wrote says nothing.
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        let is_value = said.starts_with("invalid ") || said.starts_with("unknown variant");
        let wrong = match entry_before(text, error.column()).filter(|_| is_value) {
            Some((name, value)) => wrong_value(name, &value, said),
            None => Error::usage(said.to_owned()).at("settings"),
        };
        wrong.source(error)
    })
}

/// The last entry that begins before a place in JSON as Python writes it: one line of ASCII.
fn entry_before(text: &str, column: usize) -> Option<(&str, Value)> {
    let name_end = text.get(..column)?.rfind("\": ")?;
    let name = text[..name_end].rsplit('"').next()?;
    let value = serde_json::Deserializer::from_str(&text[name_end + 3..]).into_iter().next()?.ok()?;
    Some((name, value))
}

/// The memory budget asked for.
pub(crate) fn budget(memory: Option<&str>) -> Result<Budget> {
    match memory {
        Some(text) => text.parse(),
        None => Ok(Budget::default()),
    }
}

/// Every learner and what it is.
#[pyfunction]
pub(crate) fn learners() -> Vec<(&'static str, &'static str)> {
    LEARNERS.iter().map(|learner| (learner.name, learner.summary)).collect()
}

/// What can be set of a learner, with its defaults: JSON of `{"model": {…}, "training": {…}}`.
#[pyfunction]
#[pyo3(signature = (name, preset=None))]
pub(crate) fn settings(py: Python<'_>, name: &str, preset: Option<String>) -> PyResult<String> {
    guarded(py, || {
        let learner = learner(name)?;
        let settled = (learner.settle)(&Settings { preset, ..Settings::default() })?;
        let tables =
            json!({ "model": Value::Object(settled.model), "training": Value::Object(settled.training) });
        Ok(tables.to_string())
    })
}

/// The member of `known` that `name` was most likely meant to be.
#[pyfunction]
pub(crate) fn nearest_name(name: &str, known: Vec<String>) -> Option<String> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    poul::nearest_name(name, &known).map(str::to_owned)
}

/// The context weights of a file with columns `context,weight`, or the shares of a column of an exposure log.
#[pyfunction]
#[pyo3(signature = (path, column=None))]
pub(crate) fn context_weights(
    py: Python<'_>,
    path: PathBuf,
    column: Option<&str>,
) -> PyResult<BTreeMap<String, f64>> {
    guarded(py, || exposure_weights(&path, column))
}
