//! How long a loaded model takes for one row: what a service waits for.
//!
//! `cargo run --release -p benches --bin bench_latency [-- FEATURES [POLICIES]]`
//!
//! A default ensemble of six, one outcome, one thread; the policies are prepared once, then rows come one by one. Median and
//! 99th percentile over rows.

use std::time::Instant;

use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;

const N_ROWS: usize = 2_000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap_or(0));
    let n_features = args.next().filter(|features| *features > 0).unwrap_or(100);
    let n_policies = args.next().filter(|policies| *policies > 1).unwrap_or(20);
    let mut rng = Seed::new(1).rng();
    let x: Vec<f32> = (0..N_ROWS * n_features).map(|_| rng.random_range(-1.7_f32..1.7)).collect();
    let outcome: Vec<f64> = x.chunks(n_features).map(|row| f64::from(row[0])).collect();
    let mut policies = PolicySet::builder();
    for policy in 0..n_policies {
        for context in 0..12 {
            let action = format!("a{}", rng.random_range(0..5));
            policies.add(&format!("p{policy:04}"), &format!("s{context}"), &action, 1.0);
        }
    }
    let policies = policies.build()?;
    let policy: Vec<u32> = (0..N_ROWS).map(|row| (row % n_policies) as u32).collect();
    let source = DenseRows::new(&x, n_features)?;
    let outcomes = vec![OutcomeColumn { name: "y", values: &outcome, prediction: Some(&outcome) }];
    let data = TrainingData::new(&source, &policies, &policy, outcomes).check()?;
    let mut settings = Settings::default();
    settings.training.insert("epochs".to_owned(), 1.into());
    let trained = (learner("poul")?.train)(&data, &settings, Run::new(Seed::new(1), &Silent))?;
    let targets: Vec<usize> = (0..n_policies).collect();
    let scorer = trained.effects.prepare(&policies, &targets, 0)?;

    let mut micros = Vec::with_capacity(10 * N_ROWS);
    for row in x.chunks(n_features).cycle().take(10 * N_ROWS) {
        let start = Instant::now();
        std::hint::black_box(scorer.score(&DenseRows::new(row, n_features)?, false)?);
        micros.push(1e6 * start.elapsed().as_secs_f64());
    }
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!(
        "one row of {n_features} features, {n_policies} policies: {:.1} µs (median), {:.1} µs (99 %)",
        at(0.5),
        at(0.99)
    );
    Ok(())
}
