//! What allocations are truly worth, on `ride-hailing` worlds whose effects are known.
//!
//! `cargo run --release -p benches --bin worth -- [key=value …]`, where the keys are `first`, `last` (seeds of worlds, 1 to 5), `rows`
//! (50000, those that the model learns from), `users` (20000 others), `features` (100), `level` of intervals (0.9), `risk` (none),
//! and settings such as `training.epochs=10`.
//!
//! The budget is a third of what T2 for all users truly costs. *Return* is true GMV for each unit of true cost, over that of T2 for
//! all users, which is that of T2 for a random third of them; beside it, the return of the allocation that knows the true effects. The
//! last columns have what the allocation truly brings a user and the interval that `poul allocate` gives from outcomes.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use poul::decide::allocate::{Keep, Options, Path as BudgetPath};
use poul::decide::users::{AllocationInputs, AllocationRequest, Batches, Target, allocate};
use poul::effect::Settings;
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Error, Experiment, Model, Result, Roles, Silent, Source};

const VALUE: &str = "gmv";
const COST: &str = "cost";

/// True effects of a user under one policy: value and cost.
type Pair = [f64; 2];

fn main() -> Result<()> {
    let given: BTreeMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let number =
        |key: &str, default: f64| given.get(key).and_then(|value| value.parse().ok()).unwrap_or(default);
    let mut settings = Settings::default();
    for (key, value) in &given {
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.clone().into());
        if let Some(key) = key.strip_prefix("model.") {
            settings.model.insert(key.to_owned(), value);
        } else if let Some(key) = key.strip_prefix("training.") {
            settings.training.insert(key.to_owned(), value);
        }
    }
    let risk = given.get("risk").and_then(|value| value.parse().ok());
    println!(
        "{:>5} {:>8} {:>8} {:>9} {:>9} {:>9} {:>18} {:>5}",
        "seed", "return", "knowing", "spent", "gmv true", "estimate", "interval", "holds"
    );
    let mut ratios = Vec::new();
    let mut held = 0;
    let (first, last) = (number("first", 1.0) as u64, number("last", 5.0) as u64);
    for seed in first..=last {
        let simulation = Simulation {
            scenario: "ride-hailing".to_owned(),
            rows: number("rows", 50_000.0) as u64,
            test_rows: Some(number("users", 20_000.0) as u64),
            truth_rows: Some(number("users", 20_000.0) as u64),
            features: Some(number("features", 100.0) as usize),
            seed,
            ..Simulation::default()
        };
        let folder = std::env::temp_dir().join(format!("poul-worth-{}", std::process::id()));
        run(&simulation.check()?, &folder, &Silent)?;
        let found = world(&folder, &settings, risk, number("level", 0.9));
        // A folder for temporary files is cleaned up by others, if need be.
        let _ = std::fs::remove_dir_all(&folder);
        let found = found?;
        let holds = found.interval[0] <= found.gmv && found.gmv <= found.interval[1];
        println!(
            "{seed:>5} {:>8.3} {:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>18} {:>5}",
            found.gained,
            found.knowing,
            found.spent,
            found.gmv,
            found.estimate,
            format!("{:.2} … {:.2}", found.interval[0], found.interval[1]),
            if holds { "yes" } else { "no" }
        );
        ratios.push(found.gained);
        held += usize::from(holds);
    }
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let sd = (ratios.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    println!(
        "\nreturn over that of T2 at random: {mean:.2} ± {:.2}; intervals that hold the truth: {held} of {n}",
        sd / n.sqrt()
    );
    Ok(())
}

/// What came of one world.
struct Found {
    /// Return of the allocation over that of T2 for all.
    gained: f64,
    /// The same for the allocation that knows the true effects.
    knowing: f64,
    /// True cost of the allocation over the budget.
    spent: f64,
    /// True value a user.
    gmv: f64,
    /// As `poul allocate` says from outcomes.
    estimate: f64,
    interval: [f64; 2],
}

