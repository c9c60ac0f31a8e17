//! `[compare]` of `poul.toml` under the flags of the same names.

use poul::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::args::Compare;
use crate::config::DataSettings;

/// How learners are compared.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CompareSettings {
    /// The learners. Default: none, a short list.
    pub(super) learner: Vec<String>,
    /// Schedules of the method's own. Default: none.
    pub(super) schedule: Vec<String>,
    /// Seeds. Default 1.
    pub(super) seeds: usize,
    /// The learner that differences are taken to. Default: the method's own.
    pub(super) reference: Option<String>,
    /// The core population. Default: none.
    pub(super) core: Option<String>,
    /// Share of the data to test on. Default 0.3, where no other test rows are named.
    pub(super) test_share: Option<f64>,
    /// The first time to test on. Default: none.
    pub(super) test_from: Option<Value>,
    /// Share of the training units held out. Default 0.1.
    pub(super) validation_share: f64,
    /// Bootstrap draws. Default 200.
    pub(super) draws: usize,
    /// Level of the intervals. Default 0.9.
    pub(super) level: f64,
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self {
            learner: Vec::new(),
            schedule: Vec::new(),
            seeds: 1,
            reference: None,
            core: None,
            test_share: None,
            test_from: None,
            validation_share: 0.1,
            draws: 200,
            level: 0.9,
        }
    }
}

impl CompareSettings {
    pub(super) fn new(args: &Compare, data: &DataSettings) -> Result<Self> {
        let file = Self::deserialize(Value::Object(data.compare.clone()));
        let mut settings = file.map_err(|error| {
            let error = Error::input(error.to_string()).at("[compare]");
            match &args.roles.config {
                Some(config) => error.file(config),
                None => error,
            }
        })?;
        if !args.learner.is_empty() {
            settings.learner.clone_from(&args.learner);
        }
        if !args.schedule.is_empty() {
            settings.schedule.clone_from(&args.schedule);
        }
        settings.seeds = args.seeds.unwrap_or(settings.seeds);
        settings.reference = args.reference.clone().or(settings.reference);
        settings.core = args.core.clone().or(settings.core);
        // Test rows that are named one way are not named another way too.
        if args.test.is_some() || args.test_share.is_some() || args.test_from.is_some() {
            settings.test_share = args.test_share;
            settings.test_from = args.test_from.clone().map(Value::String);
        }
        if settings.test_share.is_some() && settings.test_from.is_some() {
            let error = Error::usage("`test_share` and `test_from` exclude each other").at("[compare]");
            return Err(error.hint("keep one of them"));
        }
        settings.validation_share = args.validation_share.unwrap_or(settings.validation_share);
        settings.draws = args.draws.unwrap_or(settings.draws);
        settings.level = args.level.unwrap_or(settings.level);
        Ok(settings)
    }
}
