//! The outcome model: what it may learn from, in which units, by which loss, and its stored form.

use poul::net::{DenseRows, Schedule};
use poul::nuisance::{
    ExtraRows, Folds, OutcomeFit, OutcomeKind, OutcomeLoss, OutcomeManifest, OutcomeModels, OutcomeParams,
    OutcomeProblem, cross_fit, fit_outcome,
};
use poul::{Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::taken_from;

const P: usize = 6;

fn normal(n: usize, name: &str) -> Vec<f32> {
    let mut rng = Seed::new(7).child(name).rng();
    (0..n).map(|_| rng.sample(StandardNormal)).collect()
}

/// Features, and an outcome of which x explains 80 %.
fn world(n_rows: usize) -> (Vec<f32>, Vec<f32>) {
    let x = normal(n_rows * P, "x");
    let noise = normal(n_rows, "noise");
    let y = x.chunks(P).zip(noise).map(|(x, noise)| x[0] + x[1].abs() * 1.2 + x[2] * x[3] + 0.8 * noise);
    let y = y.collect();
    (x, y)
}

fn params() -> OutcomeParams {
    let schedule = Schedule { batch_rows: 128, epochs: 20, patience: 3, ..Schedule::default() };
    OutcomeParams {
        hidden: vec![32, 16],
        learning_rate: 3e-3,
        members: 1,
        schedule,
        ..OutcomeParams::default()
    }
}

/// Settings that memorise.
fn greedy() -> OutcomeParams {
    let schedule = Schedule { batch_rows: 64, epochs: 120, patience: 0, min_steps: 1 };
    OutcomeParams {
        hidden: vec![64],
        dropout: 0.0,
        weight_decay: 0.0,
        learning_rate: 1e-2,
        average: 0.9,
        schedule,
        ..params()
    }
}

fn fit(problem: &OutcomeProblem<'_>, n_folds: usize, params: OutcomeParams) -> OutcomeFit {
    let folds = Folds::deal(problem.x.n_rows(), problem.cluster, n_folds, Seed::new(1));
    fit_outcome(problem, &folds, &params.check().unwrap(), Run::new(Seed::new(2), &Silent)).unwrap()
}

const SQUARED: [OutcomeLoss; 1] = [OutcomeLoss::Squared];

#[test]
fn a_row_is_never_predicted_from_itself() {
    let (x, y) = (normal(400 * P, "x"), normal(400, "labels"));
    let x = DenseRows::new(&x, P).unwrap();
    let problem = OutcomeProblem::new(&x, &y, &SQUARED);
    let inside = fit(&problem, 1, greedy());
    let outside = fit(&problem, 3, greedy());
    assert!(inside.r2[0] > 0.3, "one fold memorises: {}", inside.r2[0]);
    assert!(outside.r2[0] < 0.0, "three folds cannot: {}", outside.r2[0]);
    // With early stopping nothing is learned from noise, and nothing lost.
    let careful = fit(&problem, 3, params());
    assert!((-0.05..=0.01).contains(&careful.r2[0]), "{}", careful.r2[0]);
}

#[test]
fn rows_that_come_again_as_baseline_data_are_barred_by_their_cluster() {
    let (x, y) = (normal(300 * P, "x"), normal(300, "labels"));
    let x = DenseRows::new(&x, P).unwrap();
    let cluster: Vec<u32> = (0..300).collect();
    let r2 = |cluster: Option<&[u32]>| {
        let extra = ExtraRows { x: &x, outcomes: &y, weight: None, cluster };
        let problem = OutcomeProblem { cluster, extra: Some(extra), ..OutcomeProblem::new(&x, &y, &SQUARED) };
        fit(&problem, 3, greedy()).r2[0]
    };
    assert!(r2(None) > 0.3, "unknown copies leak: {}", r2(None));
    assert!(r2(Some(&cluster)) < 0.0, "{}", r2(Some(&cluster)));
}

#[test]
fn baseline_data_helps() {
    let (x, y) = world(3300);
    let (few, many) = (DenseRows::new(&x[..300 * P], P).unwrap(), DenseRows::new(&x[300 * P..], P).unwrap());
    let alone = OutcomeProblem::new(&few, &y[..300], &SQUARED);
    let extra = ExtraRows { x: &many, outcomes: &y[300..], weight: None, cluster: None };
    let helped = OutcomeProblem { extra: Some(extra), ..alone };
    let (alone, helped) = (fit(&alone, 3, params()).r2[0], fit(&helped, 3, params()).r2[0]);
    assert!(helped > alone + 0.05 && helped > 0.65, "{alone} {helped}");
    // Rows of weight 0 are as good as none.
    let nothing = vec![0.0; 3000];
    let extra = ExtraRows { weight: Some(&nothing), ..extra };
    let problem = OutcomeProblem { extra: Some(extra), ..OutcomeProblem::new(&few, &y[..300], &SQUARED) };
    let ignored = fit(&problem, 3, params()).r2[0];
    assert!(ignored < helped - 0.05, "{ignored}");
}

#[test]
fn units_do_not_matter() {
    let (x, y) = world(1500);
    let x = DenseRows::new(&x, P).unwrap();
    let plain = fit(&OutcomeProblem::new(&x, &y, &SQUARED), 2, params());
    assert!(plain.r2[0] > 0.7, "{}", plain.r2[0]);
    let cents: Vec<f32> = y.iter().map(|y| 1000.0 * y + 30_000.0).collect();
    let scaled = fit(&OutcomeProblem::new(&x, &cents, &SQUARED), 2, params());
    for (plain, scaled) in plain.predicted.iter().zip(&scaled.predicted) {
        assert!((plain - (scaled - 30_000.0) / 1000.0).abs() < 0.02, "{plain} {scaled}");
    }
    // A constant is predicted as it is.
    let constant = vec![5.0; 1500];
    let fit = fit(&OutcomeProblem::new(&x, &constant, &SQUARED), 2, params());
    let far = fit.predicted.iter().map(|m| (m - 5.0).abs()).fold(0.0, f32::max);
    assert!(far < 0.2 && fit.r2[0] == 0.0, "{far}");
}

#[test]
fn weights_are_duplicated_rows() {
    let (x, y) = world(200);
    let weight: Vec<f32> = (0..200).map(|row| (row % 3) as f32).collect();
    let copies: Vec<usize> = (0..200).flat_map(|row| vec![row; row % 3]).collect();
    // One batch of all rows and no dropout: the order of rows is then a matter of rounding.
    let schedule = Schedule { batch_rows: 1000, epochs: 30, patience: 0, min_steps: 1 };
    let params = OutcomeParams { dropout: 0.0, schedule, ..params() };
    let cluster: Vec<u32> = (0..200).collect();
    let folds = Folds::deal(200, Some(&cluster), 2, Seed::new(1));
    let table = DenseRows::new(&x, P).unwrap();
    let run = |x: &DenseRows<'_>, y: &[f32], weight, cluster: &[u32], folds: &Folds| {
        cross_fit(x, y, weight, Some(cluster), folds, &params, Run::new(Seed::new(3), &Silent)).unwrap().0
    };
    let weighted = run(&table, &y, Some(&weight), &cluster, &folds);
    let copied_x: Vec<f32> = copies.iter().flat_map(|row| x[row * P..][..P].to_vec()).collect();
    let copied_y: Vec<f32> = copies.iter().map(|row| y[*row]).collect();
    // Cluster 199 has no copy where its weight is 0, so the largest is kept by hand.
    let copied_cluster: Vec<u32> = copies.iter().map(|row| *row as u32).collect();
    assert_eq!(copied_cluster.last(), Some(&199));
    let of_row = copies.iter().map(|row| folds.of_row[*row]).collect();
    let copied_folds = Folds { of_row, n_folds: 2 };
    let table = DenseRows::new(&copied_x, P).unwrap();
    let copied = run(&table, &copied_y, None, &copied_cluster, &copied_folds);
    for (copied, row) in copied.iter().zip(&copies) {
        assert!((copied - weighted[*row]).abs() < 2e-3, "{copied} {}", weighted[*row]);
    }
    let unweighted = run(&DenseRows::new(&x, P).unwrap(), &y, None, &cluster, &folds);
    let change = copies.iter().map(|row| (unweighted[*row] - weighted[*row]).abs()).fold(0.0, f32::max);
    assert!(change > 2e-2, "weights matter: {change}");
}

