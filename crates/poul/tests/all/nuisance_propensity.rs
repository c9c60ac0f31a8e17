//! The propensity: by design, from a table, from columns, and learned where nobody randomised.

use std::path::Path;
use std::sync::{Arc, Mutex};

use poul::data::{Budget, Columns, Dataset, EncoderParams, Need, Roles, Source, numbers};
use poul::net::{DenseRows, Schedule};
use poul::nuisance::{
    Assignment, AssignmentDesign, Folds, Propensity, PropensityColumn, PropensityFit, PropensityManifest,
    PropensityModels, PropensityParams, fit_propensity,
};
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Progress, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::taken_from;

const P: usize = 4;

fn normal(n: usize, name: &str) -> Vec<f32> {
    let mut rng = Seed::new(5).child(name).rng();
    (0..n).map(|_| rng.sample(StandardNormal)).collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|policy| format!("t{policy}")).collect()
}

fn params() -> PropensityParams {
    let schedule = Schedule { batch_rows: 128, epochs: 20, patience: 3, ..Schedule::default() };
    PropensityParams { hidden: vec![16], members: 1, schedule, ..PropensityParams::default() }
}

fn softmax(
    x: &[f32],
    assignment: &Assignment<'_>,
    n_folds: usize,
    params: PropensityParams,
    progress: &dyn Progress,
) -> PropensityFit {
    let x = DenseRows::new(x, P).unwrap();
    let folds = Folds::deal(assignment.policy.len(), assignment.cluster, n_folds, Seed::new(1));
    let design = AssignmentDesign::Observational { x: &x, folds: &folds };
    fit_propensity(assignment, &design, &params.check().unwrap(), Run::new(Seed::new(2), progress)).unwrap()
}

/// Three policies, the first two by the sign of x; the third for one row in ten, at random.
fn world(n_rows: usize) -> (Vec<f32>, Vec<u32>, Vec<[f32; 3]>) {
    let x = normal(n_rows * P, "x");
    let mut rng = Seed::new(6).rng();
    let truth: Vec<[f32; 3]> = x
        .chunks(P)
        .map(|x| {
            let first = 0.9 / (1.0 + (-1.5 * x[0] + x[1]).exp());
            [first, 0.9 - first, 0.1]
        })
        .collect();
    let policy = truth.iter().map(|truth| {
        let uniform: f32 = rng.random();
        u32::from(uniform > truth[0]) + u32::from(uniform > truth[0] + truth[1])
    });
    let policy = policy.collect();
    (x, policy, truth)
}

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Progress for Warnings {
    fn warn(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// A simulated folder, and its training or test rows.
fn read(
    folder: &Path,
    file: &str,
    encoder: Option<&poul::data::Encoder>,
) -> (Dataset, poul::data::Encoder, Columns) {
    let source = Source::open(folder.join(file).to_str().unwrap()).unwrap();
    let roles = Roles { outcome: vec!["y".into()], ..Roles::default() };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let budget = Budget::of(1 << 30);
    match encoder {
        None => {
            let params = EncoderParams::default().check().unwrap();
            let (data, encoder) =
                Dataset::read_and_fit(&source, &columns, &params, &budget, &Silent).unwrap();
            (data, encoder, columns)
        }
        Some(encoder) => {
            let data = Dataset::read(&source, &columns, encoder, &budget, &Silent).unwrap();
            (data, encoder.clone(), columns)
        }
    }
}

fn policies_of(data: &Dataset, set: &PolicySet) -> Vec<u32> {
    let labels = &data.treatment_labels[0];
    data.treatment[0].iter().map(|code| set.index(labels.name(*code).unwrap()).unwrap() as u32).collect()
}

#[test]
fn the_true_propensities_of_a_simulation_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let simulation = Simulation {
        scenario: "observational".into(),
        rows: 12_000,
        test_rows: Some(1000),
        features: Some(10),
        policies: Some(6),
        ..Simulation::default()
    };
    run(&simulation.check().unwrap(), folder.path(), &Silent).unwrap();
    let set = PolicySet::read(&folder.path().join("policies.toml"), None).unwrap();
    let (train, encoder, _) = read(folder.path(), "train.parquet", None);
    let (test, _, _) = read(folder.path(), "test.parquet", Some(&encoder));
    let policy = policies_of(&train, &set);
    let x = DenseRows::new(train.x.values(), train.x.width()).unwrap();
    let folds = Folds::deal(policy.len(), None, 3, Seed::new(1));
    let design = AssignmentDesign::Observational { x: &x, folds: &folds };
    let params = PropensityParams::default().check().unwrap();
    let assignment = Assignment::new(set.names(), &policy);
    let fit = fit_propensity(&assignment, &design, &params, Run::new(Seed::new(2), &Silent)).unwrap();
    assert!(fit.report.log_loss < fit.report.log_loss_of_shares - 0.02, "{:?}", fit.report);

    let xt = DenseRows::new(test.x.values(), test.x.width()).unwrap();
    let predicted = fit.models.as_ref().unwrap().predict(&xt).unwrap();
    let truth = Source::open(folder.path().join("truth_propensity.parquet").to_str().unwrap()).unwrap();
    let mut names = poul::data::Labels::new();
    let (mut found, mut truths) = (Vec::new(), Vec::new());
    for batch in truth.batches(&["row", "policy", "propensity"], 1 << 16).unwrap() {
        let batch = batch.unwrap();
        let (rows, values) = (numbers(batch.column(0)).unwrap(), numbers(batch.column(2)).unwrap());
        let text = arrow_array::cast::AsArray::as_string::<i32>(batch.column(1));
        for (i, (row, value)) in rows.iter().zip(values).enumerate() {
            names.intern(text.value(i));
            let policy = set.index(text.value(i)).unwrap();
            found.push(f64::from(predicted.of_row(*row as usize, set.len())[policy]));
            truths.push(value);
        }
    }
    assert!(names.len() >= 4 && found.len() >= 4000, "{} {}", names.len(), found.len());
    let (correlation, error) = agreement(&found, &truths);
    assert!(correlation > 0.93 && error < 0.045, "correlation {correlation}, mean error {error}");
}

/// Correlation and mean absolute difference.
fn agreement(a: &[f64], b: &[f64]) -> (f64, f64) {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb, mut error) = (0.0, 0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        ab += (a - mean_a) * (b - mean_b);
        aa += (a - mean_a).powi(2);
        bb += (b - mean_b).powi(2);
        error += (a - b).abs() / n;
    }
    (ab / (aa * bb).sqrt(), error)
}

