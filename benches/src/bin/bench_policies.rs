//! Training time against the number of policies.
//!
//! `cargo run --release -p benches --bin bench_policies [-- ROWS]`
//!
//! Stage 2 on ROWS rows of 100 features, two members, two epochs, the outcome model given: by `exact` centring, which
//! computes h of every policy in every step, and by `auto`, which does so up to 256 policies and draws from them
//! beyond.

use std::time::Instant;

use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;

const N_FEATURES: usize = 100;
const EPOCHS: usize = 2;

fn main() -> Result<()> {
    let n_rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(50_000);
    let mut rng = Seed::new(1).rng();
    let features: Vec<f32> = (0..n_rows * N_FEATURES).map(|_| rng.random_range(-1.7_f32..1.7)).collect();
    println!("{:>9} {:>14} {:>14}", "policies", "auto µs/row", "exact µs/row");
    for n_policies in [200, 1000, 5000, 20_000] {
        let policies = policies(n_policies)?;
        let mut rng = Seed::new(2).rng();
        let policy: Vec<u32> = (0..n_rows).map(|_| rng.random_range(0..n_policies as u32)).collect();
        let [auto, exact] =
            ["auto", "exact"].map(|centring| seconds(&features, &policies, &policy, centring));
        let per_row = |seconds: f64| 1e6 * seconds / (n_rows * EPOCHS) as f64;
        println!("{n_policies:>9} {:>14.2} {:>14.2}", per_row(auto?), per_row(exact?));
    }
    Ok(())
}

fn policies(n_policies: usize) -> Result<PolicySet> {
    let mut rng = Seed::new(3).rng();
    let mut builder = PolicySet::builder();
    for policy in 0..n_policies {
        for context in 0..12 {
            let action = rng.random_range(0..6);
            builder.add(&format!("p{policy:05}"), &format!("c{context:02}"), &format!("a{action}"), 1.0);
        }
    }
    builder.build()
}

fn seconds(features: &[f32], policies: &PolicySet, policy: &[u32], centring: &str) -> Result<f64> {
    let x = DenseRows::new(features, N_FEATURES)?;
    let outcome: Vec<f64> = features.chunks(N_FEATURES).map(|x| f64::from(x[0])).collect();
    let prediction = vec![0.0; policy.len()];
    let data = TrainingData::new(
        &x,
        policies,
        policy,
        vec![OutcomeColumn { name: "y", values: &outcome, prediction: Some(&prediction) }],
    );
    let data = data.check()?;
    let mut settings = Settings::default();
    settings.model.insert("members".into(), 2.into());
    settings.model.insert("centring".into(), centring.into());
    settings.training.insert("epochs".into(), (EPOCHS as i64).into());
    settings.training.insert("validation_share".into(), 0.into());
    let start = Instant::now();
    let trained = (learner("poul")?.train)(&data, &settings, Run::new(Seed::new(4), &Silent))?;
    std::hint::black_box(&trained.history);
    Ok(start.elapsed().as_secs_f64())
}
