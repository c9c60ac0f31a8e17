//! What allocations are truly worth, on `ride-hailing` worlds whose effects are known.
//!
//! `cargo run --release -p benches --bin worth -- [key=value …]`, where the keys are `first`, `last` (seeds of worlds, 1 to 5), `rows`
//! (50000, those that the model learns from), `users` (20000 others), `features` (100), `level` of intervals (0.9), `learner` (`poul`;
//! with `ridge` many worlds take little time, to see whether intervals hold the truth), and settings such as `training.epochs=10`.
//!
//! The budget is a third of what T2 for all users truly costs. *Return* is true GMV for each unit of true cost, over that of T2 for
//! all users, which is that of T2 for a random third of them. Beside the return of `poul allocate` stand that of `--risk 0.25` and
//! `--risk 0.1`, of every user getting its policy by averages alone, and what better predictions would give: true averages of
//! policies with the predicted differences between users, predicted averages with the true differences, and both true. The last
//! columns have what the allocation truly brings a user and the interval that `poul allocate` gives from outcomes.
//!
//! `limit=true` prints instead what somebody returns who knows what every user truly costs: with the true return of each policy,
//! the same for all users, and with returns of users learned from the rows (see `limit`); and how far effects are from the truth
//! that are every user's true cost times the true return of the policy.

mod limit;

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use benches::Arguments;
use poul::decide::allocate::{Keep, Options, Path as BudgetPath};
use poul::decide::users::{Allocation, AllocationInputs, AllocationRequest, Batches, Target, allocate};
use poul::effect::Settings;
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Error, Experiment, Model, Result, Roles, Silent, Source};

const VALUE: &str = "gmv";
const COST: &str = "cost";

/// True effects of a user under one policy: value and cost.
type Pair = [f64; 2];

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let number = |key: &str, default: f64| arguments.number(key, default);
    let settings = arguments.settings();
    let simulation = |seed: u64| Simulation {
        scenario: "ride-hailing".to_owned(),
        rows: number("rows", 50_000.0) as u64,
        test_rows: Some(number("users", 20_000.0) as u64),
        truth_rows: Some(number("users", 20_000.0) as u64),
        features: Some(number("features", 100.0) as usize),
        seed,
        ..Simulation::default()
    };
    let folder = std::env::temp_dir().join(format!("poul-worth-{}", std::process::id()));
    let (first, last) = (number("first", 1.0) as u64, number("last", 5.0) as u64);
    if arguments.get("limit").is_some() {
        return limits((first..=last).map(|seed| (seed, simulation(seed))), &folder);
    }
    println!(
        "{:>5} {}  {:>8} {:>8} {:>18} {:>5}",
        "seed",
        heads(WAYS),
        "gmv true",
        "estimate",
        "interval",
        "holds"
    );
    let mut returns: Vec<[f64; WAYS.len()]> = Vec::new();
    let mut held = 0;
    for seed in first..=last {
        run(&simulation(seed).check()?, &folder, &Silent)?;
        let learner = arguments.get("learner").unwrap_or("poul");
        let found = world(&folder, (learner, &settings), number("level", 0.9));
        // A folder for temporary files is cleaned up by others, if need be.
        let _ = std::fs::remove_dir_all(&folder);
        let found = found?;
        let holds = found.interval[0] <= found.gmv && found.gmv <= found.interval[1];
        println!(
            "{seed:>5} {}  {:>8.3} {:>8.3} {:>18} {:>5}",
            cells(&found.returns),
            found.gmv,
            found.estimate,
            format!("{:.2} … {:.2}", found.interval[0], found.interval[1]),
            if holds { "yes" } else { "no" }
        );
        returns.push(found.returns);
        held += usize::from(holds);
    }
    let column = |way: usize| returns.iter().map(move |own| own[way]);
    println!(
        " mean {}",
        cells(&std::array::from_fn::<f64, { WAYS.len() }, _>(|way| mean_and_error(column(way))[0]))
    );
    println!(
        "    ± {}",
        cells(&std::array::from_fn::<f64, { WAYS.len() }, _>(|way| mean_and_error(column(way))[1]))
    );
    println!("intervals that hold the truth: {held} of {}", returns.len());
    Ok(())
}

