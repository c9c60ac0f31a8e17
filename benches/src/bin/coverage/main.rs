//! How often intervals hold the truth: many small experiments cut from one simulated world of each design.
//!
//! `cargo run --release -p benches --bin coverage -- [key=value …]`, where the keys are `experiments` (200), `rows` of
//! each (2,000), `observational` (experiments of that design, 60, which fit networks), `fits` of the half-sample ensemble
//! (12), `fit_rows` (4,000) and `members` (20). Predicted effects come from a model fitted on other rows. In the
//! randomized design half of the control rows are renamed to four placebos: their effects are zero, while they are
//! predicted to be those of other policies. The truth of a decile of predicted effects is that of its own rows; `bias` and
//! `spread` are the mean and the standard deviation of an average's error, in standard errors. `only=SCENARIO` runs
//! one, `seed` (3407) draws another world.
//!
//! `nulls` instead prints worlds without any effect and without random assignment (see `nulls`): of `seeds` (10) tables of `rows`
//! (8,000), how many intervals hold zero, what is found at q ≤ .1, and how often overlap fails; `world=2` runs the third alone.
//!
//! `components` instead prints how often intervals of components hold the truth, on worlds of the seeds from `first` (1) to
//! `last` (4).
//!
//! `averages` instead prints how well averages of policies are known that were run often, rarely or never (see `averages`), on
//! worlds of the seeds from `first` (1) to `last` (3); `shape` is part of the name of the shapes to run, `rows` those of
//! `ride-hailing` (50,000); `whole=1` does not cut stage 2 short.

mod averages;
mod components;
mod counts;
mod nulls;
mod table;

use std::path::Path;

use benches::{Arguments, outcomes_of_truth, true_effects};
use poul::data::{Budget, Dataset, Design, EncoderParams, Need, Roles, Source};
use poul::effect::{EffectModel, OutcomeColumn, Settings, TrainingData};
use poul::evaluate::{Assigned, AverageEffect, Effects, Outcome, Params, Scored, average_effects};
use poul::model::learner;
use poul::net::DenseRows;
use poul::nuisance::{ObservedRows, Propensity, evaluated_nuisances};
use poul::policy::{Assigner, PolicySet};
use poul::simulate::{Simulation, run};
use poul::stats::student_quantile;
use poul::{Result, Run, Seed, Silent};
use rayon::prelude::*;

use self::counts::Counts;

const PLACEBOS: usize = 4;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let number = |key: &str, default: usize| arguments.number(key, default);
    if arguments.word() == Some("averages") {
        let shapes = shapes(number("rows", 50_000) as u64, arguments.get("shape").unwrap_or_default());
        let seeds = number("first", 1) as u64..=number("last", 3) as u64;
        return averages::table(&shapes, seeds, number("whole", 0) > 0);
    }
    if arguments.word() == Some("components") {
        return components::table(number("first", 1) as u64..=number("last", 4) as u64);
    }
    if arguments.word() == Some("nulls") {
        return nulls::run(
            number("seeds", 10) as u64,
            number("rows", 8_000),
            arguments.get("world").and_then(|world| world.parse().ok()),
        );
    }
    let folder = std::env::temp_dir().join(format!("poul-coverage-{}", std::process::id()));
    println!("scenario       design         outcome  averages  deciles  band   found  false  bias  spread");
    let designs = [
        ("ride-hailing", Design::Randomized, None),
        ("long-tail", Design::Randomized, Some(8)),
        ("stratified", Design::Stratified, Some(8)),
        ("observational", Design::Observational, Some(5)),
    ];
    let only = arguments.get("only");
    for (scenario, design, policies) in designs {
        if only.is_some_and(|only| only != scenario) {
            continue;
        }
        let n_experiments = match design {
            Design::Observational => number("observational", 60),
            _ => number("experiments", 200),
        };
        let rows = number("rows", 2_000) * if design == Design::Observational { 2 } else { 1 };
        let simulation = Simulation {
            scenario: scenario.to_owned(),
            rows: 8_000,
            test_rows: Some((n_experiments * rows) as u64),
            truth_rows: Some((n_experiments * rows) as u64),
            features: Some(24),
            seed: number("seed", 3407) as u64,
            policies,
            contexts: policies.map(|_| 4),
            actions: policies.map(|_| 3),
            ..Simulation::default()
        };
        run(&simulation.check()?, &folder, &Silent)?;
        let world = World::read(&folder, design)?;
        world.averages(scenario, rows)?;
        if scenario != "ride-hailing" {
            let (fits, fit_rows, members) =
                (number("fits", 12), number("fit_rows", 4_000), number("members", 20));
            world.units(scenario, fits, fit_rows, members)?;
        }
        std::fs::remove_dir_all(&folder).map_err(|error| poul::Error::output(&folder, error))?;
    }
    Ok(())
}

