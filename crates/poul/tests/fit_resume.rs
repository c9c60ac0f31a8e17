//! A fit that is stopped at any moment, however often, and goes on gives the same bytes as one that never stopped; what
//! cannot go on is told.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use poul::data::{Budget, Design, EncoderParams, Need, Roles, Source};
use poul::effect::Settings;
use poul::model::{CheckpointPlan, FitRequest, Model, fit};
use poul::policy::PolicySet;
use poul::{Kind, Progress, Result};
use serde_json::json;

/// How a fit is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Never,
    /// Asked to stop after so many steps.
    Cancel(u64),
    /// Dies after so many steps, with nothing written in its last moment.
    Die(u64),
}

struct Listener {
    stop: Stop,
    n_steps: AtomicU64,
    stages: Mutex<Vec<String>>,
}

impl Listener {
    fn new(stop: Stop) -> Self {
        Self { stop, n_steps: AtomicU64::new(0), stages: Mutex::new(Vec::new()) }
    }
}

impl Progress for Listener {
    fn start(&self, stage: &str, _unit: &str, _total: Option<u64>) {
        self.stages.lock().unwrap().push(stage.to_owned());
    }

    fn advance(&self, _n: u64) {
        let n_steps = self.n_steps.fetch_add(1, Ordering::Relaxed) + 1;
        if self.stop == Stop::Die(n_steps) {
            resume_unwind(Box::new("killed"));
        }
    }

    fn cancelled(&self) -> bool {
        matches!(self.stop, Stop::Cancel(last) if self.n_steps.load(Ordering::Relaxed) >= last)
    }
}

struct Bench {
    folder: tempfile::TempDir,
    settings: Settings,
    roles: Roles,
    seed: u64,
}

impl Bench {
    /// Rows whose assignment follows a feature, so that both nuisances are networks.
    fn new(settings: serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::from("policy,y,age,core\n");
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        };
        for _ in 0..240 {
            let (age, core) = (random(), random() < 0.4);
            let policy = ((random() + age) * 1.49) as usize;
            let y = age + policy as f64 * (age - 0.3) + 0.5 * random();
            text += &format!("{},{y:.4},{age:.4},{}\n", ["control", "t1", "t2"][policy], u8::from(core));
        }
        std::fs::write(folder.path().join("data.csv"), text).unwrap();
        let roles = Roles { outcome: vec!["y".into()], design: Design::Observational, ..Roles::default() };
        Self { folder, settings: serde_json::from_value(settings).unwrap(), roles, seed: 3407 }
    }

    fn small() -> Self {
        Self::new(json!({
            "model": { "members": 2, "hidden": [8] },
            "training": { "folds": 2, "epochs": 4, "phases": [
                { "epochs": 3 }, { "population": "core = 1", "epochs": 2 },
            ]},
        }))
    }

    fn partial(&self) -> PathBuf {
        self.folder.path().join("m.poul.partial")
    }

    fn fit(&self, resume: bool, progress: &dyn Progress) -> Result<Model> {
        let source = Source::open(self.folder.path().join("data.csv").to_str().unwrap())?;
        let columns = self.roles.check(source.schema(), Need::FIT)?;
        let mut policies = PolicySet::builder();
        for (name, up, down) in [("control", "no", "no"), ("t1", "yes", "no"), ("t2", "yes", "yes")] {
            policies.add(name, "up", up, 1.0).add(name, "down", down, 1.0);
        }
        let request = FitRequest {
            source: &source,
            roles: &self.roles,
            columns: &columns,
            policies: &policies.build()?,
            control: Some("control"),
            learner: "poul",
            settings: &self.settings,
            encoder: &EncoderParams::default().check()?,
            budget: &Budget::default(),
            seed: self.seed,
            command: Vec::new(),
            checkpoint: Some(CheckpointPlan { folder: &self.partial(), resume, steps_between: Some(7) }),
            warm_start: None,
        };
        fit(&request, progress)
    }

    /// Fits, stopped as told; `None` where it was.
    fn stopped(&self, resume: bool, stop: Stop) -> Option<Model> {
        let listener = Listener::new(stop);
        match catch_unwind(AssertUnwindSafe(|| self.fit(resume, &listener))) {
            Err(_) => None,
            Ok(Err(error)) if error.kind() == Kind::Cancelled => None,
            Ok(result) => Some(result.unwrap()),
        }
    }
}

fn bytes_of(model: &Model) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.poul");
    model.save(&path).unwrap();
    std::fs::read(path).unwrap()
}

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
        assert!(stages.iter().any(|name| name == stage), "{stages:?}");
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
fn another_fit_is_refused_by_name() {
    let mut bench = Bench::small();
    assert!(bench.stopped(false, Stop::Cancel(30)).is_none());
    assert!(entries(&bench.partial(), ".part") > 0);
    let message = |bench: &Bench| {
        let error = bench.fit(true, &poul::Silent).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.hint_text().unwrap().contains("without --resume"));
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
