//! Fits that start from a saved model.

use poul::Kind;
use poul::effect::Question;
use poul::model::Model;
use poul::net::DenseRows;
use serde_json::json;

use super::bench::{Bench, Listener, Stop};

/// Effects of policies against control for a few rows.
fn effects(model: &Model, policies: &[&str]) -> Vec<f32> {
    let question = Question { policies: policies.iter().map(|name| (*name).into()).collect(), against: None };
    let answer = model.ask(&model.manifest().policies, &question, true).unwrap();
    let width = model.manifest().encoder.width();
    let x: Vec<f32> = (0..3 * width).map(|i| (i as f32 * 0.37).sin()).collect();
    answer.scorer.score(&DenseRows::new(&x, width).unwrap(), false).unwrap().mean[0].clone()
}

fn saved() -> (Bench, Model) {
    let bench = Bench::new(json!({
        "model": { "members": 2, "hidden": [8] },
        "training": { "folds": 1, "epochs": 3, "calibrate": false },
    }));
    let model = bench.fit(false, &poul::Silent).unwrap();
    (bench, model)
}

/// The bench of the next month: outcomes in other units, `t2` gone, and a policy with an action never seen.
fn next(mut bench: Bench, model: Model, training: serde_json::Value) -> Bench {
    let path = bench.folder.path().join("data.csv");
    let text = std::fs::read_to_string(&path).unwrap().replace("t2,", "t3,");
    let line = |(number, line): (usize, &str)| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if number > 0 {
            cells[1] = (3.0 * cells[1].parse::<f64>().unwrap()).to_string();
        }
        cells.join(",")
    };
    std::fs::write(&path, text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    bench.policies = vec![["control", "no", "no"], ["t1", "yes", "no"], ["t3", "maybe", "yes"]];
    bench.settings = serde_json::from_value(json!({ "training": training })).unwrap();
    bench.warm_start = Some(model);
    bench
}

#[test]
fn before_its_first_step_it_is_the_saved_model() {
    let (bench, model) = saved();
    let still = json!({ "learning_rate": 1e-9, "epochs": 1, "calibrate": false });
    let before = effects(&model, &["t1", "t2"]);
    let fingerprint = model.manifest().data[0].fingerprint.clone();
    let rows = model.manifest().policy_rows.clone();
    let bench = next(bench, model, still);
    let warm = bench.fit(false, &poul::Silent).unwrap();
    let after = effects(&warm, &["t1", "t2"]);
    let size = before.iter().fold(0.0_f32, |size, effect| size.max(effect.abs()));
    for (before, after) in before.iter().zip(&after) {
        assert!((before - after).abs() < 1e-4 * size, "{before} {after}");
    }
    assert!(effects(&warm, &["t3"]).iter().all(|effect| effect.is_finite()));
    let manifest = warm.manifest();
    assert_eq!(manifest.data.len(), 2);
    assert_eq!(manifest.data[0].fingerprint, fingerprint);
    assert_ne!(manifest.data[1].fingerprint, fingerprint);
    // The settings are the saved model's, and the policy that is gone is still known.
    assert_eq!(
        (&manifest.settings.model["members"], &manifest.settings.training["folds"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(manifest.policies.names(), ["control", "t1", "t2", "t3"]);
    assert_eq!(manifest.policy_rows, [2 * rows[0], 2 * rows[1], rows[2], rows[2]]);
}

#[test]
fn training_goes_on_and_may_be_stopped() {
    let (bench, model) = saved();
    let before = effects(&model, &["t1"]);
    let bench = next(bench, model, json!({ "epochs": 2 }));
    let warm = bench.fit(false, &poul::Silent).unwrap();
    assert_ne!(effects(&warm, &["t1"]), before);
    let listener = Listener::new(Stop::Never);
    bench.fit(false, &listener).unwrap();
    let n_steps = listener.n_steps.into_inner();
    assert!(bench.stopped(false, Stop::Die(n_steps - 5)).is_none());
    let resumed = bench.stopped(true, Stop::Never).unwrap();
    assert_eq!(resumed.effects().tensors(), warm.effects().tensors());
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    let (bench, model) = saved();
    let mut bench = next(bench, model, json!({ "epochs": 1 }));
    let message = |bench: &Bench| {
        let error = bench.fit(false, &poul::Silent).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        error.to_string()
    };
    bench.settings.model.insert("hidden".into(), json!([4]));
    assert_eq!(message(&bench), "`model.hidden` is [4], and [8] in the saved model");
    bench.settings.model.clear();
    bench.learner = "ridge";
    assert_eq!(message(&bench), "warm start: the saved model is of the learner `poul`, not `ridge`");
    bench.learner = "poul";
    bench.roles.outcome = vec!["age".into()];
    assert_eq!(message(&bench), "warm start: the saved model is of the outcomes y, not age");
    bench.roles.outcome = vec!["y".into()];
    bench.settings.preset = Some("paper".into());
    assert!(message(&bench).contains("not of the preset `paper`"));
    bench.settings.preset = None;
    bench.policies[1] = ["t1", "maybe", "no"];
    let error = bench.fit(false, &poul::Silent).err().unwrap();
    assert!(error.to_string().contains("the policy differs in context `up`"), "{error}");
}
