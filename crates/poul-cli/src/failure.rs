//! What a person sees when a command fails, and the exit code a script sees.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

use poul::{Error, Kind, Result};

/// Where the last panic happened.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program; tells an error, or a panic, and gives the exit code of DESIGN 4.
///
/// The readers of Parquet and Arrow panic on some damaged files. The library makes errors of those, so a panic must not
/// print on its own; one that gets through to here is a bug and is told as one. `RUST_BACKTRACE` shows every panic.
pub(crate) fn guard(run: impl FnOnce() -> Result<()>) -> ExitCode {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            if let (Ok(mut place), Some(location)) = (PLACE.lock(), panic.location()) {
                *place = Some(format!("{}:{}", location.file(), location.line()));
            }
        }));
    }
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => report(&error),
        Err(panic) => report(&internal(panic.as_ref())),
    }
}

/// Prints the error and its hint on stderr and returns its exit code.
fn report(error: &Error) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    let (what, hint) = error.told(crate::spelling::flag);
    // A closed stderr leaves nobody to tell; the exit code still does.
    let _ = writeln!(stderr, "error: {what}");
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    ExitCode::from(exit_code(error.kind()))
}

fn internal(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let what = format!("internal error: {}", said.unwrap_or("a panic without a message"));
    let error = match PLACE.lock().ok().and_then(|mut place| place.take()) {
        Some(place) => Error::other(format!("{what} ({place})")),
        None => Error::other(what),
    };
    error.hint("this is a bug in poul: please report it with the command; RUST_BACKTRACE=1 shows more")
}

fn exit_code(kind: Kind) -> u8 {
    match kind {
        Kind::Usage => 2,
        Kind::Input => 3,
        Kind::Output => 4,
        Kind::Cancelled => crate::interrupt::EXIT_CODE,
        Kind::Other => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_as_a_bug() {
        let code = guard(|| panic!("index {} out of bounds", 7));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(1)));
        let error = internal(&"index 7 out of bounds".to_string());
        assert!(error.to_string().starts_with("internal error: index 7 out of bounds"), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("report it")));
    }

    #[test]
    fn each_kind_has_its_exit_code() {
        let kinds = [Kind::Usage, Kind::Input, Kind::Output, Kind::Cancelled, Kind::Other];
        assert_eq!(kinds.map(exit_code), [2, 3, 4, 130, 1]);
    }
}
