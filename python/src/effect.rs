//! Effects of a whole table: the same steps as `poul effect`, to memory or to a file.

use std::path::PathBuf;

use poul::data::{Need, Roles, Source};
use poul::effect::{EffectTable, Question};
use poul::model::{self, CertificateParams};
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
        let columns = model.columns(source, &roles(request, model, source), Need::SCORE);
        let columns = columns.map_err(|error| frame.locate(error))?;
        let policies = policies.map_or(&model.manifest().policies, |policies| &policies.set);
        let question = Question { policies: request.policy.clone(), against: request.against.clone() };
        let answer = model.ask(policies, &question, request.allow_unseen)?;
        answer.scorer.notes().iter().for_each(|note| progress.warn(note));
        let names = answer.names();
        let min_rows = request.min_rows.unwrap_or_else(|| CertificateParams::default().min_rows);
        let shares = model.supported_shares(&answer.asked.policies, &answer.asked.targets, min_rows);
        let table = EffectTable {
            encoder: &model.manifest().encoder,
            columns: &columns,
            exposure: model.manifest().exposure.as_ref(),
            scorer: answer.scorer.as_ref(),
            outcomes: model.effects().outcomes(),
            policies: &names,
            against: answer.against(),
            interval: request.interval,
            unseen_share: (request.allow_unseen || request.support).then_some(answer.unseen_share.as_slice()),
            support: request.support.then_some(shares.as_slice()),
            wide: request.wide,
        };
        let found = match out {
            Some(path) => table.write(source, &path, progress).map(Found::Written),
            None => table.collect(source, progress).map(|(schema, batches)| Found::Table(schema, batches)),
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

/// The ids asked for; or those of the training data, if the table has them.
fn roles(request: &EffectRequest, model: &model::Model, source: &Source) -> Roles {
    let fitted = &model.manifest().roles;
    let known = source.column_names();
    let has = |id: &String| known.contains(&id.as_str());
    let own = || if fitted.id.iter().all(has) { fitted.id.clone() } else { Vec::new() };
    Roles {
        id: request.id.clone().unwrap_or_else(own),
        population: request.population.clone(),
        // Its default would collide with an id column of that name; rows are scored whatever was done to them.
        treatment: fitted.treatment.clone(),
        treatment_columns: fitted.treatment_columns.clone(),
        ..Roles::default()
    }
}