/// The worlds on which averages are judged.
fn shapes(rows: u64, only: &str) -> Vec<averages::Shape> {
    let shape = |name, rows, features, sizes, noise| averages::Shape {
        name,
        scenario: "long-tail",
        rows,
        features,
        sizes: Some(sizes),
        noise: Some(noise),
        design: Design::Randomized,
    };
    let shapes = [
        shape("60 of 12 × 5", 40_000, 40, (60, 12, 5), 2.0),
        shape("120 of 6 × 8", 20_000, 20, (120, 6, 8), 2.0),
        shape("200 of 24 × 4", 60_000, 20, (200, 24, 4), 4.0),
        averages::Shape {
            scenario: "ride-hailing",
            sizes: None,
            noise: None,
            ..shape("ride-hailing", rows, 40, (8, 18, 3), 0.0)
        },
    ];
    shapes.into_iter().filter(|shape| shape.name.contains(only)).collect()
}

struct World {
    train: Dataset,
    test: Dataset,
    policies: PolicySet,
    control: usize,
    train_policy: Vec<u32>,
    test_policy: Vec<u32>,
    design: Design,
    outcomes: Vec<String>,
    /// By outcome, test rows × policies.
    truth: Vec<Vec<f64>>,
}

impl World {
    fn read(folder: &Path, design: Design) -> Result<Self> {
        let open = |name: &str| Source::open(&folder.join(name).to_string_lossy());
        let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
        let (source, truth) = (open("train.parquet")?, open("truth.parquet")?);
        let stratum = (design == Design::Stratified).then(|| "stratum".to_owned());
        let outcomes = outcomes_of_truth(&truth);
        let time = source.column_names().contains(&"month").then(|| "month".to_owned());
        let roles = Roles { outcome: outcomes.clone(), stratum, time, design, ..Roles::default() };
        let columns = roles.check(source.schema(), Need::FIT)?;
        let (encoder, budget) = (EncoderParams::default().check()?, Budget::default());
        let (train, encoder) = Dataset::read_and_fit(&source, &columns, &encoder, &budget, &Silent)?;
        let test = Dataset::read(&open("test.parquet")?, &columns, &encoder, &budget, &Silent)?;
        let assign = |data: &Dataset| Assigner::new(&policies, &columns).assign_table(data);
        let (train_policy, test_policy) = (assign(&train)?, assign(&test)?);
        let truth = true_effects(&truth, &outcomes, &policies, test.n_rows())?;
        let control = policies.require("control")?;
        Ok(Self { train, test, policies, control, train_policy, test_policy, design, outcomes, truth })
    }

    /// Policies with rows, control left out.
    fn targets(&self) -> Vec<usize> {
        let has_rows = |policy: &usize| self.test_policy.iter().any(|own| *own as usize == *policy);
        (0..self.policies.len()).filter(|policy| *policy != self.control).filter(has_rows).collect()
    }

    /// A model of the first rows of one of the tables.
    fn fit(
        &self,
        data: &Dataset,
        policy: &[u32],
        rows: std::ops::Range<usize>,
        settings: &Settings,
    ) -> Result<Box<dyn EffectModel>> {
        let x = DenseRows::new(data.x.rows(rows.clone()), data.x.width())?;
        let outcomes = self.outcomes.iter().zip(&data.outcomes);
        let outcomes = outcomes
            .map(|(name, values)| OutcomeColumn { name, values: &values[rows.clone()], prediction: None })
            .collect();
        let training = TrainingData {
            stratum: data.stratum.as_ref().map(|stratum| &stratum[rows.clone()]),
            stratum_labels: data.stratum_labels.names(),
            design: self.design,
            ..TrainingData::new(&x, &self.policies, &policy[rows], outcomes)
        };
        Ok((learner("poul")?.train)(&training.check()?, settings, Run::new(Seed::new(3407), &Silent))?
            .effects)
    }

