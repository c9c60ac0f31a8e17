//! Steps: the same bits on any number of threads and after a resume; the optimiser against a plain one.

use std::sync::Arc;

use poul::Seed;
use poul::net::{
    Activation, AdamParams, Batch, DenseRows, GroupRule, Init, Layout, Mlp, Network, RowSource, SparseRows,
    Tape, Trainer, TrainerParams, Var, Weight, Workspace, predict,
};
use rand::RngExt;

const N_ROWS: usize = 700;
const N_FEATURES: usize = 13;
const N_POLICIES: usize = 9;

/// The method's second stage in small: y ≈ g(x)·(h(t) − e_h), h = ρ(α φ).
struct Uplift {
    features: Vec<f32>,
    outcome: Vec<f32>,
    policy: Vec<u32>,
    mixtures: Arc<SparseRows>,
    g: Mlp,
    phi: Weight,
    rho: Mlp,
}

impl Uplift {
    fn new() -> (Self, Layout) {
        let mut rng = Seed::new(1).child("data").rng();
        let mut numbers = |n: usize| (0..n).map(|_| rng.random_range(-1.0_f32..1.0)).collect::<Vec<_>>();
        let (features, outcome) = (numbers(N_ROWS * N_FEATURES), numbers(N_ROWS));
        let policy = (0..N_ROWS as u32).map(|row| row * 7 % N_POLICIES as u32).collect();
        let mixtures =
            (0..N_POLICIES as u32).map(|t| vec![(t % 6, 0.5), ((t + 2) % 6, 0.3), ((t + 3) % 6, 0.2)]);
        let mixtures = Arc::new(SparseRows::new(6, mixtures).unwrap());
        let mut layout = Layout::builder();
        let (side, treatment) = (layout.group("g"), layout.group("treatment"));
        let g = Mlp::new(&mut layout, "g", &[N_FEATURES, 32, 16, 4], Activation::Relu, Init::Uniform, side);
        let phi = layout.matrix("phi", 6, 5, Init::Normal(0.5), treatment);
        let rho = Mlp::new(&mut layout, "rho", &[5, 8, 4], Activation::Elu, Init::Uniform, treatment);
        let uplift = Self { features, outcome, policy, mixtures, g: g.dropout(0.2), phi, rho };
        (uplift, layout.finish().unwrap())
    }

    fn source(&self) -> DenseRows<'_> {
        DenseRows::new(&self.features, N_FEATURES).unwrap()
    }
}

impl Network for Uplift {
    fn shared(&self, tape: &mut Tape<'_>, _: usize) {
        let phi = tape.weight(self.phi);
        let z = tape.mix(&self.mixtures, phi);
        let h = self.rho.forward(tape, z);
        let shares = tape.constant(1, N_POLICIES, &[1.0 / N_POLICIES as f32; N_POLICIES]);
        let centre = tape.matmul(shares, h);
        let centred = tape.sub(h, centre);
        tape.share(centred);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let g = self.g.forward(tape, x);
        let h = tape.shared(0);
        let h = tape.gather(h, batch.pick(&self.policy));
        let effect = tape.row_dot(g, h);
        let outcome = tape.column(batch.pick(&self.outcome));
        tape.squared_loss(effect, outcome, None, batch.scale())
    }
}

/// Batches of 100 out of 700 rows, every sixth of 30, in an order that is not the rows' own.
fn batches(n_steps: usize) -> impl Iterator<Item = Vec<u32>> {
    let n_rows = |step: usize| if step % 6 == 5 { 30 } else { 100 };
    (0..n_steps)
        .map(move |step| (0..n_rows(step)).map(|i| ((step * 100 + i) * 263 % N_ROWS) as u32).collect())
}

fn trainer(layout: &Layout, params: AdamParams, n_members: usize) -> Trainer {
    // Four shards, two of a short batch.
    let shape = TrainerParams { n_members, shard_rows: 25 };
    Trainer::new(layout.clone(), params.check().unwrap(), shape, Seed::new(3407)).unwrap()
}

fn full_settings() -> AdamParams {
    AdamParams {
        learning_rate: 1e-2,
        weight_decay: 0.1,
        clip_norm: Some(0.5),
        average: Some(0.99),
        ..AdamParams::default()
    }
}

