//! Tables in memory and models of them, for worlds that are made here.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::data::Design;
use poul::effect::Settings;
use poul::policy::PolicySet;
use poul::{Error, Experiment, Model, Result, Roles, Silent, Source};

/// Rows of a world: features `x0` …, the outcome `y` and the policy.
#[derive(Default)]
pub(super) struct WorldRows {
    pub(super) x: Vec<Vec<f64>>,
    pub(super) y: Vec<f64>,
    pub(super) policy: Vec<String>,
}

impl WorldRows {
    /// As a table in memory.
    pub(super) fn source(self) -> Result<Source> {
        let n_features = self.x.first().map_or(0, Vec::len);
        let column = |k: usize| self.x.iter().map(|own| own[k]).collect::<Float64Array>();
        let mut columns: Vec<(String, ArrayRef)> =
            (0..n_features).map(|k| (format!("x{k}"), Arc::new(column(k)) as ArrayRef)).collect();
        columns.push(("y".to_owned(), Arc::new(Float64Array::from(self.y))));
        columns.push(("policy".to_owned(), Arc::new(StringArray::from(self.policy))));
        let table = RecordBatch::try_from_iter(columns).map_err(|error| Error::other(error.to_string()))?;
        Source::from_batches(table.schema(), vec![table])
    }
}

/// The model of a table; policies are those of the data where none are given.
pub(super) fn model(
    source: &Source,
    policies: Option<&PolicySet>,
    design: Design,
    learner: &str,
    settings: &Settings,
) -> Result<Model> {
    let roles = Roles { outcome: vec!["y".to_owned()], design, ..Roles::default() };
    let experiment = Experiment::open(source, &roles, policies.cloned(), &Silent)?;
    Model::fit(&experiment).learner(learner).settings(settings).run(&Silent)
}
