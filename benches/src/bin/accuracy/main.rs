//! Errors of effects in small worlds with known truth: against a constant, and of outcomes learned together or apart.
//!
//! `cargo run --release -p benches --bin accuracy -- constant [draws=60] [first=1] [learners=poul,s-learner]` draws worlds of
//! six kinds, 500 to 5,000 rows and three levels of noise, and counts how often a learner is behind one number for
//! everybody: the difference in means (the learner `constant`) or zero, whichever is better, and the learner's own average.
//! The first is luck where effects are all the same; the second tells what differences between rows are worth.
//!
//! `cargo run --release -p benches --bin accuracy -- sharing [seeds=5] [first=1] [kinds=same,apart,none]` fits two outcomes together and each alone, where
//! they share who gains, where they do not, and where nobody gains more than others.
//!
//! `cargo run --release -p benches --bin accuracy -- real [learners=poul,ridge,s-learner,causal-forest,constant]
//! [experiments=charity,hillstrom]` tells how much of residual outcomes effects explain in public experiments, on thirds of the
//! people (or policies) that the model has not seen, and how far `poul` is ahead, with 90 % intervals by people.
//!
//! Settings such as `training.epochs=10` go to `poul`.

mod experiments;
mod worlds;

use std::collections::BTreeMap;

use benches::Arguments;
use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Error, Result, Run, Seed, Silent};

use experiments::{Experiment, HeldOut, charity_mail, conjoint, hillstrom, social_pressure};
use worlds::{Draw, WORLDS, two_outcomes};

const NAMES: [&str; 2] = ["first", "second"];
const ROWS: [usize; 4] = [500, 1_000, 2_000, 5_000];
const NOISE: [f64; 3] = [0.5, 1.0, 3.0];
/// Behind a constant by more than this is worse than bad luck.
const FAR: f64 = 1.05;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let number = |key: &str, default: u64| arguments.number(key, default);
    let settings = arguments.settings();
    match arguments.word() {
        Some("constant") => {
            let learners = arguments.get("learners").unwrap_or("poul,s-learner");
            against_constant(number("first", 1), number("draws", 60), learners, &settings)
        }
        Some("sharing") => {
            let kinds = arguments.get("kinds").unwrap_or("same,apart,none");
            sharing(number("first", 1), number("seeds", 5), kinds, &settings)
        }
        Some("real") => {
            let learners = arguments.get("learners").unwrap_or("poul,ridge,s-learner,causal-forest,constant");
            real(arguments.get("experiments").unwrap_or(""), learners, &settings)
        }
        _ => Err(Error::usage("name a table: constant, sharing, or real")),
    }
}

/// How often learners are behind a constant or zero, by kind of world.
fn against_constant(first: u64, draws: u64, learners: &str, settings: &Settings) -> Result<()> {
    println!("world         rows  noise  sd of effects  zero   constant  {learners}");
    let mut ratios: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for place in 0..draws as usize {
        let (world, level) = (&WORLDS[place % WORLDS.len()], place / WORLDS.len());
        let (n_rows, noise) = (ROWS[level % ROWS.len()], NOISE[level % NOISE.len()]);
        let draw = world.draw(n_rows, noise, Seed::new(first).child(world.name).index(level as u64));
        let truth = &draw.truth[0];
        let mean = truth.iter().sum::<f64>() / truth.len() as f64;
        let zero = root_mean_square(truth.iter().copied());
        let sd = root_mean_square(truth.iter().map(|own| own - mean));
        let constant = draw.errors("constant", &Settings::default(), &[0])?[0].whole;
        let mut line =
            format!("{:12} {n_rows:5}  {noise:5}  {sd:13.3}  {zero:5.3}  {constant:8.3} ", world.name);
        for name in learners.split(',') {
            let settings = if name == "poul" { settings.clone() } else { Settings::default() };
            let Errors { whole, average } = draw.errors(name, &settings, &[0])?[0];
            // Where nothing happens zero is the truth, and nobody can be better.
            let best = if zero > 0.0 { constant.min(zero) } else { constant };
            ratios.entry((name, "constant or zero")).or_default().push(whole / best);
            ratios.entry((name, "its own average")).or_default().push(whole / average);
            line += &format!(" {whole:.3} ({average:.3})");
        }
        println!("{line}");
    }
    println!("\nlearner        against           behind  by over 5 %  median ratio  largest");
    for ((name, against), mut ratios) in ratios {
        ratios.sort_by(f64::total_cmp);
        let count = |bound: f64| ratios.iter().filter(|ratio| **ratio > bound).count();
        let n = ratios.len();
        println!(
            "{name:13}  {against:16}  {:3} of {n}  {:3} of {n}  {:12.3}  {:7.3}",
            count(1.0),
            count(FAR),
            ratios[n / 2],
            ratios[n - 1]
        );
    }
    Ok(())
}

