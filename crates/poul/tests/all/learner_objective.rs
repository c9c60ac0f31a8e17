//! The objective of the learner: errors of the nuisances enter effects in second order where h is centred, and in first
//! order where it is not; the ways of centring agree; 0/1 outcomes by likelihood; scores of a row by that row alone.

use std::sync::Arc;

use poul::data::Design;
use poul::effect::{GivenPropensity, OutcomeColumn, Settings, Tensors, Trained, TrainingData};
use poul::learn::poul::Poul;
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use serde_json::{Value, json};

const N_FEATURES: usize = 3;
const N_CONTEXTS: usize = 3;
const N_ACTIONS: usize = 3;

/// Policies that choose one of three actions in each of three contexts.
fn policies(choices: &[[usize; N_CONTEXTS]]) -> PolicySet {
    let mut builder = PolicySet::builder();
    for (policy, actions) in choices.iter().enumerate() {
        for (context, action) in actions.iter().enumerate() {
            builder.add(&format!("p{policy:04}"), &format!("c{context}"), &format!("a{action}"), 1.0);
        }
    }
    builder.build().unwrap()
}

/// The two coordinates of h of a policy.
fn h(actions: [usize; N_CONTEXTS]) -> [f64; 2] {
    let atom = |context: usize, action: usize| ((context * N_ACTIONS + action) as f64 * 1.7).sin();
    let bend = |context: usize, action: usize| ((context + 2) as f64 * action as f64 * 0.9).cos();
    let sum =
        |f: &dyn Fn(usize, usize) -> f64| actions.iter().enumerate().map(|(c, a)| f(c, *a)).sum::<f64>();
    [sum(&atom), sum(&bend)]
}

fn g(x: &[f32]) -> [f64; 2] {
    [1.0 + 0.7 * f64::from(x[0]), 0.8 * f64::from(x[1]) - 0.4]
}

fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

/// A table to learn from, by column.
struct World {
    choices: Vec<[usize; N_CONTEXTS]>,
    policies: PolicySet,
    x: Vec<f32>,
    policy: Vec<u32>,
    outcomes: Vec<Vec<f64>>,
    prediction: Option<Vec<f64>>,
    weight: Option<Vec<f64>>,
    stratum: Option<Vec<u32>>,
    propensity: Vec<Vec<f32>>,
    design: Design,
}

impl World {
    /// Randomized, y = m(x) + g(x)ᵀh(t) + noise, m known.
    fn random(n_rows: usize, n_policies: usize, noise: f64) -> Self {
        let mut rng = Seed::new(11).rng();
        let choices: Vec<[usize; N_CONTEXTS]> = (0..n_policies)
            .map(|policy| match n_policies {
                0..=27 => [policy % 3, policy / 3 % 3, policy / 9 % 3],
                _ => std::array::from_fn(|_| rng.random_range(0..N_ACTIONS)),
            })
            .collect();
        let x: Vec<f32> = (0..n_rows * N_FEATURES).map(|_| rng.random_range(-1.0..1.0)).collect();
        let policy: Vec<u32> = (0..n_rows).map(|_| rng.random_range(0..n_policies as u32)).collect();
        let mean = |k: usize| choices.iter().map(|c| h(*c)[k]).sum::<f64>() / n_policies as f64;
        let mean = [mean(0), mean(1)];
        let rows = x.chunks(N_FEATURES).zip(&policy);
        let outcome = rows.map(|(x, policy)| {
            let own = h(choices[*policy as usize]);
            let noise = noise * (rng.random_range(-1.0..1.0_f64) + rng.random_range(-1.0..1.0_f64));
            f64::from(x[2]) + dot(g(x), [own[0] - mean[0], own[1] - mean[1]]) + noise
        });
        let outcomes = vec![outcome.collect()];
        Self {
            policies: policies(&choices),
            choices,
            prediction: Some(x.chunks(N_FEATURES).map(|x| f64::from(x[2])).collect()),
            x,
            policy,
            outcomes,
            weight: None,
            stratum: None,
            propensity: Vec::new(),
            design: Design::Randomized,
        }
    }

