//! The flags of the commands that make and use a model file.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{NuisanceArgs, PolicyArgs, RoleArgs};

#[derive(ClapArgs)]
#[command(
    after_help = "Ctrl-C keeps what is done in model.poul.partial, and so does a crash; --resume continues from there.

Examples:
  poul fit rides/train.parquet --policies rides/policies.toml --outcome gmv,cost --out model.poul
  poul fit mail.csv --treatment segment --control 'No E-Mail' --outcome visit --out model.poul
  poul fit mail.csv --treatment segment --outcome spend --auxiliary visit --out model.poul
  poul fit cv.csv --treatment-columns Job,Gender --outcome chosen --cluster id --out model.poul
  poul fit a.csv --design stratified --stratum city --strata-table pi.csv --outcome y --out m.poul
  poul fit a.csv --baseline-data 'history/*.csv' --outcome y --cluster user --out m.poul
  poul fit meals.parquet --policies p.toml --outcome spend --exposure 'trips_*' --out m.poul
  poul fit train.parquet --config poul.toml --learner constant --out model.poul
  poul fit a.csv --policies p.toml --outcome y --learner stack --of poul,ridge --out m.poul
  poul fit train.parquet --config poul.toml --out model.poul --resume
  poul fit july.parquet --warm-start june.poul --out july.poul"
)]
pub(crate) struct Fit {
    /// Parquet, CSV(.gz) or Arrow: a file, a folder or a quoted glob
    pub(crate) data: PathBuf,
    /// Model file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Learner [default: poul]
    #[arg(long, value_name = "NAME")]
    pub(crate) learner: Option<String>,
    /// Members of --learner stack: `of` under [model]. Costs a fit of each for every fold (--folds, 4) and one more
    /// [default: poul,s-learner,causal-forest,constant]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) of: Vec<String>,
    /// Named set of defaults: paper
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Resume a fit that was stopped, from what it left in FILE.partial
    #[arg(long)]
    pub(crate) resume: bool,
    /// Start from a saved model, whose roles and settings are the defaults
    #[arg(long, value_name = "MODEL")]
    pub(crate) warm_start: Option<PathBuf>,
    /// Members of the ensemble: `members` under [model]
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<usize>,
    /// Most passes over the data: `epochs` under [training]
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,
    /// Folds of cross-fitting, or that a stack is weighed by: `folds` under [training]
    #[arg(long, value_name = "K")]
    pub(crate) folds: Option<usize>,
    /// Step size: `learning_rate` under [training]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f64>,
    #[command(flatten)]
    pub(crate) nuisance: NuisanceArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) roles: RoleArgs,
}

#[derive(ClapArgs)]
#[command(
    after_help = "One row for each input row and policy: the id columns (or `row`, from 0), policy, against,
effect_<outcome>; with --interval lower_<outcome> and upper_<outcome>; with --support unseen_share,
the share of the comparison on atoms never seen, and support, that of the policy on atoms seen enough.
With --wide, one row for each input row: effect_<outcome>_<policy>, and so on.

Examples:
  poul effect model.poul users.parquet --policy T2 --against control --out effects.parquet
  poul effect model.poul users.parquet --policies new.toml --interval 0.9 --out effects.csv
  poul effect model.poul users.csv --policy 'Job=nurse, Gender=female' --out effects.csv
  poul effect model.poul users.parquet --all --support --out effects.parquet
  poul effect model.poul users.parquet --all --wide --out effects.parquet
  poul effect model.poul --components --interval 0.95 --out components.csv"
)]
pub(crate) struct Effect {
    /// Model file
    pub(crate) model: PathBuf,
    /// Rows to score: Parquet, CSV(.gz) or Arrow; none with --components
    #[arg(required_unless_present = "components")]
    pub(crate) data: Option<PathBuf>,
    /// Table to write: .parquet or .csv
    #[arg(long, value_name = "FILE", required_unless_present = "components")]
    pub(crate) out: Option<PathBuf>,
    /// The average effect of switching one context at a time to each action, with intervals of the level of --interval
    /// (0.9 without it): printed, and written to --out
    #[arg(long, conflicts_with_all = ["data", "policy", "all", "support", "wide", "allow_unseen", "population", "id"])]
    pub(crate) components: bool,
    /// Policy, or combination of factorial columns (repeatable) [default: those of --policies, or all]
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) policy: Vec<String>,
    /// Every policy, the model's and those of --policies
    #[arg(long)]
    pub(crate) all: bool,
    /// The policy compared with [default: the model's control]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    /// Bounds of each row's effect at this level: the error of the policy's average, and how far the ensemble is apart on
    /// what sets the row off from it (where the model was fitted with `member_rows = "half"`, its sampling error)
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) interval: Option<f64>,
    /// One row for each input row, with a column for each outcome and policy: effect_<outcome>_<policy>
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print how well the training data support each policy, and add the columns unseen_share and support
    #[arg(long)]
    pub(crate) support: bool,
    /// With --support: training rows from which an atom counts as well seen
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) min_rows: u64,
    /// Score policies with a context and action that no training row had together: by what each of the two does elsewhere,
    /// and as no effect where one of them is new; adds the column unseen_share
    #[arg(long)]
    pub(crate) allow_unseen: bool,
    /// Rows to keep, such as 'core = 1 and city != "Rome"'
    #[arg(long, value_name = "EXPR")]
    pub(crate) population: Option<String>,
    /// Columns that identify a row [default: those the model was fitted with, or the row's number]
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) id: Vec<String>,
    #[command(flatten)]
    pub(crate) policy_files: PolicyArgs,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul show model.poul
  poul show model.poul --json")]
pub(crate) struct Show {
    /// Model file
    pub(crate) model: PathBuf,
    /// JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
