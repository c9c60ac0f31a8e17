//! Speed of the network engine against the limit that matrix products alone set.
//!
//! `cargo run --release -p benches --bin bench_engine [-- SECONDS [REPETITIONS [SHARDS]]]`
//!
//! Two training steps of the method at batch 512 with Adam: stage 1 is the outcome model p → 256 → 128 → 1; stage 2 is
//! g: p → 256 → 128 → 32 with h = ρ(αφ) for 200 policies over 192 atoms, ρ: 32 → 64 → 32, and the exact centre e_h with
//! its gradient. Rows are gathered in shuffled order, as in training. The limit runs the same matrix products, in the
//! same shards and on the same threads, and nothing else; both alternate, and medians are printed.
//!
//! `… --bin bench_engine -- limit FEATURES OUTCOMES` prints the limit alone for what `--preset paper` trains on
//! FEATURES encoded columns: for each outcome m, of widths 128, 64, 1, then g, of widths 128, 64, 16. The first layers
//! of all outcomes are one product, as in training.

use std::sync::Arc;
use std::time::Instant;

use gemm::Parallelism;
use poul::net::{
    Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, Network, SparseRows, Tape, Trainer,
    TrainerParams, Var, Weight,
};
use poul::{Result, Seed};
use rand::{Rng, RngExt};
use rayon::prelude::*;

const BATCH: usize = 512;
const N_ROWS: usize = 40 * BATCH;
const N_POLICIES: usize = 200;
const N_ATOMS: usize = 192;
const N_CONTEXTS: usize = 24;
const WIDTH: usize = 32;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, n_features, n_outcomes] = words.as_slice()
        && word == "limit"
    {
        let number =
            |text: &String| text.parse().map_err(|_| poul::Error::usage(format!("not a number: `{text}`")));
        return limit(number(n_features)?, number(n_outcomes)?);
    }
    let mut args = words.iter().map(|arg| arg.parse::<f64>().unwrap_or(0.3));
    let seconds = args.next().unwrap_or(0.3);
    let n_repetitions = args.next().unwrap_or(7.0) as usize;
    let n_shards = args.next().unwrap_or(2.0) as usize;
    println!("{:>5} {:>5} {:>7} {:>12} {:>12} {:>8}", "p", "stage", "threads", "rows/s", "limit", "share");
    for n_features in [723, 100] {
        let data = Data::new(n_features);
        for stage in [1, 2] {
            for n_threads in [1, 2] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
                let pool = pool.map_err(|error| poul::Error::other(error.to_string()))?;
                let (ours, limit) =
                    pool.install(|| measure(&data, stage, n_shards, seconds, n_repetitions))?;
                let share = 100.0 * ours / limit;
                println!(
                    "{n_features:>5} {stage:>5} {n_threads:>7} {ours:>12.0} {limit:>12.0} {share:>7.1}%"
                );
            }
        }
    }
    Ok(())
}

/// Prints the rows a second that the matrix products of the paper's preset allow.
fn limit(n_features: usize, n_outcomes: usize) -> Result<()> {
    println!("{:>5} {:>8} {:>5} {:>7} {:>12}", "p", "outcomes", "stage", "threads", "limit");
    for stage in [1, 2] {
        for n_threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
            let pool = pool.map_err(|error| poul::Error::other(error.to_string()))?;
            let mut products = Products::paper(n_features, n_outcomes, stage, 2);
            let run = || {
                products.run();
                Ok(())
            };
            let rate = pool.install(|| rate(5.0, run))?;
            println!("{n_features:>5} {n_outcomes:>8} {stage:>5} {n_threads:>7} {rate:>12.0}");
        }
    }
    Ok(())
}