#[test]
fn a_logistic_outcome_is_a_probability_beside_a_squared_one() {
    let (x, y) = world(2000);
    let truth: Vec<f32> = x.chunks(P).map(|x| 1.0 / (1.0 + (-1.5 * x[0] - x[1]).exp())).collect();
    let mut rng = Seed::new(9).rng();
    let outcomes: Vec<f32> = y
        .iter()
        .zip(&truth)
        .flat_map(|(y, truth)| [if rng.random::<f32>() < *truth { 1.0 } else { 0.0 }, *y])
        .collect();
    let x = DenseRows::new(&x, P).unwrap();
    let losses = [OutcomeLoss::Logistic, OutcomeLoss::Squared];
    let fitted = fit(&OutcomeProblem::new(&x, &outcomes, &losses), 3, params());
    let error: f32 =
        fitted.predicted.chunks(2).zip(&truth).map(|(m, truth)| (m[0] - truth).abs()).sum::<f32>() / 2000.0;
    assert!(fitted.predicted.chunks(2).all(|m| m[0] > 0.0 && m[0] < 1.0));
    assert!(error < 0.06 && fitted.r2[1] > 0.7, "{error} {:?}", fitted.r2);

    let folds = Folds::deal(2000, None, 3, Seed::new(1));
    let wrong = OutcomeProblem::new(&x, &outcomes, &[OutcomeLoss::Logistic; 2]);
    let error =
        fit_outcome(&wrong, &folds, &params().check().unwrap(), Run::new(Seed::new(2), &Silent)).unwrap_err();
    assert!(error.to_string().contains("outcome 2 is not between 0 and 1"), "{error}");
    assert!(error.hint_text().unwrap().contains("squared"));
}

