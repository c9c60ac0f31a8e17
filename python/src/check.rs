//! The profile of a table: the same steps as `poul check`.

use std::collections::BTreeMap;

use poul::check::Params;
use poul::{Error, Experiment, Progress, Result, Source};
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
pub(crate) struct CheckSettings {
    pub(crate) fit: FitSettings,
    shares: BTreeMap<String, f64>,
    permutations: usize,
}

impl CheckSettings {
    /// What is found and how.
    pub(crate) fn params(&self) -> Params {
        let (shares, permutations, seed) = (self.shares.clone(), self.permutations, self.fit.seed);
        Params { shares, permutations, seed, ..Params::default() }
    }

    /// The columns of a table and the policies, checked.
    pub(crate) fn experiment(
        &self,
        source: &Source,
        policies: Option<&PolicySet>,
        progress: &dyn Progress,
    ) -> Result<Experiment> {
        let fit = &self.fit;
        if fit.roles.outcome.is_empty() {
            return Err(Error::usage("no outcome is named").hint("name one: ‹outcome=COL›"));
        }
        Experiment::open(source, &fit.roles, policies_of(policies, fit), progress)
    }
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
        let experiment = request.experiment(&frame.source, policies, progress)?;
        let mut found = experiment.profile(&request.params(), progress)?;
        found.findings.iter_mut().for_each(|finding| finding.spell(argument));
        to_json(&found)
    })
}
