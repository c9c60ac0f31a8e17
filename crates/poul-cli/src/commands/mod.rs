//! One file a command.

mod check;
mod evaluate;
mod policy;
mod quickstart;
mod simulate;

use poul::{Error, Result};

use crate::args::{Args, Command};
use crate::progress::Terminal;
use crate::settings;

/// Runs the command on the asked number of threads.
pub(crate) fn run(args: Args) -> Result<()> {
    let Args { command, common } = args;
    let threads = match common.threads {
        Some(0) => return Err(Error::usage("--threads must be at least 1")),
        threads => threads.unwrap_or(0),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::other(format!("cannot start threads: {error}")))?;
    let terminal = Terminal::new(common.quiet);
    // Wrong in any command, even one that needs little memory.
    settings::budget(&common)?;
    pool.install(|| match command {
        Command::Quickstart(args) => quickstart::run(&args, &common, &terminal),
        Command::Simulate(args) => simulate::run(&args, &common, &terminal),
        Command::Check(args) => check::run(&args, &common, &terminal),
        Command::Evaluate(args) => evaluate::run(&args, &common, &terminal),
        Command::Policy(args) => policy::run(&args),
    })
}

/// Writes data to stdout; a reader that closed the pipe early is not an error.
pub(crate) fn print(text: impl AsRef<str>) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_ref().as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::output("stdout", error)),
        _ => Ok(()),
    }
}

/// Writes indented JSON to stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(to_json(value)? + "\n")
}

/// Writes JSON to a file, or to stdout for `-`.
pub(crate) fn write_json(target: &str, value: &impl serde::Serialize) -> Result<()> {
    use std::io::Write;
    if target == "-" {
        return print_json(value);
    }
    let text = to_json(value)? + "\n";
    let mut file = poul::AtomicFile::create(target)?;
    file.write_all(text.as_bytes()).map_err(|error| Error::output(target, error))?;
    file.commit()
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::other(format!("cannot write JSON: {error}")))
}
