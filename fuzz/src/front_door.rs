//! Fitting, as the targets do it: the library's calls in the order in which a front end makes them.

use std::path::Path;

use arrow_array::RecordBatch;
use poul::data::{Budget, EncoderParams};
use poul::effect::Settings;
use poul::model::{CheckpointPlan, Learner};
use poul::policy::PolicySet;
use poul::{Experiment, Model, Progress, Result, Roles, Silent, Source};

use crate::corpus;
use crate::short::Short;

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

/// As small as learners take them: what is attacked does not depend on how good a fit is.
pub(crate) const SMALL: Short =
    Short { trees: 4, min_arm_rows: 2, widths: &[4], of: &["constant", "ridge"], epochs: 1, batch_rows: 16 };

/// A small model of every learner, as files.
pub(crate) fn models() -> Vec<Vec<u8>> {
    let (batch, roles, policies) = (corpus::table(36, 1), roles(), policies());
    let model = |learner: &Learner| {
        let settings = SMALL.settings(learner);
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