/// What can be had at the most: see `limit`.
fn limits(worlds: impl Iterator<Item = (u64, Simulation)>, folder: &Path) -> Result<()> {
    println!("{:>5}  {}", "seed", heads(["by policy", "by user", "error T1", "error T2"]));
    let mut found: Vec<[f64; 4]> = Vec::new();
    for (seed, simulation) in worlds {
        let own = limit::limit(&simulation, folder);
        // A folder for temporary files is cleaned up by others, if need be.
        let _ = std::fs::remove_dir_all(folder);
        let own = own?;
        println!("{seed:>5}  {}", cells(&own));
        found.push(own);
    }
    let column = |place: usize| found.iter().map(move |own| own[place]);
    println!(" mean  {}", cells(&std::array::from_fn::<f64, 4, _>(|place| mean_and_error(column(place))[0])));
    println!("    ±  {}", cells(&std::array::from_fn::<f64, 4, _>(|place| mean_and_error(column(place))[1])));
    Ok(())
}

/// Of the worlds in which anything was given at all.
fn mean_and_error(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (n - 1.0) / n).sqrt()]
}

/// How users are given policies: as predicted, cautiously, and with parts of the truth.
const WAYS: [&str; 7] = ["return", "risk .25", "risk .1", "averages", "true avg", "true diff", "knowing"];

fn heads<const N: usize>(names: [&str; N]) -> String {
    names.map(|name| format!("{name:>9}")).join(" ")
}

fn cells<const N: usize>(values: &[f64; N]) -> String {
    values.map(|value| format!("{value:>9.3}")).join(" ")
}

/// What came of one world.
struct Found {
    /// For each way, its return over that of T2 for all.
    returns: [f64; WAYS.len()],
    /// True value a user.
    gmv: f64,
    /// As `poul allocate` says from outcomes.
    estimate: f64,
    interval: [f64; 2],
}

fn world(folder: &Path, learner: (&str, &Settings), level: f64) -> Result<Found> {
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let model = model(folder, &policies, learner)?;
    let truth = effects(
        Source::open(&folder.join("truth.parquet").to_string_lossy())?.batches(&COLUMNS, 1 << 16)?,
        &policies,
    )?;
    let t2 = policies.require("T2")?;
    let of_t2 = truth.iter().fold([0.0; 2], |sum, own| [sum[0] + own[t2][0], sum[1] + own[t2][1]]);
    let budget = of_t2[1] / 3.0;
    let over_random = |total: Pair| total[0] / total[1] / (of_t2[0] / of_t2[1]);

    let users = Source::open(&folder.join("test.parquet").to_string_lossy())?;
    let inputs = AllocationInputs { model: &model, policies: &policies, users: &users, group_budgets: None };
    let allocated = |risk: Option<f64>| -> Result<(Pair, Allocation)> {
        let request = AllocationRequest {
            maximize: VALUE.to_owned(),
            budget: BTreeMap::from([(COST.to_owned(), budget)]),
            risk,
            level,
            worth: risk.is_none(),
            ..AllocationRequest::default()
        };
        let found = allocate(&inputs, &request.check()?, false, Target::Memory, &Silent)?;
        let table = found.table.ok_or_else(|| Error::other("the allocation has no table"))?;
        Ok((given(&table, &policies, &truth)?, found.allocation))
    };
    let (total, allocation) = allocated(None)?;
    let worth = allocation.evaluation.ok_or_else(|| Error::other("the allocation has no worth"))?;
    let own = worth.rules.first().and_then(|own| own.outcomes.iter().find(|own| own.outcome == VALUE));
    let own = own.ok_or_else(|| Error::other("the allocation has no worth in gmv"))?;

    let (_, batches) = model.effect(&users).collect(&Silent)?;
    let predicted = effects(batches.into_iter().map(Ok), &policies)?;
    let (true_means, means) = (averages(&truth), averages(&predicted));
    let known = |level: &[Pair], of: &[Vec<Pair>], own: &[Pair]| -> Vec<Vec<Pair>> {
        let shift = |(policy, effect): (usize, &Pair)| {
            [0, 1].map(|what| level[policy][what] + effect[what] - own[policy][what])
        };
        of.iter().map(|row| row.iter().enumerate().map(shift).collect()).collect()
    };
    let flat = vec![means.clone(); truth.len()];
    let ways =
        [flat, known(&true_means, &predicted, &means), known(&means, &truth, &true_means), truth.clone()];
    let mut returns = [0.0; WAYS.len()];
    returns[0] = over_random(total);
    for (way, risk) in [0.25, 0.1].into_iter().enumerate() {
        returns[1 + way] = over_random(allocated(Some(risk))?.0);
    }
    for (way, believed) in ways.iter().enumerate() {
        returns[3 + way] = over_random(decided(believed, &truth, budget)?);
    }
    Ok(Found {
        returns,
        gmv: total[0] / truth.len() as f64,
        estimate: own.per_user.estimate,
        interval: own.per_user.interval,
    })
}

