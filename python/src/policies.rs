//! Sets of policies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use poul::data::{Need, Roles};
use poul::policy::{self, ContextWeights, exposure_weights};
use poul::{Error, Result};
use pyo3::prelude::*;

use crate::failure::{guarded, raise};
use crate::frame::Frame;
use crate::work;

/// Policies over common contexts.
#[pyclass(frozen, eq, module = "poul._poul")]
#[derive(PartialEq)]
pub(crate) struct PolicySet {
    pub(crate) set: policy::PolicySet,
}

#[pymethods]
impl PolicySet {
    /// Reads a policy file, with the weights of contexts from a second file or from a log of exposures.
    #[staticmethod]
    #[pyo3(signature = (path, contexts=None, exposure_log=None, context_column=None))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        contexts: Option<PathBuf>,
        exposure_log: Option<PathBuf>,
        context_column: Option<&str>,
    ) -> PyResult<Self> {
        let read = || {
            let set = policy::PolicySet::read(&path, contexts.as_deref())?;
            let Some(log) = exposure_log else { return Ok(set) };
            let weights = exposure_weights(&log, context_column)?;
            set.with_weights(&ContextWeights::from_map(&weights)).map_err(|error| error.file(&log))
        };
        guarded(py, read).map(|set| Self { set })
    }

    /// The tree of a policy file as JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        guarded(py, || policy::PolicySet::from_json(text, Path::new("policies"))).map(|set| Self { set })
    }

    /// The combinations of factorial columns that the rows of a table have.
    #[staticmethod]
    fn from_frame(
        py: Python<'_>,
        frame: &Frame,
        columns: Vec<String>,
        weights: Option<BTreeMap<String, f64>>,
        listener: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let source = &frame.source;
        let set = work::run(py, None, listener, |progress| {
            let roles = Roles { treatment_columns: columns, ..Roles::default() };
            let need = Need { treatment: true, outcome: false, features: false };
            let columns = roles.check(source.schema(), need).map_err(|error| frame.locate(error))?;
            policy::PolicySet::from_data(source, &columns, weights.as_ref(), progress)
        })?;
        Ok(Self { set })
    }

    /// The policies of both sets, under this set's contexts and weights.
    fn union(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        guarded(py, || self.set.union(&other.set)).map(|set| Self { set })
    }

    /// Another tree laid beside this set, whose contexts and weights hold.
    fn union_json(&self, py: Python<'_>, text: &str) -> PyResult<Self> {
        guarded(py, || self.set.from_json_beside(text, Path::new("policies"))).map(|set| Self { set })
    }

    /// Another file laid beside this set.
    #[pyo3(signature = (path, contexts=None))]
    fn union_file(&self, py: Python<'_>, path: PathBuf, contexts: Option<PathBuf>) -> PyResult<Self> {
        guarded(py, || self.set.read_beside(&path, contexts.as_deref())).map(|set| Self { set })
    }

    /// Names of the policies, sorted.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.set.names().to_vec()
    }

    /// Contexts and their weights, sorted.
    #[getter]
    fn contexts(&self) -> Vec<(String, f64)> {
        self.set.contexts().iter().cloned().zip(self.set.weights().iter().copied()).collect()
    }

    /// Actions, sorted.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.set.actions().to_vec()
    }

    /// Pairs of context and action that some policy takes, sorted.
    #[getter]
    fn atoms(&self) -> Vec<(String, String)> {
        let atom = |atom: &policy::Atom| {
            (
                self.set.contexts()[atom.context as usize].clone(),
                self.set.actions()[atom.action as usize].clone(),
            )
        };
        self.set.atoms().iter().map(atom).collect()
    }

    /// α_t of a policy: context, action, mass.
    fn mixture(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(String, String, f64)>> {
        let mixture = self.set.mixture(self.find(py, name)?);
        let atoms = self.atoms();
        let entry = |(atom, mass): (&u32, &f64)| {
            let (context, action) = atoms[*atom as usize].clone();
            (context, action, *mass)
        };
        Ok(mixture.atoms.iter().zip(mixture.mass).map(entry).collect())
    }

    /// d_Π between two policies.
    fn distance(&self, py: Python<'_>, a: &str, b: &str) -> PyResult<f64> {
        Ok(self.set.distance(self.find(py, a)?, self.find(py, b)?))
    }

    /// What changes from one policy to another, as JSON.
    fn diff(&self, py: Python<'_>, a: &str, b: &str) -> PyResult<String> {
        let diff = self.set.diff(self.find(py, a)?, self.find(py, b)?);
        guarded(py, || {
            serde_json::to_string(&diff).map_err(|error| Error::other(format!("cannot write JSON: {error}")))
        })
    }

    /// The policies nearest to one, the nearest first.
    fn nearest(&self, py: Python<'_>, name: &str, count: usize) -> PyResult<Vec<(String, f64)>> {
        let nearest = self.set.nearest(self.find(py, name)?, count);
        Ok(nearest
            .into_iter()
            .map(|(policy, distance)| (self.set.name(policy).to_owned(), distance))
            .collect())
    }

    /// Groups of policies that are the same mixture under different names.
    fn aliases(&self) -> Vec<Vec<String>> {
        let names =
            |group: &Vec<usize>| group.iter().map(|policy| self.set.name(*policy).to_owned()).collect();
        self.set.aliases().iter().map(names).collect()
    }

    /// The tree of a policy file as JSON.
    fn to_json(&self) -> String {
        self.set.to_json_value().to_string()
    }

    /// The tree of a policy file as TOML.
    fn to_toml(&self) -> String {
        self.set.to_toml()
    }

    fn __len__(&self) -> usize {
        self.set.len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.set.index(name).is_some()
    }
}

impl PolicySet {
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let found: Result<usize> = self.set.require(name);
        found.map_err(|error| raise(py, &error))
    }
}