fn world(folder: &Path, settings: &Settings, risk: Option<f64>, level: f64) -> Result<Found> {
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let model = model(folder, &policies, settings)?;
    let truth = truth(&folder.join("truth.parquet"), &policies)?;
    let t2 = policies.require("T2")?;
    let of_t2 = truth.iter().fold([0.0; 2], |sum, own| [sum[0] + own[t2][0], sum[1] + own[t2][1]]);
    let budget = of_t2[1] / 3.0;

    let users = Source::open(&folder.join("test.parquet").to_string_lossy())?;
    let inputs = AllocationInputs { model: &model, policies: &policies, users: &users, group_budgets: None };
    let request = AllocationRequest {
        maximize: VALUE.to_owned(),
        budget: BTreeMap::from([(COST.to_owned(), budget)]),
        risk,
        level,
        ..AllocationRequest::default()
    };
    let found = allocate(&inputs, &request.check()?, false, Target::Memory, &Silent)?;
    let missing = |what: &str| Error::other(format!("the allocation has no {what}"));
    let total = given(&found.table.ok_or_else(|| missing("table"))?, &policies, &truth)?;
    let worth = found.allocation.evaluation.ok_or_else(|| missing("evaluation"))?;
    let own = worth.rules.first().ok_or_else(|| missing("worth"))?;
    let own = own.outcomes.iter().find(|own| own.outcome == VALUE).ok_or_else(|| missing("gmv"))?;
    let best = knowing(&truth, budget)?;
    let at_random = of_t2[0] / of_t2[1];
    Ok(Found {
        gained: total[0] / total[1] / at_random,
        knowing: best[0] / best[1] / at_random,
        spent: total[1] / budget,
        gmv: total[0] / truth.len() as f64,
        estimate: own.per_user.estimate,
        interval: own.per_user.interval,
    })
}

fn model(folder: &Path, policies: &PolicySet, settings: &Settings) -> Result<Model> {
    let source = Source::open(&folder.join("train.parquet").to_string_lossy())?;
    let roles = Roles {
        outcome: vec![VALUE.to_owned(), COST.to_owned()],
        time: Some("month".to_owned()),
        ..Roles::default()
    };
    let experiment = Experiment::open(&source, &roles, policies.clone(), &Silent)?;
    Model::fit(&experiment).settings(settings).run(&Silent)
}

/// True effects by row and policy.
fn truth(path: &Path, policies: &PolicySet) -> Result<Vec<Vec<Pair>>> {
    let source = Source::open(&path.to_string_lossy())?;
    let names = ["row", "policy", "effect_gmv", "effect_cost"];
    let mut truth: Vec<Vec<Pair>> = Vec::new();
    for batch in source.batches(&names, 1 << 16)? {
        let batch = batch?;
        let rows = batch.column(0).as_primitive::<Int64Type>();
        let policy = batch.column(1).as_string::<i32>();
        let [value, cost] = [2, 3].map(|column| batch.column(column).as_primitive::<Float64Type>());
        for idx in 0..batch.num_rows() {
            let row = rows.value(idx) as usize;
            if row >= truth.len() {
                truth.resize(row + 1, vec![[0.0; 2]; policies.len()]);
            }
            truth[row][policies.require(policy.value(idx))?] = [value.value(idx), cost.value(idx)];
        }
    }
    Ok(truth)
}

/// True value and cost of an allocation.
fn given((_, batches): &Batches, policies: &PolicySet, truth: &[Vec<Pair>]) -> Result<Pair> {
    let mut total = [0.0; 2];
    for batch in batches {
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| Error::other(format!("no column `{name}`")))
        };
        let rows = column("row")?.as_primitive::<Int64Type>();
        let policy = column("policy")?.as_string::<i32>();
        let share = column("share")?.as_primitive::<Float64Type>();
        for idx in 0..batch.num_rows() {
            let own = truth[rows.value(idx) as usize][policies.require(policy.value(idx))?];
            total[0] += share.value(idx) * own[0];
            total[1] += share.value(idx) * own[1];
        }
    }
    Ok(total)
}

/// Value and cost of the best allocation for those who know the true effects.
fn knowing(truth: &[Vec<Pair>], budget: f64) -> Result<Pair> {
    let n_policies = truth.first().map_or(0, Vec::len);
    let of = |what: usize| truth.iter().flatten().map(|own| own[what] as f32).collect::<Vec<f32>>();
    let options = Options::dense(n_policies, 1, &of(0), &of(1), None, &Keep::Hull)?;
    let path = BudgetPath::new(&options)?;
    let point = path.at(budget).ok_or_else(|| Error::other("no allocation keeps to the budget"))?;
    Ok([point.value, budget.min(path.greatest())])
}