/// Two outcomes together and each alone.
fn sharing(first: u64, seeds: u64, kinds: &str, settings: &Settings) -> Result<()> {
    println!(
        "who gains   rows  noise  first: together / alone    second: together / alone   constant (second)"
    );
    for kind in kinds.split(',') {
        for (n_rows, noise) in [(500, 1.0), (2_000, 3.0), (10_000, 3.0), (10_000, 10.0)] {
            let mut first_outcome = Vec::new();
            let mut second_outcome = Vec::new();
            let mut constant = Vec::new();
            for seed in first..first + seeds {
                let draw = two_outcomes(kind, n_rows, noise, Seed::new(seed).child(kind));
                let together = draw.errors("poul", settings, &[0, 1])?;
                let alone = |outcome: usize| Ok(draw.errors("poul", settings, &[outcome])?[0].whole);
                first_outcome.push((together[0].whole, alone(0)?));
                second_outcome.push((together[1].whole, alone(1)?));
                let level = draw.errors("constant", &Settings::default(), &[1])?[0].whole;
                constant.push((together[1].whole, level));
            }
            let [a, b, c] = [first_outcome, second_outcome, constant].map(|pairs| ratio(&pairs));
            println!("{kind:10} {n_rows:5}  {noise:5}  {a:>24}  {b:>24}  {c:>18}");
        }
    }
    Ok(())
}

/// How much of residual outcomes effects explain in public experiments whose names begin as one of `wanted`.
fn real(wanted: &str, learners: &str, settings: &Settings) -> Result<()> {
    type Read = fn() -> Result<Option<Experiment>>;
    let experiments: [(&str, HeldOut, Read); 7] = [
        ("conjoint", HeldOut::People, conjoint),
        ("charity mail", HeldOut::People, charity_mail),
        ("charity mail, new policies", HeldOut::Policies, charity_mail),
        ("hillstrom, visit", HeldOut::People, || hillstrom("visit")),
        ("hillstrom, spend", HeldOut::People, || hillstrom("spend")),
        ("hillstrom, spend beside visit", HeldOut::People, || hillstrom("spend,visit")),
        ("social pressure", HeldOut::People, social_pressure),
    ];
    println!(
        "experiment                     learner        explains, 1/10,000       poul ahead by, 1/10,000"
    );
    for (name, held_out, read) in experiments {
        if !wanted.split(',').any(|wanted| name.starts_with(wanted)) {
            continue;
        }
        let Some(experiment) = read()? else { continue };
        let mut first: Option<Vec<f64>> = None;
        let parts = |(score, [low, high]): (f64, [f64; 2])| {
            format!("{:6.2} [{:6.2}, {:6.2}]", score * 1e4, low * 1e4, high * 1e4)
        };
        for learner in learners.split(',') {
            let settings = if learner == "poul" { settings.clone() } else { Settings::default() };
            let own = match experiment.contrasts(learner, &settings, held_out) {
                Ok(own) => own,
                Err(error) => {
                    println!("{name:30} {learner:14} {error}");
                    continue;
                }
            };
            let explains = parts(experiment.r_score(&own, &vec![0.0; own.len()]));
            let ahead =
                first.as_ref().map(|first| parts(experiment.r_score(first, &own))).unwrap_or_default();
            println!("{name:30} {learner:14} {explains:24} {ahead}");
            first.get_or_insert(own);
        }
        let Some(first) = first else { continue };
        let ahead = parts(experiment.r_score(&first, &experiment.constant));
        println!("{name:30} {:14} {:24} {ahead}", "one number", "");
    }
    Ok(())
}