    fn train(&self, model: Value, training: Value) -> Result<Trained> {
        let x = DenseRows::new(&self.x, N_FEATURES).unwrap();
        let names = ["y0", "y1"];
        let outcomes = self.outcomes.iter().zip(names).map(|(values, name)| OutcomeColumn {
            name,
            values,
            prediction: self.prediction.as_deref(),
        });
        let labels: Vec<Arc<str>> = (0..=self.stratum.iter().flatten().copied().max().unwrap_or(0))
            .map(|code| code.to_string().into())
            .collect();
        let data = TrainingData {
            weight: self.weight.as_deref(),
            stratum: self.stratum.as_deref(),
            stratum_labels: &labels,
            propensity: self
                .propensity
                .iter()
                .enumerate()
                .map(|(policy, values)| GivenPropensity { policy, column: "p", values })
                .collect(),
            design: self.design,
            ..TrainingData::new(&x, &self.policies, &self.policy, outcomes.collect())
        };
        let table = |value: Value| value.as_object().unwrap().clone();
        let settings = Settings { preset: None, model: table(model), training: table(training) };
        (learner("poul").unwrap().train)(
            &data.check().unwrap(),
            &settings,
            Run::new(Seed::new(3407), &Silent),
        )
    }

    /// Effects of every policy against the first, rows × policies, of one outcome.
    fn effects(&self, trained: &Trained, outcome: usize) -> Vec<f64> {
        let all: Vec<usize> = (0..self.policies.len()).collect();
        let scorer = trained.effects.prepare(&self.policies, &all, 0).unwrap();
        let scores = scorer.score(&DenseRows::new(&self.x, N_FEATURES).unwrap(), false).unwrap();
        scores.mean[outcome].iter().map(|effect| f64::from(*effect)).collect()
    }

    /// True effects of every policy against the first, rows × policies.
    fn truth(&self) -> Vec<f64> {
        let base = h(self.choices[0]);
        let row = |x: &[f32]| -> Vec<f64> {
            let own = |c: &[usize; N_CONTEXTS]| [h(*c)[0] - base[0], h(*c)[1] - base[1]];
            self.choices.iter().map(|c| dot(g(x), own(c))).collect()
        };
        self.x.chunks(N_FEATURES).flat_map(row).collect()
    }
}

/// Root mean square of a difference.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt()
}

/// The slope of a on b through 0.
fn slope(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / b.iter().map(|b| b * b).sum::<f64>()
}

/// Every policy at every point of a grid, weighted by π(t|x): E[h(T) − e_h(x) | x] = 0 in the sample itself, and no
/// noise, so that what is left of a nuisance's error is its own doing.
fn population(delta: f64) -> World {
    let choices = vec![[0, 0, 0], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 1, 1]];
    let n_policies = choices.len();
    let (mut x, mut policy, mut outcome, mut prediction, mut weight) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut propensity = vec![Vec::new(); n_policies];
    for point in 0..8 * 8 {
        let (a, b) = (point % 8, point / 8);
        let own = [a as f32 / 3.5 - 1.0, b as f32 / 3.5 - 1.0, 0.3];
        let (u, v) = (f64::from(own[0]), f64::from(own[1]));
        let softmax = |tilt: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let mass: Vec<f64> = (0..n_policies).map(|t| tilt(t).exp()).collect();
            let total: f64 = mass.iter().sum();
            mass.iter().map(|mass| mass / total).collect()
        };
        let logit = |t: usize| 0.5 * u * (t as f64 - 2.0) + 0.2 * v * (t as f64).cos();
        let pi = softmax(&logit);
        let wrong = softmax(&|t| logit(t) + delta * 0.8 * (t as f64 * 2.1).sin() * (1.0 + 0.5 * v));
        let e = |k: usize| (0..n_policies).map(|t| pi[t] * h(choices[t])[k]).sum::<f64>();
        let e = [e(0), e(1)];
        for t in 0..n_policies {
            let own_h = h(choices[t]);
            x.extend(own);
            policy.push(t as u32);
            outcome.push(u + dot(g(&own), [own_h[0] - e[0], own_h[1] - e[1]]));
            prediction.push(u + delta * (0.7 + 0.6 * (2.0 * u).sin()));
            weight.push(pi[t]);
            propensity.iter_mut().zip(&wrong).for_each(|(column, p)| column.push(*p as f32));
        }
    }
    World {
        policies: policies(&choices),
        choices,
        x,
        policy,
        outcomes: vec![outcome],
        prediction: Some(prediction),
        weight: Some(weight),
        stratum: None,
        propensity,
        design: Design::Observational,
    }
}

