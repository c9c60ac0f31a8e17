//! The flags of every command, as typed. `settings` turns them into checked settings.

mod allocate;
mod certify;
mod compare;
mod design;
mod model;
mod nuisance;
mod shell;

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use self::allocate::Allocate;
pub(crate) use self::certify::{CheckArgs, PolicyCertify};
pub(crate) use self::compare::{Compare, ResourceKind, SearchKind, Tune};
pub(crate) use self::design::{DesignArgs, JudgedBy};
pub(crate) use self::model::{Effect, Fit, Show};
pub(crate) use self::nuisance::NuisanceArgs;
pub(crate) use self::shell::{Completions, Man, Schema, SchemaKind};

/// Uplift estimation for combinatorial treatments: from Parquet to a decision one can trust.
#[derive(Parser)]
#[command(name = "poul", version, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = "Start with `poul quickstart`. Every command has examples: `poul check --help`.\n\
    Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 could not write, 130 interrupted, 1 anything else.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate an experiment, check it, fit a model and evaluate it: the whole tour
    Quickstart(Quickstart),
    /// Write an experiment whose true effects are known
    Simulate(Simulate),
    /// Validate and profile data: arms, sample ratio, balance, coverage, suspicious columns
    Check(Check),
    /// Learn effects and write them to a model file
    Fit(Fit),
    /// What policies would have done for each row, by a model
    Effect(Effect),
    /// Score predicted effects, a model's or anyone's: AUUC, Qini, calibration, with intervals
    Evaluate(Evaluate),
    /// Which policy each user should have, under a budget and other limits
    Allocate(Allocate),
    /// Learners side by side on the same test rows, with intervals and paired differences
    Compare(Compare),
    /// Search for settings by validation R-loss
    Tune(Tune),
    /// Find the policies to run next: the best by expected effect, or those that teach most
    Design(DesignArgs),
    /// What a model says of itself: learner, data, policies, settings, history
    Show(Show),
    /// Work with policies: show, diff, distance, nearest, certify
    #[command(subcommand)]
    Policy(Policy),
    /// JSON Schema of the settings file or of policy files, for editors
    Schema(Schema),
    /// Tab completion for a shell
    Completions(Completions),
    /// Manual pages
    Man(Man),
}

/// The seed where none is given, the paper's.
pub(crate) const DEFAULT_SEED: u64 = 3407;

/// Flags that every command takes.
#[derive(ClapArgs)]
#[command(next_help_heading = "Every command")]
pub(crate) struct Common {
    /// Root of all random streams; a seed gives the same bytes on any number of threads
    #[arg(long, global = true, default_value_t = DEFAULT_SEED, value_name = "N")]
    pub(crate) seed: u64,
    /// Threads to use [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Memory for encoded data, such as 4GiB or 512MB; beyond it a scratch file is used [default: half of the machine's]
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Only errors on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// Which column is what; the same names stand under `[data]` in a configuration file.
#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Roles of columns")]
pub(crate) struct RoleArgs {
    /// Settings file; flags win over it
    #[arg(long, value_name = "poul.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Column that names each row's policy [default: policy]
    #[arg(long, value_name = "COL", conflicts_with = "treatment_columns")]
    pub(crate) treatment: Option<String>,
    /// Factorial treatment: each column is a context, each value an action
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) treatment_columns: Vec<String>,
    /// Outcome column (repeatable)
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    pub(crate) outcome: Vec<String>,
    /// Outcomes that only teach who responds (visits, opens); their own effects are not reported
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) auxiliary: Vec<String>,
    /// The policy that others are compared with [default: control]
    #[arg(long, value_name = "NAME")]
    pub(crate) control: Option<String>,
    /// Feature columns [default: every column without another role]
    #[arg(long, value_name = "GLOB,…", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Columns that are not features
    #[arg(long, value_name = "GLOB,…", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,
    /// Sample weights
    #[arg(long, value_name = "COL")]
    pub(crate) weight: Option<String>,
    /// Units assigned together: split, permuted and resampled as one
    #[arg(long, value_name = "COL")]
    pub(crate) cluster: Option<String>,
    /// Strata within which policies were assigned
    #[arg(long, value_name = "COL")]
    pub(crate) stratum: Option<String>,
    /// Columns with each policy's assignment probability
    #[arg(long, value_name = "GLOB")]
    pub(crate) propensity: Option<String>,
    /// Your own prediction of an outcome without treatment effects (repeatable)
    #[arg(long, value_name = "OUTCOME=COL", action = ArgAction::Append)]
    pub(crate) prediction: Vec<String>,
    /// How much each row meets each context, before the experiment: CONTEXT=COL (repeatable), or a glob such as 'trips_*'
    /// whose `*` is the context
    #[arg(long, value_name = "SPEC", action = ArgAction::Append)]
    pub(crate) exposure: Vec<String>,
    /// What a row's exposures are divided by: their sum, or the mean sum of all rows [default: share]
    #[arg(long, value_enum)]
    pub(crate) exposure_scale: Option<ExposureScale>,
    /// Rows to keep, such as 'core = 1 and city != "Rome"'
    #[arg(long, value_name = "EXPR")]
    pub(crate) population: Option<String>,
    /// Time column (never a feature)
    #[arg(long, value_name = "COL")]
    pub(crate) time: Option<String>,
    /// Columns that identify a row (never features)
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub(crate) id: Vec<String>,
    /// How policies were assigned [default: randomized]
    #[arg(long, value_enum)]
    pub(crate) design: Option<Design>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Design {
    /// The same probabilities for every row
    Randomized,
    /// Probabilities that depend on the stratum alone
    Stratified,
    /// Assignment that depends on the features
    Observational,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ExposureScale {
    /// Their sum: every row is treated as much, in contexts of its own
    Share,
    /// The mean sum of all rows: who meets contexts twice as often is treated twice
    Total,
}

/// Where the policies are defined.
#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Policies")]
pub(crate) struct PolicyArgs {
    /// Policy file: .toml, .json, or long form .csv / .parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) policies: Option<PathBuf>,
    /// Context weights: a table `context,weight`
    #[arg(long, value_name = "FILE", conflicts_with = "exposure_log")]
    pub(crate) contexts: Option<PathBuf>,
    /// Estimate context weights from a log: a table `context,count`, or any table with --context-column
    #[arg(long, value_name = "FILE")]
    pub(crate) exposure_log: Option<PathBuf>,
    /// Column of contexts in the exposure log, one row per exposure
    #[arg(long, value_name = "COL", requires = "exposure_log")]
    pub(crate) context_column: Option<String>,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul quickstart
  poul quickstart --out tour --rows 200000")]
pub(crate) struct Quickstart {
    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = "poul-quickstart")]
    pub(crate) out: PathBuf,
    /// Training rows to simulate; the test set has twice as many
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) rows: u64,
}

