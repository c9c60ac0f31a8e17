//! Learners side by side: the same steps as `poul compare`.

use poul::compare::{ComparisonRequest, Entrant, Experiment, Schedule, Split, default_learners};
use poul::data::{ColumnKind, Columns, Design, Filter, Need, Roles, Source};
use poul::effect::{Question, Settings};
use poul::evaluate::Bootstrap;
use poul::model::learner;
use poul::policy::PolicySet as Policies;
use poul::{Error, Result, Seed};
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
        let columns = fit.roles.check(source.schema(), Need::FIT).map_err(|error| frame.locate(error))?;
        let test_columns = test.map(|test| test_columns(test, &fit.roles)).transpose()?;
        let filters = request.test_from.as_ref().map(|from| later(from, &fit.roles, source)).transpose()?;
        let split = match (test.zip(test_columns.as_ref()), &filters) {
            (Some((test, columns)), _) => Split::Table(&test.source, columns),
            (None, Some((before, from))) => Split::Filters(before, from),
            (None, None) => Split::Share(request.test_share.unwrap_or(0.3)),
        };
        let mut all = policies_of(policies, source, &columns, fit, progress)?;
        if let (Some((test, columns)), None) = (test.zip(test_columns.as_ref()), policies) {
            all = all.union(&Policies::from_data(&test.source, columns, None, progress)?)?;
        }
        let (all, control) = control(fit, all, &columns)?;
        let _lock = fit.checkpoint.as_ref().map(CheckpointSettings::hold).transpose()?;
        let comparison = ComparisonRequest {
            experiment: Experiment {
                source,
                roles: &fit.roles,
                columns: &columns,
                policies: &all,
                control: &control,
                strata_table: strata_table.map(|table| &table.source),
                encoder: &encoder,
                budget: &budget(fit.memory.as_deref())?,
                seed: fit.seed,
                validation_share: request.validation_share,
            },
            split,
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

/// Features are the encoder's. Strata say what was assigned on average; where the table has none, all rows do.
fn test_columns(test: &Frame, roles: &Roles) -> Result<Columns> {
    let known = test.source.column_names();
    let stratum = roles.stratum.clone().filter(|name| known.contains(&name.as_str()));
    let roles = Roles {
        features: Vec::new(),
        exclude: Vec::new(),
        stratum,
        propensity: None,
        prediction: Default::default(),
        time: None,
        id: Vec::new(),
        design: Design::Randomized,
        ..roles.clone()
    };
    roles.check(test.source.schema(), Need::EVALUATE).map_err(|error| test.locate(error))
}

/// Rows before a time, and rows from it on; each within the population.
fn later(from: &str, roles: &Roles, source: &Source) -> Result<(Filter, Filter)> {
    let Some(time) = &roles.time else {
        return Err(Error::usage("test_from needs a time column").hint("name it: time=COL"));
    };
    let schema = source.schema();
    let field = schema.field_with_name(time);
    let field = field.map_err(|_| Error::missing_column(time, source.column_names()).at("time"))?;
    let literal = match ColumnKind::of(field.data_type()) {
        Some(ColumnKind::Text | ColumnKind::Time) => format!("\"{from}\""),
        _ => from.to_owned(),
    };
    let filter = |relation: &str| {
        let part = format!("`{time}` {relation} {literal}");
        let text = match &roles.population {
            Some(population) => format!("({population}) and {part}"),
            None => part,
        };
        Filter::parse(&text, schema).map_err(|error| error.at("test_from"))
    };
    Ok((filter("<")?, filter(">=")?))
}

/// The policies, with the control among them.
pub(crate) fn control(
    fit: &FitSettings,
    policies: Policies,
    columns: &Columns,
) -> Result<(Policies, String)> {
    let name = fit.roles.control.as_deref().unwrap_or("control");
    if columns.factorial && policies.index(name).is_none() && fit.roles.control.is_some() {
        // A combination may be written in any order.
        let question = Question { policies: Vec::new(), against: Some(name.to_owned()) };
        let asked = question.ask(&policies, true).map_err(|error| error.at("control"))?;
        let name = asked.policies.name(asked.against).to_owned();
        return Ok((asked.policies, name));
    }
    policies.require(name).map_err(|error| error.at("control"))?;
    Ok((policies, name.to_owned()))
}
