//! Experiments with known truth.

use std::path::PathBuf;

use poul::simulate::{Simulation, run};
use pyo3::prelude::*;

use crate::failure::guarded;
use crate::model::to_json;
use crate::settings::parse;
use crate::work;

/// Writes an experiment to a folder; JSON of what was written. `request` is JSON: see `poul::simulate::Simulation`.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    out: PathBuf,
    request: &str,
    listener: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let simulation: Simulation = guarded(py, || parse(request))?;
    work::run(py, None, listener, |progress| to_json(&run(&simulation.check()?, &out, progress)?))
}
