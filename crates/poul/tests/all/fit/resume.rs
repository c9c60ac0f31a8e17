//! A fit that is stopped at any moment, however often, and goes on gives the same bytes as one that never stopped; what
//! cannot go on is told.

use std::path::Path;

use poul::Kind;
use poul::data::Budget;
use serde_json::json;

use super::bench::{Bench, Listener, Stop, bytes_of};

fn entries(folder: &Path, part: &str) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_string_lossy().ends_with(part)).count()
}

#[test]
fn a_fit_that_is_stopped_again_and_again_gives_the_same_bytes() {
    let bench = Bench::small();
    let listener = Listener::new(Stop::Never);
    let whole = bytes_of(&bench.fit(false, &listener).unwrap());
    let n_steps = listener.n_steps.into_inner();
    let stages = listener.stages.into_inner().unwrap();
    for stage in ["Outcome model, fold 2 of 2", "Propensity, fold 2 of 2", "Learning effects, phase 2 of 2"] {
        assert!(stages.iter().any(|(name, _)| name == stage), "{stages:?}");
    }
    // Strides that share no factor with an epoch's steps reach every stage, start, middle and end.
    for (stride, kill) in [(n_steps / 11, false), (n_steps / 17, true), (n_steps * 7 / 10, true)] {
        let mut n_stops = 0;
        let model = loop {
            let stop = if kill { Stop::Die(stride) } else { Stop::Cancel(stride) };
            match bench.stopped(n_stops > 0, stop) {
                Some(model) => break model,
                None => n_stops += 1,
            }
            assert!(n_stops < 60, "no progress with a stride of {stride} of {n_steps}");
        };
        assert!(n_stops > 0 && bytes_of(&model) == whole, "stopped {n_stops} times by {stride}");
    }
    // Every network is done: two folds of m, two of π, two phases.
    assert_eq!((entries(&bench.partial(), ".done.part"), entries(&bench.partial(), ".state.part")), (6, 0));
    let again = Listener::new(Stop::Never);
    assert!(bytes_of(&bench.fit(true, &again).unwrap()) == whole);
    assert!(again.n_steps.into_inner() < n_steps / 10, "finished networks were trained again");
}

#[test]
fn a_stack_that_is_stopped_goes_on_to_the_same_bytes() {
    let phases = json!([{ "epochs": 2 }, { "population": "core = 1", "epochs": 1 }]);
    let mut bench = Bench::new(json!({
        "model": { "of": ["poul", "s-learner", "constant"], "learners": {
            "poul": { "model": { "members": 2, "hidden": [8] }, "training": { "folds": 2, "phases": phases } },
            "s-learner": { "model": { "members": 1, "hidden": [8] }, "training": { "epochs": 2 } },
        }},
        "training": { "folds": 2 },
    }));
    bench.learner = "stack";
    let listener = Listener::new(Stop::Never);
    let whole = bytes_of(&bench.fit(false, &listener).unwrap());
    let n_steps = listener.n_steps.into_inner();
    let stages = listener.stages.into_inner().unwrap();
    for stage in ["fold 2 of 2, s-learner: s-learner: y", "poul: Learning effects, phase 2 of 2"] {
        assert!(stages.iter().any(|(name, _)| name == stage), "{stages:?}");
    }
    let mut n_stops = 0;
    let model = loop {
        match bench.stopped(n_stops > 0, Stop::Die(n_steps * 2 / 5)) {
            Some(model) => break model,
            None => n_stops += 1,
        }
        assert!(n_stops < 60, "no progress");
    };
    assert!(n_stops > 0 && bytes_of(&model) == whole, "stopped {n_stops} times");
}

#[test]
fn networks_beside_the_method_go_on_too() {
    let mixture = Bench::new(json!({
        "model": { "members": 1, "hidden": [8], "centring": "mixture" },
        "training": { "folds": 2, "epochs": 2 },
    }));
    let mut logistic = Bench::new(json!({
        "model": { "members": 1, "hidden": [8], "loss": "logistic" },
        "training": { "folds": 2, "epochs": 2 },
    }));
    logistic.roles.outcome = vec!["core".into()];
    for (bench, stage) in [(mixture, "Expected mixture, fold 2 of 2"), (logistic, "Baseline")] {
        let listener = Listener::new(Stop::Never);
        let whole = bytes_of(&bench.fit(false, &listener).unwrap());
        let (n_steps, stages) = (listener.n_steps.into_inner(), listener.stages.into_inner().unwrap());
        assert!(stages.iter().any(|(name, _)| name == stage), "{stages:?}");
        let again = Listener::new(Stop::Never);
        assert!(bytes_of(&bench.fit(true, &again).unwrap()) == whole, "{stage}");
        let n_again = again.n_steps.into_inner();
        assert!(n_again < n_steps / 10, "{stage} was trained again: {n_again} of {n_steps} steps");
    }
}