/// Plain gradient descent to the minimum: no penalties, no held-out rows, no dropout, every row in every step.
fn minimum(delta: f64, centring: &str) -> Vec<f64> {
    let world = population(delta);
    let model = json!({
        "members": 1, "hidden": [16], "effect_dim": 3, "embedding_dim": 4, "embedding": "lookup",
        "rho_hidden": 0, "dropout": 0.0, "centring": centring,
    });
    let training = json!({
        "folds": 1, "epochs": 100, "patience": 0, "validation_share": 0.0, "batch_rows": 320, "gate_penalty": 0.0,
        "decay_g": 0.0, "decay_rho": 0.0, "decay_phi": 0.0, "decay_delta": 0.0, "learning_rate": 0.005,
        "average": 0.99, "calibrate": false,
    });
    world.effects(&world.train(model, training).unwrap(), 0)
}

#[test]
fn errors_of_the_nuisances_count_in_second_order_where_h_is_centred() {
    let mut changes = Vec::new();
    for centring in ["exact", "mixture", "none"] {
        let right = minimum(0.0, centring);
        let change = |delta: f64| distance(&minimum(delta, centring), &right);
        let (small, large) = (change(0.2), change(0.4));
        changes.push((centring, small, (large / small).log2()));
    }
    // Twice the error of m̂ and π̂ is four times the error of the effects, or twice.
    for (centring, _, order) in &changes[..2] {
        assert!((1.8..2.2).contains(order), "{centring}: order {order:.2} in {changes:?}");
    }
    let (_, uncentred, order) = changes[2];
    assert!((0.8..1.2).contains(&order), "not centred: order {order:.2} in {changes:?}");
    assert!(changes[0].1 < 0.2 * uncentred, "{changes:?}");
    // What a mixture's h is to a linear ρ, the mean of h is too.
    assert!((changes[0].1 / changes[1].1 - 1.0).abs() < 0.1, "{changes:?}");
}

fn quick() -> Value {
    json!({ "epochs": 12, "folds": 1, "gate_penalty": 0.0 })
}

#[test]
fn the_ways_of_centring_agree() {
    let mut world = World::random(6000, 20, 0.5);
    // Were the scatter of four draws charged to g, effects would shrink by a fifth.
    let of = |world: &World, centring: &str| {
        let model = json!({ "members": 2, "centring": centring, "centring_draws": 4, "hidden": [32] });
        world.effects(&world.train(model, quick()).unwrap(), 0)
    };
    let (truth, power) = (world.truth(), distance(&world.truth(), &vec![0.0; 6000 * 20]));
    let exact = of(&world, "exact");
    let error = distance(&exact, &truth) / power;
    assert!(error < 0.1, "{error}");
    for centring in ["sampled", "running-mean", "mixture"] {
        let other = of(&world, centring);
        let (scale, error) = (slope(&other, &exact), distance(&other, &truth) / power);
        assert!((0.93..1.07).contains(&scale) && error < 0.2, "{centring}: slope {scale}, error {error}");
    }
    // The same shares in strata that mean nothing: each row draws for itself.
    world.stratum = Some((0..6000).map(|row| row % 2).collect());
    world.design = Design::Stratified;
    let strata = of(&world, "sampled");
    assert!((0.9..1.1).contains(&slope(&strata, &exact)), "{}", slope(&strata, &exact));
    let error = world.train(json!({ "centring": "running-mean" }), quick()).err().unwrap();
    assert!(error.to_string().contains("randomized design") && error.hint_text().is_some(), "{error}");
}

fn stored(trained: &Trained) -> (Value, Tensors) {
    let tensors: Tensors = trained.effects.tensors().into_iter().collect();
    (trained.effects.manifest().unwrap(), tensors)
}

#[test]
fn the_running_mean_is_the_mean_over_the_rows_of_all_batches() {
    let world = World::random(500, 9, 0.5);
    let model = json!({ "members": 1, "centring": "running-mean", "hidden": [8], "effect_dim": 4 });
    // h stands still, so the mean over all past batches is the mean over the rows.
    let training = json!({
        "folds": 1, "epochs": 3, "patience": 0, "validation_share": 0.0, "batch_rows": 250, "average": 0.0,
        "learning_rate": 1e-12,
    });
    let trained = world.train(model, training).unwrap();
    let (manifest, mut tensors) = stored(&trained);
    let mean = tensors.clone().take("poul.0.h.running.mean", &[1, 4]).unwrap();
    let count = tensors.clone().take("poul.0.h.running.count", &[1, 1]).unwrap()[0];
    assert_eq!(count, 3.0 * 20.0 * 250.0);
    let poul = Poul::from_parts(&manifest, &mut tensors).unwrap();
    let h = poul.embeddings(&world.policies, &(0..9).collect::<Vec<_>>(), 0).unwrap().remove(0);
    for (k, mean) in mean.iter().enumerate() {
        let exact = world.policy.iter().map(|policy| h[*policy as usize * 4 + k]).sum::<f32>() / 500.0;
        assert!((mean - exact).abs() < 1e-4, "{mean} instead of {exact}");
    }
}

