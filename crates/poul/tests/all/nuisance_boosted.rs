//! Boosted trees as nuisances: what they learn, in which units and by which loss, how they are stored, and when they are chosen.

use poul::net::{DenseRows, Schedule};
use poul::nuisance::{
    Assignment, AssignmentDesign, BoostedParams, ExtraRows, Folds, NuisanceModel, OutcomeFit, OutcomeKind,
    OutcomeLoss, OutcomeManifest, OutcomeModels, OutcomeParams, OutcomeProblem, PropensityFit,
    PropensityKind, PropensityManifest, PropensityModels, PropensityParams, fit_outcome, fit_propensity,
};
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::taken_from;

const P: usize = 5;
const SQUARED: [OutcomeLoss; 1] = [OutcomeLoss::Squared];
const LOGISTIC: [OutcomeLoss; 1] = [OutcomeLoss::Logistic];

fn normal(n: usize, name: &str) -> Vec<f32> {
    let mut rng = Seed::new(17).child(name).rng();
    (0..n).map(|_| rng.sample(StandardNormal)).collect()
}

/// Steps that a line cannot follow, and as much noise again.
fn steps(x: &[f32]) -> Vec<f32> {
    let noise = normal(x.len() / P, "noise");
    let step = |x: &[f32]| f32::from(u8::from(x[0] > 0.5)) * if x[1] > 0.0 { 3.0 } else { -3.0 };
    x.chunks(P).zip(noise).map(|(x, noise)| step(x) + 0.5 * noise).collect()
}

fn line(x: &[f32]) -> Vec<f32> {
    let noise = normal(x.len() / P, "noise");
    x.chunks(P).zip(noise).map(|(x, noise)| x[0] - 0.7 * x[1] + 0.5 * x[2] + 0.5 * noise).collect()
}

fn params(kind: OutcomeKind) -> OutcomeParams {
    let schedule = Schedule { batch_rows: 128, epochs: 8, patience: 2, ..Schedule::default() };
    let boosted = BoostedParams { learning_rate: 0.1, patience: 15, ..BoostedParams::default() };
    OutcomeParams { kind, hidden: vec![16], members: 1, schedule, boosted, ..OutcomeParams::default() }
}

fn try_fit(problem: &OutcomeProblem<'_>, n_folds: usize, params: OutcomeParams) -> Result<OutcomeFit> {
    let folds = Folds::deal(problem.x.n_rows(), problem.cluster, n_folds, Seed::new(1));
    fit_outcome(problem, &folds, &params.check()?, Run::new(Seed::new(2), &Silent))
}

