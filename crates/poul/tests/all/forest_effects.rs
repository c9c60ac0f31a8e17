//! What forests promise beyond the contract of all learners: effects that are recovered, honesty, intervals that cover,
//! weights that count like copies, clusters that stay together, missing values that tell.

use poul::data::Design;
use poul::effect::{EffectModel, OutcomeColumn, Scores, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Run, Seed, Silent};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde_json::{Value, json};

const N_FEATURES: usize = 5;

/// Rows of an experiment with arms 0 (control), 1, 2, …: τ of arm a is a·σ(4x₁), and x₂ moves outcome and assignment.
struct World {
    x: Vec<f32>,
    arm: Vec<u32>,
    y: Vec<f64>,
    unit_effect: Vec<f64>,
}

impl World {
    fn new(n_rows: usize, n_arms: u32, confounding: f64, seed: u64) -> Self {
        let mut rng = Seed::new(seed).child("world").rng();
        let mut world = Self { x: Vec::new(), arm: Vec::new(), y: Vec::new(), unit_effect: Vec::new() };
        for _ in 0..n_rows {
            let x: Vec<f64> = (0..N_FEATURES).map(|_| StandardNormal.sample(&mut rng)).collect();
            let draw = f64::from(rng.random_range(0..n_arms)) + confounding * x[1].clamp(-1.0, 1.0);
            let arm = draw.round().clamp(0.0, f64::from(n_arms - 1)) as u32;
            let effect = 1.0 / (1.0 + (-4.0 * x[0]).exp());
            let noise: f64 = StandardNormal.sample(&mut rng);
            world.y.push(2.0 * x[1] + f64::from(arm) * effect + 0.5 * noise);
            world.arm.push(arm);
            world.unit_effect.push(effect);
            world.x.extend(x.iter().map(|value| *value as f32));
        }
        world
    }

    fn n_rows(&self) -> usize {
        self.arm.len()
    }
}

/// Arm a has the action `a` with probability a / 4: policies whose effects are proportional to a share.
fn policies(n_arms: u32) -> PolicySet {
    let mut builder = PolicySet::builder();
    for arm in 0..n_arms {
        let share = f64::from(arm) / 4.0;
        let name = format!("p{arm}");
        builder.add(&name, "all", "none", 1.0 - share);
        if arm > 0 {
            builder.add(&name, "all", "some", share);
        }
    }
    builder.build().unwrap()
}

struct Fit<'a> {
    name: &'a str,
    settings: Vec<(&'a str, Value)>,
    weight: Option<&'a [f64]>,
    cluster: Option<&'a [u32]>,
    design: Design,
}

impl Default for Fit<'_> {
    fn default() -> Self {
        let settings = vec![("trees", json!(200))];
        Self { name: "causal-forest", settings, weight: None, cluster: None, design: Design::Randomized }
    }
}

impl Fit<'_> {
    fn run(&self, world: &World, policies: &PolicySet) -> Box<dyn EffectModel> {
        let x = DenseRows::new(&world.x, N_FEATURES).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &world.y, prediction: None }];
        let data = TrainingData {
            weight: self.weight,
            cluster: self.cluster,
            design: self.design,
            control: Some(0),
            ..TrainingData::new(&x, policies, &world.arm, outcomes)
        };
        let mut settings = Settings::default();
        settings.model.extend(self.settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let learner = learner(self.name).unwrap();
        (learner.train)(&data.check().unwrap(), &settings, Run::new(Seed::new(1), &Silent)).unwrap().effects
    }
}

fn score(
    model: &dyn EffectModel,
    world: &World,
    policies: &PolicySet,
    target: usize,
    spread: bool,
) -> Scores {
    let x = DenseRows::new(&world.x, N_FEATURES).unwrap();
    model.prepare(policies, &[target], 0).unwrap().score(&x, spread).unwrap()
}

/// RMSE of effects over the standard deviation of the truth.
fn error(scores: &Scores, world: &World, arm: f64) -> f64 {
    let n = world.n_rows() as f64;
    let truth: Vec<f64> = world.unit_effect.iter().map(|effect| arm * effect).collect();
    let mean = truth.iter().sum::<f64>() / n;
    let variance = truth.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let squares = scores.mean[0].iter().zip(&truth).map(|(found, truth)| (f64::from(*found) - truth).powi(2));
    (squares.sum::<f64>() / n / variance).sqrt()
}

#[test]
fn both_forests_recover_effects_and_intervals_cover_them() {
    let (train, test, policies) = (World::new(4000, 2, 0.0, 1), World::new(1000, 2, 0.0, 2), policies(2));
    let causal = Fit::default().run(&train, &policies);
    let scores = score(&*causal, &test, &policies, 1, true);
    assert!(error(&scores, &test, 1.0) < 0.25, "{}", error(&scores, &test, 1.0));
    let covered = scores.mean[0].iter().zip(&scores.spread[0]).zip(&test.unit_effect);
    let covered =
        covered.filter(|((mean, se), tau)| (f64::from(**mean) - **tau).abs() < 1.645 * f64::from(**se));
    let share = covered.count() as f64 / 1000.0;
    assert!((0.7..=0.99).contains(&share), "90 % intervals cover {share}");
    let typical = scores.spread[0].iter().sum::<f32>() / 1000.0;
    assert!((0.01..0.3).contains(&typical), "standard errors are {typical}");
    let uplift = Fit { name: "uplift-forest", ..Fit::default() }.run(&train, &policies);
    let scores = score(&*uplift, &test, &policies, 1, false);
    assert!(error(&scores, &test, 1.0) < 0.5, "{}", error(&scores, &test, 1.0));
}