#[test]
fn another_fit_is_refused_by_name() {
    let mut bench = Bench::small();
    assert!(bench.stopped(false, Stop::Cancel(30)).is_none());
    assert!(entries(&bench.partial(), ".part") > 0);
    let message = |bench: &Bench| {
        let error = bench.fit(true, &poul::Silent).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.hint_text().unwrap().contains("without `resume`"));
        error.to_string()
    };
    bench.seed = 1;
    assert!(message(&bench).ends_with("the checkpoint is of another fit: seed (3407 there, 1 here)"));
    bench.seed = 3407;
    bench.settings.training.insert("learning_rate".into(), 0.125.into());
    assert!(message(&bench).contains("settings.training.learning_rate ("));
    bench.settings.training.remove("learning_rate");
    bench.roles.population = Some("age < 0.9".into());
    assert!(message(&bench).contains("roles.population (null there, \"age < 0.9\" here)"));
    bench.roles.population = None;
    let data = bench.folder.path().join("data.csv");
    let text = std::fs::read_to_string(&data).unwrap();
    std::fs::write(&data, text + "t1,1,0.5,1\n").unwrap();
    assert!(message(&bench).contains("another fit: data"));
}

#[test]
fn a_damaged_checkpoint_is_told() {
    let bench = Bench::small();
    assert!(bench.stopped(false, Stop::Cancel(30)).is_none());
    let files = std::fs::read_dir(bench.partial()).unwrap().flatten().map(|file| file.path());
    let state = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "part")).unwrap();
    let whole = std::fs::read(&state).unwrap();
    std::fs::write(&state, &whole[..whole.len() / 2]).unwrap();
    let error = bench.fit(true, &poul::Silent).err().unwrap();
    assert!(error.to_string().ends_with("the checkpoint is damaged"), "{error}");
    assert!(error.hint_text().unwrap().starts_with("delete the folder"), "{error:?}");
}

#[test]
fn training_that_diverges_says_where_and_goes_on_at_a_lower_rate() {
    let mut bench = Bench::new(json!({
        "model": { "members": 1, "hidden": [8] },
        "training": { "folds": 1, "epochs": 3, "learning_rate": 1e30, "clip_norm": 0.0 },
    }));
    let error = bench.fit(false, &poul::Silent).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("Learning effects: training diverged: the loss is "), "{text}");
    assert!(text.contains("in epoch 1, step "), "{text}");
    let hint = error.hint_text().unwrap();
    assert!(hint.contains("lower the learning rate") && hint.contains("extreme values"), "{hint}");
    // Both nuisances are kept; nothing of stage 2 was good.
    assert_eq!((entries(&bench.partial(), ".done.part"), entries(&bench.partial(), ".state.part")), (2, 0));
    bench.settings.training.insert("learning_rate".into(), 1e-3.into());
    let listener = Listener::new(Stop::Never);
    let model = bench.fit(true, &listener).unwrap();
    let notes = &model.manifest().notes;
    assert!(notes.iter().any(|note| note.contains("training diverged") && note.contains("last good state")));
    let effects = &model.manifest().history.last().unwrap().epochs;
    assert!(effects.iter().all(|epoch| epoch.loss.is_finite()) && effects.len() == 3);
}

#[test]
fn a_rival_that_diverges_says_in_which_network() {
    let mut bench = Bench::new(json!({
        "model": { "members": 1, "hidden": [8] },
        "training": { "epochs": 3, "learning_rate": 1e30 },
    }));
    bench.learner = "s-learner";
    let error = bench.fit(false, &poul::Silent).err().unwrap().to_string();
    assert!(error.starts_with("s-learner: y: training diverged: the "), "{error}");
}

