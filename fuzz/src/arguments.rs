//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Attacks everything that poul reads, in this process's children, and names the inputs that made one panic, abort, hang, take too
/// much memory or break a promise.
#[derive(Clone, Debug, Parser)]
#[command(name = "fuzz")]
pub(crate) struct Arguments {
    /// What to attack, by name; repeatable. Default: everything that --list shows.
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Vec<String>,
    /// The root of all inputs: the same seed and number of executions are the same inputs.
    #[arg(long, default_value_t = 3407)]
    pub(crate) seed: u64,
    /// Executions of a target that takes bytes; those that fit models get a fraction. Default: 20000, unless --minutes is given.
    #[arg(long, value_name = "N")]
    pub(crate) executions: Option<u64>,
    /// Minutes for all targets together, in rounds: as many executions as there is time for.
    #[arg(long, value_name = "M", conflicts_with = "executions")]
    pub(crate) minutes: Option<f64>,
    /// Runs the input in this file once. Its target is the part of its name before the seed, or --target.
    #[arg(long, value_name = "FILE")]
    pub(crate) reproduce: Option<PathBuf>,
    /// Writes the summary as JSON to this file, or to stdout: `-`.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Where the inputs of failures go.
    #[arg(long, value_name = "DIR", default_value = "target/fuzz/crashes")]
    pub(crate) crashes: PathBuf,
    /// Lists the targets.
    #[arg(long)]
    pub(crate) list: bool,
    /// Does not limit the addresses of a worker: for builds with a sanitiser, which takes terabytes of them.
    #[arg(long)]
    pub(crate) no_address_limit: bool,
    /// Is a worker of a campaign.
    #[arg(long, hide = true)]
    pub(crate) worker: bool,
    /// The number of a worker's first execution.
    #[arg(long, hide = true, default_value_t = 0)]
    pub(crate) first: u64,
    /// How long a worker goes on.
    #[arg(long, hide = true)]
    pub(crate) seconds: Option<f64>,
    /// A worker's folder.
    #[arg(long, hide = true, default_value = ".")]
    pub(crate) scratch: PathBuf,
    /// Writes the input of execution `first` to this file instead of running it.
    #[arg(long, hide = true)]
    pub(crate) write_input: Option<PathBuf>,
}