    fn averages(&self, scenario: &str, rows: usize) -> Result<()> {
        let mut settings = Settings::default();
        settings.model.insert("members".into(), 2.into());
        let model = self.fit(&self.train, &self.train_policy, 0..self.train.n_rows(), &settings)?;
        let targets = self.targets();
        let scorer = model.prepare(&self.policies, &targets, self.control)?;
        let starts: Vec<usize> = (0..self.test.n_rows()).step_by(rows).collect();
        let experiments: Vec<Vec<(f64, AverageEffect)>> = starts
            .par_iter()
            .map(|first| {
                let x = DenseRows::new(self.test.x.rows(*first..first + rows), self.test.x.width())?;
                let scores = scorer.score(&x, false)?;
                self.experiment(*first, rows, &targets, &scores.mean, &x)
            })
            .collect::<Result<_>>()?;
        for name in &self.outcomes {
            let mut counts = Counts::default();
            for averages in &experiments {
                counts.add(averages.iter().filter(|(_, own)| own.outcome == *name));
            }
            println!("{scenario:13}  {:13}  {name:7}  {}", self.design.name(), counts.line());
        }
        Ok(())
    }

    fn mean_truth(&self, outcome: usize, policy: usize) -> f64 {
        let own = self.truth[outcome].iter().skip(policy).step_by(self.policies.len());
        own.sum::<f64>() / self.test.n_rows() as f64
    }

    /// The averages of one experiment.
    fn experiment(
        &self,
        first: usize,
        rows: usize,
        targets: &[usize],
        scores: &[Vec<f32>],
        x: &DenseRows<'_>,
    ) -> Result<Vec<(f64, AverageEffect)>> {
        let mut names = self.policies.names().to_vec();
        let mut arm = self.test_policy[first..first + rows].to_vec();
        let n_placebos = if self.design == Design::Randomized { PLACEBOS } else { 0 };
        let mut controls = 0;
        for own in arm.iter_mut().filter(|own| **own as usize == self.control) {
            // Every other control row is a placebo; rows are in random order.
            controls += 1;
            if n_placebos > 0 && controls % 2 == 0 {
                *own = (self.policies.len() + (controls / 2) % n_placebos) as u32;
            }
        }
        names.extend((0..n_placebos).map(|placebo| format!("placebo {placebo}")));
        let outcomes: Vec<&[f64]> =
            self.test.outcomes.iter().map(|values| &values[first..first + rows]).collect();
        let stratum = self
            .test
            .stratum
            .as_ref()
            .map(|stratum| (&stratum[first..first + rows], self.test.stratum_labels.names()));
        let columns = self.outcomes.iter().zip(&outcomes);
        let evaluated = ObservedRows {
            x: Some(x),
            design: self.design,
            stratum,
            outcomes: columns
                .map(|(name, values)| OutcomeColumn { name, values, prediction: None })
                .collect(),
            ..ObservedRows::new(&names, &arm)
        };
        let nuisances = evaluated_nuisances(&evaluated, Run::new(Seed::new(first as u64), &Silent))?;
        let predictions = nuisances.predictions;
        let propensity = nuisances.propensity.map_or(Propensity::Shares(Vec::new()), |fit| fit.propensity);
        let outcomes: Vec<Outcome<'_>> = self
            .outcomes
            .iter()
            .zip(&outcomes)
            .enumerate()
            .map(|(own, (name, values))| Outcome { name, values, prediction: predictions[own].as_deref() })
            .collect();
        let mut columns: Vec<(usize, usize, Vec<f64>)> = Vec::new();
        for (outcome, scores) in scores.iter().enumerate() {
            for (place, policy) in targets.iter().enumerate() {
                let own = scores.iter().skip(place).step_by(targets.len()).map(|value| f64::from(*value));
                columns.push((*policy, outcome, own.collect()));
            }
            for placebo in 0..n_placebos {
                let own = scores.iter().skip(placebo % targets.len()).step_by(targets.len());
                let own = own.map(|value| f64::from(*value)).collect();
                columns.push((self.policies.len() + placebo, outcome, own));
            }
        }
        let effects: Vec<Effects<'_>> = columns
            .iter()
            .map(|(policy, outcome, values)| Effects {
                policy: *policy,
                outcome: Some(*outcome),
                values,
                truth: None,
            })
            .collect();
        let table = Scored {
            outcomes: &outcomes,
            policies: &names,
            arm: &arm,
            against: self.control,
            effects: &effects,
            weight: None,
            cluster: None,
            propensity: None,
        };
        let assigned = Assigned { propensity: &propensity, design: self.design, x: Some(x) };
        let averages = average_effects(&table, &assigned, &[], &Params::default().check()?)?;
        let truth = |average: &AverageEffect| self.truth_of(average, first, &columns);
        Ok(averages.into_iter().map(|average| (truth(&average), average)).collect())
    }

