//! `poul quickstart`: simulate an experiment, check it, learn from it, and set what was learned beside the truth.
//!
//! Every step is the command that is printed, parsed and run as if it had been typed.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use clap::Parser;
use poul::data::{Labels, Need, Roles, RowReader, Source};
use poul::evaluate::{Bootstrap, Effects, Evaluation, Metric, Outcome, Params, Scored};
use poul::policy::{Assigner, PolicySet};
use poul::{Error, Result, Seed, Silent};
use poul_report::number::optional;
use rand::RngExt;
use serde_json::Value;

use crate::args::{Args, Common, DEFAULT_SEED, Quickstart};
use crate::commands::{dispatch, print};
use crate::progress::Terminal;
use crate::table::Table;

const OUTCOMES: [&str; 2] = ["gmv", "cost"];
const POLICIES: [&str; 2] = ["T1", "T2"];

pub(crate) fn run(args: &Quickstart, common: &Common, terminal: &Terminal) -> Result<()> {
    let folder = args.out.as_path();
    let [out, train, test, policies, model, metrics, effects, report] = [
        "",
        "train.parquet",
        "test.parquet",
        "policies.toml",
        "model.poul",
        "metrics.json",
        "effects.parquet",
        "report.html",
    ]
    .map(|name| if name.is_empty() { folder.to_path_buf() } else { folder.join(name) })
    .map(|path| path.to_string_lossy().into_owned());
    let tour = Tour { common, terminal };
    let (rows, test_rows) = (args.rows.to_string(), args.rows.saturating_mul(2).to_string());
    tour.step(&["simulate", "--out", &out, "--rows", &rows, "--test-rows", &test_rows])?;
    let data = ["--policies", &policies, "--outcome", "gmv,cost", "--time", "month"];
    tour.step(&[&["check", &train][..], &data].concat())?;
    tour.step(&[&["fit", &train][..], &data, &["--out", &model]].concat())?;
    let chosen = ["--policy", POLICIES[0], "--policy", POLICIES[1]];
    let written = ["--cost-curve", "gmv,cost", "--json", &metrics, "--report", &report];
    tour.step(&[&["evaluate", &model, &test][..], &chosen, &written].concat())?;

    print(comparison(folder, Path::new(&metrics), common)?)?;
    let next = [
        ("the effect of T2 on each user", vec!["effect", &model, &test, "--policy", "T2", "--out", &effects]),
        ("only the users it is meant for", vec!["evaluate", &model, &test, "--population", "core"]),
        ("what T2 changes", vec!["policy", "diff", "control", "T2", "--policies", &policies]),
        ("what the model says of itself", vec!["show", &model]),
    ];
    let readme = folder.join("README.md");
    let mut text = "\nNext:\n".to_owned();
    for (what, words) in next {
        text += &format!("  {}\n      {what}\n", tour.line(&words));
    }
    print(format!("{text}{} explains the files.\nOpen the report: {report}\n", readme.display()))
}

struct Tour<'a> {
    common: &'a Common,
    terminal: &'a Terminal,
}

impl Tour<'_> {
    /// Prints a command and runs it.
    fn step(&self, words: &[&str]) -> Result<()> {
        self.terminal.say(format!(
            "{}$ {}",
            if words[0] == "simulate" { "" } else { "\n" },
            self.line(words)
        ));
        let typed = self.typed(words);
        let parsed = Args::try_parse_from(std::iter::once("poul").chain(typed.iter().map(String::as_str)));
        let parsed = parsed.map_err(|error| Error::usage(error.to_string()).at("quickstart"))?;
        dispatch(parsed.command, &typed, self.common, self.terminal)
    }

    /// The words of a command, with the seed unless it is the default.
    fn typed(&self, words: &[&str]) -> Vec<String> {
        let mut typed: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if self.common.seed != DEFAULT_SEED && words[0] != "policy" && words[0] != "show" {
            typed.extend(["--seed".to_owned(), self.common.seed.to_string()]);
        }
        typed
    }

    /// A command as one types it.
    fn line(&self, words: &[&str]) -> String {
        let words: Vec<String> = self.typed(words).iter().map(|word| poul::quoted_word(word)).collect();
        format!("poul {}", words.join(" "))
    }
}

/// The AUUC of the model's ranking between that of chance and that of the true effects.
fn comparison(folder: &Path, metrics: &Path, common: &Common) -> Result<String> {
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let mut test = Test::read(folder, &policies)?;
    let truth = Truth::read(folder, &policies, test.arm.len())?;
    test.keep_first(truth.n_rows);
    let mut rng = Seed::new(common.seed).child("quickstart").rng();
    let chance: Vec<f64> = test.arm.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
    let random = score(&test, &policies, |_, _| &chance)?;
    let best = score(&test, &policies, |outcome, policy| &truth.effects[outcome][policy])?;
    let learned = std::fs::read_to_string(metrics).map_err(|error| Error::read(metrics, error))?;
    let learned: Value = serde_json::from_str(&learned)
        .map_err(|error| Error::other(format!("not what was written: {error}")).file(metrics))?;

    let mut table = Table::new(["outcome", "policy", "chance", "model", "true effects"]).left(2);
    for (random, best) in random.results.iter().zip(&best.results) {
        let same = |result: &&Value| result["outcome"] == *best.outcome && result["policy"] == *best.policy;
        let model = learned["results"].as_array().and_then(|results| results.iter().find(same));
        table.row([
            best.outcome.clone(),
            best.policy.clone(),
            optional(random.metrics[Metric::Auuc].value),
            optional(model.and_then(|model| model["auuc"].as_f64())),
            optional(best.metrics[Metric::Auuc].value),
        ]);
    }
    Ok(format!(
        "\nHow good is that? AUUC of the test users in a random order, in the model's, in the best:\n{table}\
         GMV is noisy, so one test set may even favour the model over the truth: the intervals above say how far to trust it.\n"
    ))
}

