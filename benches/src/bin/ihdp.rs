//! Errors of effects on IHDP (Hill 2011), the benchmark on which TARNet, CFR and DragonNet were published: √PEHE within
//! the training sample and on rows held out, for several learners.
//!
//! `cargo run --release -p benches --bin ihdp -- [key=value …]`, where the keys are `data` (a folder with
//! `ihdp_npci_1.csv` …: treatment, factual and counterfactual outcome, their means mu0 and mu1, 25 features),
//! `replications` (10), `learners` (labels of the table joined by commas) and settings such as `training.epochs=100`,
//! which go to all networks and to `stack`: name those that have them. `first` (1) is the first of the draws.

use std::path::{Path, PathBuf};

use benches::Arguments;
use poul::data::Design;
use poul::effect::{EffectModel, OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::nuisance::Folds;
use poul::policy::PolicySet;
use poul::{Error, Result, Run, Seed, Silent};
use serde_json::json;

const N_FEATURES: usize = 25;
/// One row in so many is held out for testing, as in the published splits.
const TEST_PARTS: usize = 10;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/ihdp");
    let folder = arguments.get("data").map_or(beside, PathBuf::from);
    let n_replications: usize = arguments.number("replications", 10);
    let entries: Vec<Entry> = entries()
        .into_iter()
        .filter(|entry| {
            arguments.get("learners").is_none_or(|names| names.split(',').any(|name| name == entry.label))
        })
        .map(|entry| entry.with(&arguments.settings()))
        .collect();
    let first: usize = arguments.number("first", 1);
    let replications = (first..first + n_replications)
        .map(|number| Replication::read(&folder.join(format!("ihdp_npci_{number}.csv")), number as u64))
        .collect::<Result<Vec<_>>>()?;
    println!("{:14}  {:>13}  {:>13}  {:>9}  seconds", "learner", "within", "held out", "ATE error");
    for entry in &entries {
        let start = std::time::Instant::now();
        let errors = replications.iter().map(|world| world.errors(entry)).collect::<Result<Vec<_>>>()?;
        let seconds = start.elapsed().as_secs_f64() / errors.len() as f64;
        let [within, held_out, ate] = [0, 1, 2].map(|place| summary(errors.iter().map(|error| error[place])));
        println!(
            "{:14}  {:>5.2} ± {:<5.2}  {:>5.2} ± {:<5.2}  {:>9.2}  {seconds:.1}",
            entry.label, within.0, within.1, held_out.0, held_out.1, ate.0
        );
    }
    Ok(())
}

