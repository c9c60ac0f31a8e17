//! The flags about trust: certificates of policies, and the checks of an evaluation.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::PolicyArgs;

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul policy certify model.poul T2
  poul policy certify model.poul --policies new.toml
  poul policy certify model.poul weekend --policies new.toml --min-rows 500 --json weekend.json
  poul policy certify model.poul 'Job=nurse, Gender=female'")]
pub(crate) struct PolicyCertify {
    /// Model file
    pub(crate) model: PathBuf,
    /// Policies, or combinations of factorial columns [default: those of --policies]
    #[arg(value_name = "POLICY")]
    pub(crate) names: Vec<String>,
    /// Training rows from which an atom counts as well seen
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) min_rows: u64,
    /// Policies that were run to list, nearest first
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub(crate) nearest: usize,
    /// Level of the intervals of average effects
    #[arg(long, value_name = "P", default_value_t = 0.9, allow_negative_numbers = true)]
    pub(crate) level: f64,
    /// Write the certificates as JSON to a file, or to stdout with `-` (then no text is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy_files: PolicyArgs,
}

/// What an evaluation of a model checks beside its metrics.
#[derive(ClapArgs)]
pub(crate) struct CheckArgs {
    /// With a model: leave out the checks of its assumptions, the map of policies and the effects of atoms
    #[arg(long)]
    pub(crate) no_checks: bool,
    /// With a model: fit its learner on permuted treatment N times, and once as it is, to see what noise looks like
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "no_checks")]
    pub(crate) placebo: usize,
    /// Training rows from which an atom counts as well seen
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) min_rows: u64,
}