fn with_threads<R: Send>(n_threads: usize, run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(run)
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (uplift, layout) = Uplift::new();
    for params in [full_settings(), AdamParams::default()] {
        let run = |n_threads| {
            with_threads(n_threads, || {
                let mut trainer = trainer(&layout, params.clone(), 3);
                for rows in batches(20) {
                    trainer.step(&uplift.source(), &rows, &uplift).unwrap();
                }
                trainer.export()
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(5));
    }
}

#[test]
fn a_resumed_run_gives_the_same_bits() {
    let (uplift, layout) = Uplift::new();
    let mut whole = trainer(&layout, full_settings(), 2);
    let mut halfway = Vec::new();
    for (step, rows) in batches(12).enumerate() {
        if step == 5 {
            halfway = whole.export();
        }
        whole.step(&uplift.source(), &rows, &uplift).unwrap();
    }
    let mut resumed = trainer(&layout, full_settings(), 2);
    resumed.import(&halfway).unwrap();
    assert_eq!(resumed.n_steps(), 5);
    assert_eq!(resumed.export(), halfway);
    for rows in batches(12).skip(5) {
        resumed.step(&uplift.source(), &rows, &uplift).unwrap();
    }
    assert_eq!(whole.export(), resumed.export());
}

#[test]
fn wrong_checkpoints_are_refused_and_change_nothing() {
    let (_, layout) = Uplift::new();
    let good = trainer(&layout, full_settings(), 2).export();
    let mut target = trainer(&layout, full_settings(), 2);
    let before = target.export();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    let others = trainer(&layout, full_settings(), 1).export();
    let plain = trainer(&layout, AdamParams::default(), 2).export();
    for (bytes, message) in [
        (&b"short"[..], "too early"),
        (&[0; 64], "no checkpoint"),
        (&good[..good.len() - 1], "damaged"),
        (&damaged, "damaged"),
        (&others, "another network"),
        (&plain, "another network"),
    ] {
        let error = target.import(bytes).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(target.export() == before);
    }
}

#[test]
fn a_member_is_the_same_alone_and_among_others() {
    let (uplift, layout) = Uplift::new();
    let (mut alone, mut among) = (trainer(&layout, full_settings(), 1), trainer(&layout, full_settings(), 3));
    for rows in batches(6) {
        let loss = alone.step(&uplift.source(), &rows, &uplift).unwrap()[0];
        assert_eq!(loss, among.step(&uplift.source(), &rows, &uplift).unwrap()[0]);
    }
    assert_eq!(alone.weights(0), among.weights(0));
    assert_ne!(among.weights(0), among.weights(1));
}

#[test]
fn shards_add_up_to_the_whole_batch() {
    // Without dropout, the number of shards changes only rounding: compare with one tape for everything.
    let (mut uplift, layout) = Uplift::new();
    uplift.g = uplift.g.clone().dropout(0.0);
    let rows = batches(1).next().unwrap();
    let run = |shard_rows| {
        let shape = TrainerParams { shard_rows, ..TrainerParams::default() };
        // With beta2 = 0 and a large epsilon the step is proportional to the gradient.
        let params =
            AdamParams { beta1: 0.0, beta2: 0.0, epsilon: 1e3, learning_rate: 1e3, ..Default::default() };
        let mut trainer = Trainer::new(layout.clone(), params.check().unwrap(), shape, Seed::new(1)).unwrap();
        let before = trainer.weights(0).to_vec();
        let loss = trainer.step(&uplift.source(), &rows, &uplift).unwrap()[0];
        let moved: Vec<f32> =
            trainer.weights(0).iter().zip(&before).map(|(after, before)| after - before).collect();
        (loss, moved)
    };
    let (loss, whole) = run(rows.len());
    let largest = whole.iter().fold(0.0_f32, |top, moved| top.max(moved.abs()));
    for shard_rows in [rows.len() / 2, rows.len() / 3, 7, 1] {
        let (other_loss, other) = run(shard_rows);
        assert!((loss - other_loss).abs() < 1e-6);
        for (whole, other) in whole.iter().zip(&other) {
            assert!(
                (whole - other).abs() < 1e-4 * largest,
                "shards of {shard_rows}: {whole} against {other}"
            );
        }
    }
}

/// AdamW with clipping and averaging, as the papers write it, in double precision.
#[test]
fn steps_follow_a_plain_optimiser() {
    let mut builder = Layout::builder();
    let (fast, slow) = (builder.group("fast"), builder.group("slow"));
    let weights = [
        builder.matrix("a", 3, 4, Init::Normal(1.0), fast),
        builder.matrix("b", 3, 4, Init::Normal(1.0), slow),
    ];
    let layout = builder.finish().unwrap();
    let loss = |tape: &mut Tape<'_>| {
        let (a, b) = (tape.weight(weights[0]), tape.weight(weights[1]));
        let y = tape.mul(a, b);
        let y = tape.affine(y, 1.0, -2.0);
        let y = tape.square(y);
        tape.sum(y)
    };
    let params = AdamParams {
        learning_rate: 0.05,
        weight_decay: 0.3,
        clip_norm: Some(5.0),
        average: Some(0.9),
        ..Default::default()
    };
    let optimizer = params.check().unwrap().group(slow, GroupRule { rate_factor: 0.5, weight_decay: 0.0 });
    let one_shard = TrainerParams { n_members: 1, shard_rows: 1 };
    let mut trainer = Trainer::new(layout.clone(), optimizer, one_shard, Seed::new(2)).unwrap();
    let features = [0.0];
    let source = DenseRows::new(&features, 1).unwrap();

    let to_double = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
    let mut weights = to_double(trainer.weights(0));
    let (mut first, mut second, mut mean) =
        (vec![0.0; weights.len()], vec![0.0; weights.len()], weights.clone());
    let mut workspace = Workspace::default();
    let mut was_clipped = [false; 2];
    for t in 1..=60 {
        let single: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
        workspace.loss_and_gradient(&layout, &single, loss).unwrap();
        let gradient = to_double(workspace.gradient());
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        was_clipped[usize::from(norm > 5.0)] = true;
        for segment in layout.segments() {
            let (rate, decay) = if segment.name == "a" { (0.05, 0.3) } else { (0.025, 0.0) };
            for i in segment.range() {
                let g = gradient[i] * (5.0 / norm).min(1.0);
                first[i] = 0.9 * first[i] + 0.1 * g;
                second[i] = 0.999 * second[i] + 0.001 * g * g;
                let (m, v) = (first[i] / (1.0 - 0.9_f64.powi(t)), second[i] / (1.0 - 0.999_f64.powi(t)));
                weights[i] -= rate * decay * weights[i] + rate * m / (v.sqrt() + 1e-8);
            }
        }
        let keep = f64::from(1 + t) / f64::from(10 + t);
        let keep = keep.min(0.9);
        mean.iter_mut().zip(&weights).for_each(|(mean, weight)| *mean = keep * *mean + (1.0 - keep) * weight);
        trainer.step(&source, &[0], &|tape: &mut Tape<'_>, _: &Batch<'_>| loss(tape)).unwrap();
        for (ours, exact) in [(trainer.weights(0), &weights), (trainer.averaged_weights(0), &mean)] {
            for (ours, exact) in ours.iter().zip(exact) {
                assert!((f64::from(*ours) - exact).abs() < 2e-4, "step {t}: {ours} against {exact}");
            }
        }
    }
    assert_eq!(was_clipped, [true, true], "the test must see steps with and without clipping");
}

#[test]
fn frozen_and_unreached_weights_stay() {
    let mut builder = Layout::builder();
    let (moving, frozen) = (builder.group("moving"), builder.group("frozen"));
    let a = builder.matrix("a", 1, 3, Init::Normal(1.0), moving);
    let b = builder.matrix("b", 1, 3, Init::Normal(1.0), frozen);
    builder.matrix("unused", 1, 3, Init::Normal(1.0), moving);
    let layout = builder.finish().unwrap();
    let mut trainer = trainer(&layout, AdamParams { weight_decay: 0.5, ..Default::default() }, 1);
    trainer.set_group_rule(frozen, GroupRule { rate_factor: 0.0, weight_decay: 0.5 });
    let before = trainer.weights(0).to_vec();
    let features = [0.0];
    let source = DenseRows::new(&features, 1).unwrap();
    let loss = |tape: &mut Tape<'_>, _: &Batch<'_>| {
        let (a, b) = (tape.weight(a), tape.weight(b));
        let y = tape.row_dot(a, b);
        tape.sum(y)
    };
    trainer.step(&source, &[0], &loss).unwrap();
    let moved = |index: usize| {
        let range = layout.segments()[index].range();
        before[range.clone()] != trainer.weights(0)[range]
    };
    assert_eq!([moved(0), moved(1), moved(2)], [true, false, false]);
}

#[test]
fn penalties_of_the_shared_part_count_once() {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let weight = builder.matrix("w", 1, 1, Init::Constant(3.0), group);
    let layout = builder.finish().unwrap();
    struct Penalised(Weight);
    impl Network for Penalised {
        fn shared(&self, tape: &mut Tape<'_>, _: usize) {
            let w = tape.weight(self.0);
            let penalty = tape.square(w);
            tape.add_loss(penalty);
            tape.share(w);
        }
        fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
            // Σ over rows of w / n is w, whatever the shards; the shared matrix is used twice.
            let (w, again) = (tape.shared(0), tape.shared(0));
            let both = tape.add(w, again);
            tape.scale(both, 0.5 * batch.scale() * batch.rows.len() as f32)
        }
    }
    let params =
        AdamParams { beta1: 0.0, beta2: 0.0, epsilon: 1e6, learning_rate: 1e6, ..Default::default() };
    let mut trainer = trainer(&layout, params, 1);
    let features = [0.0; 10];
    let source = DenseRows::new(&features, 1).unwrap();
    let rows: Vec<u32> = (0..10).collect();
    let loss = trainer.step(&source, &rows, &Penalised(weight)).unwrap()[0];
    assert!((loss - 12.0).abs() < 1e-6);
    // d(w² + w) = 2w + 1 = 7.
    assert!((trainer.weights(0)[0] - (3.0 - 7.0)).abs() < 1e-4, "{}", trainer.weights(0)[0]);
}

