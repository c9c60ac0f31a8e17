//! The fitted model.

use std::path::PathBuf;
use std::sync::Arc;

use poul::effect::Question;
use poul::model::CertificateParams;
use poul::{Error, model};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::allocate::{self, AllocationSettings, Beside};
use crate::design;
use crate::effect::{self, EffectRequest};
use crate::evaluate;
use crate::failure::guarded;
use crate::frame::Frame;
use crate::policies::PolicySet;
use crate::settings::parse;

/// A fitted model.
#[pyclass(frozen, module = "poul._poul")]
pub(crate) struct Model {
    pub(crate) model: Arc<model::Model>,
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guarded(py, || model::Model::load(path)).map(Self::of)
    }

    /// Reads the content of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        guarded(py, || model::Model::from_bytes(bytes)).map(Self::of)
    }

    /// Writes a model file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guarded(py, || self.model.save(path))
    }

    /// The content of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(py, || self.model.to_bytes()).map(|bytes| PyBytes::new(py, &bytes))
    }

    /// What the model says of itself, as JSON.
    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || self.model.manifest().to_text())
    }

    /// The policies it was fitted with.
    #[getter]
    fn policies(&self) -> PolicySet {
        PolicySet { set: self.model.manifest().policies.clone() }
    }

    /// How well the training data support policies, as JSON.
    fn support(&self, py: Python<'_>, policies: &PolicySet, names: Vec<String>) -> PyResult<String> {
        guarded(py, || {
            let places = names.iter().map(|name| policies.set.require(name));
            let places = places.collect::<poul::Result<Vec<usize>>>()?;
            let support = self.model.support(&policies.set, &places).into_iter().map(|one| {
                json!({
                    "policy": one.policy, "nearest": one.nearest, "distance": one.distance, "rows": one.rows,
                    "unseen_share": one.unseen_share,
                })
            });
            Ok(serde_json::Value::from(support.collect::<Vec<_>>()).to_string())
        })
    }

    /// What can be said of policies before they are run, as JSON.
    fn certify(
        &self,
        py: Python<'_>,
        policies: &PolicySet,
        names: Vec<String>,
        min_rows: u64,
        nearest: usize,
        level: f64,
    ) -> PyResult<String> {
        guarded(py, || {
            let params = CertificateParams { min_rows, nearest, level }.check()?;
            let certify = |name: &String| {
                let certificate = self.model.certify(&policies.set, policies.set.require(name)?, &params)?;
                serde_json::to_value(certificate).map_err(|error| Error::other(error.to_string()))
            };
            let certificates = names.iter().map(certify).collect::<poul::Result<Vec<_>>>()?;
            Ok(serde_json::Value::from(certificates).to_string())
        })
    }

    /// The average effects of policies over the training population, with intervals, as JSON.
    #[pyo3(signature = (policies, names, against, level, allow_unseen))]
    fn averages(
        &self,
        py: Python<'_>,
        policies: &PolicySet,
        names: Vec<String>,
        against: Option<String>,
        level: f64,
        allow_unseen: bool,
    ) -> PyResult<String> {
        guarded(py, || {
            let question = Question { policies: names, against };
            to_json(&self.model.averages(&policies.set, &question, level, allow_unseen)?)
        })
    }

    /// What switching one context at a time to each action does on average, with intervals: a table.
    #[pyo3(signature = (policies, against, level))]
    fn components(
        &self,
        py: Python<'_>,
        policies: &PolicySet,
        against: Option<String>,
        level: f64,
    ) -> PyResult<Frame> {
        let batch = guarded(py, || {
            let control = against.as_ref().or(self.model.manifest().control.as_ref());
            let name = control.ok_or_else(|| {
                Error::usage("components are switches of one policy, and the model has no control")
                    .hint("name the policy to start from: against=NAME")
            })?;
            let against = policies.set.require(name)?;
            poul::evaluate::trust::components(&self.model, &policies.set, against, level, None)?.to_batch()
        })?;
        Frame::of(py, batch.schema(), vec![batch])
    }

    /// The effects of policies on the rows of a table: a table, or the number of rows written to `out`.
    #[pyo3(signature = (frame, request, listener, policies=None, out=None))]
    fn effect<'py>(
        &self,
        py: Python<'py>,
        frame: &Frame,
        request: &str,
        listener: &Bound<'_, PyAny>,
        policies: Option<&PolicySet>,
        out: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request: EffectRequest = guarded(py, || parse(request))?;
        effect::effect(py, self, frame, &request, policies, out, listener)
    }

    /// Which policy each user should have: the allocation and its prices as JSON, and a table unless it goes to `out`.
    #[pyo3(signature = (frame, request, listener, policies=None, group_budgets=None, prices=None, out=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of one Python method")]
    fn allocate(
        &self,
        py: Python<'_>,
        frame: &Frame,
        request: &str,
        listener: &Bound<'_, PyAny>,
        policies: Option<&PolicySet>,
        group_budgets: Option<&Frame>,
        prices: Option<String>,
        out: Option<PathBuf>,
    ) -> PyResult<(String, String, Option<Frame>)> {
        let settings: AllocationSettings = guarded(py, || parse(request))?;
        let beside = Beside { policies, group_budgets, prices, out };
        allocate::allocate(py, self, frame, &settings, beside, listener)
    }

    /// Measures the model's effects on the rows of a table; JSON.
    #[pyo3(signature = (frame, request, listener, policies=None))]
    fn evaluate(
        &self,
        py: Python<'_>,
        frame: &Frame,
        request: &str,
        listener: &Bound<'_, PyAny>,
        policies: Option<&PolicySet>,
    ) -> PyResult<String> {
        let request = guarded(py, || parse(request))?;
        evaluate::by_model(py, self, frame, &request, policies, listener)
    }

    /// The policies to run next: JSON of what is known of them, the policies, and a table of proposals.
    #[pyo3(signature = (request, listener, users=None))]
    fn design(
        &self,
        py: Python<'_>,
        request: &str,
        listener: &Bound<'_, PyAny>,
        users: Option<&Frame>,
    ) -> PyResult<(String, Option<PolicySet>, Option<Frame>)> {
        let request = guarded(py, || parse(request))?;
        design::design(py, self, &request, users, listener)
    }
}

impl Model {
    pub(crate) fn of(model: model::Model) -> Self {
        Self { model: Arc::new(model) }
    }
}

/// A value as JSON.
pub(crate) fn to_json(value: &impl serde::Serialize) -> poul::Result<String> {
    serde_json::to_string(value).map_err(|error| Error::other(format!("cannot write JSON: {error}")))
}
