//! Evaluations and checks of rows that come in parts, for front ends that share rows out: the library's `InParts` and `CheckSums`.

use poul::check::CheckSums;
use poul::data::Roles;
use poul::evaluate::run::{InParts, ValidEvaluationRequest, fitted_roles};
use poul::evaluate::summary::{Outline, Sums};
use poul::{Experiment, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::check::CheckSettings;
use crate::evaluate::EvaluationSettings;
use crate::failure::guarded;
use crate::frame::Frame;
use crate::model::{Model, to_json};
use crate::policies::PolicySet;
use crate::settings::parse;
use crate::spelling::argument;
use crate::work;

/// Rows of a model's evaluation, part after part, in the process that has them.
#[pyclass(frozen, module = "poul._poul")]
pub(crate) struct Parts {
    model: std::sync::Arc<poul::Model>,
    policies: Option<poul::policy::PolicySet>,
    request: ValidEvaluationRequest,
    threads: Option<usize>,
}

#[pymethods]
impl Parts {
    /// `request` has all roles, as [`columns`](Self::columns) found them.
    #[new]
    #[pyo3(signature = (model, request, policies=None))]
    fn new(py: Python<'_>, model: &Model, request: &str, policies: Option<&PolicySet>) -> PyResult<Self> {
        guarded(py, || {
            let settings: EvaluationSettings = parse(request)?;
            Ok(Self {
                model: model.model.clone(),
                policies: policies.map(|policies| policies.set.clone()),
                request: settings.over(&Roles::default())?,
                threads: settings.threads,
            })
        })
    }

    /// The roles that hold for a table, JSON, and the columns that are read of it. All that can be wrong with either is told.
    #[staticmethod]
    #[pyo3(signature = (model, frame, request, listener, policies=None))]
    fn columns(
        py: Python<'_>,
        model: &Model,
        frame: &Frame,
        request: &str,
        listener: &Bound<'_, PyAny>,
        policies: Option<&PolicySet>,
    ) -> PyResult<(String, Vec<String>)> {
        let settings: EvaluationSettings = guarded(py, || parse(request))?;
        let (model, source) = (&*model.model, &frame.source);
        work::run(py, settings.threads, listener, |progress| {
            let request = settings.over(&fitted_roles(model, source, progress))?;
            let rows = InParts::new(model, policies.map(|policies| &policies.set), &request)?;
            let columns = rows.columns(source)?;
            let needed = columns.needed().into_iter().map(str::to_owned).collect();
            Ok((to_json(request.roles())?, needed))
        })
    }

    /// The outline of the rows of some tables, which are asked for one after the other; bytes.
    fn outline<'py>(
        &self,
        py: Python<'py>,
        frames: &Bound<'py, PyAny>,
        listener: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let rows = guarded(py, || self.rows())?;
        let mut outline = rows.outline();
        for frame in frames.try_iter()? {
            let frame: PyRef<'_, Frame> = frame?.extract()?;
            let source = frame.source.clone().part();
            work::run(py, self.threads, listener, |_| rows.add(&mut outline, &source))?;
        }
        Ok(PyBytes::new(py, &outline.to_bytes()))
    }

    /// The sums of the rows of some tables, given the outline of all rows; bytes.
    fn sums<'py>(
        &self,
        py: Python<'py>,
        frames: &Bound<'py, PyAny>,
        outline: &[u8],
        listener: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let rows = guarded(py, || self.rows()?.second_pass(Outline::from_bytes(outline)?))?;
        let mut sums = rows.sums();
        for frame in frames.try_iter()? {
            let frame: PyRef<'_, Frame> = frame?.extract()?;
            let source = frame.source.clone().part();
            work::run(py, self.threads, listener, |_| rows.add(&mut sums, &source))?;
        }
        Ok(PyBytes::new(py, &sums.to_bytes()))
    }

    /// What the sums of all rows amount to; JSON.
    fn evaluation(&self, py: Python<'_>, outline: &[u8], sums: &[u8]) -> PyResult<String> {
        guarded(py, || {
            let rows = self.rows()?.second_pass(Outline::from_bytes(outline)?)?;
            to_json(&rows.evaluation(&Sums::from_bytes(sums)?))
        })
    }
}

