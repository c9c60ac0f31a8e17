//! Settings of a learner as small as a test takes them: what is promised does not depend on how good a fit is.

use std::collections::BTreeMap;

use poul::effect::Settings;
use poul::model::{Learner, learner};
use serde_json::json;

/// How small.
pub(crate) struct Short {
    pub(crate) trees: u64,
    pub(crate) min_arm_rows: u64,
    /// Widths of every hidden layer.
    pub(crate) widths: &'static [u64],
    /// The members of a stack.
    pub(crate) of: &'static [&'static str],
    pub(crate) epochs: u64,
    pub(crate) batch_rows: u64,
}

impl Short {
    /// The settings of a learner, complete, and as small where it has them.
    pub(crate) fn settings(&self, of: &Learner) -> Settings {
        let mut settings = (of.settle)(&Settings::default()).expect("defaults settle");
        let narrow = ["hidden", "trunk", "heads", "encoder", "outcome_hidden"];
        let small = [("members", 2), ("trees", self.trees), ("min_arm_rows", self.min_arm_rows)];
        let small = small.map(|(name, value)| (name, json!(value))).into_iter();
        for (name, value) in small.chain(narrow.map(|name| (name, json!(self.widths)))) {
            if settings.model.contains_key(name) {
                settings.model.insert(name.into(), value);
            }
        }
        if settings.model.contains_key("of") {
            let own =
                self.of.iter().map(|name| (*name, self.settings(learner(name).expect("a known learner"))));
            settings.model.insert("learners".into(), json!(own.collect::<BTreeMap<_, _>>()));
            settings.model.insert("of".into(), json!(self.of));
        }
        for (name, value) in [("epochs", self.epochs), ("folds", 2), ("batch_rows", self.batch_rows)] {
            // A fixed number of folds stays what it is.
            if settings.training.contains_key(name) && settings.training[name] != 1 {
                settings.training.insert(name.into(), value.into());
            }
        }
        settings
    }
}
