//! The `poul` command: flags in, files and tables out. All work is the library's.

mod args;
mod commands;
mod config;
mod failure;
mod interrupt;
mod number;
mod progress;
mod report;
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
