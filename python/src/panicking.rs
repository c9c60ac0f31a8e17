//! Panics on demand, in debug builds only: the tests see what becomes of one.

use pyo3::prelude::*;

use crate::failure::guarded;
use crate::work;

/// Panics: in short work, or in long work where there is a `listener`.
#[pyfunction]
#[pyo3(name = "_panic", signature = (listener=None))]
#[expect(clippy::panic, reason = "what it is for")]
pub(crate) fn panic_on_demand(py: Python<'_>, listener: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match listener {
        None => guarded(py, || panic!("asked for")),
        Some(listener) => work::run(py, None, listener, |_| panic!("asked for")),
    }
}
