//! Normalised PEHE by tier of exposure, or by policy, on simulated worlds, for several learners and seeds.
//!
//! `cargo run --release -p benches --bin quality -- [key=value …]`, where the keys are `learners` (names joined by
//! commas; `poul-id` is POUL on policy names instead of atoms, `poul-true-h` is POUL told the true h, which no one can
//! know: what is left is the error of g; `poul-each` learns every outcome alone; `poul+exposure` goes by each row's own exposure, in `delivery`), `by`
//! (policies joined by commas, such as T1,T2: their errors, each over the standard deviation of its own effects, so that the
//! true average for everybody has 1), `test_rows` (3000), `seeds` (a number, or such as 6-10), `scenario`,
//! `design`, `memory` (such as 2MB: beyond it training reads windows of rows from a file), the sizes of the simulation (`rows`, `features`, `policies`, `contexts`, `actions`, `noise`) and settings such as
//! `model.members=2` or `training.epochs=10`, which go to `poul` and `poul-id`.

use std::collections::BTreeMap;
use std::path::Path;

use benches::{Arguments, outcomes_of_truth, true_effects};
use poul::data::{Budget, Columns, Dataset, Design, EncoderParams, ExposureRole, Need, Roles, Source};
use poul::effect::{ExposedRows, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::{Assigner, Exposure, PolicySet};
use poul::simulate::{Simulation, run};
use poul::{Result, Run, Seed, Silent};

/// Errors by tier, and the mean over policies of the correlation of the effect with the truth.
const TIERS: [&str; 4] = ["frequent", "rare", "unseen", "correlation"];

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let text = |key: &str, default: &str| arguments.get(key).unwrap_or(default).to_owned();
    let number = |key: &str, default: f64| arguments.number(key, default);
    let settings = arguments.settings();
    let by: Vec<String> =
        arguments.get("by").map_or(Vec::new(), |by| by.split(',').map(str::to_owned).collect());
    let test_rows = number("test_rows", 3000.0) as usize;
    let mut errors: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    let seeds = text("seeds", "5");
    let (first, last) = seeds.split_once('-').unwrap_or(("1", &seeds));
    let (first, last): (u64, u64) = (first.parse().unwrap_or(1), last.parse().unwrap_or(5));
    for seed in first..=last {
        let folder = std::env::temp_dir().join(format!("poul-quality-{}", std::process::id()));
        let scenario = text("scenario", "long-tail");
        // A scenario of its own making has its own policies.
        let size = |key: &str, default: f64| {
            let is_fixed = ["ride-hailing", "delivery"].contains(&scenario.as_str());
            let given = !is_fixed || arguments.get(key).is_some();
            given.then(|| number(key, default))
        };
        let simulation = Simulation {
            scenario: scenario.clone(),
            rows: number("rows", 40_000.0) as u64,
            test_rows: Some(test_rows as u64),
            features: Some(number("features", 40.0) as usize),
            policies: size("policies", 60.0).map(|size| size as usize),
            contexts: size("contexts", 12.0).map(|size| size as usize),
            actions: size("actions", 5.0).map(|size| size as usize),
            noise: size("noise", 2.0),
            seed,
            ..Simulation::default()
        };
        run(&simulation.check()?, &folder, &Silent)?;
        let budget = arguments.get("memory").map_or(Ok(Budget::default()), str::parse)?;
        let world = World::read(&folder, text("design", "randomized").parse()?, test_rows, &budget)?;
        for name in text("learners", "ridge,s-learner,poul-id,poul").split(',') {
            let start = std::time::Instant::now();
            let result = world.error_of(name, &settings, &by)?;
            let seconds = start.elapsed().as_secs_f64();
            for (outcome, result) in world.outcomes.iter().zip(result) {
                println!("seed {seed}  {name:9}  {outcome:4}  {}  {seconds:.1} s", line(&result));
                errors.entry(format!("{name:9}  {outcome:4}")).or_default().push(result);
            }
        }
        std::fs::remove_dir_all(&folder).map_err(|error| poul::Error::output(&folder, error))?;
    }
    let columns = if by.is_empty() { TIERS.map(str::to_owned).to_vec() } else { by };
    println!("normalised PEHE, mean ± standard error: {}", columns.join(", "));
    for (name, results) in errors {
        let column = |k: usize| results.iter().map(|result| result[k]).collect::<Vec<f64>>();
        let cells: Vec<String> = (0..columns.len()).map(|k| spread(&column(k))).collect();
        println!("mean    {name}  {}", cells.join("  "));
    }
    Ok(())
}

fn line(result: &[f64]) -> String {
    result.iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join("  ")
}

/// Mean and its standard error.
fn spread(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:.3} ± {:.3}", (variance / n).sqrt())
}

struct World {
    train: Dataset,
    test: Dataset,
    columns: Columns,
    policies: PolicySet,
    policy: Vec<u32>,
    rows: Vec<u64>,
    design: Design,
    outcomes: Vec<String>,
    test_rows: usize,
    /// By outcome, rows × policies.
    truth: Vec<Vec<f64>>,
}

