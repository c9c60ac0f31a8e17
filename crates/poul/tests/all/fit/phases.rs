//! Training phases and presets.

use poul::Kind;
use poul::effect::Settings;
use poul::learn::poul::settle;
use poul::model::Model;
use serde_json::json;

use super::bench::{Bench, Listener, Stop};

fn tensors(model: &Model) -> Vec<Vec<f32>> {
    model.effects().tensors().into_iter().map(|tensor| tensor.values.into_owned()).collect()
}

fn bench(training: serde_json::Value) -> Bench {
    Bench::new(json!({ "model": { "members": 1, "hidden": [8] }, "training": training }))
}

#[test]
fn a_phase_trains_on_its_population_and_goes_on_from_the_one_before() {
    let phases = json!([{ "epochs": 2 }, { "population": "core = 1", "epochs": 3 }]);
    let two = bench(json!({ "folds": 1, "validation_share": 0, "batch_rows": 512, "phases": phases }));
    let listener = Listener::new(Stop::Never);
    let model = two.fit(false, &listener).unwrap();
    let stages = listener.stages.into_inner().unwrap();
    // Fewer rows than a batch: an epoch is twenty passes.
    for (phase, rows) in [("phase 1 of 2", 2 * 20 * 240), ("phase 2 of 2", 3 * 20 * two.n_core)] {
        let stage = stages.iter().find(|(name, _)| name.ends_with(phase));
        assert_eq!(stage.unwrap().1, Some(rows), "{phase}");
    }
    let history: Vec<(&str, usize)> =
        model.manifest().history.iter().map(|phase| (phase.name.as_str(), phase.epochs.len())).collect();
    assert_eq!(history[history.len() - 2..], [("effects, phase 1", 2), ("effects, phase 2", 3)]);
    // A list of one phase on all rows is what there is without phases, and the first phase of two is that too.
    let plain = bench(json!({ "folds": 1, "validation_share": 0, "batch_rows": 512, "epochs": 2 }));
    let one =
        bench(json!({ "folds": 1, "validation_share": 0, "batch_rows": 512, "phases": [{ "epochs": 2 }] }));
    let (plain, one) = (plain.fit(false, &poul::Silent).unwrap(), one.fit(false, &poul::Silent).unwrap());
    assert_eq!(tensors(&plain), tensors(&one));
    assert_ne!(tensors(&plain), tensors(&model));
    let effects = |model: &Model, back: usize| {
        let history = &model.manifest().history;
        history[history.len() - back].epochs.clone()
    };
    assert_eq!(effects(&plain, 1), effects(&model, 2));
}

#[test]
fn a_population_that_cannot_be_trained_on_is_told() {
    let error = |population: &str| {
        let bench = bench(json!({ "phases": [{ "epochs": 1 }, { "population": population, "epochs": 1 }] }));
        let listener = Listener::new(Stop::Never);
        let error = bench.fit(false, &listener).err().unwrap();
        assert!([Kind::Input, Kind::Usage].contains(&error.kind()), "{error}");
        // Nothing was trained before it was told.
        let stages = listener.stages.into_inner().unwrap();
        assert!(stages.iter().all(|(name, _)| !name.starts_with("Outcome")), "{stages:?}");
        error.to_string()
    };
    let missing = error("cor = 1");
    assert!(missing.starts_with("population `cor = 1`") && missing.contains("no column `cor`"), "{missing}");
    assert_eq!(error("age > 9"), "phase 2: no row belongs to the population `age > 9`");
    let one = "phase 2: every row of the population `policy = 't1'` has the policy `t1`";
    assert_eq!(error("policy = 't1'"), one);
}

#[test]
fn a_preset_is_a_set_of_defaults() {
    let paper = Settings { preset: Some("paper".into()), ..Settings::default() };
    let settled = settle(&paper).unwrap();
    assert_eq!(settled.training["folds"], 1);
    assert_eq!(settled.training["learning_rate"].as_f64().map(|rate| rate as f32), Some(1e-4));
    assert_eq!((&settled.model["members"], &settled.training["batch_rows"]), (&json!(1), &json!(512)));
    assert_eq!(settled.preset.as_deref(), Some("paper"));
    assert_eq!(settle(&settled).unwrap(), settled);
    let mut own = paper.clone();
    own.model.insert("members".into(), 3.into());
    own.training.insert("folds".into(), 5.into());
    let own = settle(&own).unwrap();
    assert_eq!((&own.model["members"], &own.training["folds"]), (&json!(3), &json!(5)));
    assert_eq!(own.training["gate_penalty"], settled.training["gate_penalty"]);
    let unknown = Settings { preset: Some("papers".into()), ..Settings::default() };
    assert_eq!(settle(&unknown).unwrap_err().hint_text(), Some("did you mean `paper`?"));
    let mut bench = bench(json!({ "epochs": 2 }));
    bench.settings.preset = Some("paper".into());
    let model = bench.fit(false, &poul::Silent).unwrap();
    assert_eq!(model.manifest().settings.preset.as_deref(), Some("paper"));
    assert_eq!(model.manifest().history.last().unwrap().epochs.len(), 2);
}

#[test]
fn settings_of_older_models_lack_newer_fields() {
    // What a model of the first version stored: no `phases`.
    let stored = json!({ "folds": 3, "learning_rate": 0.001, "epochs": 80 });
    let params: poul::learn::poul::TrainingParams = serde_json::from_value(stored).unwrap();
    assert_eq!(params, poul::learn::poul::TrainingParams { folds: 3, ..Default::default() });
}
