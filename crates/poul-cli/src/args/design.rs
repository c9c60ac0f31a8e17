//! The flags of `poul design`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul design model.poul --maximize gmv --budget cost=5 --out proposals.toml
  poul design model.poul users.parquet --maximize gmv --price cost=1 --json proposals.json
  poul design model.poul --maximize gmv --from T1 --allow 'peak: none, upgrade' --out next.toml
  poul design model.poul --maximize gmv --learn --batch 4 --rows 200000 --out batch.toml
  poul design model.poul --rows 200000 --policy T1 --policy T2")]
pub(crate) struct DesignArgs {
    /// Model file
    pub(crate) model: PathBuf,
    /// Users that averages are over: Parquet, CSV(.gz) or Arrow [default: the training population]
    pub(crate) users: Option<PathBuf>,
    /// The outcome whose average effect is to be as large as possible
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) maximize: Option<String>,
    /// The most that a policy may add to an outcome, for a user on average (repeatable)
    #[arg(long, value_name = "OUTCOME=AMOUNT")]
    pub(crate) budget: Vec<String>,
    /// What a unit of another outcome costs: it is taken off the effect (repeatable)
    #[arg(long, value_name = "OUTCOME=PRICE")]
    pub(crate) price: Vec<String>,
    /// The policy to change [default: the best that was run]
    #[arg(long, value_name = "POLICY")]
    pub(crate) from: Option<String>,
    /// Contexts that may be changed
    #[arg(long, value_name = "K", default_value_t = 3, allow_negative_numbers = true)]
    pub(crate) edits: i64,
    /// The farthest from some policy that was run, by d_Π from 0 to 2
    #[arg(long, value_name = "D", default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) within: f64,
    /// Training rows that every action must have had in its context
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) min_rows: u64,
    /// Probabilities of actions to try [default: 0,0.25,0.5,0.75,1; for treatment columns 0,1]
    #[arg(long, value_name = "P,…", value_delimiter = ',')]
    pub(crate) grid: Vec<f64>,
    /// Actions that a context may take; `*` is every context not named (repeatable)
    #[arg(long, value_name = "CONTEXT: A, B")]
    pub(crate) allow: Vec<String>,
    /// How many policies to propose
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
    pub(crate) proposals: i64,
    /// What policies are judged by
    #[arg(long, value_enum, default_value_t = JudgedBy::Improvement)]
    pub(crate) by: JudgedBy,
    /// Find the policies that teach most about all good ones, and their shares of --rows users
    #[arg(long)]
    pub(crate) learn: bool,
    /// With --learn: policies to run at once
    #[arg(long, value_name = "K", default_value_t = 4, allow_negative_numbers = true)]
    pub(crate) batch: i64,
    /// Users of the next experiment: what could be told with them
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) rows: Option<i64>,
    /// Without --maximize: policies to plan for [default: the five that most rows had] (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Vec<String>,
    /// Level of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.9, allow_negative_numbers = true)]
    pub(crate) level: f64,
    /// Users to keep, such as 'city = "Rome"'
    #[arg(long, value_name = "EXPR", requires = "users")]
    pub(crate) population: Option<String>,
    /// Policy file to write, .toml or .json: control and the proposals
    #[arg(long, value_name = "FILE", requires = "maximize")]
    pub(crate) out: Option<PathBuf>,
    /// Write all that is known of the proposals as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum JudgedBy {
    /// Expected value
    Value,
    /// Lower end of the interval of the value
    Lower,
    /// Expected improvement over the best policy that was run
    Improvement,
}