impl World {
    fn read(folder: &Path, design: Design, test_rows: usize, budget: &Budget) -> Result<Self> {
        let open = |name: &str| Source::open(&folder.join(name).to_string_lossy());
        let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
        let source = open("train.parquet")?;
        let stratum = source.column_names().contains(&"stratum").then(|| "stratum".to_owned());
        let truth = open("truth.parquet")?;
        let outcomes = outcomes_of_truth(&truth);
        let time = source.column_names().contains(&"month").then(|| "month".to_owned());
        let is_exposed = source.column_names().iter().any(|name| name.starts_with("trips_"));
        let exposure = is_exposed.then(|| ExposureRole::Pattern("trips_*".to_owned()));
        let roles = Roles { outcome: outcomes.clone(), stratum, time, exposure, design, ..Roles::default() };
        let columns = roles.check(source.schema(), Need::FIT)?.with_contexts(&policies, source.schema())?;
        let (train, encoder) =
            Dataset::read_and_fit(&source, &columns, &EncoderParams::default().check()?, budget, &Silent)?;
        let test = Dataset::read(&open("test.parquet")?, &columns, &encoder, &Budget::default(), &Silent)?;
        let policy = Assigner::new(&policies, &columns).assign_table(&train)?;
        let mut rows = vec![0; policies.len()];
        policy.iter().for_each(|policy| rows[*policy as usize] += 1);
        let truth = true_effects(&truth, &outcomes, &policies, test_rows)?;
        Ok(Self { train, test, columns, policies, policy, rows, design, outcomes, test_rows, truth })
    }

    /// Root mean squared error of the effect against control over its standard deviation, by tier or by policy.
    fn error_of(&self, name: &str, settings: &Settings, by: &[String]) -> Result<Vec<Vec<f64>>> {
        let (name, is_exposed) = name.strip_suffix("+exposure").map_or((name, false), |name| (name, true));
        let (policies, place) = match name {
            "poul-id" => self.by_id()?,
            "poul-true-h" => self.by_true_h()?,
            _ => (self.policies.clone(), (0..self.policies.len()).collect()),
        };
        let policy: Vec<u32> = self.policy.iter().map(|policy| place[*policy as usize] as u32).collect();
        let n_cols = self.train.x.width();
        let exposure = match is_exposed {
            true => Exposure::fit(&self.columns, &self.train.exposure, None)?,
            false => None,
        };
        let rows_of = |data: &Dataset| exposure.as_ref().map(|exposure| exposure.rows(&data.exposure));
        let (train_exposure, test_exposure) = (rows_of(&self.train), rows_of(&self.test));
        let x = ExposedRows { x: &self.train.x, exposure: train_exposure.as_ref() };
        let data = TrainingData::of(&self.train, &x, &policies, &policy, self.design, None)?.check()?;
        let mut settings = if name.starts_with("poul") { settings.clone() } else { Settings::default() };
        if name == "poul-each" {
            settings.model.insert("shared_gain".to_owned(), false.into());
        }
        let kind = if matches!(name, "poul-id" | "poul-true-h" | "poul-each") { "poul" } else { name };
        let trained = (learner(kind)?.train)(&data, &settings, Run::new(Seed::new(3407), &Silent))?;
        let control = self.policies.require("control")?;
        let targets: Vec<usize> = place.clone();
        let scorer = trained.effects.prepare(&policies, &targets, place[control])?;
        let x = DenseRows::new(self.test.x.rows(0..self.test.n_rows()), n_cols)?;
        let scores = scorer.score(&ExposedRows { x: &x, exposure: test_exposure.as_ref() }, false)?;
        let errors = scores.mean.iter().zip(&self.truth);
        let error = |(effects, truth): (&Vec<f32>, &Vec<f64>)| match by {
            [] => Ok(self.error(effects, truth, control).to_vec()),
            by => by.iter().map(|name| self.error_by(effects, truth, self.policies.require(name)?)).collect(),
        };
        errors.map(error).collect()
    }

    /// Of one policy, over the standard deviation of its own effects.
    fn error_by(&self, effects: &[f32], truth: &[f64], policy: usize) -> Result<f64> {
        let place = |row: usize| row * self.policies.len() + policy;
        let n = self.test_rows as f64;
        let mean = (0..self.test_rows).map(|row| truth[place(row)]).sum::<f64>() / n;
        let sum =
            |f: &dyn Fn(usize) -> f64| (0..self.test_rows).map(|row| f(place(row)).powi(2)).sum::<f64>();
        let squares = sum(&|at| f64::from(effects[at]) - truth[at]);
        Ok((squares / sum(&|at| truth[at] - mean)).sqrt())
    }