/// Root mean squared errors of effects, and of their average in their place.
#[derive(Clone, Copy)]
struct Errors {
    whole: f64,
    average: f64,
}

impl Draw {
    /// Errors of the effects of the first policy on some outcomes, which are learned together.
    fn errors(&self, name: &str, settings: &Settings, outcomes: &[usize]) -> Result<Vec<Errors>> {
        let mut builder = PolicySet::builder();
        builder.add("control", "day", "none", 1.0).add("control", "night", "none", 1.0);
        builder.add("all day", "day", "mail", 1.0).add("all day", "night", "mail", 1.0);
        if self.policy.contains(&2) {
            builder.add("by day", "day", "mail", 1.0).add("by day", "night", "none", 1.0);
        }
        let policies = builder.build()?;
        let place = ["control", "all day", "by day"].map(|name| policies.index(name).unwrap_or(0) as u32);
        let policy: Vec<u32> = self.policy.iter().map(|own| place[*own as usize]).collect();
        let x = DenseRows::new(&self.x, self.n_features)?;
        let column = |outcome: &usize| OutcomeColumn {
            name: NAMES[*outcome],
            values: &self.outcomes[*outcome],
            prediction: None,
        };
        let data = TrainingData {
            design: self.design,
            control: Some(place[0] as usize),
            ..TrainingData::new(&x, &policies, &policy, outcomes.iter().map(column).collect())
        };
        let trained = (learner(name)?.train)(&data.check()?, settings, Run::new(Seed::new(3407), &Silent))?;
        let scorer = trained.effects.prepare(&policies, &[place[1] as usize], place[0] as usize)?;
        let scores = scorer.score(&DenseRows::new(&self.test_x, self.n_features)?, false)?;
        let error = |(place, outcome): (usize, &usize)| {
            let (effects, truth) = (&scores.mean[place], &self.truth[*outcome]);
            let mean = effects.iter().map(|effect| f64::from(*effect)).sum::<f64>() / effects.len() as f64;
            let whole = effects.iter().zip(truth).map(|(effect, truth)| f64::from(*effect) - truth);
            let average = truth.iter().map(|truth| mean - truth);
            Errors { whole: root_mean_square(whole), average: root_mean_square(average) }
        };
        Ok(outcomes.iter().enumerate().map(error).collect())
    }
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value * value));
    (sum / f64::max(n, 1.0)).sqrt()
}

/// The ratio of root mean squared errors over draws, and its standard error by leaving one out.
fn ratio(pairs: &[(f64, f64)]) -> String {
    let n = pairs.len();
    let without = |left_out: Option<usize>| {
        let kept = || pairs.iter().enumerate().filter(|(place, _)| Some(*place) != left_out);
        root_mean_square(kept().map(|(_, pair)| pair.0)) / root_mean_square(kept().map(|(_, pair)| pair.1))
    };
    let each: Vec<f64> = (0..n).map(|place| without(Some(place))).collect();
    let mean = each.iter().sum::<f64>() / n as f64;
    let square: f64 = each.iter().map(|value| (value - mean).powi(2)).sum();
    format!("{:.3} ± {:.3}", without(None), (square * (n as f64 - 1.0) / n as f64).sqrt())
}