#[test]
fn given_predictions_are_passed_through_and_their_outcome_is_not_fitted() {
    let (x, y) = world(600);
    let outcomes: Vec<f32> = y.iter().flat_map(|y| [*y, 2.0 * y]).collect();
    let own: Vec<f32> = y.iter().map(|y| y + 1.0).collect();
    let table = DenseRows::new(&x, P).unwrap();
    let losses = [OutcomeLoss::Squared; 2];
    let given: [(usize, &[f32]); 1] = [(0, &own)];
    let problem = OutcomeProblem { given: &given, ..OutcomeProblem::new(&table, &outcomes, &losses) };
    let fitted = fit(&problem, 2, params());
    assert!(fitted.predicted.chunks(2).zip(&own).all(|(m, own)| m[0] == *own));
    assert!(fitted.r2[1] > 0.4 && fitted.models.tensors().iter().all(|tensor| !tensor.name.contains("y1")));
    let new = DenseRows::new(&x[..4 * P], P).unwrap();
    let m = fitted.models.predict(&new, &[(0, &own[..4])]).unwrap();
    assert_eq!([m[0], m[2], m[4], m[6]], own[..4]);
    assert!(fitted.models.predict(&new, &[]).unwrap_err().hint_text().is_some());

    let both: [(usize, &[f32]); 2] = [(0, &own), (1, &y)];
    let fitted = fit(&OutcomeProblem { given: &both, ..problem }, 2, params());
    assert!(fitted.models.folds().is_empty() && fitted.models.tensors().is_empty());
    assert_eq!(fitted.predicted[..4], [own[0], y[0], own[1], y[1]]);
}

#[test]
fn a_dragonnet_fits_outcomes_beside_policies() {
    let (x, y) = world(1500);
    // Assignment follows the features; extra rows have no policy.
    let policy: Vec<u32> =
        x.chunks(P).take(1200).map(|x| u32::from(x[0] > 0.0) + u32::from(x[4] > 1.0)).collect();
    let (inside, outside) =
        (DenseRows::new(&x[..1200 * P], P).unwrap(), DenseRows::new(&x[1200 * P..], P).unwrap());
    let extra = ExtraRows { x: &outside, outcomes: &y[1200..], weight: None, cluster: None };
    let problem = OutcomeProblem {
        policy: Some(&policy),
        extra: Some(extra),
        ..OutcomeProblem::new(&inside, &y[..1200], &SQUARED)
    };
    let dragonnet = OutcomeParams { kind: OutcomeKind::Dragonnet, ..params() };
    let fitted = fit(&problem, 2, dragonnet.clone());
    assert!(fitted.r2[0] > 0.6, "{}", fitted.r2[0]);
    let names: Vec<String> = fitted.models.tensors().into_iter().map(|tensor| tensor.name).collect();
    for name in ["m.0.0.trunk.0.weight", "m.0.0.policy.weight", "m.1.0.y0.1.bias"] {
        assert!(names.iter().any(|other| other == name), "{name} in {names:?}");
    }
    // The policies are part of what is learned.
    let without = fit(&problem, 2, OutcomeParams { policy_weight: 0.0, ..dragonnet.clone() });
    assert_ne!(fitted.predicted, without.predicted);
    let folds = Folds::deal(1200, None, 2, Seed::new(1));
    let blind = OutcomeProblem { policy: None, ..problem };
    let error = fit_outcome(&blind, &folds, &dragonnet.check().unwrap(), Run::new(Seed::new(2), &Silent))
        .unwrap_err();
    assert!(error.hint_text().unwrap().contains("mlp"));
}

