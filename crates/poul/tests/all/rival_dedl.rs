//! DeDL on experiments whose truth has its form: combinations never run, debiased averages, and what it refuses.

use poul::data::Design;
use poul::effect::{EffectModel, OutcomeColumn, Settings, Trained, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;

const ROWS: usize = 6000;
const FEATURES: usize = 3;
const FACTORS: usize = 3;

/// Three factors, of whose eight combinations six are run: E[Y|x, t] = θ_4 / (1 + exp(−(θ_0 + Σ_j θ_j·t_j))).
struct World {
    x: Vec<f32>,
    policy: Vec<u32>,
    outcome: Vec<f64>,
    policies: PolicySet,
    is_treated_by_feature: bool,
}

impl World {
    fn new(is_treated_by_feature: bool) -> Self {
        let contexts: Vec<String> = (0..FACTORS).map(|factor| format!("f{factor}")).collect();
        let values = |policy: usize| (0..FACTORS).map(move |factor| ["off", "on"][policy >> factor & 1]);
        let rows: Vec<Vec<&str>> = (0..8).map(|policy| values(policy).collect()).collect();
        let policies =
            PolicySet::factorial(&contexts, rows.iter().map(|row| [row[0], row[1], row[2]]), None).unwrap();
        let number = |policy: usize| {
            let name: Vec<String> =
                values(policy).enumerate().map(|(factor, value)| format!("f{factor}={value}")).collect();
            policies.require(&name.join(", ")).unwrap() as u32
        };
        let numbers: Vec<u32> = (0..8).map(number).collect();
        let mut rng = Seed::new(23).rng();
        let (mut x, mut policy, mut outcome) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROWS {
            let own: [f64; FEATURES] = std::array::from_fn(|_| rng.random_range(-1.0..1.0));
            let mut combination: usize = rng.random_range(0..6);
            let tilt = 1.0 / (1.0 + (-2.0 * own[2]).exp());
            if is_treated_by_feature && rng.random::<f64>() > tilt {
                combination &= 2;
            }
            let noise: f64 = rng.random_range(-0.6..0.6);
            x.extend(own.map(|value| value as f32));
            policy.push(numbers[combination]);
            outcome.push(level(&own, combination) + noise);
        }
        Self { x, policy, outcome, policies, is_treated_by_feature }
    }

    fn index(&self, combination: usize) -> usize {
        let values = (0..FACTORS).map(|factor| ["off", "on"][combination >> factor & 1]);
        let name: Vec<String> =
            values.enumerate().map(|(factor, value)| format!("f{factor}={value}")).collect();
        self.policies.require(&name.join(", ")).unwrap()
    }

    fn train(&self, settings: &Settings, change: impl FnOnce(&mut TrainingData<'_>)) -> Result<Trained> {
        let x = DenseRows::new(&self.x, FEATURES).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &self.outcome, prediction: None }];
        let design = if self.is_treated_by_feature { Design::Observational } else { Design::Randomized };
        let mut data = TrainingData {
            design,
            control: Some(self.index(0)),
            ..TrainingData::new(&x, &self.policies, &self.policy, outcomes)
        };
        change(&mut data);
        (learner("dedl").unwrap().train)(&data.check().unwrap(), settings, Run::new(Seed::new(3), &Silent))
    }

    /// Of each combination but control: the effects of rows, and the true ones.
    fn effects(&self, model: &dyn EffectModel) -> Vec<(Vec<f64>, Vec<f64>)> {
        let targets: Vec<usize> = (1..8).map(|combination| self.index(combination)).collect();
        let scorer = model.prepare(&self.policies, &targets, self.index(0)).unwrap();
        let scores = scorer.score(&DenseRows::new(&self.x, FEATURES).unwrap(), false).unwrap();
        let truth = |combination: usize| {
            self.x
                .chunks(FEATURES)
                .map(|x| {
                    let x: Vec<f64> = x.iter().map(|value| f64::from(*value)).collect();
                    level(&x, combination) - level(&x, 0)
                })
                .collect()
        };
        let found = |target: usize| {
            scores.mean[0].iter().skip(target).step_by(7).map(|effect| f64::from(*effect)).collect()
        };
        (1..8).map(|combination| (found(combination - 1), truth(combination))).collect()
    }
}