#[test]
fn random_assignment_cannot_be_predicted_out_of_fold() {
    let (x, _, _) = world(600);
    let mut rng = Seed::new(11).rng();
    let policy: Vec<u32> = (0..600).map(|_| rng.random_range(0..3)).collect();
    let names = names(3);
    let assignment = Assignment::new(&names, &policy);
    let schedule = Schedule { batch_rows: 64, epochs: 100, patience: 0, min_steps: 1 };
    let greedy = PropensityParams {
        hidden: vec![64],
        dropout: 0.0,
        weight_decay: 0.0,
        learning_rate: 1e-2,
        average: 0.9,
        schedule,
        ..params()
    };
    let gain = |fit: PropensityFit| fit.report.log_loss_of_shares - fit.report.log_loss;
    let inside = gain(softmax(&x, &assignment, 1, greedy.clone(), &Silent));
    let outside = gain(softmax(&x, &assignment, 3, greedy, &Silent));
    assert!(inside > 0.1 && outside < 0.0, "{inside} {outside}");
    let careful = softmax(&x, &assignment, 3, params(), &Silent);
    assert!(careful.report.effective_share > 0.97, "{}", careful.report.effective_share);
    assert!(gain(careful).abs() < 0.02);
}

#[test]
fn learned_propensities_sum_to_one_and_follow_the_features() {
    let (x, policy, truth) = world(3000);
    let names = names(4);
    let assignment = Assignment::new(&names, &policy);
    let fit = softmax(&x, &assignment, 3, params(), &Silent);
    let mut error = 0.0;
    for (row, truth) in truth.iter().enumerate() {
        let found = fit.propensity.of_row(row, 4);
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert_eq!(found[3], 0.0, "nobody was given the fourth policy");
        error += found.iter().zip(truth).map(|(found, truth)| (found - truth).abs()).sum::<f32>() / 9000.0;
    }
    assert!(error < 0.035, "{error}");
    assert_eq!(fit.report.policies.len(), 3);
    assert!(fit.report.effective_share < 0.9 && fit.report.min > 0.0);
}

