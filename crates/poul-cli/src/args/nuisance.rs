//! The flags of stage 1: the outcome model and the propensity.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Outcome model and propensity")]
pub(crate) struct NuisanceArgs {
    /// What predicts outcomes: `outcome_model` under [model] [default: mlp]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) outcome_model: Option<OutcomeModel>,
    /// Rows without a treatment, for the outcome model alone; the same features and outcomes (repeatable)
    #[arg(long, value_name = "DATA")]
    pub(crate) baseline_data: Vec<String>,
    /// Assignment probabilities as designed: a table `stratum,policy,probability` [default: shares within strata]
    #[arg(long, value_name = "FILE")]
    pub(crate) strata_table: Option<PathBuf>,
    /// Least propensity where it is learned: `clip` under [training] [default: 0.01]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) clip: Option<f64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OutcomeModel {
    /// A network for each outcome
    Mlp,
    /// A trunk that all outcomes share and that predicts the policy too
    Dragonnet,
    /// Boosted trees for each outcome
    Boosted,
    /// The best of ridge, network, boosted trees or a stack, by out-of-fold loss
    Auto,
}

impl OutcomeModel {
    /// As `poul.toml` spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mlp => "mlp",
            Self::Dragonnet => "dragonnet",
            Self::Boosted => "boosted",
            Self::Auto => "auto",
        }
    }
}