#[test]
fn divergence_is_an_error_and_leaves_the_weights() {
    let (mut uplift, layout) = Uplift::new();
    uplift.outcome[263] = f32::INFINITY;
    let mut trainer = trainer(&layout, AdamParams::default(), 1);
    let before = trainer.weights(0).to_vec();
    let rows = batches(1).next().unwrap();
    let error = trainer.step(&uplift.source(), &rows, &uplift).unwrap_err();
    assert!(error.to_string().contains("diverged") && error.hint_text().is_some());
    assert_eq!(trainer.weights(0), before);
    assert!(trainer.step(&uplift.source(), &[N_ROWS as u32], &uplift).is_err());
}

#[test]
fn predictions_depend_on_their_row_alone() {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let widths = [[600, 48, 3], [600, 256, 1]];
    let mlps = widths.map(|widths| {
        let name = format!("m{}", widths[1]);
        Mlp::new(&mut builder, &name, &widths, Activation::Relu, Init::Uniform, group).dropout(0.5)
    });
    let layout = builder.finish().unwrap();
    let weights = layout.init(Seed::new(4));
    let mut rng = Seed::new(5).rng();
    let features: Vec<f32> = (0..700 * 600).map(|_| rng.random_range(-1.0..1.0)).collect();
    for (mlp, n_out) in mlps.iter().zip([3, 1]) {
        let network = |tape: &mut Tape<'_>, _: &Batch<'_>| {
            let x = tape.features();
            mlp.forward(tape, x)
        };
        let score = |features: &[f32]| {
            let source = DenseRows::new(features, 600).unwrap();
            assert_eq!(source.n_rows() * 600, features.len());
            predict(&layout, &weights, &network, &source, n_out, 0).unwrap()
        };
        let all = with_threads(1, || score(&features));
        assert_eq!(all, with_threads(3, || score(&features)));
        for (first, n_rows) in [(0, 1), (5, 1), (699, 1), (3, 70), (100, 81), (7, 300), (0, 0)] {
            let part = score(&features[first * 600..(first + n_rows) * 600]);
            assert_eq!(part, all[first * n_out..(first + n_rows) * n_out], "{n_rows} rows from {first}");
        }
    }
}

