//! Learning: the same steps as `poul fit`, so that the same data and settings give the same model.

use poul::model::{DEFAULT_LEARNER, learner};
use poul::{Experiment, Policies, Source};
use pyo3::prelude::*;

use crate::checkpoint::CheckpointSettings;
use crate::failure::guarded;
use crate::frame::Frame;
use crate::model::Model;
use crate::policies::PolicySet;
use crate::settings::{FitSettings, budget, parse};
use crate::work;

/// Fits a model. `request` is JSON: see `FitSettings`.
#[pyfunction]
#[pyo3(signature = (frame, request, listener, policies=None, baseline=Vec::new(), strata_table=None, warm_start=None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub(crate) fn fit(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
    policies: Option<&PolicySet>,
    baseline: Vec<PyRef<'_, Frame>>,
    strata_table: Option<&Frame>,
    warm_start: Option<&Model>,
) -> PyResult<Model> {
    let request: FitSettings = guarded(py, || parse(request))?;
    let baseline: Vec<Source> = baseline.iter().map(|frame| frame.source.clone()).collect();
    let threads = request.threads;
    let fitted = work::run(py, threads, listener, |progress| {
        let source = &frame.source;
        let saved = warm_start.map(|saved| &*saved.model);
        let default = saved.map_or(DEFAULT_LEARNER, |saved| &saved.manifest().learner);
        let learner = learner(request.learner.as_deref().unwrap_or(default))?;
        let under = saved.map(|saved| saved.manifest().settings.clone()).unwrap_or_default();
        (learner.settle)(&request.settings.over(&under))?;
        let encoder = request.encoder.clone().check()?;
        let policies = policies_of(policies, &request);
        let experiment = match saved {
            Some(saved) => saved.experiment(source, &request.roles, policies, progress)?,
            None => Experiment::open(source, &request.roles, policies, progress)?,
        };
        let experiment = experiment.strata_table(strata_table.map(|table| table.source.clone()));
        let _lock = request.checkpoint.as_ref().map(CheckpointSettings::hold).transpose()?;
        let fit = poul::Model::fit(&experiment)
            .baseline(&baseline)
            .learner(learner.name)
            .settings(&request.settings)
            .encoder(&encoder)
            .budget(budget(request.memory.as_deref())?)
            .seed(request.seed)
            .checkpoint(request.checkpoint.as_ref().map(|checkpoint| checkpoint.plan(progress)))
            .warm_start(saved);
        let model = fit.run(progress).map_err(|error| frame.locate(error))?;
        if let Some(checkpoint) = &request.checkpoint {
            checkpoint.remove(progress);
        }
        Ok(model)
    })?;
    Ok(Model::of(fitted))
}

/// The policies given, or those that the data speak of.
pub(crate) fn policies_of(given: Option<&PolicySet>, request: &FitSettings) -> Policies<'static> {
    match given {
        Some(given) => given.set.clone().into(),
        None => Policies::of_rows(request.contexts.clone()),
    }
}