fn level(x: &[f64], combination: usize) -> f64 {
    let slopes = [1.2 + 0.8 * x[0], -0.9 + 0.6 * x[1], 1.5 * x[2]];
    let on = (0..FACTORS).filter(|factor| combination >> factor & 1 == 1);
    let index = -0.4 + 0.5 * x[1] + on.map(|factor| slopes[factor]).sum::<f64>();
    (4.0 + 1.5 * x[0]) / (1.0 + (-index).exp())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn settings(more: &[(&str, serde_json::Value)]) -> Settings {
    let mut settings = (learner("dedl").unwrap().settle)(&Settings::default()).unwrap();
    let own = [("hidden", serde_json::json!([32, 16])), ("members", 1.into()), ("dropout", 0.0.into())];
    for (name, value) in own.iter().chain(more) {
        settings.model.insert((*name).into(), value.clone());
    }
    for (name, value) in [
        ("batch_rows", 128.into()),
        ("epochs", 12.into()),
        ("average", 0.98.into()),
        ("learning_rate", serde_json::json!(0.005)),
        ("weight_decay", serde_json::json!(0.01)),
    ] {
        settings.training.insert(name.into(), value);
    }
    settings
}

#[test]
fn effects_of_all_combinations_are_found_though_two_were_never_run() {
    let world = World::new(false);
    let trained = world.train(&settings(&[]), |_| ()).unwrap();
    for (combination, (found, truth)) in (1..8).zip(world.effects(&*trained.effects)) {
        let square = |value: &dyn Fn(usize) -> f64| (0..ROWS).map(|row| value(row).powi(2)).sum::<f64>();
        let error = (square(&|row| found[row] - truth[row]) / square(&|row| truth[row])).sqrt();
        assert!(error < 0.3, "combination {combination}: {error}");
        assert!(
            (mean(&found) - mean(&truth)).abs() < 0.1,
            "{combination}: {} {}",
            mean(&found),
            mean(&truth)
        );
    }
}

#[test]
fn averages_of_a_network_that_was_hardly_trained_are_debiased() {
    // One pass leaves θ far from the truth; the influence function brings averages back, with and without randomisation.
    for (is_treated_by_feature, tolerance) in [(false, 0.1), (true, 0.25)] {
        let world = World::new(is_treated_by_feature);
        for link in ["sigmoid", "linear"] {
            let short = |debias: bool| {
                let mut short = settings(&[("link", link.into()), ("debias", debias.into())]);
                short.training.insert("epochs".into(), 1.into());
                short.training.insert("learning_rate".into(), serde_json::json!(0.0005));
                world.effects(&*world.train(&short, |_| ()).unwrap().effects)
            };
            let error = |effects: &[(Vec<f64>, Vec<f64>)]| {
                // The first five of them were run.
                let errors = effects[..5].iter().map(|(found, truth)| (mean(found) - mean(truth)).abs());
                errors.fold(0.0, f64::max)
            };
            let (plain, debiased) = (error(&short(false)), error(&short(true)));
            assert!(plain > 2.0 * tolerance, "{link}: the network is too good for a test: {plain}");
            assert!(debiased < tolerance, "{link}: {debiased}, {plain} before");
        }
    }
}

#[test]
fn weights_are_repeated_rows_in_averages() {
    let world = World::new(false);
    let mut short = settings(&[("link", "linear".into())]);
    short.training.insert("epochs".into(), 1.into());
    // Rows of weight 0 have no say: their outcomes may be anything.
    let weight: Vec<f64> = (0..ROWS).map(|row| f64::from(u8::from(row % 3 > 0))).collect();
    let spoiled: Vec<f64> =
        world.outcome.iter().zip(&weight).map(|(y, weight)| if *weight > 0.0 { *y } else { 5.0 }).collect();
    let averages = |outcome: &[f64]| -> Vec<f64> {
        let trained = world.train(&short, |data| {
            data.weight = Some(weight.clone().leak());
            data.outcomes[0].values = outcome.to_vec().leak();
        });
        world.effects(&*trained.unwrap().effects).iter().map(|(found, _)| mean(found)).collect()
    };
    let (plain, other) = (averages(&world.outcome), averages(&spoiled));
    assert!(plain.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-4), "{plain:?} {other:?}");
}

#[test]
fn wrong_settings_are_named() {
    let settle = |name: &str, value: serde_json::Value| {
        let mut settings = Settings::default();
        settings.model.insert(name.into(), value);
        (learner("dedl").unwrap().settle)(&settings).unwrap_err().to_string()
    };
    assert_eq!(settle("ridge", 0.0.into()), "`model.ridge` is out of range");
    assert!(settle("link", "probit".into()).contains("`link` is \"probit\": must be "));
    assert!(settle("factors", serde_json::json!([])).contains("unknown setting `factors`"));
}