    /// Each policy that was run is an atom of its own; one that was not is taken for the nearest that was.
    fn by_id(&self) -> Result<(PolicySet, Vec<usize>)> {
        let run: Vec<usize> = (0..self.rows.len()).filter(|policy| self.rows[*policy] > 0).collect();
        let mut builder = PolicySet::builder();
        for policy in &run {
            builder.add(self.policies.name(*policy), "policy", self.policies.name(*policy), 1.0);
        }
        let ids = builder.build()?;
        let place = |policy: usize| {
            let stand_in = match self.rows[policy] {
                0 => self.policies.nearest_among(policy, run.iter().copied(), 1)[0].0,
                _ => policy,
            };
            ids.require(self.policies.name(stand_in))
        };
        let place = (0..self.rows.len()).map(place).collect::<Result<_>>()?;
        Ok((ids, place))
    }

    /// Each coordinate of the true h is a context of two actions, whose shares say where between its ends a policy is.
    fn by_true_h(&self) -> Result<(PolicySet, Vec<usize>)> {
        let n_policies = self.policies.len();
        let h = coordinates(&self.truth, n_policies);
        let most = h.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
        let mut builder = PolicySet::builder();
        for policy in 0..n_policies {
            for (axis, h) in h.iter().enumerate() {
                let high = 0.5 + 0.5 * h[policy] / most;
                for (action, share) in [("low", 1.0 - high), ("high", high)] {
                    builder.add(self.policies.name(policy), &format!("h{axis:02}"), action, share);
                }
            }
        }
        let policies = builder.build()?;
        let place = (0..n_policies).map(|policy| policies.require(self.policies.name(policy)));
        let place = place.collect::<Result<_>>()?;
        Ok((policies, place))
    }

    fn error(&self, effects: &[f32], truth: &[f64], control: usize) -> [f64; 4] {
        let n_policies = self.policies.len();
        let mut seen: Vec<usize> =
            (0..n_policies).filter(|policy| *policy != control && self.rows[*policy] > 0).collect();
        seen.sort_by_key(|policy| std::cmp::Reverse(self.rows[*policy]));
        let n_frequent = seen.len().div_ceil(3);
        let tier = |policy: usize| match seen.iter().position(|other| *other == policy) {
            Some(rank) => usize::from(rank >= n_frequent),
            None => 2,
        };
        let others: Vec<usize> = (0..n_policies).filter(|policy| *policy != control).collect();
        let truths: Vec<f64> =
            truth.chunks(n_policies).flat_map(|row| others.iter().map(move |policy| row[*policy])).collect();
        let mean = truths.iter().sum::<f64>() / truths.len() as f64;
        let variance = truths.iter().map(|truth| (truth - mean).powi(2)).sum::<f64>() / truths.len() as f64;
        let (mut squares, mut counts) = ([0.0; 3], [0.0; 3]);
        let mut correlations = Vec::new();
        for policy in others {
            let tier = tier(policy);
            let place = |row: usize| row * n_policies + policy;
            let pairs: Vec<(f64, f64)> =
                (0..self.test_rows).map(|row| (f64::from(effects[place(row)]), truth[place(row)])).collect();
            squares[tier] += pairs.iter().map(|(effect, truth)| (effect - truth).powi(2)).sum::<f64>();
            counts[tier] += self.test_rows as f64;
            correlations.push(correlation(&pairs));
        }
        let error = |tier: usize| (squares[tier] / counts[tier] / variance).sqrt();
        [error(0), error(1), error(2), correlations.iter().sum::<f64>() / correlations.len() as f64]
    }
}

/// The principal axes of effects over policies, as long as their share of the effects, by power iteration.
fn coordinates(truth: &[Vec<f64>], n_policies: usize) -> Vec<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut moments = vec![vec![0.0; n_policies]; n_policies];
    for row in truth.iter().flat_map(|truth| truth.chunks(n_policies)) {
        for (moments, own) in moments.iter_mut().zip(row) {
            moments.iter_mut().zip(row).for_each(|(moment, other)| *moment += own * other);
        }
    }
    let total: f64 = (0..n_policies).map(|policy| moments[policy][policy]).sum();
    let mut axes: Vec<Vec<f64>> = Vec::new();
    loop {
        let mut axis: Vec<f64> = (0..n_policies).map(|policy| (1.0 + policy as f64).sin()).collect();
        let mut size = 0.0;
        for _ in 0..500 {
            axis = moments.iter().map(|moments| dot(moments, &axis)).collect();
            size = dot(&axis, &axis).sqrt();
            if size < 1e-9 * total {
                return axes;
            }
            axis.iter_mut().for_each(|value| *value /= size);
        }
        for (moments, own) in moments.iter_mut().zip(&axis) {
            moments.iter_mut().zip(&axis).for_each(|(moment, other)| *moment -= size * own * other);
        }
        axes.push(axis.iter().map(|value| value * size.sqrt()).collect());
    }
}

/// 0 where one of the two does not vary.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n_pairs = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), pair| (a + pair.0 / n_pairs, b + pair.1 / n_pairs));
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>();
    let (aa, bb) = (sum(&|pair| (pair.0 - a).powi(2)), sum(&|pair| (pair.1 - b).powi(2)));
    let ab = sum(&|pair| (pair.0 - a) * (pair.1 - b));
    if aa * bb > 1e-20 * n_pairs { ab / (aa * bb).sqrt() } else { 0.0 }
}