#[test]
fn many_policies_are_centred_by_a_sample_and_told() {
    let mut world = World::random(6000, 1500, 0.5);
    let model = || json!({ "members": 1, "hidden": [32] });
    let trained = world.train(model(), quick()).unwrap();
    assert!(trained.notes.iter().any(|note| note.contains("1500 policies") && note.contains("sampled")));
    let truth = world.truth();
    let power = distance(&truth, &vec![0.0; truth.len()]);
    let error = distance(&world.effects(&trained, 0), &truth) / power;
    assert!(error < 0.3, "{error}");
    // Nobody randomised, as far as the learner knows: a regression of the atoms on x.
    world.design = Design::Observational;
    let trained = world.train(model(), quick()).unwrap();
    assert!(trained.notes.iter().any(|note| note.contains("mixture")));
    assert!(trained.history.iter().any(|phase| phase.name.contains("expected mixture")));
    let error = distance(&world.effects(&trained, 0), &truth) / power;
    assert!(error < 0.35, "{error}");
}

#[test]
fn noisy_rows_teach_less() {
    // Noise that grows with m, as that of spending does.
    let mut world = World::random(8000, 27, 0.0);
    let mut rng = Seed::new(5).rng();
    for (y, x) in world.outcomes[0].iter_mut().zip(world.x.chunks(N_FEATURES)) {
        let noise: f64 = (0..4).map(|_| rng.random_range(-1.0..1.0_f64)).sum();
        *y += 2.0 * (2.0 * f64::from(x[2])).exp() * noise;
    }
    let truth = world.truth();
    let error = |noise_weights: bool| {
        let training = json!({ "epochs": 30, "noise_weights": noise_weights });
        let trained = world.train(json!({ "members": 2, "hidden": [32] }), training).unwrap();
        distance(&world.effects(&trained, 0), &truth)
    };
    let (weighted, plain) = (error(true), error(false));
    eprintln!("by noise {weighted:.3}, all alike {plain:.3}");
    assert!(weighted < 0.92 * plain, "{weighted} against {plain}");
}

