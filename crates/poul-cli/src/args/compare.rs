//! The flags of the commands that set learners or settings side by side.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{PolicyArgs, RoleArgs};

#[derive(ClapArgs)]
#[command(
    after_help = "Settings of each learner stand in poul.toml under [learners.NAME.model] and [learners.NAME.training].
A learner that fails is left out of the tables, and the exit code is 1. Ctrl-C keeps what is finished.

Examples:
  poul compare train.parquet --test test.parquet --policies policies.toml --outcome gmv
  poul compare a.parquet --config poul.toml --time month --test-from 2025-06 --core core --all
  poul compare a.parquet --config poul.toml --time month --test-from 2025-06 --report report.html
  poul compare mail.csv --treatment segment --control none --outcome visit --learner poul,ridge
  poul compare a.parquet --config poul.toml --schedule 1,3 --schedule 5,1 --core core --latex t.tex
  poul compare a.parquet --config poul.toml --seeds 3 --json results.json --resume"
)]
pub(crate) struct Compare {
    /// Rows to train on: Parquet, CSV(.gz) or Arrow
    pub(crate) data: PathBuf,
    /// Rows to test on [default: a part of the data]
    #[arg(long, value_name = "DATA", conflicts_with_all = ["test_share", "test_from"])]
    pub(crate) test: Option<PathBuf>,
    /// Share of the data to test on, by cluster where there are clusters [default: 0.3]
    #[arg(long, value_name = "P", conflicts_with = "test_from", allow_negative_numbers = true)]
    pub(crate) test_share: Option<f64>,
    /// Test on rows whose --time is this or later, train on those before
    #[arg(long, value_name = "VALUE")]
    pub(crate) test_from: Option<String>,
    /// Learners (repeatable) [default: poul, ridge, s-learner, t-learner, random]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) learner: Vec<String>,
    /// Every learner
    #[arg(long, conflicts_with = "learner")]
    pub(crate) all: bool,
    /// Epochs of poul on all rows and on the core population, an entry of its own each (repeatable)
    #[arg(long, value_name = "I,J")]
    pub(crate) schedule: Vec<String>,
    /// Seeds to train each learner with: --seed and those that follow it [default: 1]
    #[arg(long, value_name = "K")]
    pub(crate) seeds: Option<usize>,
    /// The learner that differences are taken to [default: poul]
    #[arg(long, value_name = "NAME")]
    pub(crate) reference: Option<String>,
    /// Policies to compare [default: every policy of the test rows]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Vec<String>,
    /// Compare policies on atoms that no training row carried too
    #[arg(long)]
    pub(crate) allow_unseen: bool,
    /// The core population, measured beside all rows, such as 'core = 1'
    #[arg(long, value_name = "EXPR")]
    pub(crate) core: Option<String>,
    /// True effects: a table `row,policy,effect_<outcome>` such as simulate writes
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// Share of the training units held out for the validation R-loss; 0 for none [default: 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) validation_share: Option<f64>,
    /// Bootstrap draws for the intervals; 0 for none [default: 200]
    #[arg(long, value_name = "N")]
    pub(crate) draws: Option<usize>,
    /// Level of the intervals [default: 0.9]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) level: Option<f64>,
    /// Write everything as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the paper's tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the paper's tables as LaTeX
    #[arg(long, value_name = "FILE")]
    pub(crate) latex: Option<PathBuf>,
    /// Write a report for people: one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Folder for results as they are finished [default: beside --json, or poul-compare.partial]
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Resume from what is finished in that folder
    #[arg(long)]
    pub(crate) resume: bool,
    /// Assignment probabilities as designed: a table `stratum,policy,probability` [default: shares within strata]
    #[arg(long, value_name = "FILE")]
    pub(crate) strata_table: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy_files: PolicyArgs,
    #[command(flatten)]
    pub(crate) roles: RoleArgs,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Settings are chosen by the validation R-loss, never by test rows. What is searched stands in the settings file:
  [tune]
  \"training.learning_rate\" = { low = 1e-4, high = 1e-2, scale = \"log\" }
  \"model.hidden\" = [[64], [128, 64]]
The file written is ready for poul fit --config.

Examples:
  poul tune rides/train.parquet --policies rides/policies.toml --outcome gmv --out poul.toml
  poul tune a.parquet --config search.toml --learner t-learner --trials 30 --halving --out b.toml
  poul tune a.parquet --config search.toml --preset paper-gmv --core 'core = 1' --out best.toml"
)]
pub(crate) struct Tune {
    /// Rows to train and validate on: Parquet, CSV(.gz) or Arrow
    pub(crate) data: PathBuf,
    /// Settings file to write, with the best settings
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Learner [default: poul]
    #[arg(long, value_name = "NAME")]
    pub(crate) learner: Option<String>,
    /// The paper's grid: paper-gmv or paper-cost [default: [tune] of the settings file, or the learner's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// The core population, for presets that train on it
    #[arg(long, value_name = "EXPR")]
    pub(crate) core: Option<String>,
    /// Most settings to try
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) trials: usize,
    /// How settings are chosen
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) search: SearchKind,
    /// Successive halving: all trials on little, the best third of them on three times as much, and so on
    #[arg(long)]
    pub(crate) halving: bool,
    /// What is scarce in the first rounds of halving
    #[arg(long, value_enum, default_value = "rows", requires = "halving")]
    pub(crate) resource: ResourceKind,
    /// Share of the units held out to judge by
    #[arg(long, value_name = "P", default_value_t = 0.2, allow_negative_numbers = true)]
    pub(crate) validation_share: f64,
    /// Write every trial as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Resume a search that was stopped, from what it left in FILE.partial
    #[arg(long)]
    pub(crate) resume: bool,
    /// Assignment probabilities as designed: a table `stratum,policy,probability` [default: shares within strata]
    #[arg(long, value_name = "FILE")]
    pub(crate) strata_table: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) roles: RoleArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SearchKind {
    /// The grid where it is no larger than --trials, random points otherwise
    Auto,
    /// Every point of the grid, whatever --trials
    Grid,
    /// Random points
    Random,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ResourceKind {
    /// Rows to train on
    Rows,
    /// Passes over the rows
    Epochs,
}
