//! `poul quickstart`: simulate an experiment, check it, and score two rankings of its users: the truth and chance.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use poul::check::{Params as CheckParams, profile};
use poul::data::{Labels, Need, Roles, RowReader, Source};
use poul::evaluate::{Bootstrap, Effects, Evaluation, Outcome, Params, Scored};
use poul::policy::{Assigner, PolicySet};
use poul::simulate::Simulation;
use poul::{Error, Result, Seed};
use rand::RngExt;

use crate::args::{Common, Quickstart};
use crate::commands::{check, evaluate, print, simulate};
use crate::progress::Terminal;

const OUTCOMES: [&str; 2] = ["gmv", "cost"];

pub(crate) fn run(args: &Quickstart, common: &Common, terminal: &Terminal) -> Result<()> {
    let folder = args.out.as_path();
    let shown = folder.display();
    terminal.say(format!(
        "$ poul simulate --scenario ride-hailing --rows {0} --test-rows {0} --out {shown}",
        args.rows
    ));
    let simulation = Simulation {
        rows: args.rows,
        test_rows: Some(args.rows),
        seed: common.seed,
        ..Simulation::default()
    };
    let summary = poul::simulate::run(&simulation.check()?, folder, terminal)?;
    simulate::describe(&summary, terminal);

    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let roles = Roles {
        outcome: OUTCOMES.map(String::from).to_vec(),
        time: Some("month".into()),
        ..Roles::default()
    };
    terminal.say(format!(
        "\n$ poul check {shown}/train.parquet --policies {shown}/policies.toml --outcome gmv,cost --time month"
    ));
    let source = open(folder, "train.parquet")?;
    let mut columns = roles.check(source.schema(), Need::FIT)?;
    columns.control = Some("control".into());
    let params = CheckParams { seed: common.seed, ..CheckParams::default() };
    print(check::summary(&profile(&source, &columns, &policies, &params, terminal)?))?;

    let test = Test::read(folder, &roles, &policies, terminal)?;
    let truth = Truth::read(folder, &policies, test.arm.len())?;
    for (title, random) in [("by their true effects", false), ("at random", true)] {
        print(format!("\nThe test users ranked {title}:\n"))?;
        print(evaluate::summary(&score(&test, &truth, &policies, random, common, terminal)?))?;
    }
    print(format!("\nEverything is in {shown}; {shown}/README.md explains the files.\n"))
}

fn open(folder: &Path, name: &str) -> Result<Source> {
    Source::open(&folder.join(name).to_string_lossy())
}

/// The test rows.
struct Test {
    arm: Vec<u32>,
    outcomes: Vec<Vec<f64>>,
}

impl Test {
    fn read(folder: &Path, roles: &Roles, policies: &PolicySet, terminal: &Terminal) -> Result<Self> {
        let source = open(folder, "test.parquet")?;
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
        terminal.say(format!("\ntest set: {} rows", crate::number::count(test.arm.len() as u64)));
        Ok(test)
    }
}

/// True effects: `effects[outcome][policy][row]`.
struct Truth {
    effects: Vec<Vec<Vec<f64>>>,
}

impl Truth {
    fn read(folder: &Path, policies: &PolicySet, n_rows: usize) -> Result<Self> {
        let source = open(folder, "truth.parquet")?;
        let mut effects = vec![vec![vec![0.0; n_rows]; policies.len()]; OUTCOMES.len()];
        let names = OUTCOMES.map(|outcome| format!("effect_{outcome}"));
        let columns = ["row", "policy", &names[0], &names[1]];
        for batch in source.batches(&columns, 1 << 16)? {
            let batch = batch?;
            let unexpected = || Error::other("truth.parquet does not have the columns that were written");
            let row = batch.column(0).as_primitive_opt::<Int64Type>().ok_or_else(unexpected)?;
            let policy = batch.column(1).as_string_opt::<i32>().ok_or_else(unexpected)?;
            for (outcome, effects) in effects.iter_mut().enumerate() {
                let values =
                    batch.column(2 + outcome).as_primitive_opt::<Float64Type>().ok_or_else(unexpected)?;
                for i in 0..batch.num_rows() {
                    let policy = policies.require(policy.value(i))?;
                    if let Some(effect) = effects[policy].get_mut(row.value(i) as usize) {
                        *effect = values.value(i);
                    }
                }
            }
        }
        Ok(Self { effects })
    }
}

fn score(
    test: &Test,
    truth: &Truth,
    policies: &PolicySet,
    random: bool,
    common: &Common,
    terminal: &Terminal,
) -> Result<Evaluation> {
    let against = policies.require("control")?;
    let mut rng = Seed::new(common.seed).child("quickstart").rng();
    let chance: Vec<f64> = test.arm.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
    let mut effects = Vec::new();
    for outcome in 0..OUTCOMES.len() {
        for name in ["T1", "T2"] {
            let policy = policies.require(name)?;
            let truth = &truth.effects[outcome][policy];
            let values = if random { &chance } else { truth };
            effects.push(Effects { policy, outcome: Some(outcome), values, truth: Some(truth) });
        }
    }
    let outcome = |(name, values)| Outcome { name, values, prediction: None };
    let values = test.outcomes.iter().map(Vec::as_slice);
    let outcomes: Vec<Outcome<'_>> = OUTCOMES.into_iter().zip(values).map(outcome).collect();
    let scored = Scored {
        outcomes: &outcomes,
        policies: policies.names(),
        arm: &test.arm,
        against,
        effects: &effects,
        weight: None,
        cluster: None,
        propensity: None,
    };
    let params = Params {
        bootstrap: Bootstrap { seed: Seed::new(common.seed), ..Bootstrap::default() },
        ..Params::default()
    };
    poul::evaluate::evaluate(&scored, &params.check()?, terminal)
}
