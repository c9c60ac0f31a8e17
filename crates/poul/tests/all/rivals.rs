//! Rivals find effects where there are some, take designs into account, and say what they did.

use poul::data::Design;
use poul::effect::{OutcomeColumn, Settings, Trained, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Run, Seed, Silent};
use rand::RngExt;

const ROWS: usize = 1500;
const FEATURES: usize = 4;

/// Three policies that are run and one that is not, over two contexts; τ₁ = 2·x₀, τ₂ = 2·x₀ + 2·x₁. Where `confounded`,
/// treatment is likelier for large x₂, which raises the outcome too.
struct World {
    x: Vec<f32>,
    policy: Vec<u32>,
    outcome: Vec<f64>,
    given: [Vec<f32>; 3],
    policies: PolicySet,
    confounded: bool,
}

impl World {
    fn new(confounded: bool) -> Self {
        let mut builder = PolicySet::builder();
        for (policy, a, b) in
            [("control", "none", "none"), ("one", "up", "none"), ("two", "up", "up"), ("zero", "none", "up")]
        {
            builder.add(policy, "a", a, 1.0).add(policy, "b", b, 1.0);
        }
        let policies = builder.build().unwrap();
        let mut rng = Seed::new(17).rng();
        let mut world = Self {
            x: Vec::new(),
            policy: Vec::new(),
            outcome: Vec::new(),
            given: Default::default(),
            policies,
            confounded,
        };
        for _ in 0..ROWS {
            let x: [f64; FEATURES] = std::array::from_fn(|_| rng.random_range(-1.5..1.5));
            let treated = if confounded { 1.0 / (1.0 + (-1.5 * x[2]).exp()) } else { 2.0 / 3.0 };
            let propensity = [1.0 - treated, treated / 2.0, treated / 2.0];
            let draw: f64 = rng.random();
            let policy =
                if draw < propensity[0] { 0 } else { 1 + usize::from(draw > propensity[0] + propensity[1]) };
            let noise: f64 = rng.random_range(-0.5..0.5);
            world.x.extend(x.map(|value| value as f32));
            world.policy.push(policy as u32);
            world.outcome.push(effect(&x, policy) + 3.0 * x[2] + noise);
            world.given.iter_mut().zip(propensity).for_each(|(given, p)| given.push(p as f32));
        }
        world
    }

    fn train(&self, name: &str, settings: &Settings, change: impl FnOnce(&mut TrainingData<'_>)) -> Trained {
        let x = DenseRows::new(&self.x, FEATURES).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &self.outcome, prediction: None }];
        let design = if self.confounded { Design::Observational } else { Design::Randomized };
        let mut data = TrainingData {
            design,
            control: Some(0),
            ..TrainingData::new(&x, &self.policies, &self.policy, outcomes)
        };
        change(&mut data);
        (learner(name).unwrap().train)(&data.check().unwrap(), settings, Run::new(Seed::new(3), &Silent))
            .unwrap()
    }

    /// Root mean squared error of the effects of `one` and `two`, over the root mean square of the effects.
    fn error(&self, trained: &Trained) -> f64 {
        let scorer = trained.effects.prepare(&self.policies, &[1, 2], 0).unwrap();
        let scores = scorer.score(&DenseRows::new(&self.x, FEATURES).unwrap(), false).unwrap();
        let (mut error, mut size) = (0.0, 0.0);
        for (x, effects) in self.x.chunks(FEATURES).zip(scores.mean[0].chunks(2)) {
            let x: Vec<f64> = x.iter().map(|value| f64::from(*value)).collect();
            for (policy, found) in [1, 2].into_iter().zip(effects) {
                error += (f64::from(*found) - effect(&x, policy)).powi(2);
                size += effect(&x, policy).powi(2);
            }
        }
        (error / size).sqrt()
    }
}

fn effect(x: &[f64], policy: usize) -> f64 {
    [0.0, 2.0 * x[0], 2.0 * x[0] + 2.0 * x[1]][policy]
}

/// Enough of a network for these effects.
fn settings(name: &str, more: &[(&str, serde_json::Value)]) -> Settings {
    let mut settings = (learner(name).unwrap().settle)(&Settings::default()).unwrap();
    let narrow = serde_json::json!([32, 16]);
    for table in ["hidden", "trunk", "heads", "encoder"] {
        if settings.model.contains_key(table) {
            settings.model.insert(table.into(), narrow.clone());
        }
    }
    settings.model.insert("members".into(), 1.into());
    settings.training.insert("batch_rows".into(), 128.into());
    settings.training.insert("epochs".into(), 25.into());
    settings.training.insert("average".into(), 0.98.into());
    settings.training.insert("learning_rate".into(), 0.003.into());
    for (name, value) in more {
        settings.model.insert((*name).into(), value.clone());
    }
    settings
}

