//! `poul completions`: tab completion for a shell, on stdout.

use clap::CommandFactory;
use poul::Result;

use crate::args::{Args, Completions};

pub(crate) fn run(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "poul", &mut script);
    super::print(String::from_utf8_lossy(&script))
}