#[test]
fn clipping_is_counted_and_holds() {
    let x = normal(1500 * P, "x");
    // No overlap at all: the sign of x decides.
    let policy: Vec<u32> = x.chunks(P).map(|x| u32::from(x[0] > 0.0)).collect();
    let names = names(2);
    let assignment = Assignment::new(&names, &policy);
    let params = PropensityParams { clip: 0.04, learning_rate: 1e-2, ..params() };
    let warnings = Warnings::default();
    let fit = softmax(&x, &assignment, 3, params.clone(), &warnings);
    let all = (0..1500).map(|row| fit.propensity.of_row(row, 2));
    let lowest = all.clone().flatten().copied().fold(1.0, f32::min);
    let at_floor = all.filter(|row| row.contains(&0.04)).count();
    assert!(lowest == 0.04 && at_floor > 500, "{lowest} {at_floor}");
    assert_eq!((fit.report.clipped_rows, fit.report.clipped_share), (at_floor, at_floor as f64 / 1500.0));
    assert!(fit.report.clipped_own_rows < 50);
    let told = warnings.0.into_inner().unwrap();
    assert_eq!(told.len(), usize::from(fit.report.clipped_own_rows > 0), "{told:?}");
    let free = softmax(&x, &assignment, 3, PropensityParams { clip: 0.0, ..params }, &Silent);
    assert_eq!(free.report.clipped_rows, 0);
}

#[test]
fn a_policy_that_a_fold_lacks_has_its_share_and_a_warning() {
    let (x, mut policy, _) = world(900);
    // Policy 3 is run in a single cluster.
    let cluster: Vec<u32> = (0..900).map(|row| row / 45).collect();
    (90..135).for_each(|row| policy[row] = 3);
    let names = names(4);
    let assignment = Assignment { cluster: Some(&cluster), ..Assignment::new(&names, &policy) };
    let warnings = Warnings::default();
    let fit = softmax(&x, &assignment, 3, params(), &warnings);
    assert_eq!(fit.report.absent.len(), 1);
    assert_eq!(fit.report.absent[0].policies, ["t3"]);
    for row in 90..135 {
        let found = fit.propensity.of_row(row, 4);
        assert!(
            (found[3] - 0.05).abs() < 1e-6 && (found.iter().sum::<f32>() - 1.0).abs() < 1e-5,
            "{found:?}"
        );
    }
    assert!(warnings.0.into_inner().unwrap().iter().any(|text| text.contains("`t3` (45 rows)")));
    // Rare policies share a class and need no warning.
    (0..135).for_each(|row| policy[row] = 0);
    (0..3).for_each(|row| policy[row] = 3);
    let assignment = Assignment::new(&names, &policy);
    let rare = softmax(&x, &assignment, 3, params(), &Silent);
    assert_eq!((rare.report.pooled_policies, rare.report.absent.len()), (1, 0));
    assert!((0..900).all(|row| rare.propensity.of_row(row, 4)[3] > 0.0));
}

#[test]
fn many_policies_share_the_last_class() {
    let (x, policy, _) = world(1200);
    // Sixty policies: the first two split in thirty each.
    let split: Vec<u32> =
        policy.iter().enumerate().map(|(row, t)| t.min(&1) * 30 + row as u32 % 30).collect();
    let names = names(60);
    let assignment = Assignment::new(&names, &split);
    let params = PropensityParams { max_classes: 10, min_rows: 1, ..params() };
    let fit = softmax(&x, &assignment, 2, params, &Silent);
    assert_eq!(fit.report.pooled_policies, 51);
    for row in 0..1200 {
        let found = fit.propensity.of_row(row, 60);
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5 && found.iter().all(|value| *value > 0.0));
    }
}