fn fit(problem: &OutcomeProblem<'_>, n_folds: usize) -> OutcomeFit {
    try_fit(problem, n_folds, params(OutcomeKind::Boosted)).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn steps_are_learned_to_the_same_bits_on_any_number_of_threads() {
    // More rows than one thread goes through at a time.
    let x = normal(40_000 * P, "x");
    let y = steps(&x);
    let x = DenseRows::new(&x, P).unwrap();
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let mut params = params(OutcomeKind::Boosted);
        params.boosted.trees = 15;
        params.boosted.learning_rate = 0.3;
        pool.install(|| try_fit(&OutcomeProblem::new(&x, &y, &SQUARED), 2, params).unwrap())
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(bits(&one.predicted), bits(&two.predicted));
    // The noise has a variance of .25, the steps of about 2.8.
    assert!(one.r2[0] > 0.88, "{}", one.r2[0]);
}

#[test]
fn a_row_is_never_predicted_from_itself_nor_from_its_cluster() {
    let x = normal(600 * P, "x");
    let mut y = steps(&x);
    let x = DenseRows::new(&x, P).unwrap();
    let cluster: Vec<u32> = (0..600).map(|row| row / 2).collect();
    let run = |y: &[f32]| {
        fit(&OutcomeProblem { cluster: Some(&cluster), ..OutcomeProblem::new(&x, y, &SQUARED) }, 3)
    };
    let before = run(&y);
    y[100] += 50.0;
    let after = run(&y);
    let folds = Folds::deal(600, Some(&cluster), 3, Seed::new(1));
    let own = folds.of_row[100];
    assert_eq!(folds.of_row[101], own);
    for row in (0..600).filter(|row| folds.of_row[*row] == own) {
        assert_eq!(before.predicted[row].to_bits(), after.predicted[row].to_bits());
    }
    assert_ne!(bits(&before.predicted), bits(&after.predicted));
}

#[test]
fn weights_are_repeated_rows_and_have_no_unit() {
    let x = normal(400 * P, "x");
    // Few values each, so that repeated rows do not move the bins.
    let x: Vec<f32> = x.iter().map(|value| (value * 8.0).round() / 8.0).collect();
    let y = steps(&x);
    let mut params = params(OutcomeKind::Boosted);
    params.boosted = BoostedParams { trees: 30, patience: 0, min_leaf: 10.0, ..params.boosted };
    let run = |x: &[f32], y: &[f32], weight: Option<&[f32]>, min_leaf: f64, l2: f64| {
        let rows = DenseRows::new(x, P).unwrap();
        let mut params = params.clone();
        (params.boosted.min_leaf, params.boosted.l2) = (min_leaf, l2);
        let problem = OutcomeProblem { weight, ..OutcomeProblem::new(&rows, y, &SQUARED) };
        try_fit(&problem, 1, params).unwrap().predicted
    };
    let weight: Vec<f32> = (0..400).map(|row| (row % 4) as f32).collect();
    let copies: Vec<usize> = (0..400).flat_map(|row| vec![row; row % 4]).collect();
    let many_x: Vec<f32> = copies.iter().flat_map(|row| x[row * P..][..P].to_vec()).collect();
    let many_y: Vec<f32> = copies.iter().map(|row| y[*row]).collect();
    // Weights count relative to their mean over rows that have any, which is 2.
    let weighted = run(&x, &y, Some(&weight), 10.0, 1.0);
    let repeated = run(&many_x, &many_y, None, 20.0, 2.0);
    for (place, row) in copies.iter().enumerate() {
        assert!((weighted[*row] - repeated[place]).abs() < 2e-3, "{} {}", weighted[*row], repeated[place]);
    }
    let heavy: Vec<f32> = weight.iter().map(|weight| 1024.0 * weight).collect();
    assert_eq!(bits(&weighted), bits(&run(&x, &y, Some(&heavy), 10.0, 1.0)));
}

#[test]
fn outcomes_stand_for_themselves_in_any_order_and_unit() {
    let x = normal(500 * P, "x");
    let (a, b) = (steps(&x), line(&x));
    let x = DenseRows::new(&x, P).unwrap();
    let pairs = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect() };
    let losses = [OutcomeLoss::Squared; 2];
    let both = fit(&OutcomeProblem::new(&x, &pairs(&a, &b), &losses), 2);
    let turned = fit(&OutcomeProblem::new(&x, &pairs(&b, &a), &losses), 2);
    let alone = fit(&OutcomeProblem::new(&x, &a, &SQUARED), 2);
    for row in 0..500 {
        assert_eq!(both.predicted[2 * row].to_bits(), turned.predicted[2 * row + 1].to_bits());
        assert_eq!(both.predicted[2 * row].to_bits(), alone.predicted[row].to_bits());
    }
    let far: Vec<f32> = a.iter().map(|y| 1000.0 + 64.0 * y).collect();
    let scaled = fit(&OutcomeProblem::new(&x, &far, &SQUARED), 2);
    for (scaled, plain) in scaled.predicted.iter().zip(&alone.predicted) {
        assert!(((scaled - 1000.0) / 64.0 - plain).abs() < 0.02, "{scaled} {plain}");
    }
    // Given predictions are passed through, and leave the other as it was.
    let given = vec![7.0; 500];
    let outcomes = pairs(&b, &a);
    let problem = OutcomeProblem { given: &[(0, &given)], ..OutcomeProblem::new(&x, &outcomes, &losses) };
    let fitted = fit(&problem, 2);
    let second: Vec<f32> = fitted.predicted.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(bits(&second), bits(&alone.predicted));
    assert!(fitted.predicted.iter().step_by(2).all(|value| *value == 7.0));
    let all_given = OutcomeProblem { given: &[(0, &given)], ..OutcomeProblem::new(&x, &a, &SQUARED) };
    for kind in [OutcomeKind::Boosted, OutcomeKind::Auto] {
        assert_eq!(try_fit(&all_given, 2, params(kind)).unwrap().predicted, given);
    }
}

