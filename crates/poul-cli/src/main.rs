//! The `poul` command: flags in, files and tables out. All work is the library's.

mod args;
mod commands;
mod failure;
mod number;
mod progress;
mod settings;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
