//! Tables in memory and models of them, for worlds that are made here.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::data::{Budget, Design, EncoderParams, Need, Roles, Source};
use poul::effect::Settings;
use poul::model::{FitRequest, Model, fit};
use poul::policy::PolicySet;
use poul::{Error, Result, Silent};

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
    let columns = roles.check(source.schema(), Need::FIT)?;
    let from_data = match policies {
        Some(_) => None,
        None => Some(PolicySet::from_data(source, &columns, None, &Silent)?),
    };
    let Some(policies) = policies.or(from_data.as_ref()) else {
        return Err(Error::other("there are no policies"));
    };
    let request = FitRequest {
        source,
        roles: &roles,
        columns: &columns,
        policies,
        control: Some("control"),
        baseline: &[],
        strata_table: None,
        learner,
        settings,
        encoder: &EncoderParams::default().check()?,
        budget: &Budget::default(),
        seed: 3407,
        command: Vec::new(),
        checkpoint: None,
        warm_start: None,
    };
    fit(&request, &Silent)
}
