//! Learning: the same steps as `poul fit`, so that the same data and settings give the same model.

use poul::Result;
use poul::data::{Columns, Need, Source};
use poul::effect::Question;
use poul::model::{DEFAULT_LEARNER, FitRequest, learner};
use poul::policy::PolicySet as Policies;
use poul::{Error, Progress};
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
        let roles = &request.roles;
        let columns = match saved {
            Some(saved) => saved.columns(source, roles, Need::FIT),
            None => roles.check(source.schema(), Need::FIT),
        };
        let columns = columns.map_err(|error| frame.locate(error))?;
        let policies = match (policies, saved) {
            (None, Some(saved)) if !columns.factorial => saved.manifest().policies.clone(),
            _ => policies_of(policies, source, &columns, &request, progress)?,
        };
        let control = control_of(&request, &policies, &columns)?;
        let _lock = request.checkpoint.as_ref().map(CheckpointSettings::hold).transpose()?;
        let fit = FitRequest {
            source,
            roles,
            columns: &columns,
            policies: &policies,
            control: control.as_deref(),
            baseline: &baseline,
            strata_table: strata_table.map(|table| &table.source),
            learner: learner.name,
            settings: &request.settings,
            encoder: &encoder,
            budget: &budget(request.memory.as_deref())?,
            seed: request.seed,
            command: Vec::new(),
            checkpoint: request.checkpoint.as_ref().map(|checkpoint| checkpoint.plan(progress)),
            warm_start: saved,
        };
        let model = poul::model::fit(&fit, progress).map_err(|error| frame.locate(error))?;
        if let Some(checkpoint) = &request.checkpoint {
            checkpoint.remove(progress);
        }
        Ok(model)
    })?;
    Ok(Model::of(fitted))
}

/// The policies given, or those that the data speak of.
pub(crate) fn policies_of(
    given: Option<&PolicySet>,
    source: &Source,
    columns: &Columns,
    request: &FitSettings,
    progress: &dyn Progress,
) -> Result<Policies> {
    match given {
        Some(_) if columns.factorial => {
            Err(Error::usage("policies and treatment_columns exclude each other")
                .hint("factorial columns define their own policies"))
        }
        Some(given) => Ok(given.set.clone()),
        None => Policies::from_data(source, columns, request.contexts.as_ref(), progress),
    }
}

/// The control as named, which must exist; or `control`, if there is such a policy.
pub(crate) fn control_of(
    request: &FitSettings,
    policies: &Policies,
    columns: &Columns,
) -> Result<Option<String>> {
    match &request.roles.control {
        // A combination may be written in any order.
        Some(name) if columns.factorial && policies.index(name).is_none() => {
            let question = Question { policies: Vec::new(), against: Some(name.clone()) };
            let asked = question.ask(policies, true).map_err(|error| error.at("control"))?;
            Ok(Some(asked.policies.name(asked.against).to_owned()))
        }
        Some(name) => {
            policies.require(name).map_err(|error| error.at("control"))?;
            Ok(Some(name.clone()))
        }
        None => Ok(policies.index("control").map(|_| "control".to_owned())),
    }
}