#[test]
fn weights_are_duplicated_rows() {
    let (x, policy, _) = world(240);
    let weight: Vec<f32> = (0..240).map(|row| (row % 3) as f32).collect();
    let copies: Vec<usize> = (0..240).flat_map(|row| vec![row; row % 3]).collect();
    // One batch of all rows and no dropout: the order of rows is then a matter of rounding.
    let schedule = Schedule { batch_rows: 1000, epochs: 100, patience: 0, min_steps: 1 };
    let params = PropensityParams { dropout: 0.0, min_rows: 1, schedule, learning_rate: 1e-3, ..params() };
    let cluster: Vec<u32> = (0..240).collect();
    let names = names(3);
    let assignment =
        Assignment { weight: Some(&weight), cluster: Some(&cluster), ..Assignment::new(&names, &policy) };
    let weighted = softmax(&x, &assignment, 2, params.clone(), &Silent);
    let copied_x: Vec<f32> = copies.iter().flat_map(|row| x[row * P..][..P].to_vec()).collect();
    let copied: Vec<u32> = copies.iter().map(|row| policy[*row]).collect();
    let cluster: Vec<u32> = copies.iter().map(|row| *row as u32).collect();
    let assignment = Assignment { cluster: Some(&cluster), ..Assignment::new(&names, &copied) };
    let repeated = softmax(&copied_x, &assignment, 2, params.clone(), &Silent);
    for (row, copy) in copies.iter().enumerate() {
        let pair = repeated.propensity.of_row(row, 3).iter().zip(weighted.propensity.of_row(*copy, 3));
        pair.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    }
    assert!((repeated.report.log_loss - weighted.report.log_loss).abs() < 1e-4);
    assert!((repeated.report.effective_share - weighted.report.effective_share).abs() < 1e-4);
    let unweighted =
        softmax(&x, &Assignment { cluster: None, ..Assignment::new(&names, &policy) }, 2, params, &Silent);
    assert!((unweighted.report.log_loss - weighted.report.log_loss).abs() > 1e-3, "weights matter");
}

#[test]
fn threads_do_not_matter_and_stored_models_predict_the_same_bits() {
    let (x, policy, _) = world(600);
    let names = names(4);
    let assignment = Assignment::new(&names, &policy);
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| softmax(&x, &assignment, 2, PropensityParams { members: 2, ..params() }, &Silent))
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one.propensity, two.propensity);
    assert_eq!(one.report, two.report);

    let models = one.models.unwrap();
    let text = serde_json::to_string(&models.manifest()).unwrap();
    let manifest: PropensityManifest = serde_json::from_str(&text).unwrap();
    let mut stored = models.tensors();
    assert!(stored.iter().any(|own| own.name == "pi.1.0.output.weight"));
    let again = PropensityModels::from_parts(&manifest, &mut taken_from(&stored)).unwrap();
    let table = DenseRows::new(&x, P).unwrap();
    assert_eq!(models.predict(&table).unwrap(), again.predict(&table).unwrap());
    stored.retain(|own| own.name != "pi.0.1.linear.weight");
    let error = PropensityModels::from_parts(&manifest, &mut taken_from(&stored)).unwrap_err();
    assert!(error.to_string().contains("`pi.0.1.linear.weight`: is missing"), "{error}");
    let changed = text.replace("\"class_of\":[0,", "\"class_of\":[9,");
    assert_ne!(changed, text);
    let manifest: PropensityManifest = serde_json::from_str(&changed).unwrap();
    assert!(PropensityModels::from_parts(&manifest, &mut taken_from(&stored)).is_err());
}

#[test]
fn designs_give_the_propensity_they_name() {
    let (names, policy) = (names(3), [0, 1, 1, 2]);
    let assignment = Assignment::new(&names, &policy);
    let params = PropensityParams::default().check().unwrap();
    let fit = |design: &AssignmentDesign<'_>| {
        fit_propensity(&assignment, design, &params, Run::new(Seed::new(1), &Silent))
    };
    let shares = fit(&AssignmentDesign::Randomized).unwrap();
    assert_eq!(shares.propensity, Propensity::Shares(vec![0.25, 0.5, 0.25]));
    assert!((shares.report.effective_share - 1.0).abs() < 1e-12 && shares.models.is_none());
    let labels: [Arc<str>; 2] = ["north".into(), "south".into()];
    let design = AssignmentDesign::Stratified { stratum: &[0, 0, 1, 1], labels: &labels, table: None };
    assert_eq!(fit(&design).unwrap().propensity.of_row(3, 3), [0.0, 0.5, 0.5]);
    let outside = AssignmentDesign::Stratified { stratum: &[0, 0, 1, 2], labels: &labels, table: None };
    assert!(fit(&outside).is_err());
    let third = [1.0 / 3.0; 4];
    let column = |policy| PropensityColumn { column: "p", policy, values: &third };
    let columns = [column("t0"), column("t1"), column("t2")];
    let fitted = fit(&AssignmentDesign::Columns(&columns)).unwrap();
    assert!((fitted.report.log_loss - 3.0_f64.ln()).abs() < 1e-6);
    let weightless = Assignment { weight: Some(&[0.0; 4]), ..assignment };
    let error =
        fit_propensity(&weightless, &AssignmentDesign::Randomized, &params, Run::new(Seed::new(1), &Silent));
    assert!(error.unwrap_err().to_string().contains("weights are zero"));
}