#[test]
fn effects_are_found_in_randomized_data() {
    let world = World::new(false);
    for name in ["x-learner", "r-learner", "dr-learner", "efin", "sin-cat", "graphite", "drnet", "dedl"] {
        // These effects are linear in features, for which a sigmoid is the wrong form.
        let link = match name {
            "dedl" => vec![("link", serde_json::json!("linear"))],
            _ => Vec::new(),
        };
        let error = world.error(&world.train(name, &settings(name, &link), |_| ()));
        assert!(error < 0.6, "{name}: {error}");
    }
}

#[test]
fn effects_are_found_where_nobody_randomised() {
    let world = World::new(true);
    for name in ["x-learner", "r-learner", "dr-learner"] {
        let error = world.error(&world.train(name, &settings(name, &[]), |_| ()));
        assert!(error < 0.75, "{name}: {error}");
    }
}

#[test]
fn one_network_that_reads_mixtures_scores_what_was_never_run() {
    let world = World::new(false);
    for name in ["x-learner", "r-learner", "dr-learner"] {
        let by_mixture = world.train(name, &settings(name, &[("tier", "spec".into())]), |_| ());
        let error = world.error(&by_mixture);
        assert!(error < 0.7, "{name}: {error}");
        let scorer = by_mixture.effects.prepare(&world.policies, &[3], 0).unwrap();
        assert!(scorer.notes().is_empty(), "{name}: {:?}", scorer.notes());
    }
    let mut short = settings("poul-id", &[]);
    short.training.insert("epochs".into(), 1.into());
    let by_name = world.train("poul-id", &short, |_| ());
    let scorer = by_name.effects.prepare(&world.policies, &[3], 0).unwrap();
    let note = "policy `zero` was never run: `control` stands in for it, at distance 1.000";
    assert_eq!(scorer.notes(), [note]);
}

#[test]
fn low_propensities_are_lifted_and_counted() {
    let world = World::new(true);
    let mut short = settings("dr-learner", &[("clip", 0.2.into())]);
    short.training.insert("epochs".into(), 1.into());
    let columns = |data: &mut TrainingData<'_>| {
        let values = [1e-3_f32, 0.0, 0.0];
        // Half of the rows of `one` had next to no chance of it, says the user.
        let low: Vec<Vec<f32>> = (0..3)
            .map(|arm| {
                let of_row = |row: usize| match (world.policy[row], row % 2) {
                    (1, 0) => [1.0 - values[0], values[0], 0.0][arm],
                    _ => world.given[arm][row],
                };
                (0..ROWS).map(of_row).collect()
            })
            .collect();
        let low: &'static [Vec<f32>] = low.leak();
        data.propensity = (0..3)
            .map(|policy| poul::effect::GivenPropensity { policy, column: "p", values: &low[policy] })
            .collect();
    };
    let trained = world.train("dr-learner", &short, columns);
    let n_low = (0..ROWS).filter(|row| world.policy[*row] == 1 && row % 2 == 0).count();
    let start = format!("{n_low} rows (");
    assert!(trained.notes.iter().any(|note| note.starts_with(&start)), "{:?}", trained.notes);
}

#[test]
fn random_effects_rank_nobody() {
    let world = World::new(false);
    let trained = world.train("random", &Settings::default(), |_| ());
    let scorer = trained.effects.prepare(&world.policies, &[2], 0).unwrap();
    let scores = scorer.score(&DenseRows::new(&world.x, FEATURES).unwrap(), false).unwrap();
    let truth: Vec<f64> =
        world.x.chunks(FEATURES).map(|x| effect(&[f64::from(x[0]), f64::from(x[1])], 2)).collect();
    let n = ROWS as f64;
    let mean = |values: &dyn Fn(usize) -> f64| (0..ROWS).map(values).sum::<f64>() / n;
    let score = |row: usize| f64::from(scores.mean[0][row]);
    let (centre, level) = (mean(&|row| score(row)), mean(&|row| truth[row]));
    let product = mean(&|row| (score(row) - centre) * (truth[row] - level));
    let spreads = mean(&|row| (score(row) - centre).powi(2)) * mean(&|row| (truth[row] - level).powi(2));
    let correlation = product / spreads.sqrt();
    // Four standard errors of a correlation of 0.
    assert!(correlation.abs() < 4.0 / n.sqrt(), "{correlation}");
}
