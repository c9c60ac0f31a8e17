//! Learners side by side: the same steps as `poul compare`.

use poul::compare::{ComparisonRequest, Entrant, Preparation, Schedule, Split, default_learners};
use poul::effect::Settings;
use poul::evaluate::Bootstrap;
use poul::model::learner;
use poul::{Experiment, Result, Seed};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::checkpoint::CheckpointSettings;
use crate::failure::guarded;
use crate::fit::policies_of;
use crate::frame::Frame;
use crate::model::to_json;
use crate::policies::PolicySet;
use crate::settings::{FitSettings, budget, parse};
use crate::work;

/// What is compared, beside what every fit needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareSettings {
    fit: FitSettings,
    /// Learners with their settings; a short list where there are none.
    learners: Vec<Contestant>,
    seeds: usize,
    reference: Option<String>,
    policy: Vec<String>,
    allow_unseen: bool,
    core: Option<String>,
    test_share: Option<f64>,
    /// As it stands in the expression: numbers plain, anything else in quotes.
    test_from: Option<String>,
    validation_share: f64,
    draws: usize,
    level: f64,
}

/// A learner that takes part, perhaps by a schedule of epochs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contestant {
    name: String,
    #[serde(default)]
    settings: Settings,
    schedule: Option<String>,
}

/// Compares learners on the same test rows; JSON.
#[pyfunction]
#[pyo3(signature = (frame, request, listener, policies=None, test=None, truth=None, strata_table=None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub(crate) fn compare(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
    policies: Option<&PolicySet>,
    test: Option<&Frame>,
    truth: Option<&Frame>,
    strata_table: Option<&Frame>,
) -> PyResult<String> {
    let request: CompareSettings = guarded(py, || parse(request))?;
    work::run(py, request.fit.threads, listener, |progress| {
        let (fit, source) = (&request.fit, &frame.source);
        let entrants = entrants(&request)?;
        let encoder = fit.encoder.clone().check()?;
        let split = match (test, &request.test_from) {
            (Some(test), _) => Split::table(&test.source, &fit.roles)?,
            (None, Some(from)) => Split::later(from, &fit.roles, source)?,
            (None, None) => request.test_share.map_or(Split::DEFAULT, Split::Share),
        };
        let policies = split.policies(policies_of(policies, fit));
        let experiment = Experiment::open(source, &fit.roles, policies, progress)?;
        let experiment = experiment.strata_table(strata_table.map(|table| table.source.clone()));
        let _lock = fit.checkpoint.as_ref().map(CheckpointSettings::hold).transpose()?;
        let comparison = ComparisonRequest {
            preparation: Preparation {
                experiment: &experiment,
                encoder,
                budget: budget(fit.memory.as_deref())?,
                seed: fit.seed,
                validation_share: request.validation_share,
            },
            split: &split,
            entrants: &entrants,
            seeds: request.seeds,
            reference: request.reference.as_deref(),
            policies: &request.policy,
            allow_unseen: request.allow_unseen,
            core: request.core.as_deref(),
            truth: truth.map(|truth| &truth.source),
            bootstrap: Bootstrap { draws: request.draws, level: request.level, seed: Seed::new(fit.seed) },
            checkpoint: fit.checkpoint.as_ref().map(|checkpoint| checkpoint.plan(progress)),
        };
        let found = poul::compare::compare(&comparison, progress).map_err(|error| frame.locate(error))?;
        // Where a learner failed, those that are finished are kept for the next attempt.
        if let (Some(checkpoint), true) = (&fit.checkpoint, found.failures.is_empty()) {
            checkpoint.remove(progress);
        }
        to_json(&found)
    })
}

fn entrants(request: &CompareSettings) -> Result<Vec<Entrant>> {
    if request.learners.is_empty() {
        let entrant = |name: &str| Entrant::new(learner(name)?, &Settings::default());
        return default_learners().into_iter().map(entrant).collect();
    }
    let entrant = |one: &Contestant| match &one.schedule {
        None => Entrant::new(learner(&one.name)?, &one.settings),
        Some(schedule) => {
            let schedule: Schedule = schedule.parse()?;
            Entrant::scheduled(learner(&one.name)?, &one.settings, schedule, request.core.as_deref())
        }
    };
    request.learners.iter().map(entrant).collect()
}