    /// The mean effect over the world; in a decile of the predicted effect, over its rows of the experiment.
    fn truth_of(&self, average: &AverageEffect, first: usize, columns: &[(usize, usize, Vec<f64>)]) -> f64 {
        let outcome = self.outcomes.iter().position(|name| *name == average.outcome).unwrap_or_default();
        let Some(policy) = self.policies.index(&average.policy) else { return 0.0 };
        let Some(decile) =
            average.group.as_ref().and_then(|name| name.split(' ').next()?.parse::<usize>().ok())
        else {
            return self.mean_truth(outcome, policy);
        };
        let Some((_, _, predicted)) = columns.iter().find(|own| (own.0, own.1) == (policy, outcome)) else {
            return f64::NAN;
        };
        let mut order: Vec<usize> = (0..predicted.len()).collect();
        order.sort_by(|a, b| predicted[*b].total_cmp(&predicted[*a]));
        let size = predicted.len() / 10;
        let rows = order.iter().skip((decile - 1) * size).take(size);
        let own = |row: &usize| self.truth[outcome][(first + row) * self.policies.len() + policy];
        rows.map(own).sum::<f64>() / size as f64
    }

    /// Intervals of single rows, by models of half-sample members fitted on parts of the test rows; true effects are
    /// those of the part after it.
    fn units(&self, scenario: &str, fits: usize, fit_rows: usize, members: usize) -> Result<()> {
        let targets = self.targets();
        let mut settings = Settings::default();
        settings.model.insert("members".into(), members.into());
        for kind in ["all", "half"] {
            settings.training.insert("member_rows".into(), kind.into());
            let mut shares = Vec::new();
            for fit in 0..fits {
                let first = fit * fit_rows;
                if first + fit_rows + 1_000 > self.test.n_rows() {
                    break;
                }
                let model = self.fit(&self.test, &self.test_policy, first..first + fit_rows, &settings)?;
                let scorer = model.prepare(&self.policies, &targets, self.control)?;
                let scored = first + fit_rows..first + fit_rows + 1_000;
                let x = DenseRows::new(self.test.x.rows(scored.clone()), self.test.x.width())?;
                let scores = scorer.score(&x, true)?;
                let quantile =
                    scorer.spread_freedom().map_or(1.645, |degrees| student_quantile(0.95, degrees));
                let mut inside = 0;
                for (outcome, (mean, spread)) in scores.mean.iter().zip(&scores.spread).enumerate() {
                    for (place, (mean, spread)) in mean.iter().zip(spread).enumerate() {
                        let (row, policy) =
                            (scored.start + place / targets.len(), targets[place % targets.len()]);
                        let truth = self.truth[outcome][row * self.policies.len() + policy];
                        inside +=
                            usize::from((f64::from(*mean) - truth).abs() <= quantile * f64::from(*spread));
                    }
                }
                let n_pairs = 1_000 * targets.len() * self.outcomes.len();
                shares.push(inside as f64 / n_pairs as f64);
            }
            shares.sort_by(f64::total_cmp);
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let (low, high) =
                (shares.first().copied().unwrap_or(f64::NAN), shares.last().copied().unwrap_or(f64::NAN));
            println!(
                "{scenario:13}  single rows, member_rows = {kind}: {mean:.3} ({low:.3} to {high:.3}) of {} fits",
                shares.len()
            );
        }
        Ok(())
    }
}