#[test]
fn another_amount_of_memory_is_refused_where_it_decides_what_is_shuffled() {
    let mut bench = Bench::small();
    // All rows are in memory under both.
    bench.budget = Budget::of(1 << 30);
    assert!(bench.stopped(false, Stop::Cancel(30)).is_none());
    bench.budget = Budget::of(1 << 31);
    assert!(bench.stopped(true, Stop::Cancel(30)).is_none());
    // On disk.
    bench.budget = Budget::of(1 << 10);
    let error = bench.fit(true, &poul::Silent).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().ends_with("a fit that held other rows in memory"), "{error}");
    assert!(error.hint_text().unwrap().contains(&format!("memory = {}", 1_u64 << 30)), "{error:?}");
}

#[test]
fn a_disk_that_takes_nothing_more_costs_the_checkpoint_and_not_the_work() {
    let mut bench = Bench::small();
    let whole = bytes_of(&bench.fit(false, &poul::Silent).unwrap());
    poul::Checkpoint::remove(bench.partial()).unwrap();
    // A file where the folder should be: nothing can be written below. With so many steps between two writes the first is that of
    // a network that is finished.
    std::fs::write(bench.partial(), "in the way").unwrap();
    for steps_between in [7, 1_000_000] {
        bench.steps_between = steps_between;
        let listener = Listener::new(Stop::Never);
        assert!(bytes_of(&bench.fit(false, &listener).unwrap()) == whole);
        let warnings = listener.warnings.into_inner().unwrap();
        let wanted =
            if steps_between == 7 { "goes on without a checkpoint" } else { "this part is done again" };
        assert!(warnings.iter().any(|text| text.contains(wanted)), "{warnings:?}");
    }
    assert_eq!(std::fs::read(bench.partial()).unwrap(), b"in the way");
}

#[test]
fn a_forest_that_is_stopped_goes_on_from_its_trees_to_the_same_bytes() {
    let settings = json!({ "model": { "trees": 200, "min_arm_rows": 10 } });
    for (learner, n_nuisances) in [("causal-forest", 2), ("uplift-forest", 0)] {
        let mut bench = Bench::new(settings.clone());
        bench.learner = learner;
        bench.steps_between = 1;
        let listener = Listener::new(Stop::Never);
        let whole = bytes_of(&bench.fit(false, &listener).unwrap());
        let n_steps = listener.n_steps.into_inner();
        let stored = |what: &str| {
            let files = std::fs::read_dir(bench.partial()).unwrap().flatten();
            files.filter(|file| file.file_name().to_string_lossy().contains(what)).count()
        };
        // A hundred groups of trees in blocks of 34, the last of which is what is left over.
        let n_blocks = stored(".trees-");
        assert_eq!((n_blocks, stored(".out-of-bag")), (3, n_nuisances), "{learner}");
        poul::Checkpoint::remove(bench.partial()).unwrap();
        // A kill writes nothing on its way out; who asks to stop is waited for.
        for (stop, wanted) in [(Stop::Die(n_steps - 40), 1..=3), (Stop::Cancel(n_steps - 40), 2..=3)] {
            assert!(bench.stopped(false, stop).is_none());
            assert!(wanted.contains(&stored(".trees-")), "{learner}: {} blocks", stored(".trees-"));
            assert_eq!(stored(".out-of-bag"), n_nuisances, "{learner}");
            assert!(bytes_of(&bench.fit(true, &poul::Silent).unwrap()) == whole, "{learner}");
        }
    }
}

#[test]
fn boosted_trees_are_not_grown_again() {
    let mut bench = Bench::new(json!({
        "model": { "members": 1, "hidden": [8], "outcome_model": "boosted" },
        "training": { "folds": 2, "epochs": 2 },
    }));
    bench.steps_between = 1;
    let listener = Listener::new(Stop::Never);
    let whole = bytes_of(&bench.fit(false, &listener).unwrap());
    // Two folds of m, two of π.
    assert_eq!(entries(&bench.partial(), ".boosted.part"), 4);
    let stages = |listener: Listener| {
        let stages = listener.stages.into_inner().unwrap();
        stages.into_iter().filter(|(name, _)| name.starts_with("Boosted")).count()
    };
    assert_eq!(stages(listener), 4);
    let again = Listener::new(Stop::Never);
    assert!(bytes_of(&bench.fit(true, &again).unwrap()) == whole);
    assert_eq!(stages(again), 0);
}
