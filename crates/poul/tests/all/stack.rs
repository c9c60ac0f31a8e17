//! Stacks: weights by evidence, the same whatever the order and the threads, around the averages of `poul`, stored whole.

use poul::effect::{EffectModel, OutcomeColumn, Settings, Tensors, Trained, TrainingData};
use poul::learn::stack::StackSummary;
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use serde::Deserialize;
use serde_json::{Value, json};

const ROWS: usize = 1200;
const FEATURES: usize = 4;

/// Three policies over two contexts and one that was never run; effects are linear in features, times `size`.
struct World {
    x: Vec<f32>,
    policy: Vec<u32>,
    outcomes: [Vec<f64>; 2],
    policies: PolicySet,
}

impl World {
    /// The first outcome has effects that differ between rows by `size`, the second has none at all.
    fn new(size: f64) -> Self {
        let mut builder = PolicySet::builder();
        for (policy, a, b) in
            [("control", "none", "none"), ("one", "up", "none"), ("two", "up", "up"), ("zero", "none", "up")]
        {
            builder.add(policy, "a", a, 1.0).add(policy, "b", b, 1.0);
        }
        let policies = builder.build().unwrap();
        let mut rng = Seed::new(29).rng();
        let (mut x, mut policy, mut outcomes) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..ROWS {
            let own: [f64; FEATURES] = std::array::from_fn(|_| rng.random_range(-1.5..1.5));
            let arm: u32 = rng.random_range(0..3);
            let mut noise = || rng.random_range(-1.0..1.0);
            let effect = size * [0.0, own[0], own[0] + own[1]][arm as usize] + 0.5 * f64::from(arm);
            outcomes[0].push(own[2] + effect + noise());
            outcomes[1].push(own[3] + noise());
            x.extend(own.map(|value| value as f32));
            policy.push(arm);
        }
        Self { x, policy, outcomes, policies }
    }

    fn train(&self, model: Value) -> Result<Trained> {
        let x = DenseRows::new(&self.x, FEATURES).unwrap();
        let column = |name, outcome: usize| OutcomeColumn {
            name,
            values: self.outcomes[outcome].as_slice(),
            prediction: None,
        };
        let outcomes = vec![column("y", 0), column("nothing", 1)];
        let data = TrainingData {
            control: Some(0),
            ..TrainingData::new(&x, &self.policies, &self.policy, outcomes)
        };
        let model = model.as_object().cloned().unwrap();
        let mut settings = Settings { model, ..Settings::default() };
        settings.training.insert("folds".into(), 3.into());
        (learner("stack").unwrap().train)(&data.check().unwrap(), &settings, Run::new(Seed::new(3), &Silent))
    }

    fn effects(&self, model: &dyn EffectModel) -> Vec<Vec<f32>> {
        let scorer = model.prepare(&self.policies, &[1, 2, 3], 0).unwrap();
        scorer.score(&DenseRows::new(&self.x, FEATURES).unwrap(), false).unwrap().mean
    }
}

fn summary(trained: &Trained) -> StackSummary {
    StackSummary::deserialize(&trained.effects.manifest().unwrap()["summary"]).unwrap()
}

/// Short members.
fn members(of: &[&str]) -> Value {
    let network = json!({ "epochs": 6, "batch_rows": 128 });
    let own = |name: &str| match name {
        "poul" => {
            let mut training = network.clone();
            training["folds"] = json!(2);
            json!({ "model": { "members": 2, "hidden": [16], "outcome_hidden": [16] }, "training": training })
        }
        "s-learner" => json!({ "model": { "members": 1, "hidden": [16] }, "training": network }),
        "ridge" => json!({ "training": { "folds": 2 } }),
        _ => json!({}),
    };
    let learners: serde_json::Map<String, Value> =
        of.iter().map(|name| ((*name).to_owned(), own(name))).collect();
    json!({ "of": of, "learners": learners })
}

fn spread(effects: &[f32], target: usize) -> f64 {
    let own: Vec<f64> = effects.iter().skip(target).step_by(3).map(|effect| f64::from(*effect)).collect();
    let mean = own.iter().sum::<f64>() / own.len() as f64;
    (own.iter().map(|effect| (effect - mean).powi(2)).sum::<f64>() / own.len() as f64).sqrt()
}

