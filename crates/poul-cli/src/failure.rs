//! What a person sees when a command fails, and the exit code a script sees.

use std::io::Write;
use std::process::ExitCode;

use poul::{Error, Kind};

/// Prints the error and its hint on stderr and returns the exit code of DESIGN 4.
pub(crate) fn report(error: &Error) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    // A closed stderr leaves nobody to tell; the exit code still does.
    let _ = writeln!(stderr, "error: {error}");
    if let Some(hint) = error.hint_text() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    ExitCode::from(exit_code(error.kind()))
}

fn exit_code(kind: Kind) -> u8 {
    match kind {
        Kind::Usage => 2,
        Kind::Input => 3,
        Kind::Output => 4,
        Kind::Cancelled | Kind::Other => 1,
    }
}
