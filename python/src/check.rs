//! The profile of a table: the same steps as `poul check`.

use std::collections::BTreeMap;

use poul::check::Params;
use poul::{Error, Experiment};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::failure::guarded;
use crate::fit::policies_of;
use crate::frame::Frame;
use crate::model::to_json;
use crate::policies::PolicySet;
use crate::settings::{FitSettings, parse};
use crate::spelling::argument;
use crate::work;

/// What is profiled, and how.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckSettings {
    fit: FitSettings,
    shares: BTreeMap<String, f64>,
    permutations: usize,
}

/// Profiles a table; JSON.
#[pyfunction]
#[pyo3(signature = (frame, request, listener, policies=None))]
pub(crate) fn check(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
    policies: Option<&PolicySet>,
) -> PyResult<String> {
    let request: CheckSettings = guarded(py, || parse(request))?;
    work::run(py, request.fit.threads, listener, |progress| {
        let (fit, source) = (&request.fit, &frame.source);
        if fit.roles.outcome.is_empty() {
            return Err(Error::usage("no outcome is named").hint("name one: ‹outcome=COL›"));
        }
        let experiment = Experiment::open(source, &fit.roles, policies_of(policies, fit), progress)?;
        let params = Params {
            shares: request.shares,
            permutations: request.permutations,
            seed: fit.seed,
            ..Params::default()
        };
        let mut found = experiment.profile(&params, progress)?;
        found.findings.iter_mut().for_each(|finding| finding.spell(argument));
        to_json(&found)
    })
}
