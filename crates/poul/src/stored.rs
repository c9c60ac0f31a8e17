//! What a model file keeps of a learner beside its numbers, as JSON; and what is said where that cannot be right.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, Result};

/// A learner's own part of the manifest.
pub(crate) fn store(manifest: &impl Serialize) -> Result<Value> {
    serde_json::to_value(manifest)
        .map_err(|error| Error::other(format!("cannot store the model: {error}")).source(error))
}

/// Reads what [`store`] wrote.
pub(crate) fn read_stored<M: DeserializeOwned>(manifest: &Value) -> Result<M> {
    M::deserialize(manifest).map_err(|error| damaged(error.to_string()))
}

/// A model file that says what no fit writes.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::input(what).hint("the file is damaged: fit again")
}

/// A model file whose parts are each possible, but not together.
pub(crate) fn contradiction() -> Error {
    damaged("the parts of the model contradict each other")
}