#[test]
fn noise_is_the_mean_and_constants_are_constants() {
    let (mut x, y) = (normal(400 * P, "x"), normal(400, "labels"));
    let folds_mean = |y: &[f32]| y.iter().sum::<f32>() / y.len() as f32;
    {
        let rows = DenseRows::new(&x, P).unwrap();
        let fitted = fit(&OutcomeProblem::new(&rows, &y, &SQUARED), 3);
        assert!(fitted.r2[0] > -0.15, "stopped early: {}", fitted.r2[0]);
        let same = vec![3.5; 400];
        assert_eq!(fit(&OutcomeProblem::new(&rows, &same, &SQUARED), 3).predicted, same);
        let ones = vec![1.0; 400];
        let sure = fit(&OutcomeProblem::new(&rows, &ones, &LOGISTIC), 3);
        assert!(sure.predicted.iter().all(|p| *p > 0.999 && *p < 1.0), "{:?}", sure.predicted[0]);
    }
    // Features that say nothing at all.
    x.fill(2.0);
    let rows = DenseRows::new(&x, P).unwrap();
    let fitted = fit(&OutcomeProblem::new(&rows, &y, &SQUARED), 1);
    assert!(fitted.predicted.iter().all(|m| (m - fitted.predicted[0]).abs() < 1e-6));
    assert!((fitted.predicted[0] - folds_mean(&y)).abs() < 0.1);
}

#[test]
fn missing_values_go_where_they_belong() {
    let mut x = normal(600 * P, "x");
    let y: Vec<f32> = (0..600).map(|row| if row % 3 == 0 { 4.0 } else { 0.0 }).collect();
    x.iter_mut().step_by(P).enumerate().filter(|(row, _)| row % 3 == 0).for_each(|(_, x)| *x = f32::NAN);
    let x = DenseRows::new(&x, P).unwrap();
    let fitted = fit(&OutcomeProblem::new(&x, &y, &SQUARED), 2);
    assert!(fitted.r2[0] > 0.98, "{}", fitted.r2[0]);
}

#[test]
fn shares_are_learned_by_likelihood() {
    let x = normal(3000 * P, "x");
    let mut rng = Seed::new(3).rng();
    let truth: Vec<f32> = x.chunks(P).map(|x| if x[0] > 0.0 { 0.9 } else { 0.2 }).collect();
    let y: Vec<f32> = truth.iter().map(|p| f32::from(u8::from(rng.random_bool(f64::from(*p))))).collect();
    let x = DenseRows::new(&x, P).unwrap();
    let fitted = fit(&OutcomeProblem::new(&x, &y, &LOGISTIC), 2);
    assert!(fitted.predicted.iter().all(|p| *p > 0.0 && *p < 1.0));
    let off: f32 = fitted.predicted.iter().zip(&truth).map(|(p, truth)| (p - truth).abs()).sum();
    assert!(off / 3000.0 < 0.06, "{}", off / 3000.0);
}

#[test]
fn extra_rows_teach_but_for_clusters_that_are_predicted() {
    let (x, more) = (normal(200 * P, "x"), normal(1500 * P, "more"));
    let (y, more_y) = (steps(&x), steps(&more));
    let (x, more_x) = (DenseRows::new(&x, P).unwrap(), DenseRows::new(&more, P).unwrap());
    let plain = OutcomeProblem::new(&x, &y, &SQUARED);
    let extra = ExtraRows { x: &more_x, outcomes: &more_y, weight: None, cluster: None };
    let alone = fit(&plain, 2);
    let with = fit(&OutcomeProblem { extra: Some(extra), ..plain }, 2);
    assert!(with.r2[0] > alone.r2[0] + 0.05, "{} {}", with.r2[0], alone.r2[0]);
    // The same rows again, under their own clusters, teach nothing: they are kept from the models that predict them.
    let cluster: Vec<u32> = (0..200).collect();
    let noise = normal(200, "labels");
    let again = ExtraRows { x: &x, outcomes: &noise, weight: None, cluster: Some(&cluster) };
    let problem = OutcomeProblem {
        cluster: Some(&cluster),
        extra: Some(again),
        ..OutcomeProblem::new(&x, &noise, &SQUARED)
    };
    for kind in [OutcomeKind::Boosted, OutcomeKind::Auto] {
        let fitted = try_fit(&problem, 2, params(kind)).unwrap();
        assert!(fitted.r2[0] < 0.1, "{kind:?}: {}", fitted.r2[0]);
    }
}

