//! Speed of scoring against the limit that matrix products alone set.
//!
//! `cargo run --release -p benches --bin bench_score [-- ROWS [POLICIES [REPETITIONS]]]`
//!
//! Scores ROWS rows of 723 features for 200 policies by a default ensemble of six: g: 723 → 128 → 64 → 16 for each
//! member, then one product with the contrasts of all policies. The limit runs the same matrix products, in the same
//! blocks and on the same threads, and nothing else; both alternate, and medians are printed. Time is linear in rows.

use std::time::Instant;

use gemm::Parallelism;
use poul::effect::{EffectModel, OutcomeColumn, Scorer, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Error, Result, Run, Seed, Silent};
use rand::RngExt;
use rayon::prelude::*;

const N_FEATURES: usize = 723;
const WIDTHS: [usize; 4] = [N_FEATURES, 128, 64, 16];
const N_MEMBERS: usize = 6;
const BLOCK_ROWS: usize = 256;
const N_CONTEXTS: usize = 24;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap_or(0));
    let n_rows = args.next().filter(|rows| *rows > 0).unwrap_or(100_000);
    let n_policies = args.next().filter(|policies| *policies > 1).unwrap_or(200);
    let n_repetitions = args.next().filter(|repetitions| *repetitions > 0).unwrap_or(5);
    let mut rng = Seed::new(1).rng();
    let features: Vec<f32> = (0..n_rows * N_FEATURES).map(|_| rng.random_range(-1.7_f32..1.7)).collect();
    let policies = policies(n_policies)?;
    let model = model(&features, &policies)?;
    let targets: Vec<usize> = (0..n_policies).collect();
    let scorer = model.prepare(&policies, &targets, 0)?;
    let mut products = Products::new(n_policies);
    println!("{n_rows} rows × {N_FEATURES} features, {n_policies} policies, {N_MEMBERS} members");
    println!("{:>7} {:>8} {:>10} {:>10} {:>7}", "threads", "spread", "µs/row", "products", "ratio");
    for n_threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
        let pool = pool.map_err(|error| Error::other(error.to_string()))?;
        for spread in [false, true] {
            let (mut ours, mut limit) = (Vec::new(), Vec::new());
            for _ in 0..n_repetitions {
                ours.push(pool.install(|| seconds(|| score(&*scorer, &features, spread)))?);
                limit.push(pool.install(|| seconds(|| products.run(&features, n_policies)))?);
            }
            let [ours, limit] = [ours, limit].map(|seconds| 1e6 * median(seconds) / n_rows as f64);
            println!("{n_threads:>7} {spread:>8} {ours:>10.2} {limit:>10.2} {:>7.2}", ours / limit);
        }
    }
    Ok(())
}

fn score(scorer: &dyn Scorer, features: &[f32], spread: bool) -> Result<()> {
    let scores = scorer.score(&DenseRows::new(features, N_FEATURES)?, spread)?;
    std::hint::black_box(&scores);
    Ok(())
}

fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Policies that choose one of eight actions in each context.
fn policies(n_policies: usize) -> Result<PolicySet> {
    let mut rng = Seed::new(2).rng();
    let mut builder = PolicySet::builder();
    for policy in 0..n_policies {
        for context in 0..N_CONTEXTS {
            let action = rng.random_range(0..8);
            builder.add(&format!("p{policy:05}"), &format!("c{context:02}"), &format!("a{action}"), 1.0);
        }
    }
    builder.build()
}

/// An ensemble of default size. How well it is trained does not matter here.
fn model(features: &[f32], policies: &PolicySet) -> Result<Box<dyn EffectModel>> {
    let n_rows = 2000.min(features.len() / N_FEATURES);
    let x = DenseRows::new(&features[..n_rows * N_FEATURES], N_FEATURES)?;
    let policy: Vec<u32> = (0..n_rows).map(|row| (row % policies.len()) as u32).collect();
    let outcome: Vec<f64> = (0..n_rows).map(|row| f64::from(features[row * N_FEATURES])).collect();
    let prediction = vec![0.0; n_rows];
    let outcome = OutcomeColumn { name: "y", values: &outcome, prediction: Some(&prediction) };
    let data = TrainingData::new(&x, policies, &policy, vec![outcome]);
    let mut settings = Settings::default();
    settings.training.insert("epochs".into(), 1.into());
    let poul = learner("poul")?;
    Ok((poul.train)(&data.check()?, &settings, Run::new(Seed::new(3), &Silent))?.effects)
}

/// The matrix products of scoring and nothing else.
struct Products {
    weights: Vec<Vec<f32>>,
    contrasts: Vec<f32>,
}

impl Products {
    fn new(n_policies: usize) -> Self {
        let numbers = |n: usize| (0..n).map(|i| (i * 7919 % 1000) as f32 / 1000.0 - 0.5).collect::<Vec<_>>();
        let layers = WIDTHS.windows(2).map(|pair| numbers(pair[0] * pair[1]));
        Self { weights: layers.collect(), contrasts: numbers(N_MEMBERS * WIDTHS[3] * n_policies) }
    }

    fn run(&mut self, features: &[f32], n_policies: usize) -> Result<()> {
        let mut effects = vec![0.0; features.len() / N_FEATURES * n_policies];
        let blocks = features.par_chunks(BLOCK_ROWS * N_FEATURES);
        let blocks = blocks.zip(effects.par_chunks_mut(BLOCK_ROWS * n_policies));
        let buffers = || {
            let widths = [WIDTHS[1], WIDTHS[2], WIDTHS[3], N_MEMBERS * WIDTHS[3]];
            widths.map(|width| vec![0.0; BLOCK_ROWS * width])
        };
        blocks.for_each_init(buffers, |[first, second, g, stacked], (x, effects)| {
            let n = x.len() / N_FEATURES;
            for _ in 0..N_MEMBERS {
                product([n, WIDTHS[1], WIDTHS[0]], x, &self.weights[0], &mut first[..n * WIDTHS[1]]);
                let first = &first[..n * WIDTHS[1]];
                product([n, WIDTHS[2], WIDTHS[1]], first, &self.weights[1], &mut second[..n * WIDTHS[2]]);
                let second = &second[..n * WIDTHS[2]];
                product([n, WIDTHS[3], WIDTHS[2]], second, &self.weights[2], &mut g[..n * WIDTHS[3]]);
            }
            let inner = N_MEMBERS * WIDTHS[3];
            product([n, n_policies, inner], &stacked[..n * inner], &self.contrasts, effects);
        });
        std::hint::black_box(&effects);
        Ok(())
    }
}

/// c = a·b, all row-major.
fn product([n, m, k]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!(a.len() == n * k && b.len() == k * m && c.len() == n * m);
    #[allow(unsafe_code, reason = "the limit calls the matrix product directly")]
    // SAFETY: the operands hold exactly as many values as their shapes say (asserted), and the strides are those of
    // contiguous row-major matrices.
    unsafe {
        gemm::gemm(
            n,
            m,
            k,
            c.as_mut_ptr(),
            1,
            m as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            m as isize,
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