#[test]
fn threads_do_not_matter() {
    let (x, y) = world(700);
    let x = DenseRows::new(&x, P).unwrap();
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            fit(&OutcomeProblem::new(&x, &y, &SQUARED), 3, OutcomeParams { members: 2, ..params() })
        })
    };
    let (one, two) = (run(1), run(2));
    assert!(one.predicted.iter().zip(&two.predicted).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn stored_models_predict_the_same_bits() {
    let (x, y) = world(500);
    let x = DenseRows::new(&x, P).unwrap();
    let fitted = fit(&OutcomeProblem::new(&x, &y, &SQUARED), 2, OutcomeParams { members: 2, ..params() });
    let text = serde_json::to_string(&fitted.models.manifest()).unwrap();
    let manifest: OutcomeManifest = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest, fitted.models.manifest());
    let mut stored = fitted.models.tensors();
    assert_eq!(stored.len(), 2 * 2 * 6);
    let again = OutcomeModels::from_parts(&manifest, &mut taken_from(&stored)).unwrap();
    let before = fitted.models.predict(&x, &[]).unwrap();
    assert_eq!(before, again.predict(&x, &[]).unwrap());
    // The mean over folds is close to the truth, too.
    let error: f32 = before.iter().zip(&y).map(|(m, y)| (m - y).powi(2)).sum::<f32>() / 500.0;
    assert!(error < 1.5, "{error}");

    let narrow = DenseRows::new(&[0.0; 4], 2).unwrap();
    assert!(again.predict(&narrow, &[]).is_err());
    let mut bent = stored.clone();
    bent.iter_mut().find(|own| own.name == "m.1.0.y0.0.weight").unwrap().shape = vec![1, 1];
    let error = OutcomeModels::from_parts(&manifest, &mut taken_from(&bent)).unwrap_err();
    assert!(error.to_string().contains("`m.1.0.y0.0.weight`: has shape [1, 1]"), "{error}");
    stored.retain(|own| own.name != "m.0.1.y0.2.bias");
    let error = OutcomeModels::from_parts(&manifest, &mut taken_from(&stored)).unwrap_err();
    assert!(error.to_string().contains("`m.0.1.y0.2.bias`: is missing"), "{error}");
    for change in [("\"fitted\":[0]", "\"fitted\":[3]"), ("\"hidden\":[32,16]", "\"hidden\":[0,16]")] {
        let changed = text.replace(change.0, change.1);
        assert_ne!(changed, text);
        let manifest: OutcomeManifest = serde_json::from_str(&changed).unwrap();
        assert!(OutcomeModels::from_parts(&manifest, &mut taken_from(&stored)).is_err());
    }
}

#[test]
fn what_does_not_fit_together_is_an_error() {
    let (x, y) = world(50);
    let x = DenseRows::new(&x, P).unwrap();
    let folds = Folds::deal(50, None, 3, Seed::new(1));
    let told = |problem: OutcomeProblem<'_>| {
        fit_outcome(&problem, &folds, &params().check().unwrap(), Run::new(Seed::new(2), &Silent))
            .unwrap_err()
            .to_string()
    };
    let problem = OutcomeProblem::new(&x, &y, &SQUARED);
    assert!(told(OutcomeProblem { losses: &[], ..problem }).contains("no outcome"));
    assert!(told(OutcomeProblem { outcomes: &y[1..], ..problem }).contains("49 outcomes where 50"));
    let mut gap = y.clone();
    gap[9] = f32::NAN;
    assert!(
        told(OutcomeProblem { outcomes: &gap, ..problem })
            .contains("row 9 (counted from 0): outcome 1 is not finite")
    );
    let mut weight = vec![1.0; 50];
    weight[3] = -1.0;
    assert!(
        told(OutcomeProblem { weight: Some(&weight), ..problem })
            .contains("row 3 (counted from 0): the weight is -1")
    );
    assert!(told(OutcomeProblem { weight: Some(&[0.0; 50]), ..problem }).contains("weight 0"));
    let given: [(usize, &[f32]); 1] = [(0, &gap)];
    assert!(
        told(OutcomeProblem { given: &given, ..problem }).contains("row 9 (counted from 0): the prediction")
    );
    let narrow = DenseRows::new(&[0.0; 2], 2).unwrap();
    let extra = ExtraRows { x: &narrow, outcomes: &[1.0], weight: None, cluster: None };
    assert!(
        told(OutcomeProblem { extra: Some(extra), ..problem }).contains("2 encoded features instead of 6")
    );
}