#[test]
fn outcomes_may_have_treatment_nets_of_their_own() {
    let mut world = World::random(4000, 20, 0.5);
    // Another treatment surface: the effect of the first outcome, for the policy with the actions turned round.
    let turned: Vec<f64> = world
        .x
        .chunks(N_FEATURES)
        .zip(&world.policy)
        .map(|(x, policy)| {
            let own = world.choices[*policy as usize];
            f64::from(x[2]) + 2.0 * h(own.map(|action| 2 - action))[1] * f64::from(x[0])
        })
        .collect();
    world.outcomes.push(turned);
    let of = |shared: bool| {
        let model = json!({ "members": 2, "shared_treatment_net": shared, "hidden": [32] });
        world.train(model, quick()).unwrap()
    };
    let (own, shared) = (of(false), of(true));
    let truth = world.truth();
    for trained in [&own, &shared] {
        let error = distance(&world.effects(trained, 0), &truth) / distance(&truth, &vec![0.0; truth.len()]);
        assert!(error < 0.35, "{error}");
    }
    let (manifest, mut tensors) = stored(&own);
    assert!(tensors.names().any(|name| name == "poul.1.h.1.action"));
    let poul = Poul::from_parts(&manifest, &mut tensors).unwrap();
    assert_eq!(tensors.names().count(), 0);
    let h = |outcome: usize| poul.embeddings(&world.policies, &[3, 4], outcome).unwrap();
    assert_ne!(h(0), h(1));
    let (_, tensors) = stored(&shared);
    assert!(tensors.names().any(|name| name == "poul.1.h.action"));
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

#[test]
fn binary_outcomes_by_likelihood_are_differences_of_probabilities() {
    let mut world = World::random(12_000, 20, 0.0);
    let logit = |x: &[f32], own: [f64; 2]| -3.0 + 2.5 * f64::from(x[2]) + 0.5 * dot(g(x), own);
    let mut rng = Seed::new(5).rng();
    let rows = world.x.chunks(N_FEATURES).zip(&world.policy);
    let drawn = rows.map(|(x, policy)| {
        let p = sigmoid(logit(x, h(world.choices[*policy as usize])));
        f64::from(u8::from(rng.random::<f64>() < p))
    });
    let drawn: Vec<f64> = drawn.collect();
    world.outcomes = vec![drawn];
    world.prediction = None;
    let base = h(world.choices[0]);
    let truth: Vec<f64> = world
        .x
        .chunks(N_FEATURES)
        .flat_map(|x| world.choices.iter().map(move |c| (x, h(*c))))
        .map(|(x, own)| sigmoid(logit(x, own)) - sigmoid(logit(x, base)))
        .collect();
    let of = |loss: &str| {
        let training = json!({ "epochs": 60, "patience": 5 });
        let trained = world.train(json!({ "members": 2, "loss": loss, "hidden": [32] }), training).unwrap();
        (world.effects(&trained, 0), trained)
    };
    let ((logistic, trained), (squared, _)) = (of("logistic"), of("squared"));
    let error = |effects: &[f64]| distance(effects, &truth) / distance(&truth, &vec![0.0; truth.len()]);
    let errors = (error(&logistic), error(&squared));
    assert!(errors.0 < 0.35 && errors.0 < 0.9 * errors.1, "logistic and squared: {errors:?}");
    assert!(logistic.iter().all(|effect| (-1.0..=1.0).contains(effect)));
    // A policy against itself has no effect at all.
    assert!(logistic.iter().step_by(world.policies.len()).all(|effect| *effect == 0.0));
    let (manifest, mut tensors) = stored(&trained);
    let again = (learner("poul").unwrap().load)(&manifest, &mut tensors).unwrap();
    assert_eq!(tensors.names().count(), 0);
    let again = Trained { effects: again, history: Vec::new(), notes: Vec::new() };
    assert_eq!(world.effects(&again, 0), logistic);

    world.outcomes[0][17] = 0.5;
    let error = world.train(json!({ "loss": "logistic" }), quick()).err().unwrap();
    assert!(
        error.to_string().contains("row 17 (counted from 0)") && error.to_string().contains("`y0`"),
        "{error}"
    );
}

#[test]
fn a_rows_scores_depend_on_that_row_and_policy_alone() {
    let mut world = World::random(700, 20, 0.5);
    for loss in ["squared", "logistic"] {
        if loss == "logistic" {
            world.prediction = None;
            world.outcomes[0].iter_mut().for_each(|y| *y = f64::from(u8::from(*y > 0.0)));
        }
        let model = json!({ "members": 3, "loss": loss });
        let trained = world.train(model, json!({ "epochs": 2, "folds": 1 })).unwrap();
        let score = |rows: std::ops::Range<usize>, targets: &[usize], spread: bool| {
            let scorer = trained.effects.prepare(&world.policies, targets, 7).unwrap();
            let x = &world.x[rows.start * N_FEATURES..rows.end * N_FEATURES];
            scorer.score(&DenseRows::new(x, N_FEATURES).unwrap(), spread).unwrap()
        };
        let all: Vec<usize> = (0..20).collect();
        let whole = score(0..700, &all, true);
        assert_eq!(whole.mean, score(0..700, &all, false).mean);
        assert!(whole.spread[0].iter().all(|spread| spread.is_finite() && *spread >= 0.0));
        assert!(whole.spread[0].iter().any(|spread| *spread > 0.0));
        for (first, after) in [(0, 1), (699, 700), (3, 73), (100, 181), (7, 307), (5, 5)] {
            let part = score(first..after, &all, true);
            assert_eq!(part.mean[0], whole.mean[0][first * 20..after * 20], "rows {first} to {after}");
            assert_eq!(part.spread[0], whole.spread[0][first * 20..after * 20]);
        }
        for targets in [&[4][..], &[4, 9], &[9, 4, 0, 1, 2]] {
            let part = score(0..700, targets, false);
            for (place, target) in targets.iter().enumerate() {
                let n_targets = targets.len();
                let own = (0..700).map(|row| part.mean[0][row * n_targets + place]);
                assert!(own.eq((0..700).map(|row| whole.mean[0][row * 20 + target])), "{targets:?}");
            }
        }
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| score(0..700, &all, true))
        };
        assert_eq!(on(1), on(3));
    }
}
