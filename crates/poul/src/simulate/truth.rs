//! The truth of the test rows: effects of every policy and, where nobody randomised, propensities.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;

use super::world::{Setting, World};
use crate::data::TableWriter;
use crate::{Error, Result};

/// Pairs of a row and a policy in one record batch.
const BATCH_PAIRS: usize = 1 << 16;
/// Batches computed before they are written.
const BATCHES: usize = 16;

/// Streams `row,policy,effect_<outcome>…`, input order first, and `row,policy,propensity`.
pub(super) struct TruthWriter {
    effects: TableWriter,
    effect_schema: SchemaRef,
    propensities: Option<(TableWriter, SchemaRef)>,
}

impl TruthWriter {
    /// Starts the tables; propensities are written where a path is given.
    pub(super) fn create(effects: &Path, propensities: Option<&Path>, setting: &Setting) -> Result<Self> {
        let names = setting.outcomes.iter().map(|outcome| format!("effect_{outcome}"));
        let effect_schema = schema(names);
        let propensities = match propensities {
            Some(path) => {
                let schema = schema(["propensity".to_string()]);
                Some((TableWriter::create(path, Arc::clone(&schema))?, schema))
            }
            None => None,
        };
        Ok(Self {
            effects: TableWriter::create(effects, Arc::clone(&effect_schema))?,
            effect_schema,
            propensities,
        })
    }

    /// Appends the first `n_rows` units of a block that begins at `first_row` of the test table.
    pub(super) fn write<W: World>(
        &mut self,
        world: &W,
        units: &W::Units,
        first_row: u64,
        n_rows: usize,
    ) -> Result<()> {
        let setting = world.setting();
        let all: Vec<usize> = (0..setting.shares.len()).collect();
        write_pairs(&mut self.effects, &self.effect_schema, setting, &all, first_row, n_rows, |pairs| {
            let outcomes = 0..setting.outcomes.len();
            outcomes
                .map(|idx| pairs.iter().map(|&(row, policy)| world.effect(units, idx, row, policy)).collect())
                .collect()
        })?;
        if let Some((writer, schema)) = &mut self.propensities {
            let seen: Vec<usize> = all.into_iter().filter(|&idx| setting.shares[idx] > 0.0).collect();
            write_pairs(writer, schema, setting, &seen, first_row, n_rows, |pairs| {
                vec![pairs.iter().map(|&(row, policy)| world.propensities(units, row)[policy]).collect()]
            })?;
        }
        Ok(())
    }

    /// Makes the tables appear.
    pub(super) fn finish(self) -> Result<()> {
        self.effects.finish()?;
        if let Some((writer, _)) = self.propensities {
            writer.finish()?;
        }
        Ok(())
    }
}

/// Batches hold whole rows and depend on the number of policies alone, so the bytes do not depend on threads.
fn write_pairs(
    writer: &mut TableWriter,
    schema: &SchemaRef,
    setting: &Setting,
    policies: &[usize],
    first_row: u64,
    n_rows: usize,
    values: impl Fn(&[(usize, usize)]) -> Vec<Vec<f64>> + Sync,
) -> Result<()> {
    let batch_rows = (BATCH_PAIRS / policies.len().max(1)).max(1);
    let ranges: Vec<Range<usize>> =
        (0..n_rows).step_by(batch_rows).map(|start| start..n_rows.min(start + batch_rows)).collect();
    for ranges in ranges.chunks(BATCHES) {
        let batches: Vec<RecordBatch> = ranges
            .par_iter()
            .map(|rows| {
                let pairs: Vec<(usize, usize)> =
                    rows.clone().flat_map(|row| policies.iter().map(move |&policy| (row, policy))).collect();
                let row_numbers = pairs.iter().map(|&(row, _)| first_row as i64 + row as i64);
                let names = pairs.iter().map(|&(_, policy)| setting.policies.names[policy].as_str());
                let mut columns: Vec<ArrayRef> = vec![
                    Arc::new(Int64Array::from_iter_values(row_numbers)),
                    Arc::new(StringArray::from_iter_values(names)),
                ];
                columns.extend(
                    values(&pairs).into_iter().map(|values| Arc::new(Float64Array::from(values)) as _),
                );
                RecordBatch::try_new(Arc::clone(schema), columns)
            })
            .collect::<Result<_, _>>()
            .map_err(|error| Error::other(format!("true effects do not fit their schema: {error}")))?;
        for batch in &batches {
            writer.write(batch)?;
        }
    }
    Ok(())
}

fn schema(values: impl IntoIterator<Item = String>) -> SchemaRef {
    let mut fields =
        vec![Field::new("row", DataType::Int64, false), Field::new("policy", DataType::Utf8, false)];
    fields.extend(values.into_iter().map(|name| Field::new(name, DataType::Float64, false)));
    Arc::new(Schema::new(fields))
}
