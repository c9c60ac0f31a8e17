//! Where each command writes, so that all of it is held while the command works.

use std::path::Path;

use poul::{OutputLock, Result};

use crate::args::{Command, Policy};

/// Holds every result of a command. Held in the order of their names, so that of two commands with several in common one goes on.
pub(super) fn hold(command: &Command) -> Result<Vec<OutputLock>> {
    let (folder, files) = outputs(command);
    let mut files: Vec<&Path> =
        files.into_iter().flatten().filter(|file| !poul::is_standard_output(file)).collect();
    files.sort_unstable();
    let folder = folder.into_iter().map(OutputLock::hold_folder);
    folder.chain(files.into_iter().map(OutputLock::hold)).collect()
}

/// The folder that a command fills, and the files that it writes.
fn outputs(command: &Command) -> (Option<&Path>, Vec<Option<&Path>>) {
    match command {
        Command::Quickstart(args) => (Some(&args.out), Vec::new()),
        Command::Simulate(args) => (Some(&args.out), Vec::new()),
        Command::Man(args) => (args.out.as_deref(), Vec::new()),
        Command::Check(args) => (None, vec![args.json.as_deref()]),
        Command::Fit(args) => (None, vec![Some(args.out.as_path())]),
        Command::Effect(args) => (None, vec![args.out.as_deref()]),
        Command::Evaluate(args) => (None, vec![args.json.as_deref(), args.report.as_deref()]),
        Command::Allocate(args) => {
            // Prices that users are decided by are read.
            let prices = args.prices.as_deref().filter(|_| args.maximize.is_some());
            let others = [args.curve.as_deref(), prices, args.json.as_deref(), args.report.as_deref()];
            (None, [&[Some(args.out.as_path())], &others[..]].concat())
        }
        Command::Compare(args) => {
            let files = [&args.json, &args.markdown, &args.latex, &args.report];
            (None, files.map(Option::as_deref).to_vec())
        }
        Command::Tune(args) => (None, vec![Some(args.out.as_path()), args.json.as_deref()]),
        Command::Design(args) => (None, vec![args.out.as_deref(), args.json.as_deref()]),
        Command::Policy(Policy::Certify(args)) => (None, vec![args.json.as_deref()]),
        Command::Policy(Policy::Show(_) | Policy::Diff(_) | Policy::Distance(_) | Policy::Nearest(_))
        | Command::Show(_)
        | Command::Schema(_)
        | Command::Completions(_) => (None, Vec::new()),
    }
}