/// Mean and standard error.
fn summary(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// A line of the table.
struct Entry {
    label: &'static str,
    learner: &'static str,
    settings: Settings,
}

impl Entry {
    fn with(mut self, given: &Settings) -> Self {
        if !has_no_epochs(self.learner) {
            self.settings = given.over(&self.settings);
        }
        self
    }
}

/// Learners that are not networks.
fn has_no_epochs(learner: &str) -> bool {
    matches!(learner, "ridge" | "constant" | "causal-forest")
}

/// A small table: small batches, a larger validation sample, and time to converge.
fn small_table(learner: &str) -> serde_json::Value {
    let mut training = json!({
        "batch_rows": 100, "epochs": 200, "patience": 20, "validation_share": 0.3, "average": 0.99
    });
    if learner != "poul" {
        training["weight_decay"] = 0.1.into();
    }
    training
}

fn entries() -> Vec<Entry> {
    let entry = |label, learner, model: serde_json::Value| {
        let model = model.as_object().cloned().unwrap_or_default();
        let mut settings = Settings { model, ..Settings::default() };
        if !has_no_epochs(learner) && learner != "stack" {
            settings.training = small_table(learner).as_object().cloned().unwrap_or_default();
        }
        Entry { label, learner, settings }
    };
    vec![
        entry("ridge", "ridge", json!({})),
        entry("s-learner", "s-learner", json!({})),
        entry("t-learner", "t-learner", json!({"hidden": [100, 100]})),
        entry("tarnet", "tarnet", json!({})),
        entry("cfr-mmd", "cfr", json!({"imbalance": "mmd"})),
        entry("cfr-wass", "cfr", json!({"imbalance": "wasserstein"})),
        entry("dragonnet", "dragonnet", json!({})),
        entry("drcfr", "drcfr", json!({})),
        entry("poul", "poul", json!({})),
        entry("constant", "constant", json!({})),
        entry("causal-forest", "causal-forest", json!({})),
        entry("dedl", "dedl", json!({"link": "linear"})),
        entry(
            "stack",
            "stack",
            json!({"learners": {
                "poul": {"training": small_table("poul")}, "s-learner": {"training": small_table("s-learner")},
            }}),
        ),
    ]
}

/// One draw of outcomes.
struct Replication {
    /// Features of rows to learn from, and of rows held out.
    x: [Vec<f32>; 2],
    /// True effects of both.
    truth: [Vec<f64>; 2],
    treated: Vec<u32>,
    outcome: Vec<f64>,
    seed: Seed,
}

impl Replication {
    fn read(path: &Path, number: u64) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::input(format!("cannot be read: {error}")).at(place.clone()))?;
        let mut rows = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let values: Option<Vec<f64>> = text.split(',').map(|field| field.trim().parse().ok()).collect();
            match values.filter(|values| values.len() == 5 + N_FEATURES) {
                Some(values) => rows.push(values),
                None => {
                    let what = format!("{} numbers are expected", 5 + N_FEATURES);
                    return Err(Error::input(what).at(place).at(format!("line {}", line + 1)));
                }
            }
        }
        let seed = Seed::new(3407).index(number);
        let parts = Folds::deal(rows.len(), None, TEST_PARTS, seed.child("test"));
        let mut world =
            Self { x: Default::default(), truth: Default::default(), treated: vec![], outcome: vec![], seed };
        for (row, part) in rows.iter().zip(&parts.of_row) {
            let side = usize::from(*part == 0);
            world.x[side].extend(row[5..].iter().map(|value| *value as f32));
            world.truth[side].push(row[4] - row[3]);
            if side == 0 {
                world.treated.push(row[0] as u32);
                world.outcome.push(row[1]);
            }
        }
        Ok(world)
    }

    /// √PEHE within and on rows held out, and the absolute error of the mean effect of the latter.
    fn errors(&self, entry: &Entry) -> Result<[f64; 3]> {
        let mut builder = PolicySet::builder();
        builder.add("control", "home", "none", 1.0).add("visits", "home", "visits", 1.0);
        let policies = builder.build()?;
        let x = DenseRows::new(&self.x[0], N_FEATURES)?;
        let outcomes = vec![OutcomeColumn { name: "y", values: &self.outcome, prediction: None }];
        let data = TrainingData {
            design: Design::Observational,
            control: Some(0),
            ..TrainingData::new(&x, &policies, &self.treated, outcomes)
        };
        let trained =
            (learner(entry.learner)?.train)(&data.check()?, &entry.settings, Run::new(self.seed, &Silent))?;
        let model: &dyn EffectModel = &*trained.effects;
        let scorer = model.prepare(&policies, &[1], 0)?;
        let mut errors = [0.0; 3];
        for (side, truth) in self.truth.iter().enumerate() {
            let scores = scorer.score(&DenseRows::new(&self.x[side], N_FEATURES)?, false)?;
            let differences =
                scores.mean[0].iter().zip(truth).map(|(effect, truth)| f64::from(*effect) - truth);
            let n = truth.len() as f64;
            errors[side] = (differences.clone().map(|error| error * error).sum::<f64>() / n).sqrt();
            errors[2] = (differences.sum::<f64>() / n).abs();
        }
        Ok(errors)
    }
}
