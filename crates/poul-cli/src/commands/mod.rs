//! One file a command.

mod allocate;
mod check;
mod compare;
mod completions;
mod design;
mod effect;
mod evaluate;
mod fit;
mod man;
mod outputs;
mod policy;
mod quickstart;
mod schema;
mod show;
mod simulate;
mod tune;

use std::path::Path;

use poul::{Error, Progress, Result};

use crate::args::{Args, Command, Common};
use crate::progress::Terminal;
use crate::settings;

/// Runs the command on the asked number of threads.
pub(crate) fn run(args: Args) -> Result<()> {
    let Args { command, common } = args;
    let terminal = Terminal::new(common.quiet);
    let threads = match common.threads {
        Some(0) => return Err(Error::usage("--threads must be at least 1")),
        Some(asked) => {
            let most = poul::most_threads();
            if asked > most {
                terminal.warn(&format!("{asked} threads are more than are of use here: {most} are started"));
            }
            asked.min(most)
        }
        None => 0,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::other(format!("cannot start threads: {error}")))?;
    // Wrong in any command, even one that needs little memory.
    settings::budget(&common)?;
    let typed: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let _held = outputs::hold(&command)?;
    pool.install(|| dispatch(command, &typed, &common, &terminal))
}

/// Runs a command; `typed` are its words.
fn dispatch(command: Command, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    match command {
        Command::Quickstart(args) => quickstart::run(&args, common, terminal),
        Command::Simulate(args) => simulate::run(&args, common, terminal),
        Command::Check(args) => check::run(&args, common, terminal),
        Command::Fit(args) => fit::run(&args, typed, common, terminal),
        Command::Effect(args) => effect::run(&args, terminal),
        Command::Allocate(args) => allocate::run(&args, common, terminal),
        Command::Show(args) => show::run(&args),
        Command::Evaluate(args) => evaluate::run(&args, typed, common, terminal),
        Command::Compare(args) => compare::run(&args, typed, common, terminal),
        Command::Design(args) => design::run(&args, common, terminal),
        Command::Tune(args) => tune::run(&args, common, terminal),
        Command::Policy(args) => policy::run(&args, terminal),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args, terminal),
    }
}

/// The words of this command, quoted as a shell wants them.
fn typed_words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| poul::quoted_word(&word.to_string_lossy())).collect()
}

/// The command as typed, without the flags that do not matter to its result and without where results go.
fn without_outputs(typed: &[String]) -> Vec<String> {
    const WITH_VALUE: [&str; 7] =
        ["--out", "--threads", "--memory", "--json", "--report", "--markdown", "--latex"];
    const ALONE: [&str; 3] = ["--quiet", "-q", "--resume"];
    let mut command = vec!["poul".to_owned()];
    let mut arguments = typed.iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            arguments.next();
        } else if !ALONE.contains(&argument.as_str())
            && !WITH_VALUE
                .iter()
                .any(|flag| argument.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
        {
            command.push(argument.clone());
        }
    }
    command
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

/// Where `--json` sends the results. Opened before the work, so that a folder that is not there is told at once.
pub(crate) enum JsonTarget {
    None,
    Stdout,
    File(poul::AtomicFile),
    /// None, and another result goes to stdout: there is no summary.
    Quiet,
    /// A file, and another result goes to stdout.
    QuietFile(poul::AtomicFile),
}

impl JsonTarget {
    pub(crate) fn open(flag: Option<&Path>) -> Result<Self> {
        match flag {
            None => Ok(Self::None),
            Some(path) if poul::is_standard_output(path) => Ok(Self::Stdout),
            Some(path) => poul::AtomicFile::create(path).map(Self::File),
        }
    }

    /// As [`open`](Self::open) where a command has other outputs too, any one of which may be standard output.
    pub(crate) fn open_beside(flag: Option<&Path>, others: &[Option<&Path>]) -> Result<Self> {
        let is_taken = |path: &Option<&Path>| path.is_some_and(poul::is_standard_output);
        let n_taken = others.iter().filter(|path| is_taken(path)).count();
        if n_taken + usize::from(is_taken(&flag)) > 1 {
            return Err(Error::usage("two results cannot both go to standard output")
                .hint("give all but one of them the name of a file"));
        }
        match (Self::open(flag)?, n_taken) {
            (Self::None, 1) => Ok(Self::Quiet),
            (Self::File(file), 1) => Ok(Self::QuietFile(file)),
            (target, _) => Ok(target),
        }
    }

    /// Writes the JSON that was asked for, and the summary unless stdout is taken.
    pub(crate) fn write(self, value: &impl serde::Serialize, summary: impl FnOnce() -> String) -> Result<()> {
        match self {
            Self::None => print(summary()),
            Self::Stdout => print_json(value),
            Self::Quiet => Ok(()),
            Self::File(file) => {
                write_json(file, value)?;
                print(summary())
            }
            Self::QuietFile(file) => write_json(file, value),
        }
    }
}

fn write_json(mut file: poul::AtomicFile, value: &impl serde::Serialize) -> Result<()> {
    use std::io::Write;
    let written = file.write_all((to_json(value)? + "\n").as_bytes());
    written.map_err(|error| Error::output(file.path(), error))?;
    file.commit()
}

/// Names the data in an error about its columns, which knows only the schema.
pub(crate) fn about_data(error: Error, data: impl AsRef<Path>) -> Error {
    if error.kind() == poul::Kind::Input { error.file(data) } else { error }
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::other(format!("cannot write JSON: {error}")))
}