#[test]
fn stored_outcome_models_predict_the_same_bits() {
    let x = normal(400 * P, "x");
    let outcomes: Vec<f32> = steps(&x).iter().zip(line(&x)).flat_map(|(a, b)| [*a, b]).collect();
    let x = DenseRows::new(&x, P).unwrap();
    let losses = [OutcomeLoss::Squared; 2];
    for kind in [OutcomeKind::Boosted, OutcomeKind::Auto] {
        let fitted = try_fit(&OutcomeProblem::new(&x, &outcomes, &losses), 2, params(kind)).unwrap();
        let text = serde_json::to_string(&fitted.models.manifest()).unwrap();
        let manifest: OutcomeManifest = serde_json::from_str(&text).unwrap();
        let mut tensors = fitted.models.tensors();
        let again = OutcomeModels::from_parts(&manifest, &mut taken_from(&tensors)).unwrap();
        assert_eq!(bits(&fitted.models.predict(&x, &[]).unwrap()), bits(&again.predict(&x, &[]).unwrap()));
        let narrow = DenseRows::new(&[0.0; 4], 2).unwrap();
        assert!(again.predict(&narrow, &[]).is_err());
        for (name, damage) in [("m.boosted.0.0.right", 0.0), ("m.boosted.cuts", f32::NAN)] {
            let place = tensors.iter().position(|own| own.name == name).unwrap();
            let kept = tensors[place].clone();
            tensors[place].values.to_mut()[0] = damage;
            let error = OutcomeModels::from_parts(&manifest, &mut taken_from(&tensors)).unwrap_err();
            assert!(error.hint_text().is_some(), "{error}");
            tensors[place] = kept;
        }
        tensors.retain(|own| own.name != "m.boosted.1.0.leaf");
        let error = OutcomeModels::from_parts(&manifest, &mut taken_from(&tensors)).unwrap_err();
        assert!(error.to_string().contains("`m.boosted.1.0.leaf`: is missing"), "{error}");
    }
}

#[test]
fn auto_takes_trees_for_steps_and_lines_for_lines() {
    let x = normal(1200 * P, "x");
    let outcomes: Vec<f32> = steps(&x).iter().zip(line(&x)).flat_map(|(a, b)| [*a, b]).collect();
    let x = DenseRows::new(&x, P).unwrap();
    let losses = [OutcomeLoss::Squared; 2];
    let problem = OutcomeProblem::new(&x, &outcomes, &losses);
    let fitted = try_fit(&problem, 2, params(OutcomeKind::Auto)).unwrap();
    let weight = |outcome: usize, model| fitted.choices[outcome].as_ref().unwrap().weight(model);
    assert!(weight(0, NuisanceModel::Boosted) > 0.8, "{:?}", fitted.choices[0]);
    assert!(weight(1, NuisanceModel::Boosted) < 0.2, "{:?}", fitted.choices[1]);
    assert!(weight(1, NuisanceModel::Ridge) > 0.3, "{:?}", fitted.choices[1]);
    for (choice, r2) in fitted.choices.iter().zip(&fitted.r2) {
        let choice = choice.as_ref().unwrap();
        assert!((choice.explained - r2).abs() < 1e-3, "{choice:?} {r2}");
        assert!(choice.candidates.iter().all(|own| own.loss >= choice.loss - 1e-9));
        assert!((choice.candidates.iter().map(|own| own.weight).sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let said = fitted.choices[0].as_ref().unwrap().sentence("outcome model of `y`");
    assert!(said.starts_with("outcome model of `y`: ") && said.contains("out-of-fold R2 0."), "{said}");
    // The network among the candidates is that of `mlp`.
    let network = try_fit(&problem, 2, params(OutcomeKind::Mlp)).unwrap();
    let own = fitted.choices[1].as_ref().unwrap().candidates[1];
    assert!(network.choices.is_empty() && (own.explained - network.r2[1]).abs() < 1e-6);
    let error = try_fit(&problem, 1, params(OutcomeKind::Auto)).unwrap_err();
    assert!(error.to_string().contains("out-of-fold") && error.hint_text().is_some(), "{error}");
}

#[test]
fn rows_on_disk_that_do_not_fit_as_bins_are_told() {
    let x = normal(40_000 * P, "x");
    let y = line(&x);
    /// Rows of which a hundred may be in memory.
    struct OnDisk<'a>(DenseRows<'a>);
    impl poul::net::RowSource for OnDisk<'_> {
        fn n_rows(&self) -> usize {
            self.0.n_rows()
        }
        fn n_cols(&self) -> usize {
            self.0.n_cols()
        }
        fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
            self.0.copy_rows(rows, out);
        }
        fn window_rows(&self) -> Option<usize> {
            Some(2000)
        }
    }
    let rows = OnDisk(DenseRows::new(&x, P).unwrap());
    let problem = OutcomeProblem::new(&rows, &y, &SQUARED);
    let error = try_fit(&problem, 2, params(OutcomeKind::Boosted)).unwrap_err();
    assert!(error.to_string().contains("memory budget"), "{error}");
    assert!(error.hint_text().unwrap().contains("`memory`"));
    let mut quick = params(OutcomeKind::Auto);
    quick.schedule = Schedule { epochs: 1, ..quick.schedule };
    let choice = try_fit(&problem, 2, quick).unwrap().choices.remove(0).unwrap();
    assert_eq!(choice.candidates.len(), 2);
    assert!(choice.sentence("m").contains("boosted trees left out: "), "{}", choice.sentence("m"));
}