fn model(folder: &Path, policies: &PolicySet, (learner, settings): (&str, &Settings)) -> Result<Model> {
    let source = Source::open(&folder.join("train.parquet").to_string_lossy())?;
    let roles = Roles {
        outcome: vec![VALUE.to_owned(), COST.to_owned()],
        time: Some("month".to_owned()),
        ..Roles::default()
    };
    let experiment = Experiment::open(&source, &roles, policies.clone(), &Silent)?;
    Model::fit(&experiment).learner(learner).settings(settings).run(&Silent)
}

const COLUMNS: [&str; 4] = ["row", "policy", "effect_gmv", "effect_cost"];

/// Effects by row and policy.
fn effects(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    policies: &PolicySet,
) -> Result<Vec<Vec<Pair>>> {
    let mut found: Vec<Vec<Pair>> = Vec::new();
    for batch in batches {
        let batch = batch?;
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| Error::other(format!("no column `{name}`")))
        };
        let rows = column("row")?.as_primitive::<Int64Type>();
        let policy = column("policy")?.as_string::<i32>();
        let [value, cost] = [numbers(column("effect_gmv")?), numbers(column("effect_cost")?)];
        for idx in 0..batch.num_rows() {
            let row = rows.value(idx) as usize;
            if row >= found.len() {
                found.resize(row + 1, vec![[0.0; 2]; policies.len()]);
            }
            found[row][policies.require(policy.value(idx))?] = [value[idx], cost[idx]];
        }
    }
    Ok(found)
}

/// True effects are in double precision, predicted ones in single.
fn numbers(column: &ArrayRef) -> Vec<f64> {
    match column.as_primitive_opt::<Float32Type>() {
        Some(values) => values.values().iter().map(|value| f64::from(*value)).collect(),
        None => column.as_primitive::<Float64Type>().values().to_vec(),
    }
}

fn averages(effects: &[Vec<Pair>]) -> Vec<Pair> {
    let n_policies = effects.first().map_or(0, Vec::len);
    let mean = |policy: usize, what: usize| {
        effects.iter().map(|own| own[policy][what]).sum::<f64>() / effects.len() as f64
    };
    (0..n_policies).map(|policy| [mean(policy, 0), mean(policy, 1)]).collect()
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

/// True value and cost of the best allocation for those who believe some effects.
fn decided(believed: &[Vec<Pair>], truth: &[Vec<Pair>], budget: f64) -> Result<Pair> {
    let n_policies = believed.first().map_or(0, Vec::len);
    let of = |what: usize| believed.iter().flatten().map(|own| own[what] as f32).collect::<Vec<f32>>();
    let options = Options::dense(n_policies, 1, &of(0), &of(1), None, &Keep::Hull)?;
    let given = BudgetPath::new(&options)?.allocation(budget)?;
    let mut total = [0.0; 2];
    for (user, option) in given.choice.iter().enumerate() {
        let own = truth[user][options.policy(*option as usize) as usize];
        total[0] += own[0];
        total[1] += own[1];
    }
    Ok(total)
}