#[test]
fn dropout_keeps_the_mean_and_changes_with_step_and_member() {
    let mut builder = Layout::builder();
    let group = builder.group("all");
    let weight = builder.matrix("w", 1, 1, Init::Constant(1.0), group);
    let layout = builder.finish().unwrap();
    let mut trainer = trainer(&layout, AdamParams::default(), 2);
    let features = vec![1.0; 400 * 50];
    let source = DenseRows::new(&features, 50).unwrap();
    let rows: Vec<u32> = (0..400).collect();
    let loss = |tape: &mut Tape<'_>, _: &Batch<'_>| {
        let x = tape.features();
        let kept = tape.dropout(x, 0.3);
        let w = tape.weight(weight);
        let w = tape.scale(w, 0.0);
        let y = tape.add(kept, w);
        let y = tape.sum(y);
        tape.scale(y, 1.0 / 20_000.0)
    };
    let mut seen = Vec::new();
    for _ in 0..10 {
        for mean in trainer.step(&source, &rows, &loss).unwrap() {
            // Each element has standard deviation √(0.3/0.7); the mean of 20,000 stays within five.
            assert!((mean - 1.0).abs() < 5.0 * (0.3_f64 / 0.7 / 20_000.0).sqrt(), "{mean}");
            seen.push(mean.to_bits());
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() >= 18, "masks repeat: {} different of 20", seen.len());
}
