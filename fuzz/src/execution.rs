//! One input handed to one target, and what counts as a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use poul::{Error, Kind};

use crate::targets::Target;
use crate::{allocator, watchdog};

/// How an input was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As valid.
    Accepted,
    /// With an error for its author.
    Refused,
}

/// What should not have happened.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// `panic`, `allocation` or `promise`; a campaign knows `abort` and `hang` besides.
    pub(crate) kind: &'static str,
    pub(crate) what: String,
}

/// Panics of this execution: where, what, and whether that was in the product's own code.
static PANICS: Mutex<Vec<(bool, String)>> = Mutex::new(Vec::new());

/// Notes panics instead of printing them.
///
/// The library makes errors of panics in the readers of Parquet and Arrow. One in its own code is a failure even where it was on
/// the way to becoming such an error.
pub(crate) fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.payload().downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.payload().downcast_ref::<&str>().copied()).unwrap_or("no message");
        let (file, line) = panic.location().map_or(("", 0), |place| (place.file(), place.line()));
        // Dependencies have the whole path to the folder of packages.
        let is_own = file.replace('\\', "/").starts_with("crates/");
        if let Ok(mut panics) = PANICS.lock() {
            panics.push((is_own, format!("{said} ({file}:{line})")));
        }
    }));
}

/// Runs one input.
pub(crate) fn execute(target: &mut dyn Target, input: &[u8], memory: usize) -> Result<Ended, Fault> {
    panics().clear();
    watchdog::beat();
    let (ended, taken) = allocator::limited(memory, || catch_unwind(AssertUnwindSafe(|| target.run(input))));
    watchdog::beat();
    let panics = std::mem::take(&mut *panics());
    if let Some(n_bytes) = taken.refused {
        let what = format!("{n_bytes} bytes at once or as the last of many, with {} taken", taken.peak);
        return Err(Fault { kind: "allocation", what });
    }
    let last =
        || panics.last().map_or_else(|| "a panic without a place".to_owned(), |(_, what)| what.clone());
    match ended {
        Err(_) => Err(Fault { kind: "panic", what: last() }),
        Ok(Err(what)) => Err(Fault { kind: "promise", what }),
        Ok(Ok(ended)) => match panics.into_iter().find(|(is_own, _)| *is_own) {
            Some((_, what)) => Err(Fault { kind: "panic", what: format!("{what}, caught on its way") }),
            None => Ok(ended),
        },
    }
}

fn panics() -> std::sync::MutexGuard<'static, Vec<(bool, String)>> {
    PANICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether a result is one that an input may have: an error must be about the input, and say something.
pub(crate) fn judged<T>(result: Result<T, Error>) -> Result<Option<T>, String> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            refused(&error)?;
            Ok(None)
        }
    }
}

/// The same, of an error.
pub(crate) fn refused(error: &Error) -> Result<Ended, String> {
    match error.kind() {
        Kind::Input | Kind::Usage if !error.to_string().is_empty() => Ok(Ended::Refused),
        kind => Err(format!("an error of kind {kind:?}, which is not about the input: {error}")),
    }
}

/// A promise that was not kept.
pub(crate) fn promised(kept: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if kept { Ok(()) } else { Err(what()) }
}
