//! Speed and loss of boosted trees, the outcome model `boosted`.
//!
//! `cargo run --release -p benches --bin bench_boosted [-- DATA [TREES [REPETITIONS]]]`
//!
//! Without DATA, 100,000 rows × 100 features are drawn, x ~ U(0, 1), y = 10·sin(πx₁x₂) + 20(x₃ − ½)² + 10x₄ + 5x₅ + N(0, 1)
//! (Friedman 1991), and 20,000 more to judge by. Prints the seconds of every fit (bins and trees of one fold and its
//! predictions for the rows it was fitted on), and the mean squared error on the fresh rows. DATA is a file of 32-bit floats
//! with these numbers, row after row, the outcome last; `benches/peers/boosted.py` writes one and times LightGBM on it.
//! Threads are rayon's: `RAYON_NUM_THREADS=2`.

use std::time::Instant;

use poul::net::DenseRows;
use poul::nuisance::{
    BoostedParams, Folds, OutcomeKind, OutcomeLoss, OutcomeParams, OutcomeProblem, fit_outcome,
};
use poul::{Error, Result, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

const FEATURES: usize = 100;
const TEST_ROWS: usize = 20_000;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| {
        args.get(place).and_then(|arg| arg.parse().ok()).filter(|value| *value > 0).unwrap_or(default)
    };
    let table = match args.first().filter(|path| !path.is_empty()) {
        Some(path) => read(path)?,
        None => friedman(100_000 + TEST_ROWS),
    };
    let (trees, repetitions) = (number(1, 200), number(2, 3));
    let n_rows = table.len() / (FEATURES + 1) - TEST_ROWS;
    let row = |row: usize| table[row * (FEATURES + 1)..][..FEATURES + 1].split_at(FEATURES);
    let features =
        |rows: std::ops::Range<usize>| rows.flat_map(|own| row(own).0.to_vec()).collect::<Vec<f32>>();
    let outcomes = |rows: std::ops::Range<usize>| rows.map(|own| row(own).1[0]).collect::<Vec<f32>>();
    let (x, y) = (features(0..n_rows), outcomes(0..n_rows));
    let (test_x, test_y) = (features(n_rows..n_rows + TEST_ROWS), outcomes(n_rows..n_rows + TEST_ROWS));
    let (x, test_x) = (DenseRows::new(&x, FEATURES)?, DenseRows::new(&test_x, FEATURES)?);
    let boosted =
        BoostedParams { trees, patience: 0, leaves: 31, learning_rate: 0.1, ..BoostedParams::default() };
    let params = OutcomeParams { kind: OutcomeKind::Boosted, boosted, ..OutcomeParams::default() }.check()?;
    let folds = Folds::deal(n_rows, None, 1, Seed::new(1));
    println!("{n_rows} rows × {FEATURES} features, {trees} trees, {} threads", rayon::current_num_threads());
    for _ in 0..repetitions {
        let start = Instant::now();
        let problem = OutcomeProblem::new(&x, &y, &[OutcomeLoss::Squared]);
        let fit = fit_outcome(&problem, &folds, &params, Run::new(Seed::new(2), &Silent))?;
        let seconds = start.elapsed().as_secs_f64();
        let predicted = fit.models.predict(&test_x, &[])?;
        let errors = predicted.iter().zip(&test_y).map(|(m, y)| f64::from(m - y).powi(2));
        println!("fit {seconds:.3} s, mean squared error {:.5}", errors.sum::<f64>() / TEST_ROWS as f64);
    }
    Ok(())
}

fn read(path: &str) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path).map_err(|error| Error::input(format!("{path}: {error}")))?;
    Ok(bytes.chunks_exact(4).map(|own| f32::from_le_bytes([own[0], own[1], own[2], own[3]])).collect())
}

fn friedman(n_rows: usize) -> Vec<f32> {
    let mut rng = Seed::new(3).rng();
    let mut table = Vec::with_capacity(n_rows * (FEATURES + 1));
    for _ in 0..n_rows {
        let x: Vec<f32> = (0..FEATURES).map(|_| rng.random()).collect();
        let noise: f32 = StandardNormal.sample(&mut rng);
        let waves = 10.0 * (std::f32::consts::PI * x[0] * x[1]).sin() + 20.0 * (x[2] - 0.5).powi(2);
        table.extend_from_slice(&x);
        table.push(waves + 10.0 * x[3] + 5.0 * x[4] + noise);
    }
    table
}
