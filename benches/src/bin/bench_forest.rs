//! Speed and quality of the causal forest on confounded data whose effects are known.
//!
//! `cargo run --release -p benches --bin bench_forest [-- TREES [ROWS [FEATURES [SEEDS]]]]`
//!
//! x ~ N(0, 1)^FEATURES, P(w = 1) = .2 + .6·σ(x₃), τ = σ(3x₁) + max(x₂, 0), y = x₃ + sin x₄ + τw + N(0, 1). Fits with
//! nuisances on ROWS rows, predicts as many fresh ones (at least 5,000, at most 20,000), and prints seconds and the
//! normalised PEHE, RMSE of τ̂ / sd of τ; then the same of the standard errors: the share of rows whose 90 % interval
//! covers τ. Threads are rayon's: `RAYON_NUM_THREADS=2`.

use std::time::Instant;

use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::stats::normal_quantile;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap_or(0));
    let mut next = |default: usize| args.next().filter(|value| *value > 0).unwrap_or(default);
    let (n_trees, n_rows, n_features, n_seeds) = (next(500), next(20_000), next(20).max(4), next(3));
    println!(
        "{n_rows} rows × {n_features} features, {n_trees} trees, {} threads",
        rayon::current_num_threads()
    );
    println!(
        "{:>4} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "seed", "fit s", "pred s", "nPEHE", "se pred s", "coverage"
    );
    let mut totals = [0.0; 5];
    for seed in 0..n_seeds as u64 {
        let figures = run(n_trees, n_rows, n_features, Seed::new(seed))?;
        print_figures(&seed.to_string(), &figures);
        totals.iter_mut().zip(figures).for_each(|(total, value)| *total += value / n_seeds as f64);
    }
    print_figures("mean", &totals);
    Ok(())
}

fn print_figures(name: &str, [fit, predict, pehe, with_spread, coverage]: &[f64; 5]) {
    println!("{name:>4} {fit:>8.2} {predict:>8.3} {pehe:>8.4} {with_spread:>9.3} {coverage:>9.3}");
}

fn run(n_trees: usize, n_rows: usize, n_features: usize, seed: Seed) -> Result<[f64; 5]> {
    let train = World::new(n_rows, n_features, seed.child("train"));
    let test = World::new(n_rows.clamp(5_000, 20_000), n_features, seed.child("test"));
    let mut builder = PolicySet::builder();
    builder.add("control", "all", "none", 1.0).add("treated", "all", "some", 1.0);
    let policies = builder.build()?;
    let x = DenseRows::new(&train.x, n_features)?;
    let outcomes = vec![OutcomeColumn { name: "y", values: &train.y, prediction: None }];
    let data = TrainingData {
        design: poul::data::Design::Observational,
        control: Some(0),
        ..TrainingData::new(&x, &policies, &train.w, outcomes)
    };
    let mut settings = Settings::default();
    settings.model.insert("trees".into(), n_trees.into());
    let forest = learner("causal-forest")?;
    let start = Instant::now();
    let trained = (forest.train)(&data.check()?, &settings, Run::new(seed, &Silent))?;
    let fit = start.elapsed().as_secs_f64();
    let x = DenseRows::new(&test.x, n_features)?;
    let scorer = trained.effects.prepare(&policies, &[1], 0)?;
    let start = Instant::now();
    let scores = scorer.score(&x, false)?;
    let predict = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let with_spread = scorer.score(&x, true)?;
    let spread_seconds = start.elapsed().as_secs_f64();
    let n = test.tau.len() as f64;
    let errors = scores.mean[0].iter().zip(&test.tau).map(|(found, tau)| (f64::from(*found) - tau).powi(2));
    let mean = test.tau.iter().sum::<f64>() / n;
    let variance = test.tau.iter().map(|tau| (tau - mean).powi(2)).sum::<f64>() / n;
    let pehe = (errors.sum::<f64>() / n / variance).sqrt();
    let reach = normal_quantile(0.95);
    let covered = with_spread.mean[0].iter().zip(&with_spread.spread[0]).zip(&test.tau);
    let covered =
        covered.filter(|((mean, se), tau)| (f64::from(**mean) - **tau).abs() <= reach * f64::from(**se));
    Ok([fit, predict, pehe, spread_seconds, covered.count() as f64 / n])
}

struct World {
    x: Vec<f32>,
    w: Vec<u32>,
    tau: Vec<f64>,
    y: Vec<f64>,
}

impl World {
    fn new(n_rows: usize, n_features: usize, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let mut world = Self { x: Vec::new(), w: Vec::new(), tau: Vec::new(), y: Vec::new() };
        let sigmoid = |value: f64| 1.0 / (1.0 + (-value).exp());
        for _ in 0..n_rows {
            let x: Vec<f64> = (0..n_features).map(|_| StandardNormal.sample(&mut rng)).collect();
            let treated = rng.random_bool(0.2 + 0.6 * sigmoid(x[2]));
            let tau = sigmoid(3.0 * x[0]) + x[1].max(0.0);
            let noise: f64 = StandardNormal.sample(&mut rng);
            world.y.push(x[2] + x[3].sin() + tau * f64::from(u8::from(treated)) + noise);
            world.w.push(u32::from(treated));
            world.tau.push(tau);
            world.x.extend(x.iter().map(|value| *value as f32));
        }
        world
    }
}