fn propensity(
    x: &[f32],
    policy: &[u32],
    n_policies: usize,
    kind: PropensityKind,
    weight: Option<&[f32]>,
) -> PropensityFit {
    let names: Vec<String> = (0..n_policies).map(|policy| format!("t{policy}")).collect();
    let x = DenseRows::new(x, P).unwrap();
    let folds = Folds::deal(policy.len(), None, 2, Seed::new(1));
    let design = AssignmentDesign::Observational { x: &x, folds: &folds };
    let schedule = Schedule { batch_rows: 128, epochs: 6, patience: 2, ..Schedule::default() };
    let boosted = BoostedParams { learning_rate: 0.1, patience: 10, ..BoostedParams::default() };
    let params = PropensityParams {
        kind,
        hidden: vec![8],
        members: 1,
        schedule,
        boosted,
        ..PropensityParams::default()
    };
    let assignment = Assignment { weight, ..Assignment::new(&names, policy) };
    fit_propensity(&assignment, &design, &params.check().unwrap(), Run::new(Seed::new(2), &Silent)).unwrap()
}

/// Policies by boxes of x, which no line parts.
fn boxes(n_rows: usize, n_policies: u32) -> (Vec<f32>, Vec<u32>) {
    let x = normal(n_rows * P, "x");
    let mut rng = Seed::new(8).rng();
    let policy = x.chunks(P).map(|x| {
        let own = (u32::from(x[0].abs() > 0.7) + u32::from(x[1].abs() > 0.7)) % n_policies;
        if rng.random_bool(0.7) { own } else { rng.random_range(0..n_policies) }
    });
    let policy = policy.collect();
    (x, policy)
}

#[test]
fn the_policy_of_a_row_is_predicted_by_trees() {
    for n_policies in [2, 3] {
        let (x, policy) = boxes(1500, n_policies);
        let fitted = propensity(&x, &policy, n_policies as usize, PropensityKind::Boosted, None);
        assert!(fitted.report.log_loss < 0.95 * fitted.report.log_loss_of_shares, "{:?}", fitted.report);
        for row in 0..1500 {
            let own = fitted.propensity.of_row(row, n_policies as usize);
            assert!((own.iter().sum::<f32>() - 1.0).abs() < 1e-5 && own.iter().all(|p| *p > 0.0), "{own:?}");
        }
        let chosen = propensity(&x, &policy, n_policies as usize, PropensityKind::Auto, None);
        let choice = chosen.choice.as_ref().unwrap();
        assert!(choice.weight(NuisanceModel::Boosted) > 0.6, "{choice:?}");
        assert!(choice.sentence("propensity").contains("log loss"), "{}", choice.sentence("propensity"));
        for own in [&fitted, &chosen] {
            let models = own.models.as_ref().unwrap();
            let text = serde_json::to_string(&models.manifest()).unwrap();
            let manifest: PropensityManifest = serde_json::from_str(&text).unwrap();
            let tensors = models.tensors();
            let again = PropensityModels::from_parts(&manifest, &mut taken_from(&tensors)).unwrap();
            let rows = DenseRows::new(&x, P).unwrap();
            assert_eq!(models.predict(&rows).unwrap(), again.predict(&rows).unwrap());
        }
    }
}

#[test]
fn one_policy_absent_ones_and_weights_are_no_trouble() {
    let (x, mut policy) = boxes(300, 2);
    let only = propensity(&x, &[0; 300], 2, PropensityKind::Boosted, None);
    assert_eq!(only.propensity.of_row(0, 2), [1.0, 0.0]);
    // Rows without weight do not count, whatever they are.
    let weight: Vec<f32> = (0..300).map(|row| f32::from(u8::from(row % 5 != 0))).collect();
    let before = propensity(&x, &policy, 2, PropensityKind::Boosted, Some(&weight));
    policy.iter_mut().step_by(5).for_each(|policy| *policy = 1 - *policy);
    let after = propensity(&x, &policy, 2, PropensityKind::Boosted, Some(&weight));
    assert_eq!(before.propensity.of_row(7, 2), after.propensity.of_row(7, 2));
    // A third policy that no row of weight has.
    policy[0] = 2;
    let third = propensity(&x, &policy, 3, PropensityKind::Boosted, Some(&weight));
    assert!(third.propensity.of_row(3, 3).iter().all(|p| p.is_finite()));
}
