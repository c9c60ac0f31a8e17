//! The library's error as the exception that Python expects, and panics as errors.

use std::any::Any;
use std::cell::Cell;
use std::error::Error as _;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use poul::{Error, Kind, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::spelling::argument;

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
    let (what, hint) = error.told(argument);
    exception(py, class, &what, hint.as_deref())
}

/// An argument of the wrong type.
pub(crate) fn argument_error(py: Python<'_>, what: &str, hint: &str) -> PyErr {
    exception(py, "ArgumentError", what, Some(hint))
}

fn exception(py: Python<'_>, class: &str, what: &str, hint: Option<&str>) -> PyErr {
    let made = py
        .import("poul._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((what, hint)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Does short work; an error or a panic in it becomes an exception.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(py, || work().map_err(|error| raise(py, &error)))
}

/// Does short work that may call Python; a panic in it becomes an exception.
pub(crate) fn caught<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let outer = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(outer);
    done.unwrap_or_else(|panic| Err(raise(py, &internal(panic.as_ref()))))
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread becomes an exception, which tells all there is to tell.
pub(crate) fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// A panic, told as the bug that it is.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Error::other(format!("internal error: {}", said.unwrap_or("a panic without a message")))
        .hint("this is a bug in poul: please report it with the call; RUST_BACKTRACE=1 shows more")
}