/// The test rows.
struct Test {
    arm: Vec<u32>,
    outcomes: Vec<Vec<f64>>,
}

impl Test {
    fn read(folder: &Path, policies: &PolicySet) -> Result<Self> {
        let source = open(folder, "test.parquet")?;
        let roles = Roles { outcome: OUTCOMES.map(String::from).to_vec(), ..Roles::default() };
        let columns = roles.check(source.schema(), Need::EVALUATE)?;
        let mut reader = RowReader::new(&source, &columns)?;
        let mut assigner = Assigner::new(policies, &columns);
        let mut test = Self { arm: Vec::new(), outcomes: vec![Vec::new(); OUTCOMES.len()] };
        while let Some(batch) = reader.next_batch()? {
            let labels: Vec<&Labels> = vec![reader.labels(0)];
            test.arm.extend(assigner.assign(&batch.treatment, &labels, &batch.rows)?);
            for (all, values) in test.outcomes.iter_mut().zip(&batch.outcomes) {
                all.extend_from_slice(values);
            }
        }
        Ok(test)
    }

    fn keep_first(&mut self, n_rows: usize) {
        self.arm.truncate(n_rows);
        self.outcomes.iter_mut().for_each(|values| values.truncate(n_rows));
    }
}

/// True effects: `effects[outcome][policy][row]`.
struct Truth {
    effects: Vec<Vec<Vec<f64>>>,
    /// The first rows of the test set, all of them unless it is very large.
    n_rows: usize,
}

impl Truth {
    fn read(folder: &Path, policies: &PolicySet, n_rows: usize) -> Result<Self> {
        let source = open(folder, "truth.parquet")?;
        let mut effects = vec![vec![Vec::with_capacity(n_rows); policies.len()]; OUTCOMES.len()];
        let names = OUTCOMES.map(|outcome| format!("effect_{outcome}"));
        let columns = ["row", "policy", &names[0], &names[1]];
        let unexpected = || Error::other("truth.parquet does not have the columns that were written");
        for batch in source.batches(&columns, 1 << 16)? {
            let batch = batch?;
            let row = batch.column(0).as_primitive_opt::<Int64Type>().ok_or_else(unexpected)?;
            let policy = batch.column(1).as_string_opt::<i32>().ok_or_else(unexpected)?;
            for (outcome, effects) in effects.iter_mut().enumerate() {
                let values =
                    batch.column(2 + outcome).as_primitive_opt::<Float64Type>().ok_or_else(unexpected)?;
                for i in 0..batch.num_rows() {
                    let effects: &mut Vec<f64> = &mut effects[policies.require(policy.value(i))?];
                    // Rows come in order, from the first.
                    if row.value(i) != effects.len() as i64 {
                        return Err(unexpected());
                    }
                    effects.push(values.value(i));
                }
            }
        }
        let n_rows = effects.iter().flatten().map(Vec::len).min().unwrap_or(0);
        effects.iter_mut().flatten().for_each(|values| values.truncate(n_rows));
        Ok(Self { effects, n_rows })
    }
}

fn open(folder: &Path, name: &str) -> Result<Source> {
    Source::open_path(folder.join(name))
}

/// The metrics of a ranking, without intervals.
fn score<'a>(
    test: &Test,
    policies: &PolicySet,
    values: impl Fn(usize, usize) -> &'a [f64],
) -> Result<Evaluation> {
    let mut effects = Vec::new();
    for outcome in 0..OUTCOMES.len() {
        for name in POLICIES {
            let policy = policies.require(name)?;
            let values = values(outcome, policy);
            effects.push(Effects { policy, outcome: Some(outcome), values, truth: None });
        }
    }
    let outcome = |(name, values)| Outcome { name, values, prediction: None };
    let values = test.outcomes.iter().map(Vec::as_slice);
    let outcomes: Vec<Outcome<'_>> = OUTCOMES.into_iter().zip(values).map(outcome).collect();
    let scored = Scored {
        outcomes: &outcomes,
        policies: policies.names(),
        arm: &test.arm,
        against: policies.require("control")?,
        effects: &effects,
        weight: None,
        cluster: None,
        propensity: None,
    };
    let params = Params { bootstrap: Bootstrap { draws: 0, ..Bootstrap::default() }, ..Params::default() };
    poul::evaluate::evaluate(&scored, &params.check()?, &Silent)
}
