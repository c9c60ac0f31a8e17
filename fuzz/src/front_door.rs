//! Fitting, as the targets do it: the library's calls in the order in which a front end makes them.

use std::path::Path;

use arrow_array::RecordBatch;
use poul::data::{Budget, EncoderParams};
use poul::effect::Settings;
use poul::model::{CheckpointPlan, Learner};
use poul::policy::PolicySet;
use poul::{Experiment, Model, Progress, Result, Roles, Silent, Source};
use serde_json::json;

use crate::corpus;

/// What a fit is of.
pub(crate) struct Fitting<'a> {
    pub(crate) batch: &'a RecordBatch,
    pub(crate) roles: &'a Roles,
    pub(crate) policies: &'a PolicySet,
    pub(crate) control: Option<&'a str>,
    pub(crate) learner: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) seed: u64,
    /// A folder, whether to go on from it, and the steps between two writes.
    pub(crate) checkpoint: Option<(&'a Path, bool, u64)>,
}

impl Fitting<'_> {
    pub(crate) fn fit(&self, progress: &dyn Progress) -> Result<Model> {
        let source = Source::from_batches(self.batch.schema(), vec![self.batch.clone()])?;
        let roles = Roles { control: self.control.map(str::to_owned), ..self.roles.clone() };
        let experiment = Experiment::open(&source, &roles, self.policies.clone(), progress)?;
        let plan = |(folder, resume, steps)| CheckpointPlan { folder, resume, steps_between: Some(steps) };
        Model::fit(&experiment)
            .learner(self.learner)
            .settings(self.settings)
            .encoder(&EncoderParams { min_level_rows: 1, ..EncoderParams::default() }.check()?)
            .budget(Budget::of(1 << 28))
            .seed(self.seed)
            .checkpoint(self.checkpoint.map(plan))
            .run(progress)
    }
}

/// The roles of the corpus's table.
pub(crate) fn roles() -> Roles {
    Roles { outcome: vec!["y".into()], id: vec!["user".into()], weight: Some("w".into()), ..Roles::default() }
}

pub(crate) fn policies() -> PolicySet {
    PolicySet::from_toml(corpus::POLICIES, Path::new("policies.toml")).expect("valid policies")
}

/// A learner's settings as small as it takes them: what is attacked does not depend on how good a fit is.
pub(crate) fn small(learner: &Learner) -> Settings {
    let mut settings = (learner.settle)(&Settings::default()).expect("defaults settle");
    let narrow = json!([4]);
    let sizes = [
        ("members", json!(2)),
        ("trees", json!(4)),
        ("min_arm_rows", json!(2)),
        ("hidden", narrow.clone()),
        ("trunk", narrow.clone()),
        ("heads", narrow.clone()),
        ("encoder", narrow.clone()),
        ("outcome_hidden", narrow),
    ];
    for (name, value) in sizes {
        if settings.model.contains_key(name) {
            settings.model.insert(name.into(), value);
        }
    }
    if settings.model.contains_key("of") {
        let members = ["constant", "ridge"];
        let own =
            |name: &&str| poul::model::learner(name).map(|learner| ((*name).to_owned(), small(learner)));
        let own: std::collections::BTreeMap<String, Settings> =
            members.iter().filter_map(|name| own(name).ok()).collect();
        settings.model.insert("of".into(), json!(members));
        settings.model.insert("learners".into(), json!(own));
    }
    for (name, value) in [("epochs", 1), ("folds", 2), ("batch_rows", 16)] {
        // A fixed number of folds stays what it is.
        if settings.training.get(name).is_some_and(|known| known != 1) {
            settings.training.insert(name.into(), value.into());
        }
    }
    settings
}

/// A small model of every learner, as files.
pub(crate) fn models() -> Vec<Vec<u8>> {
    let (batch, roles, policies) = (corpus::table(36, 1), roles(), policies());
    let model = |learner: &Learner| {
        let settings = small(learner);
        let fitting = Fitting {
            batch: &batch,
            roles: &roles,
            policies: &policies,
            control: Some("control"),
            learner: learner.name,
            settings: &settings,
            seed: 1,
            checkpoint: None,
        };
        let fitted = fitting.fit(&Silent).and_then(|model| model.to_bytes());
        fitted.unwrap_or_else(|error| panic!("the seed of `{}` cannot be fitted: {error}", learner.name))
    };
    poul::model::LEARNERS.iter().map(model).collect()
}
