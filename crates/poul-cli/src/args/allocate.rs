//! The flags of `poul allocate`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};

use super::PolicyArgs;

#[derive(ClapArgs)]
#[command(
    after_help = "Each user gets one policy; the control is always allowed. With --maximize, prices are found and written
to --prices; without it, those of --prices decide each user alone. Where the users have outcomes
(an experiment that the model has not seen), the allocation is valued by them.

Examples:
  poul allocate model.poul users.parquet --maximize gmv --budget cost=1000000 --out a.parquet
  poul allocate model.poul users.parquet --maximize gmv --rate cost/gmv=0.2 --out a.parquet
  poul allocate model.poul users.csv --maximize gmv --eligible 'T2: age >= 18' --out a.csv
  poul allocate model.poul users.parquet --maximize gmv --budget cost=1e6 --risk 0.1 --out a.parquet
  poul allocate model.poul users.csv --maximize gmv --group city --group-budgets g.csv --out a.csv
  poul allocate model.poul users.csv --maximize gmv --budget cost=1e6 --prices p.json --out a.csv
  poul allocate model.poul tomorrow.parquet --prices prices.json --out b.parquet"
)]
pub(crate) struct Allocate {
    /// Model file
    pub(crate) model: PathBuf,
    /// The users: Parquet, CSV(.gz) or Arrow, a file, a folder or a quoted glob
    pub(crate) users: PathBuf,
    /// The outcome whose total is to be as large as possible
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) maximize: Option<String>,
    /// The most that the total of an outcome may be (repeatable)
    #[arg(long, value_name = "OUTCOME=AMOUNT", action = ArgAction::Append)]
    pub(crate) budget: Vec<String>,
    /// The most that one total may be of another, such as cost/gmv=0.2 (repeatable)
    #[arg(long, value_name = "COST/VALUE=RATE", action = ArgAction::Append)]
    pub(crate) rate: Vec<String>,
    /// The largest share of users that may get a policy (repeatable)
    #[arg(long, value_name = "POLICY=SHARE", action = ArgAction::Append)]
    pub(crate) cap: Vec<String>,
    /// The smallest share of users that must get a policy (repeatable)
    #[arg(long, value_name = "POLICY=SHARE", action = ArgAction::Append)]
    pub(crate) floor: Vec<String>,
    /// Who may get a policy, such as 'T2: age >= 18 and city != "Rome"' (repeatable)
    #[arg(long, value_name = "POLICY: EXPR", action = ArgAction::Append)]
    pub(crate) eligible: Vec<String>,
    /// Column of groups that have limits of their own
    #[arg(long, value_name = "COL")]
    pub(crate) group: Option<String>,
    /// Limits of groups: a row for each, with budgets in columns named after outcomes and shares in cap_POLICY, floor_POLICY
    #[arg(long, value_name = "FILE")]
    pub(crate) group_budgets: Option<PathBuf>,
    /// How many policies may be in use, the control not counted
    #[arg(long, value_name = "K")]
    pub(crate) at_most_policies: Option<usize>,
    /// Decide by this quantile of gains and its mirror of costs, so that noise is not bought: 0.1 is cautious, 0.5 is not
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    pub(crate) risk: Option<f64>,
    /// Policies to choose from [default: all that the model can score]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Vec<String>,
    /// The policy that costs and brings nothing [default: the model's control]
    #[arg(long, value_name = "NAME")]
    pub(crate) control: Option<String>,
    /// Where the allocation goes: .parquet or .csv, a row for each user
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// What other budgets would bring, as a table: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    pub(crate) curve: Option<PathBuf>,
    /// Points of the curve
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) points: usize,
    /// Prices of the limits, for serving: written with --maximize, else read and decided by
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Write everything as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page for people: one HTML file that opens offline; it has the curve where there is a budget for all users
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Level of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.9)]
    pub(crate) level: f64,
    /// Allocate the very table that the model was fitted on
    #[arg(long)]
    pub(crate) force: bool,
    /// Choose among policies with a context and action that no training row had together, too
    #[arg(long)]
    pub(crate) allow_unseen: bool,
    /// Users to keep, such as 'core = 1 and city != "Rome"'
    #[arg(long, value_name = "EXPR")]
    pub(crate) population: Option<String>,
    /// Columns that identify a user [default: those the model was fitted with, or the row's number]
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) id: Vec<String>,
    #[command(flatten)]
    pub(crate) policy_files: PolicyArgs,
}