#[test]
fn weight_goes_to_who_is_right_for_each_outcome() {
    let world = World::new(1.0);
    let trained = world.train(members(&["ridge", "constant", "random"])).unwrap();
    let summary = summary(&trained);
    assert_eq!((summary.folds, summary.loss_name()), (3, "R-loss"));
    for outcome in &summary.outcomes {
        let weight = |name: &str| outcome.members.iter().find(|own| own.name == name).unwrap().weight;
        assert!((outcome.members.iter().map(|own| own.weight).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(outcome.members.iter().all(|own| outcome.loss < own.loss + 1e-3), "{outcome:?}");
        assert!(weight("random") < 0.05, "{outcome:?}");
        if outcome.outcome == "y" {
            assert!(weight("ridge") > 0.9, "{outcome:?}");
        }
    }
    assert!(
        trained.notes.iter().any(|note| note.starts_with("`y` is stacked of ridge")),
        "{:?}",
        trained.notes
    );
    let effects = world.effects(&*trained.effects);
    // Rows of the first outcome differ by √(2 · 3/4) under `two`; those of the second by next to nothing.
    assert!((spread(&effects[0], 1) - 1.22).abs() < 0.15, "{}", spread(&effects[0], 1));
    assert!(spread(&effects[1], 1) < 0.25, "{}", spread(&effects[1], 1));
}

#[test]
fn a_world_without_differences_between_rows_is_told_as_one() {
    let world = World::new(0.0);
    let trained = world.train(members(&["poul", "s-learner", "constant"])).unwrap();
    let effects = world.effects(&*trained.effects);
    for target in [0, 1] {
        assert!(
            spread(&effects[0], target) < 0.1,
            "{} in {:?}",
            spread(&effects[0], target),
            summary(&trained)
        );
    }
}

#[test]
fn neither_order_nor_threads_matter_and_nothing_is_lost_in_storage() {
    let world = World::new(1.0);
    let on = |threads: usize, of: &[&str]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| world.train(members(of)).unwrap())
    };
    let one = on(1, &["poul", "s-learner", "constant"]);
    let two = on(2, &["constant", "s-learner", "poul"]);
    assert_eq!(one.effects.manifest().unwrap(), two.effects.manifest().unwrap());
    assert!(one.effects.tensors() == two.effects.tensors());
    let effects = world.effects(&*one.effects);
    assert_eq!(effects, world.effects(&*two.effects));
    let mut tensors = Tensors::default();
    for tensor in one.effects.tensors() {
        assert!(tensor.name.starts_with("stack."), "{}", tensor.name);
        tensors.insert(tensor.name, tensor.shape, tensor.values.to_vec());
    }
    let text = one.effects.manifest().unwrap().to_string();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let stored = (learner("stack").unwrap().load)(&manifest, &mut tensors).unwrap();
    assert_eq!(tensors.names().count(), 0);
    assert_eq!(effects, world.effects(&*stored));
    let mut damaged = manifest;
    damaged["summary"]["outcomes"][0]["members"][0]["weight"] = json!(0.123);
    assert!((learner("stack").unwrap().load)(&damaged, &mut Tensors::default()).is_err());
}

#[test]
fn effects_lie_around_the_averages_of_poul_where_it_is_a_member() {
    let world = World::new(1.0);
    let mean = |effects: &[f32], target: usize| {
        effects.iter().skip(target).step_by(3).map(|effect| f64::from(*effect)).sum::<f64>() / ROWS as f64
    };
    let trained = world.train(members(&["poul", "ridge", "constant"])).unwrap();
    let averages = trained.effects.averages(&world.policies, &[1, 2, 3], 0, false).unwrap().unwrap();
    let effects = world.effects(&*trained.effects);
    for (outcome, averages) in averages.iter().enumerate() {
        for (target, own) in averages.estimates.iter().enumerate().take(2) {
            let found = mean(&effects[outcome], target);
            assert!((found - own.effect).abs() < 1e-4, "{outcome} {target}: {found} {own:?}");
        }
    }
    let without = world.train(members(&["ridge", "constant"])).unwrap();
    assert!(without.effects.averages(&world.policies, &[1], 0, false).unwrap().is_none());
    let mut own = members(&["poul", "ridge", "constant"]);
    own["level"] = json!("members");
    let own = world.train(own).unwrap();
    assert!(own.effects.averages(&world.policies, &[1], 0, false).unwrap().is_none());
}
