//! A small observational experiment, fits of it, and ways to stop them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use poul::data::{Budget, Design};
use poul::effect::Settings;
use poul::model::CheckpointPlan;
use poul::policy::PolicySet;
use poul::{Experiment, Kind, Model, Progress, Result, Roles, Source};
use serde_json::json;

/// How a fit is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stop {
    Never,
    /// Asked to stop after so many steps.
    Cancel(u64),
    /// Dies after so many steps, with nothing written in its last moment.
    Die(u64),
}

pub(crate) struct Listener {
    stop: Stop,
    pub(crate) n_steps: AtomicU64,
    /// Names and lengths of the stages.
    pub(crate) stages: Mutex<Vec<(String, Option<u64>)>>,
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Listener {
    pub(crate) fn new(stop: Stop) -> Self {
        Self { stop, n_steps: AtomicU64::new(0), stages: Mutex::default(), warnings: Mutex::default() }
    }
}

impl Progress for Listener {
    fn start(&self, stage: &str, _unit: &str, total: Option<u64>) {
        self.stages.lock().unwrap().push((stage.to_owned(), total));
    }

    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
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

pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) settings: Settings,
    pub(crate) roles: Roles,
    pub(crate) learner: &'static str,
    pub(crate) seed: u64,
    /// Policies with their actions in the contexts `up` and `down`.
    pub(crate) policies: Vec<[&'static str; 3]>,
    pub(crate) warm_start: Option<Model>,
    pub(crate) budget: Budget,
    pub(crate) steps_between: u64,
    /// How many rows are `core`.
    pub(crate) n_core: u64,
}

impl Bench {
    /// Rows whose assignment follows a feature, so that both nuisances are networks.
    pub(crate) fn new(settings: serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::from("policy,y,age,core\n");
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        };
        let mut n_core = 0;
        for _ in 0..240 {
            let (age, core) = (random(), random() < 0.4);
            n_core += u64::from(core);
            let policy = ((random() + age) * 1.49) as usize;
            let y = age + policy as f64 * (age - 0.3) + 0.5 * random();
            text += &format!("{},{y:.4},{age:.4},{}\n", ["control", "t1", "t2"][policy], u8::from(core));
        }
        std::fs::write(folder.path().join("data.csv"), text).unwrap();
        let roles = Roles { outcome: vec!["y".into()], design: Design::Observational, ..Roles::default() };
        Self {
            folder,
            settings: serde_json::from_value(settings).unwrap(),
            roles,
            learner: "poul",
            seed: 3407,
            policies: vec![["control", "no", "no"], ["t1", "yes", "no"], ["t2", "yes", "yes"]],
            warm_start: None,
            budget: Budget::default(),
            steps_between: 7,
            n_core,
        }
    }

    pub(crate) fn small() -> Self {
        Self::new(json!({
            "model": { "members": 2, "hidden": [8] },
            "training": { "folds": 2, "epochs": 4, "phases": [
                { "epochs": 3 }, { "population": "core = 1", "epochs": 2 },
            ]},
        }))
    }

    pub(crate) fn partial(&self) -> PathBuf {
        self.folder.path().join("m.poul.partial")
    }

    pub(crate) fn fit(&self, resume: bool, progress: &dyn Progress) -> Result<Model> {
        let source = Source::open(self.folder.path().join("data.csv").to_str().unwrap())?;
        let mut policies = PolicySet::builder();
        for [name, up, down] in &self.policies {
            policies.add(name, "up", up, 1.0).add(name, "down", down, 1.0);
        }
        let experiment = Experiment::open(&source, &self.roles, policies.build()?, progress)?;
        Model::fit(&experiment)
            .learner(self.learner)
            .settings(&self.settings)
            .budget(self.budget.clone())
            .seed(self.seed)
            .checkpoint(Some(CheckpointPlan {
                folder: &self.partial(),
                resume,
                steps_between: Some(self.steps_between),
            }))
            .warm_start(self.warm_start.as_ref())
            .run(progress)
    }

    /// Fits, stopped as told; `None` where it was.
    pub(crate) fn stopped(&self, resume: bool, stop: Stop) -> Option<Model> {
        let listener = Listener::new(stop);
        match catch_unwind(AssertUnwindSafe(|| self.fit(resume, &listener))) {
            Err(_) => None,
            Ok(Err(error)) if error.kind() == Kind::Cancelled => None,
            Ok(result) => Some(result.unwrap()),
        }
    }
}

pub(crate) fn bytes_of(model: &Model) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.poul");
    model.save(&path).unwrap();
    std::fs::read(path).unwrap()
}