/// Rows a second, ours and the limit: medians of alternating repetitions.
fn measure(
    data: &Data,
    stage: usize,
    n_shards: usize,
    seconds: f64,
    n_repetitions: usize,
) -> Result<(f64, f64)> {
    let (network, layout) = Method::new(data, stage)?;
    let adam = AdamParams { learning_rate: 1e-4, ..Default::default() }.check()?;
    let shape = TrainerParams { shard_rows: BATCH.div_ceil(n_shards), ..Default::default() };
    let mut trainer = Trainer::new(layout, adam, shape, Seed::new(3407))?;
    let source = DenseRows::new(&data.features, data.n_features)?;
    let mut products = Products::new(data.n_features, stage, n_shards);
    let mut step = 0;
    let mut train = || -> Result<()> {
        let first = step % (N_ROWS / BATCH) * BATCH;
        trainer.step(&source, &data.order[first..first + BATCH], &network)?;
        step += 1;
        Ok(())
    };
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        train()?;
        products.run();
    }
    for _ in 0..n_repetitions {
        ours.push(rate(seconds, &mut train)?);
        limit.push(rate(seconds, || {
            products.run();
            Ok(())
        })?);
    }
    Ok((median(ours), median(limit)))
}

fn rate(seconds: f64, mut step: impl FnMut() -> Result<()>) -> Result<f64> {
    let (start, mut n_steps) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        step()?;
        n_steps += 1;
    }
    Ok((n_steps * BATCH) as f64 / start.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

struct Data {
    n_features: usize,
    features: Vec<f32>,
    outcome: Vec<f32>,
    baseline: Vec<f32>,
    policy: Vec<u32>,
    order: Vec<u32>,
}

impl Data {
    fn new(n_features: usize) -> Self {
        let mut rng = Seed::new(1).rng();
        let mut numbers = |n: usize| (0..n).map(|_| rng.random_range(-1.7_f32..1.7)).collect::<Vec<_>>();
        let (features, noise, baseline) = (numbers(N_ROWS * n_features), numbers(N_ROWS), numbers(N_ROWS));
        let row = |i: usize| &features[i * n_features..][..4];
        let outcome = (0..N_ROWS).map(|i| row(i).iter().sum::<f32>() + noise[i]).collect();
        let mut order: Vec<u32> = (0..N_ROWS as u32).collect();
        for i in (1..N_ROWS).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let policy = (0..N_ROWS).map(|_| (rng.next_u64() % N_POLICIES as u64) as u32).collect();
        Self { n_features, features, outcome, baseline, policy, order }
    }
}

struct Method<'d> {
    data: &'d Data,
    m_or_g: Mlp,
    treatment: Option<(Weight, Mlp, Arc<SparseRows>)>,
}

impl<'d> Method<'d> {
    fn new(data: &'d Data, stage: usize) -> Result<(Self, Layout)> {
        let mut layout = Layout::builder();
        let group = layout.group("all");
        let widths = [data.n_features, 256, 128, if stage == 1 { 1 } else { WIDTH }];
        let m_or_g = Mlp::new(&mut layout, "g", &widths, Activation::Relu, Init::Uniform, group);
        let treatment = if stage == 1 {
            None
        } else {
            let phi = layout.matrix("phi", N_ATOMS, WIDTH, Init::Normal(0.1), group);
            let rho =
                Mlp::new(&mut layout, "rho", &[WIDTH, 64, WIDTH], Activation::Relu, Init::Uniform, group);
            let atoms = |t: usize| {
                (0..N_CONTEXTS).map(move |s| ((s * 8 + (t * 7 + s * 3) % 8) as u32, 1.0 / N_CONTEXTS as f32))
            };
            Some((phi, rho, Arc::new(SparseRows::new(N_ATOMS, (0..N_POLICIES).map(atoms))?)))
        };
        Ok((Self { data, m_or_g, treatment }, layout.finish()?))
    }
}

impl Network for Method<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _: usize) {
        if let Some((phi, rho, mixtures)) = &self.treatment {
            let phi = tape.weight(*phi);
            let z = tape.mix(mixtures, phi);
            let h = rho.forward(tape, z);
            let shares = tape.constant(1, N_POLICIES, &[1.0 / N_POLICIES as f32; N_POLICIES]);
            let centre = tape.matmul(shares, h);
            let centred = tape.sub(h, centre);
            tape.share(centred);
        }
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let output = self.m_or_g.forward(tape, x);
        let outcome = tape.column(batch.pick(&self.data.outcome));
        if self.treatment.is_none() {
            return tape.squared_loss(output, outcome, None, batch.scale());
        }
        let h = tape.shared(0);
        let h = tape.gather(h, batch.pick(&self.data.policy));
        let effect = tape.row_dot(output, h);
        let baseline = tape.column(batch.pick(&self.data.baseline));
        let prediction = tape.add(effect, baseline);
        tape.squared_loss(prediction, outcome, None, batch.scale())
    }
}

