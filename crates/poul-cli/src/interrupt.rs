//! Ctrl-C, or the system that ends programs (SIGTERM, SIGHUP): the first time asks the work to stop and to keep what it has done,
//! the second ends the program at once.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use poul::{Error, Result};

/// The exit code of a program that was interrupted: 128 and the number of the signal, as shells have it.
pub(crate) const EXIT_CODE: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on; without it Ctrl-C ends the program as it does any other.
pub(crate) fn listen() -> Result<()> {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_CODE));
        }
        let text = "stopping after this step; Ctrl-C again stops at once and keeps the last checkpoint";
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    };
    ctrlc::set_handler(handler).map_err(|error| Error::other(format!("cannot listen to Ctrl-C: {error}")))
}

/// Whether somebody asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
