//! The `poul` command: flags in, files and tables out. All work is the library's.

mod args;
mod commands;
mod config;
mod failure;
mod interrupt;
mod progress;
mod schema;
mod settings;
mod spelling;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    failure::guard(|| commands::run(args))
}