#[test]
fn confounding_is_removed_where_the_design_says_so() {
    let (train, test, policies) = (World::new(4000, 2, 0.6, 3), World::new(500, 2, 0.0, 4), policies(2));
    let bias = |design: Design| {
        let model = Fit { design, ..Fit::default() }.run(&train, &policies);
        let scores = score(&*model, &test, &policies, 1, false);
        let errors = scores.mean[0].iter().zip(&test.unit_effect).map(|(found, tau)| f64::from(*found) - tau);
        (errors.sum::<f64>() / 500.0).abs()
    };
    let (naive, centred) = (bias(Design::Randomized), bias(Design::Observational));
    assert!(centred < 0.15 && centred < naive, "bias {centred} against {naive}");
}

#[test]
fn several_arms_are_told_apart_by_name_and_by_mixture() {
    let (train, test) = (World::new(6000, 4, 0.0, 5), World::new(500, 4, 0.0, 6));
    // The fifth policy was never run: a full share of the action, four times the effect of the first.
    let policies = policies(5);
    let effects = |tier: &str, target: usize| {
        let settings = vec![("trees", json!(100)), ("tier", json!(tier))];
        let model = Fit { settings, ..Fit::default() }.run(&train, &policies);
        error(&score(&*model, &test, &policies, target, false), &test, target as f64)
    };
    for target in [1, 3] {
        assert!(effects("id", target) < 0.8, "{target}: {}", effects("id", target));
        assert!(effects("spec", target) < 0.5, "{target}: {}", effects("spec", target));
    }
    assert!(effects("spec", 4) < 0.5, "never run: {}", effects("spec", 4));
}

#[test]
fn weights_count_like_copies_and_clusters_keep_copies_together() {
    let (train, test, policies) = (World::new(1500, 2, 0.0, 7), World::new(300, 2, 0.0, 8), policies(2));
    let weight: Vec<f64> =
        (0..1500).map(|row| if train.x[row * N_FEATURES] > 0.5 { 3.0 } else { 1.0 }).collect();
    let mut copies = World { x: Vec::new(), arm: Vec::new(), y: Vec::new(), unit_effect: Vec::new() };
    let mut cluster = Vec::new();
    for (row, weight) in weight.iter().enumerate() {
        for _ in 0..*weight as usize {
            copies.x.extend(&train.x[row * N_FEATURES..][..N_FEATURES]);
            copies.arm.push(train.arm[row]);
            copies.y.push(train.y[row]);
            copies.unit_effect.push(train.unit_effect[row]);
            cluster.push(row as u32);
        }
    }
    let effects = |world: &World, weight: Option<&[f64]>, cluster: Option<&[u32]>| {
        let fit = Fit { weight, cluster, ..Fit::default() };
        score(&*fit.run(world, &policies), &test, &policies, 1, false).mean.remove(0)
    };
    let distance = |a: &[f32], b: &[f32]| {
        (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / a.len() as f32).sqrt()
    };
    let weighted = effects(&train, Some(&weight), None);
    let copied = effects(&copies, None, Some(&cluster));
    let plain = effects(&train, None, None);
    // Minimum sizes count copies as rows, so that trees differ: alike, not equal.
    assert!(distance(&weighted, &copied) < 0.1, "{}", distance(&weighted, &copied));
    assert_ne!(weighted, plain);
    // A constant weight changes nothing but rounding.
    let same = effects(&train, Some(&vec![2.0; 1500]), None);
    assert!(distance(&same, &plain) < 0.01, "{}", distance(&same, &plain));
}

#[test]
fn missing_values_are_a_side_of_their_own() {
    // The effect is there where x₁ is missing, and nowhere else.
    let blank = |mut world: World| {
        for row in 0..world.n_rows() {
            let missing = row % 3 == 0;
            if missing {
                world.x[row * N_FEATURES] = f32::NAN;
            }
            let arm = f64::from(world.arm[row]);
            world.y[row] += arm * (f64::from(u8::from(missing)) * 2.0 - world.unit_effect[row]);
            world.unit_effect[row] = f64::from(u8::from(missing)) * 2.0;
        }
        world
    };
    let policies = policies(2);
    let (train, test) = (blank(World::new(2000, 2, 0.0, 9)), blank(World::new(300, 2, 0.0, 10)));
    let model = Fit::default().run(&train, &policies);
    let scores = score(&*model, &test, &policies, 1, false);
    assert!(error(&scores, &test, 1.0) < 0.3, "{}", error(&scores, &test, 1.0));
}

#[test]
fn uplift_forests_split_binary_outcomes_by_any_divergence() {
    let policies = policies(2);
    let binary = |mut world: World| {
        let mut rng = Seed::new(11).rng();
        for row in 0..world.n_rows() {
            let level = 0.2 + 0.5 * f64::from(world.arm[row]) * world.unit_effect[row];
            world.y[row] = f64::from(u8::from(rng.random_bool(level)));
        }
        world
    };
    let (train, test) = (binary(World::new(4000, 2, 0.0, 12)), World::new(500, 2, 0.0, 13));
    for divergence in ["kl", "euclidean", "chi-squared"] {
        let settings = vec![("trees", json!(100)), ("divergence", json!(divergence))];
        let model = Fit { name: "uplift-forest", settings, ..Fit::default() }.run(&train, &policies);
        let scores = score(&*model, &test, &policies, 1, false);
        assert!(error(&scores, &test, 0.5) < 0.6, "{divergence}: {}", error(&scores, &test, 0.5));
    }
}
