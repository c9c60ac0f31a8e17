//! The search for settings: the same steps as `poul tune`.

use poul::compare::Preparation;
use poul::effect::Settings;
use poul::model::{DEFAULT_LEARNER, Learner, learner};
use poul::tune::{Halving, Resource, Search, Space, TuneRequest, default_space, preset};
use poul::{Error, Experiment, Result};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoint::CheckpointSettings;
use crate::failure::guarded;
use crate::fit::policies_of;
use crate::frame::Frame;
use crate::model::to_json;
use crate::policies::PolicySet;
use crate::settings::{FitSettings, budget, parse};
use crate::work;

/// What is searched, beside what every fit needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TuneSettings {
    fit: FitSettings,
    /// The table `[tune]`; the learner's own space where it is empty.
    space: Map<String, Value>,
    preset: Option<String>,
    core: Option<String>,
    trials: usize,
    search: Search,
    halving: bool,
    resource: Resource,
    validation_share: f64,
}

/// Searches for settings by validation R-loss; JSON.
#[pyfunction]
#[pyo3(signature = (frame, request, listener, policies=None, strata_table=None))]
pub(crate) fn tune(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
    policies: Option<&PolicySet>,
    strata_table: Option<&Frame>,
) -> PyResult<String> {
    let request: TuneSettings = guarded(py, || parse(request))?;
    work::run(py, request.fit.threads, listener, |progress| {
        let (fit, source) = (&request.fit, &frame.source);
        let learner = learner(fit.learner.as_deref().unwrap_or(DEFAULT_LEARNER))?;
        let (base, space) = searched(&request, learner)?;
        let encoder = fit.encoder.clone().check()?;
        let experiment = Experiment::open(source, &fit.roles, policies_of(policies, fit), progress)?;
        let experiment = experiment.strata_table(strata_table.map(|table| table.source.clone()));
        let _lock = fit.checkpoint.as_ref().map(CheckpointSettings::hold).transpose()?;
        let tuning = TuneRequest {
            preparation: Preparation {
                experiment: &experiment,
                encoder,
                budget: budget(fit.memory.as_deref())?,
                seed: fit.seed,
                validation_share: request.validation_share,
            },
            learner,
            base: &base,
            space: &space,
            search: request.search,
            trials: request.trials,
            halving: request.halving.then(|| Halving { resource: request.resource, ..Halving::default() }),
            checkpoint: fit.checkpoint.as_ref().map(|checkpoint| checkpoint.plan(progress)),
        };
        let found = poul::tune::tune(&tuning, progress).map_err(|error| frame.locate(error))?;
        if let Some(checkpoint) = &fit.checkpoint {
            checkpoint.remove(progress);
        }
        to_json(&found)
    })
}

/// Settings under every trial, and what is searched: the preset, the space given, or the learner's own.
fn searched(request: &TuneSettings, learner: &Learner) -> Result<(Settings, Space)> {
    let own = &request.fit.settings;
    match &request.preset {
        Some(_) if !request.space.is_empty() => Err(Error::usage("preset and space exclude each other")),
        Some(name) => {
            let preset = preset(name, learner, request.core.as_deref())?;
            Ok((own.over(&preset.base), preset.space))
        }
        None if request.space.is_empty() => Ok((own.clone(), default_space(learner)?)),
        None => Ok((own.clone(), Space::parse(&request.space)?)),
    }
}
