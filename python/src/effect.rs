//! Effects of a whole table: the same steps as `poul effect`, to memory or to a file.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Deserialize;

use crate::frame::Frame;
use crate::model::Model;
use crate::policies::PolicySet;
use crate::work;

/// What is asked.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(crate) struct EffectRequest {
    /// Policies; all where there are none.
    policy: Vec<String>,
    against: Option<String>,
    interval: Option<f64>,
    allow_unseen: bool,
    support: bool,
    /// One row for each input row, a column for each outcome and policy.
    wide: bool,
    /// Training rows from which an atom counts as well seen; the certificates' where there is no number.
    min_rows: Option<u64>,
    population: Option<String>,
    /// Columns that identify rows; the model's own where there are none.
    id: Option<Vec<String>>,
    threads: Option<usize>,
}

pub(crate) fn effect<'py>(
    py: Python<'py>,
    model: &Model,
    frame: &Frame,
    request: &EffectRequest,
    policies: Option<&PolicySet>,
    out: Option<PathBuf>,
    listener: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (model, source) = (&*model.model, &frame.source);
    let found = work::run(py, request.threads, listener, |progress| {
        let mut effect = model
            .effect(source)
            .policy(&request.policy)
            .against(request.against.clone())
            .interval(request.interval)
            .allow_unseen(request.allow_unseen)
            .support(request.support)
            .wide(request.wide)
            .id(request.id.clone())
            .population(request.population.clone());
        if let Some(policies) = policies {
            effect = effect.policies(&policies.set);
        }
        if let Some(min_rows) = request.min_rows {
            effect = effect.min_rows(min_rows);
        }
        let found = match out {
            Some(path) => effect.write(path, progress).map(|scored| Found::Written(scored.rows)),
            None => effect.collect(progress).map(|(schema, batches)| Found::Table(schema, batches)),
        };
        found.map_err(|error| frame.locate(error))
    })?;
    match found {
        Found::Written(n_rows) => Ok(n_rows.into_pyobject(py)?.into_any()),
        Found::Table(schema, batches) => Ok(Frame::of(py, schema, batches)?.into_pyobject(py)?.into_any()),
    }
}

enum Found {
    Written(u64),
    Table(arrow_schema::SchemaRef, Vec<arrow_array::RecordBatch>),
}
