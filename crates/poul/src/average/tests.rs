//! Averages of made-up worlds whose truth is known.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::posterior::LANDMARKS;
use super::{Posterior, ResidualRows};
use crate::effect::{AverageEstimate, Tensors};
use crate::nuisance::Propensity;
use crate::policy::PolicySet;
use crate::{Rng, Seed};

const ACTIONS: [&str; 3] = ["none", "coupon", "upgrade"];

/// Random policies over four contexts; the first is control.
fn policies(n: usize, rng: &mut Rng, name: impl Fn(usize) -> String) -> PolicySet {
    let mut builder = PolicySet::builder();
    for policy in 0..n {
        for context in ["a", "b", "c", "d"] {
            let action = if policy == 0 { 0 } else { rng.random_range(0..ACTIONS.len()) };
            builder.add(&name(policy), context, ACTIONS[action], 1.0);
        }
    }
    builder.build().unwrap()
}

/// The true average of every policy: what atoms do, and a bend.
struct Truth {
    atoms: Vec<f64>,
    bend: f64,
}

impl Truth {
    fn draw(policies: &PolicySet, rng: &mut Rng) -> Self {
        let of_action: Vec<f64> = ACTIONS.iter().map(|_| rng.sample(StandardNormal)).collect();
        let of_atom = |action: u32, rng: &mut Rng| {
            of_action[action as usize] + 0.7 * rng.sample::<f64, _>(StandardNormal)
        };
        Self { atoms: policies.atoms().iter().map(|atom| of_atom(atom.action, rng)).collect(), bend: 0.5 }
    }

    fn of(&self, policies: &PolicySet, policy: usize) -> f64 {
        let mixture = policies.mixture(policy);
        let sum: f64 = mixture
            .atoms
            .iter()
            .zip(mixture.mass)
            .map(|(atom, mass)| mass * self.atoms[*atom as usize])
            .sum();
        sum + self.bend * sum.tanh()
    }
}

/// Rows of the first `n_run` policies by name order, and the residuals they have.
fn rows(truths: &[f64], run: &[usize], n_rows: usize, noise: f64, rng: &mut Rng) -> (Vec<u32>, Vec<f32>) {
    let policy: Vec<u32> = (0..n_rows)
        .map(|_| {
            // A third of the rows has control, the others policies of uneven shares.
            let u: f64 = rng.random();
            let place = if u < 0.33 { 0 } else { (run.len() as f64 * rng.random::<f64>().powi(2)) as usize };
            run[place] as u32
        })
        .collect();
    let residual = policy
        .iter()
        .map(|own| (truths[*own as usize] + noise * rng.sample::<f64, _>(StandardNormal)) as f32);
    let residual = residual.collect();
    (policy, residual)
}

fn fit(
    policies: &PolicySet,
    policy: &[u32],
    residual: &[f32],
    cluster: Option<&[u32]>,
    control: Option<usize>,
) -> Posterior {
    fit_by(policies, policy, residual, cluster, (control, LANDMARKS))
}

/// By so many landmarks where there are many policies.
fn fit_by(
    policies: &PolicySet,
    policy: &[u32],
    residual: &[f32],
    cluster: Option<&[u32]>,
    (control, most_landmarks): (Option<usize>, usize),
) -> Posterior {
    let propensity = Propensity::shares(policy, None, policies.len());
    let rows = ResidualRows {
        residual,
        n_outcomes: 1,
        policy,
        n_policies: policies.len(),
        weight: None,
        cluster,
        propensity: &propensity,
    };
    Posterior::fit_by(&rows, 0, policies, control, most_landmarks).unwrap()
}

fn averages(posterior: &Posterior, policies: &PolicySet, of: &[usize]) -> Vec<AverageEstimate> {
    posterior.averages(policies, of, 0, false).unwrap().estimates
}

fn world(seed: u64, n_policies: usize) -> (PolicySet, Vec<f64>) {
    let mut rng = Seed::new(seed).child("world").rng();
    let policies = policies(n_policies, &mut rng, |policy| format!("p{policy:03}"));
    let truth = Truth::draw(&policies, &mut rng);
    let truths = (0..n_policies).map(|policy| truth.of(&policies, policy)).collect();
    (policies, truths)
}