impl Parts {
    fn rows(&self) -> Result<InParts<'_>> {
        InParts::new(&self.model, self.policies.as_ref(), &self.request)
    }
}

/// Rows of a check, part after part, in the process that has them.
#[pyclass(frozen, module = "poul._poul")]
pub(crate) struct CheckedParts {
    experiment: Experiment,
    settings: CheckSettings,
}

#[pymethods]
impl CheckedParts {
    /// `frame` has the columns of the rows, and need have no row.
    #[new]
    fn new(
        py: Python<'_>,
        frame: &Frame,
        request: &str,
        listener: &Bound<'_, PyAny>,
        policies: &PolicySet,
    ) -> PyResult<Self> {
        let settings: CheckSettings = guarded(py, || parse(request))?;
        let experiment = work::run(py, settings.fit.threads, listener, |progress| {
            settings.experiment(&frame.source, Some(policies), progress)
        })?;
        Ok(Self { experiment, settings })
    }

    /// The columns that are read.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.experiment.columns_read().into_iter().map(str::to_owned).collect()
    }

    /// The sums of the rows of some tables, which are asked for one after the other; bytes.
    fn sums<'py>(
        &self,
        py: Python<'py>,
        frames: &Bound<'py, PyAny>,
        listener: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut sums = self.experiment.check_sums();
        for frame in frames.try_iter()? {
            let frame: PyRef<'_, Frame> = frame?.extract()?;
            let source = frame.source.clone().part();
            let threads = self.settings.fit.threads;
            work::run(py, threads, listener, |_| self.experiment.add_to(&mut sums, &source))?;
        }
        Ok(PyBytes::new(py, &sums.to_bytes()))
    }

    /// What the sums of all rows tell; JSON.
    fn profile(&self, py: Python<'_>, sums: &[u8]) -> PyResult<String> {
        guarded(py, || {
            let sums = CheckSums::from_bytes(sums)?;
            let mut found = self.experiment.summed_profile(&sums, &self.settings.params())?;
            found.findings.iter_mut().for_each(|finding| finding.spell(argument));
            to_json(&found)
        })
    }
}

/// Outlines of different rows as one of all; none of none.
#[pyfunction]
pub(crate) fn merged_outlines<'py>(py: Python<'py>, parts: &Bound<'py, PyAny>) -> Merged<'py> {
    merged(py, parts, Outline::from_bytes, Outline::merge, Outline::to_bytes)
}

/// Sums of different rows as those of all; none of none.
#[pyfunction]
pub(crate) fn merged_sums<'py>(py: Python<'py>, parts: &Bound<'py, PyAny>) -> Merged<'py> {
    merged(py, parts, Sums::from_bytes, |all, own| all.merge(&own), Sums::to_bytes)
}

/// The sums of a check of different rows as those of all; none of none.
#[pyfunction]
pub(crate) fn merged_checks<'py>(py: Python<'py>, parts: &Bound<'py, PyAny>) -> Merged<'py> {
    merged(py, parts, CheckSums::from_bytes, |all, own| all.merge(&own), CheckSums::to_bytes)
}

type Merged<'py> = PyResult<Option<Bound<'py, PyBytes>>>;

fn merged<'py, T>(
    py: Python<'py>,
    parts: &Bound<'py, PyAny>,
    read: impl Fn(&[u8]) -> Result<T>,
    merge: impl Fn(&mut T, T) -> Result<()>,
    write: impl Fn(&T) -> Vec<u8>,
) -> Merged<'py> {
    let mut all: Option<T> = None;
    for part in parts.try_iter()? {
        let part = part?;
        let bytes: &[u8] = part.extract()?;
        let own = guarded(py, || read(bytes))?;
        match &mut all {
            Some(all) => guarded(py, || merge(all, own))?,
            None => all = Some(own),
        }
    }
    Ok(all.map(|all| PyBytes::new(py, &write(&all))))
}
