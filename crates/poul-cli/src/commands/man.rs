//! `poul man`: a manual page on stdout, or those of all commands in a folder.

use std::io::Write;
use std::path::Path;

use clap::{Command, CommandFactory};
use poul::{AtomicFile, Error, Kind, Result};
use poul_report::number::count;

use crate::args::{Args, Man};
use crate::progress::Terminal;

pub(crate) fn run(args: &Man, terminal: &Terminal) -> Result<()> {
    let mut root = Args::command().disable_help_subcommand(true);
    // Fills in the full names of commands (`poul-policy-diff`) and the flags that all of them take.
    root.build();
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
            let n_pages = write_all(&root, folder)?;
            terminal.say(format!("wrote {} pages to {}", count(n_pages), folder.display()));
            Ok(())
        }
        None => super::print(page(find(&root, &args.command)?)?.1),
    }
}

/// The command that the words name.
fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command> {
    let mut command = root;
    for word in words {
        let known = command.get_subcommands().map(Command::get_name);
        command = command
            .find_subcommand(word)
            .ok_or_else(|| Error::unknown(Kind::Usage, "command", word, "commands", known))?;
    }
    Ok(command)
}

/// Writes the page of a command and of all below it; gives their number.
fn write_all(command: &Command, folder: &Path) -> Result<u64> {
    let (name, text) = page(command)?;
    let mut file = AtomicFile::create(folder.join(name))?;
    file.write_all(text.as_bytes()).map_err(|error| Error::output(file.path(), error))?;
    file.commit()?;
    let mut n_pages = 1;
    for below in command.get_subcommands() {
        n_pages += write_all(below, folder)?;
    }
    Ok(n_pages)
}

/// The name of a command's page and its text.
fn page(command: &Command) -> Result<(String, String)> {
    let man = clap_mangen::Man::new(command.clone()).manual("POUL");
    let mut text = Vec::new();
    man.render(&mut text).map_err(|error| Error::other(format!("cannot write the page: {error}")))?;
    Ok((man.get_filename(), String::from_utf8_lossy(&text).into_owned()))
}
