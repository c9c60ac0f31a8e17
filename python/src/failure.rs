//! The library's error as the exception that Python expects, and panics as errors.

use std::any::Any;
use std::error::Error as _;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use poul::{Error, Kind, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// The exception of `poul._errors` for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let is_missing = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|source| source.kind() == ErrorKind::NotFound);
    let class = match error.kind() {
        Kind::Usage => "UsageError",
        Kind::Input if is_missing => "MissingFileError",
        Kind::Input => "InputError",
        Kind::Output => "OutputError",
        Kind::Cancelled => return PyKeyboardInterrupt::new_err(error.to_string()),
        Kind::Other => "InternalError",
    };
    let made = py
        .import("poul._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((error.to_string(), error.hint_text())));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Does short work; an error or a panic in it becomes an exception.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(panic.as_ref())));
    done.map_err(|error| raise(py, &error))
}

/// A panic, told as the bug that it is.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Error::other(format!("internal error: {}", said.unwrap_or("a panic without a message")))
        .hint("this is a bug in poul: please report it with the call; RUST_BACKTRACE=1 shows more")
}