/// The matrix products of a step and nothing else.
struct Products {
    shards: Vec<Vec<Layer>>,
    treatment: Vec<Layer>,
}

/// y = x·w forward; dw = xᵀ·y and dx = y·wᵀ back.
#[derive(Clone)]
struct Layer {
    shape: [usize; 3],
    x: Vec<f32>,
    /// The same for all shards, as in training.
    w: Arc<[f32]>,
    y: Vec<f32>,
    dw: Vec<f32>,
    dx: Option<Vec<f32>>,
}

impl Products {
    fn new(n_features: usize, stage: usize, n_shards: usize) -> Self {
        let n_out = if stage == 1 { 1 } else { WIDTH };
        let n_rows = BATCH.div_ceil(n_shards);
        Self {
            shards: copies(stack(n_rows, &[n_features, 256, 128, n_out], false), n_shards),
            treatment: if stage == 1 { Vec::new() } else { stack(N_POLICIES, &[WIDTH, 64, WIDTH], true) },
        }
    }

    /// Those of `--preset paper`; h of a few policies costs next to nothing.
    fn paper(n_features: usize, n_outcomes: usize, stage: usize, n_shards: usize) -> Self {
        let n_out = if stage == 1 { 1 } else { 16 };
        let n_rows = BATCH.div_ceil(n_shards);
        let mut layers = stack(n_rows, &[n_features, n_outcomes * 128], false);
        layers.extend((0..n_outcomes).flat_map(|_| stack(n_rows, &[128, 64, n_out], true)));
        Self { shards: copies(layers, n_shards), treatment: Vec::new() }
    }

    fn run(&mut self) {
        self.treatment.iter_mut().for_each(Layer::run);
        self.shards.par_iter_mut().with_max_len(1).for_each(|layers| layers.iter_mut().for_each(Layer::run));
    }
}

/// Shards with matrices of their own but for the weights.
fn copies(layers: Vec<Layer>, n_shards: usize) -> Vec<Vec<Layer>> {
    vec![layers; n_shards]
}

fn stack(n_rows: usize, widths: &[usize], dx_first: bool) -> Vec<Layer> {
    let pairs = widths.windows(2).enumerate();
    pairs.map(|(i, pair)| Layer::new([n_rows, pair[0], pair[1]], dx_first || i > 0)).collect()
}

impl Layer {
    fn new([n, k, m]: [usize; 3], has_dx: bool) -> Self {
        let numbers = |n: usize| (0..n).map(|i| (i * 7919 % 1000) as f32 / 1000.0 - 0.5).collect::<Vec<_>>();
        let (x, w, y, dw) = (numbers(n * k), numbers(k * m), numbers(n * m), vec![0.0; k * m]);
        Self { shape: [n, k, m], x, w: w.into(), y, dw, dx: has_dx.then(|| vec![0.0; n * k]) }
    }

    fn run(&mut self) {
        let [n, k, m] = self.shape;
        product([n, m, k], (&self.x, k, 1), (&self.w, m, 1), &mut self.y);
        product([k, m, n], (&self.x, 1, k), (&self.y, m, 1), &mut self.dw);
        if let Some(dx) = &mut self.dx {
            product([n, k, m], (&self.y, m, 1), (&self.w, 1, m), dx);
        }
    }
}

/// c = a·b, each operand with its row and column stride.
fn product([n, m, k]: [usize; 3], a: (&[f32], usize, usize), b: (&[f32], usize, usize), c: &mut [f32]) {
    assert!(a.0.len() == n * k && b.0.len() == k * m && c.len() == n * m);
    #[allow(unsafe_code, reason = "the limit calls the matrix product directly")]
    // SAFETY: the operands hold exactly as many values as their shapes say (asserted), and all callers give the
    // strides of a contiguous matrix or of its transpose.
    unsafe {
        gemm::gemm(
            n,
            m,
            k,
            c.as_mut_ptr(),
            1,
            m as isize,
            false,
            a.0.as_ptr(),
            a.2 as isize,
            a.1 as isize,
            b.0.as_ptr(),
            b.2 as isize,
            b.1 as isize,
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