#[test]
fn policies_with_many_rows_follow_them_and_rare_ones_their_like() {
    let (policies, truths) = world(1, 30);
    let mut rng = Seed::new(1).child("rows").rng();
    let run: Vec<usize> = (0..30).collect();
    let (policy, residual) = rows(&truths, &run, 60_000, 1.0, &mut rng);
    let posterior = fit(&policies, &policy, &residual, None, Some(0));
    let of: Vec<usize> = (1..30).collect();
    for (target, own) in of.iter().zip(averages(&posterior, &policies, &of)) {
        let truth = truths[*target] - truths[0];
        assert!((own.effect - truth).abs() < 4.0 * own.se, "{target}: {own:?} for {truth}");
        // No policy is known better than half of what its rows alone would tell, nor worse than they do.
        let n = policy.iter().filter(|own| **own as usize == *target).count() as f64;
        let n_control = policy.iter().filter(|own| **own == 0).count() as f64;
        let alone = (1.0 / n + 1.0 / n_control).sqrt();
        assert!(own.se < 1.05 * alone && own.se > 0.3 * alone, "{target}: {} against {alone}", own.se);
    }
}

#[test]
fn intervals_of_policies_never_run_hold_the_truth_as_often_as_they_say() {
    let (mut covered, mut total, mut z) = (0.0, 0.0, 0.0);
    for seed in 0..40 {
        let (policies, truths) = world(100 + seed, 40);
        let mut rng = Seed::new(seed).child("rows").rng();
        let run: Vec<usize> = (0..28).collect();
        let (policy, residual) = rows(&truths, &run, 3_000, 1.0, &mut rng);
        let posterior = fit(&policies, &policy, &residual, None, Some(0));
        let of: Vec<usize> = (28..40).collect();
        for (target, own) in of.iter().zip(averages(&posterior, &policies, &of)) {
            let (truth, [low, high]) = (truths[*target] - truths[0], own.interval(0.9));
            covered += f64::from(u8::from(low <= truth && truth <= high));
            // A policy that is control by another name has no error.
            z += if own.se > 0.0 { (own.effect - truth) / own.se } else { 0.0 };
            total += 1.0;
        }
    }
    let (covered, bias): (f64, f64) = (covered / total, z / total);
    assert!((0.83..0.97).contains(&covered), "{covered} of {total} intervals of 90 % hold the truth");
    assert!(bias.abs() < 0.3, "off by {bias} standard errors");
}

#[test]
fn what_is_far_from_all_that_was_run_is_known_less() {
    let (policies, truths) = world(3, 30);
    let mut rng = Seed::new(3).child("rows").rng();
    let run: Vec<usize> = (0..20).collect();
    let (policy, residual) = rows(&truths, &run, 20_000, 0.5, &mut rng);
    let posterior = fit(&policies, &policy, &residual, None, Some(0));
    // A new action, of which nothing is known, in one context and in all of them.
    let mut builder = PolicySet::builder();
    for (name, changed) in [("near", 1), ("far", 4)] {
        for (number, context) in ["a", "b", "c", "d"].into_iter().enumerate() {
            builder.add(name, context, if number < changed { "voucher" } else { "none" }, 1.0);
        }
    }
    let all = policies.union(&builder.build().unwrap()).unwrap();
    let index = |name: &str| all.require(name).unwrap();
    let of = [index("p005"), index("near"), index("far")];
    let found = posterior.averages(&all, &of, index("p000"), false).unwrap().estimates;
    assert!(found[0].se < found[1].se && found[1].se < found[2].se, "{found:?}");
    assert!(found.iter().all(|own| own.se.is_finite() && own.effect.is_finite()));
}

#[test]
fn names_and_their_order_do_not_matter_and_a_file_gives_the_same_bits() {
    let draw = |name: fn(usize) -> String| {
        let mut rng = Seed::new(4).child("world").rng();
        let policies = policies(25, &mut rng, name);
        // By the order in which policies were drawn.
        let places: Vec<usize> = (0..25).map(|policy| policies.require(&name(policy)).unwrap()).collect();
        let mut rng = Seed::new(4).child("rows").rng();
        let drawn: Vec<usize> =
            (0..4_000).map(|row| if row % 3 == 0 { 0 } else { rng.random_range(0..20) }).collect();
        let residual: Vec<f32> =
            drawn.iter().map(|own| (*own as f32).sin() + rng.sample::<f32, _>(StandardNormal)).collect();
        let policy: Vec<u32> = drawn.iter().map(|own| places[*own] as u32).collect();
        let posterior = fit(&policies, &policy, &residual, None, Some(places[0]));
        let found = posterior.averages(&policies, &places[1..], places[0], true).unwrap();
        (posterior, policies, places, found)
    };
    let (posterior, policies, places, one) = draw(|policy| format!("p{policy:03}"));
    let (_, _, _, other) = draw(|policy| format!("q{:03}", 999 - policy));
    for (a, b) in one.estimates.iter().zip(&other.estimates) {
        assert!((a.effect - b.effect).abs() < 1e-6 && (a.se - b.se).abs() < 1e-6, "{a:?} and {b:?}");
    }
    let mut tensors = Tensors::default();
    for tensor in posterior.tensors("a") {
        tensors.insert(tensor.name, tensor.shape, tensor.values.into_owned());
    }
    let manifest = serde_json::to_string(posterior.manifest()).unwrap();
    let loaded = Posterior::from_parts(serde_json::from_str(&manifest).unwrap(), &mut tensors, "a").unwrap();
    assert_eq!(loaded.averages(&policies, &places[1..], places[0], true).unwrap(), one);
    // Covariances are those of the standard errors.
    let (n, covariance) = (one.estimates.len(), one.covariance.clone().unwrap());
    for (k, own) in one.estimates.iter().enumerate() {
        assert!((covariance[k * n + k].sqrt() / own.se - 1.0).abs() < 1e-9);
    }
    assert!((0..n * n).all(|k| (covariance[k] - covariance[k % n * n + k / n]).abs() < 1e-9));
}