/// The names of all scenarios, the last after an "or".
fn scenario_names() -> String {
    let mut names: Vec<&str> = poul::simulate::scenarios().map(|(name, _)| name).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} or {last}", names.join(", "))
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul simulate --out rides
  poul simulate --out tail --scenario long-tail --rows 40000 --policies 60 --features 40
  poul simulate --out paper --rows 3820637 --features 723
  poul simulate --out meals --scenario delivery
  poul simulate --out round2 --world tail --policies proposals.toml --rows 20000

Writes train.parquet, test.parquet, policies.toml, truth.parquet and a README.md that explains them.")]
pub(crate) struct Simulate {
    /// Folder to write to
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[arg(long, value_name = "NAME", default_value = "ride-hailing", help = scenario_names())]
    pub(crate) scenario: String,
    /// Training rows
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Test rows
    #[arg(long, value_name = "N")]
    pub(crate) test_rows: Option<u64>,
    /// Feature columns [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) features: Option<usize>,
    /// Policies, control among them; with --world, a file of policies to run beside control
    #[arg(long, value_name = "N|FILE")]
    pub(crate) policies: Option<String>,
    /// A folder that `poul simulate` wrote: run the policies of a file in that world, on new users (another --seed draws others)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "features", "contexts", "actions", "noise"])]
    pub(crate) world: Option<PathBuf>,
    /// Contexts
    #[arg(long, value_name = "N")]
    pub(crate) contexts: Option<usize>,
    /// Actions
    #[arg(long, value_name = "N")]
    pub(crate) actions: Option<usize>,
    /// Noise of the outcome, as a multiple of the standard deviation of the effect (ride-hailing: sd of log GMV)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) noise: Option<f64>,
    /// Test rows whose true effects are written [default: all, at most 5 million pairs of row and policy]
    #[arg(long, value_name = "N")]
    pub(crate) truth_rows: Option<u64>,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul check rides/train.parquet --policies rides/policies.toml --outcome gmv,cost --time month
  poul check mail.csv.gz --treatment segment --control 'No E-Mail' --outcome visit --exclude spend
  poul check profiles.csv --treatment-columns Education,Gender,Job --outcome chosen --cluster id
  poul check data.csv --policies p.toml --outcome gmv --shares control=0.4,T1=0.3,T2=0.3")]
pub(crate) struct Check {
    /// Parquet, CSV(.gz) or Arrow: a file, a folder or a quoted glob
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) roles: RoleArgs,
    /// Assignment shares as declared, for the sample-ratio test; they are normalised
    #[arg(long, value_name = "POLICY=SHARE,…", value_delimiter = ',')]
    pub(crate) shares: Vec<String>,
    /// Permutations for the balance test
    #[arg(long, value_name = "N", default_value_t = 499)]
    pub(crate) permutations: usize,
    /// Write the profile as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul evaluate model.poul test.parquet --json metrics.json
  poul evaluate model.poul test.parquet --placebo 3
  poul evaluate model.poul test.parquet --cost-curve gmv,cost --report report.html
  poul evaluate model.poul test.parquet --by city --by trips
  poul evaluate scored.parquet --effects tau --treatment arm --outcome gmv --against control
  poul evaluate scored.csv --effects T1=tau_t1 --effects T2=tau_t2 --outcome gmv --json metrics.json
  poul evaluate scored.csv --effects gmv:T1=a --effects cost:T1=b --outcome gmv,cost --cluster home
  poul evaluate model.poul test.parquet --allocation allocation.parquet
  poul evaluate test.parquet --allocation allocation.parquet --outcome gmv,cost --control control")]
#[command(override_usage = "poul evaluate [OPTIONS] MODEL DATA
       poul evaluate [OPTIONS] --effects SPEC DATA
       poul evaluate [OPTIONS] --allocation FILE [MODEL] DATA")]
pub(crate) struct Evaluate {
    /// A model and the data to score by it; or, with --effects, data with columns of effects
    #[arg(value_name = "PATH", num_args = 1..=2, required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Column of predicted effects: COL, POLICY=COL or OUTCOME:POLICY=COL (repeatable)
    #[arg(long, value_name = "SPEC")]
    pub(crate) effects: Vec<String>,
    /// An allocation to value on the data, as `poul allocate` writes it; a model before the data sharpens the value
    #[arg(long, value_name = "FILE")]
    pub(crate) allocation: Option<PathBuf>,
    /// With --allocation: the outcome that is to be large [default: the first]
    #[arg(long, value_name = "OUTCOME", requires = "allocation")]
    pub(crate) maximize: Option<String>,
    /// With --allocation: use the very table that the model was fitted on
    #[arg(long, requires = "allocation")]
    pub(crate) force: bool,
    /// Column of true effects, where they are known; the same forms as --effects
    #[arg(long, value_name = "SPEC")]
    pub(crate) truth: Vec<String>,
    /// Policies to score [default: every policy in the data but the one compared with]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Vec<String>,
    /// The policy compared with [default: the control]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    /// With a model: score policies with a context and action that no training row had together, by what each of the two
    /// does elsewhere, and as no effect where one of them is new
    #[arg(long)]
    pub(crate) allow_unseen: bool,
    #[command(flatten)]
    pub(crate) policy_files: PolicyArgs,
    #[command(flatten)]
    pub(crate) roles: RoleArgs,
    /// Set one outcome against another as the targeted share grows
    #[arg(long, value_name = "VALUE,COST")]
    pub(crate) cost_curve: Option<String>,
    /// Average effects by the groups of a column: quarters of a number, categories (repeatable)
    #[arg(long, value_name = "COL")]
    pub(crate) by: Vec<String>,
    /// Bootstrap draws for the intervals; 0 for none
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) draws: usize,
    /// Level of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.9)]
    pub(crate) level: f64,
    #[command(flatten)]
    pub(crate) checks: CheckArgs,
    /// Write all metrics as JSON to a file, or to stdout with `-` (then no table is printed)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report for people: one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Policy {
    /// What each policy does: contexts, weights, actions
    #[command(
        after_help = "Examples:\n  poul policy show --policies policies.toml\n  poul policy show T2 --policies policies.toml"
    )]
    Show(PolicyShow),
    /// Which contexts differ between two policies, of one file or of two, and how much mass moved
    #[command(after_help = "Examples:
  poul policy diff T1 T2 --policies policies.toml
  poul policy diff --policies july.toml --with august.toml
  poul policy diff T2 --policies new.toml --with model.poul")]
    Diff(PolicyDiff),
    /// The distance between two policies, from 0 (the same mixture) to 2 (nothing shared)
    #[command(after_help = "Example:\n  poul policy distance T1 T2 --policies policies.toml")]
    Distance(PolicyPair),
    /// The policies closest to one
    #[command(after_help = "Example:\n  poul policy nearest T2 --policies policies.toml --count 3")]
    Nearest(PolicyNearest),
    /// What a model can say of a policy before it is run: neighbours, support, a bound on its effects
    Certify(PolicyCertify),
}

#[derive(ClapArgs)]
pub(crate) struct PolicyShow {
    /// Policies to show [default: all]
    #[arg(value_name = "POLICY")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) file: PolicyFile,
}

#[derive(ClapArgs)]
pub(crate) struct PolicyPair {
    /// One policy
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// The other
    #[arg(value_name = "B")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) file: PolicyFile,
}

#[derive(ClapArgs)]
pub(crate) struct PolicyDiff {
    /// Two policies; with --with, one of each file, one that both have, or none for all
    #[arg(value_name = "POLICY", num_args = 0..=2)]
    pub(crate) names: Vec<String>,
    /// Another policy file, or a model, to compare with
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) file: PolicyFile,
}

#[derive(ClapArgs)]
pub(crate) struct PolicyNearest {
    /// The policy
    #[arg(value_name = "POLICY")]
    pub(crate) name: String,
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) count: usize,
    #[command(flatten)]
    pub(crate) file: PolicyFile,
}

#[derive(ClapArgs)]
pub(crate) struct PolicyFile {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
