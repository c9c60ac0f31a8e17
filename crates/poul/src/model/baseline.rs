//! Rows without a treatment, from which the outcome model learns too: D_all of Algorithm 1 in the paper.
//!
//! They are encoded by the encoder of the experiment, whose rows effects are learned on: the range of the features there
//! is the one that counts, and a model does not change with columns that only the baseline has. The population filter is
//! of the experiment; a baseline table is taken whole.

use super::FitRequest;
use crate::data::{Budget, Columns, Dataset, Encoder, Labels, Need, Roles, Source};
use crate::effect::BaselineRows;
use crate::{Error, Kind, Progress, Result};

/// One table, encoded.
pub(super) struct Baseline {
    dataset: Dataset,
    /// Clusters by the numbers of the experiment's; others follow.
    cluster: Option<Vec<u32>>,
}

impl Baseline {
    /// Rows that are in memory at a time; none where all are.
    pub(super) fn window_rows(&self) -> Option<usize> {
        self.dataset.x.window_rows()
    }

    /// Finds the columns of every table of the request, before any row is read.
    pub(super) fn columns(request: &FitRequest<'_>) -> Result<Vec<Columns>> {
        let of_table = |source: &Source| {
            columns(source, request).map_err(|error| {
                in_file(error.otherwise("add it: a baseline table has what the experiment has"), source)
            })
        };
        request.baseline.iter().map(of_table).collect()
    }

    /// Reads every table of the request.
    pub(super) fn read_all(
        request: &FitRequest<'_>,
        columns: Vec<Columns>,
        encoder: &Encoder,
        experiment: &Dataset,
        progress: &dyn Progress,
    ) -> Result<Vec<Self>> {
        let mut left = request.budget.clone();
        spend(&mut left, experiment);
        let mut clusters = Labels::clone(&experiment.cluster_labels);
        let mut tables = Vec::with_capacity(request.baseline.len());
        for (source, columns) in request.baseline.iter().zip(columns) {
            let columns = encoder.columns_for(columns, source.schema());
            let columns = columns.map_err(|error| in_file(error, source))?;
            let dataset = Dataset::read(source, &columns, encoder, &left, progress);
            let dataset = dataset.map_err(|error| {
                in_file(
                    error.hint("correct the row, or leave it out: a baseline table is taken whole"),
                    source,
                )
            })?;
            spend(&mut left, &dataset);
            let codes: Vec<u32> =
                dataset.cluster_labels.names().iter().map(|name| clusters.intern(name)).collect();
            let cluster = dataset.cluster.as_ref();
            let cluster = cluster.map(|cluster| cluster.iter().map(|code| codes[*code as usize]).collect());
            tables.push(Self { dataset, cluster });
        }
        Ok(tables)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.dataset.n_rows()
    }

    /// What a learner is given of it.
    pub(super) fn rows(&self) -> BaselineRows<'_> {
        BaselineRows {
            x: &self.dataset.x,
            outcomes: self.dataset.outcomes.iter().map(Vec::as_slice).collect(),
            weight: self.dataset.weight.as_deref(),
            cluster: self.cluster.as_deref(),
        }
    }
}

/// The features, outcomes, weight and cluster of the experiment, in a baseline table.
fn columns(source: &Source, request: &FitRequest<'_>) -> Result<Columns> {
    let known = source.column_names();
    if let Some(feature) =
        request.experiment.columns().feature_names().iter().find(|name| !known.contains(name))
    {
        return Err(Error::missing_column(feature, known).at("feature"));
    }
    let roles = request.experiment.roles();
    let roles = Roles {
        treatment: roles.treatment.clone(),
        treatment_columns: roles.treatment_columns.clone(),
        outcome: roles.outcome.iter().chain(&roles.auxiliary).cloned().collect(),
        weight: roles.weight.clone(),
        cluster: roles.cluster.clone(),
        ..Roles::default()
    };
    let need = Need { treatment: false, outcome: true, features: false };
    roles.check(source.schema(), need)
}

/// Takes what a table holds in memory off the budget.
fn spend(budget: &mut Budget, dataset: &Dataset) {
    budget.bytes = budget.bytes.saturating_sub(dataset.x.memory_bytes()).max(1);
}

fn in_file(error: Error, source: &Source) -> Error {
    match source.files().first() {
        Some(file) if error.kind() == Kind::Input => error.file(file),
        _ => error,
    }
}
