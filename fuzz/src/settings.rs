//! What the command line's `config.rs` fills, without the flags that it lays over it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use poul::data::{EncoderParams, Roles};
use poul::effect::Settings;
use serde_json::{Map, Value};

/// What stands in `poul.toml`.
#[derive(Default)]
pub(crate) struct DataSettings {
    pub(crate) roles: Roles,
    pub(crate) policies: PolicySource,
    pub(crate) shares: BTreeMap<String, f64>,
    pub(crate) baseline_data: Vec<String>,
    pub(crate) strata_table: Option<PathBuf>,
    pub(crate) encoder: EncoderParams,
    pub(crate) learner: Settings,
    pub(crate) learners: BTreeMap<String, Settings>,
    pub(crate) compare: Map<String, Value>,
    pub(crate) tune: Map<String, Value>,
}

/// Where the policies are defined.
#[derive(Default)]
pub(crate) struct PolicySource {
    pub(crate) policies: Option<PathBuf>,
    pub(crate) contexts: Option<PathBuf>,
    pub(crate) exposure_log: Option<PathBuf>,
    pub(crate) context_column: Option<String>,
}
