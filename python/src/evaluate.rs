//! Measuring effects: a model's, or columns that anyone predicted. The library's `evaluate::run`, as `poul evaluate` calls it.

use std::path::PathBuf;

use poul::data::Roles;
use poul::evaluate::run::{self, EvaluationRequest, ValidEvaluationRequest, evaluate_model, fitted_roles};
use poul::evaluate::{Evaluation, Metric};
use poul::{Error, Result};
use poul_report::ReportTarget;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::guarded;
use crate::frame::Frame;
use crate::model::Model;
use crate::policies::PolicySet;
use crate::settings::{budget, parse};
use crate::work;

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvaluationSettings {
    /// Roles by name; for a model, those that differ from the roles it was fitted with.
    roles: Map<String, Value>,
    /// All else, without roles.
    request: EvaluationRequest,
    memory: Option<String>,
    pub(crate) threads: Option<usize>,
}

/// Measures columns of effects that anyone predicted; JSON.
#[pyfunction]
pub(crate) fn evaluate_columns(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let settings: EvaluationSettings = guarded(py, || parse(request))?;
    work::run(py, settings.threads, listener, |progress| {
        let request = settings.over(&Roles::default())?;
        to_text(&run::evaluate_columns(&frame.source, &request, progress)?)
    })
}

/// Writes the page of `poul evaluate --report` about an evaluation in JSON.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, evaluation: &str, path: PathBuf) -> PyResult<()> {
    guarded(py, || {
        let evaluation: Evaluation = serde_json::from_str(evaluation)
            .map_err(|error| Error::other(format!("cannot read the evaluation: {error}")))?;
        ReportTarget::open(Some(&path))?.write(|| poul_report::of_evaluation(&evaluation))
    })
}

/// Measures the effects of a model; JSON.
pub(crate) fn by_model(
    py: Python<'_>,
    model: &Model,
    frame: &Frame,
    settings: &EvaluationSettings,
    policies: Option<&PolicySet>,
    listener: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let (model, source) = (&*model.model, &frame.source);
    let policies = policies.map(|policies| &policies.set);
    work::run(py, settings.threads, listener, |progress| {
        let request = settings.over(&fitted_roles(model, source, progress))?;
        to_text(&evaluate_model(model, policies, source, &request, progress)?)
    })
}

impl EvaluationSettings {
    /// The request, its roles laid over others.
    pub(crate) fn over(&self, roles: &Roles) -> Result<ValidEvaluationRequest> {
        let roles = laid_over(roles, &self.roles)?;
        let budget = budget(self.memory.as_deref())?;
        EvaluationRequest { roles, budget, ..self.request.clone() }.check()
    }
}

/// Roles, and others laid over them by name. A treatment of one kind replaces one of the other.
fn laid_over(roles: &Roles, others: &Map<String, Value>) -> Result<Roles> {
    let failed = |error: serde_json::Error| Error::usage(error.to_string()).at("roles");
    let mut merged = match serde_json::to_value(roles).map_err(failed)? {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    if others.contains_key("treatment") || others.contains_key("treatment_columns") {
        merged.remove("treatment");
        merged.remove("treatment_columns");
    }
    merged.extend(others.clone());
    serde_json::from_value(Value::Object(merged)).map_err(failed)
}

/// JSON of the metrics of two arms, in the order of an evaluation: their keys, and how tables show them.
#[pyfunction]
pub(crate) fn metrics() -> String {
    let described = Metric::ARMS.iter().map(|metric| {
        let own = metric.definition();
        serde_json::json!({
            "name": own.name,
            "title": own.title,
            "needs_truth": own.needs_truth,
            "is_shown": own.evaluated.is_some(),
            "with_interval": own.evaluated.is_some_and(|shown| shown.interval),
            "is_compared": own.compared.is_some(),
        })
    });
    Value::Array(described.collect()).to_string()
}

/// The text that `poul evaluate --json` writes.
fn to_text(evaluation: &Evaluation) -> Result<String> {
    serde_json::to_string_pretty(evaluation)
        .map_err(|error| Error::other(format!("cannot write JSON: {error}")))
}