#[test]
fn clusters_widen_what_they_share_and_few_of_them_are_never_trusted() {
    let (policies, truths) = world(5, 12);
    let mut rng = Seed::new(5).child("rows").rng();
    let run: Vec<usize> = (0..12).collect();
    let (policy, residual) = rows(&truths, &run, 4_000, 1.0, &mut rng);
    let of: Vec<usize> = (1..12).collect();
    let width = |posterior: &Posterior, policies: &PolicySet| -> f64 {
        averages(posterior, policies, &of).iter().map(|own| own.interval(0.9)[1] - own.interval(0.9)[0]).sum()
    };
    let alone = width(&fit(&policies, &policy, &residual, None, Some(0)), &policies);
    // Every row four times in a cluster of its own: four times the rows, as much is known.
    let four = |values: &[u32]| values.iter().flat_map(|value| [*value; 4]).collect::<Vec<u32>>();
    let (policy4, cluster) = (four(&policy), four(&(0..4_000).collect::<Vec<u32>>()));
    let residual4: Vec<f32> = residual.iter().flat_map(|value| [*value; 4]).collect();
    let clustered = width(&fit(&policies, &policy4, &residual4, Some(&cluster), Some(0)), &policies);
    assert!((clustered / alone - 1.0).abs() < 0.12, "{clustered} against {alone}");
    let few: Vec<u32> = (0..4_000).map(|row| row % 5).collect();
    let few = fit(&policies, &policy, &residual, Some(&few), Some(0));
    assert!(averages(&few, &policies, &of).iter().all(|own| own.freedom < 60.0));
}

#[test]
fn thousands_of_policies_with_a_row_each_are_learned_by_their_parts() {
    let mut rng = Seed::new(6).child("world").rng();
    let mut builder = PolicySet::builder();
    let contexts: Vec<String> = (0..7).map(|k| format!("c{k}")).collect();
    for policy in 0..1500 {
        for context in &contexts {
            let action = if policy == 0 { 0 } else { rng.random_range(0..ACTIONS.len()) };
            builder.add(&format!("p{policy:04}"), context, ACTIONS[action], 1.0);
        }
    }
    let policies = builder.build().unwrap();
    let of_atom: Vec<f64> =
        policies.atoms().iter().map(|_| 2.0 * rng.sample::<f64, _>(StandardNormal)).collect();
    let truth = |policy: usize| -> f64 {
        let mixture = policies.mixture(policy);
        mixture.atoms.iter().zip(mixture.mass).map(|(atom, mass)| mass * of_atom[*atom as usize]).sum()
    };
    let policy: Vec<u32> = (0..1500).collect();
    let residual: Vec<f32> =
        (0..1500).map(|own| (truth(own) + 0.5 * rng.sample::<f64, _>(StandardNormal)) as f32).collect();
    // A quarter of the landmarks: time grows with their square.
    let posterior = fit_by(&policies, &policy, &residual, None, (Some(0), 64));
    let of: Vec<usize> = (1..200).collect();
    let (mut covered, mut squares, mut spread) = (0, 0.0, 0.0);
    for (target, own) in of.iter().zip(averages(&posterior, &policies, &of)) {
        let (truth, [low, high]) = (truth(*target) - truth(0), own.interval(0.9));
        covered += u32::from(low <= truth && truth <= high);
        squares += (own.effect - truth).powi(2);
        spread += truth.powi(2);
    }
    assert!(squares < 0.05 * spread, "{squares} of {spread}");
    assert!((150..=199).contains(&covered), "{covered} of 199");
}
