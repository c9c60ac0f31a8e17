//! The profile of a table: the same steps as `poul check`.

use std::collections::BTreeMap;

use poul::Error;
use poul::check::{Params, profile};
use poul::data::Need;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::failure::guarded;
use crate::fit::{control_of, policies_of};
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
        let columns = fit.roles.check(source.schema(), Need::FIT);
        let mut columns = columns.map_err(|error| frame.locate(error))?;
        let policies = policies_of(policies, source, &columns, fit, progress)?;
        columns = columns.with_contexts(&policies, source.schema()).map_err(|error| frame.locate(error))?;
        columns.control = control_of(fit, &policies, &columns)?;
        // A combination that no row has cannot be compared with.
        columns.control.as_deref().map(|name| policies.require(name)).transpose()?;
        let params = Params {
            shares: request.shares,
            permutations: request.permutations,
            seed: fit.seed,
            ..Params::default()
        };
        let found = profile(source, &columns, &policies, &params, progress);
        let mut found = found.map_err(|error| frame.locate(error))?;
        found.findings.iter_mut().for_each(|finding| finding.spell(argument));
        to_json(&found)
    })
}
