//! The allocation as a table: a row for each user and policy it gets.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::scored::Block;
use crate::data::{Source, TableWriter};
use crate::{Error, Result};

/// Where the table goes.
#[derive(Clone, Copy, Debug)]
pub enum Target<'p> {
    /// A `.parquet` or `.csv` file.
    File(&'p Path),
    /// Memory.
    Memory,
}

/// A table in memory.
pub type Batches = (SchemaRef, Vec<RecordBatch>);

/// Writes the rows as they are decided. Nothing appears before [`finish`](Self::finish).
pub(super) struct AllocationTable {
    schema: SchemaRef,
    sink: Sink,
}

enum Sink {
    File(Box<TableWriter>),
    Memory(Vec<RecordBatch>),
}

/// A user of a block, the option it gets and the share of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) user: usize,
    pub(super) option: usize,
    pub(super) share: f64,
}

impl AllocationTable {
    /// Starts the table. `ids` are columns of the users.
    pub(super) fn create(
        target: Target<'_>,
        source: &Source,
        ids: &[String],
        outcomes: &[String],
    ) -> Result<Self> {
        let mut fields: Vec<Field> = Vec::new();
        for id in ids {
            let field = source.schema().field_with_name(id);
            fields
                .push(field.map_err(|_| Error::missing_column(id, source.column_names()).at("id"))?.clone());
        }
        if fields.is_empty() {
            fields.push(Field::new("row", DataType::Int64, false));
        }
        fields.push(Field::new("policy", DataType::Utf8, false));
        fields.push(Field::new("share", DataType::Float64, false));
        let effect = |outcome: &String| Field::new(format!("effect_{outcome}"), DataType::Float32, false);
        fields.extend(outcomes.iter().map(effect));
        let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let error = Error::usage(format!("two columns of the allocation are called `{}`", pair[0]));
            return Err(error.hint("rename the id column, or name others: ‹id=COL›"));
        }
        let schema = Arc::new(Schema::new(fields));
        let sink = match target {
            Target::File(path) => Sink::File(Box::new(TableWriter::create(path, Arc::clone(&schema))?)),
            Target::Memory => Sink::Memory(Vec::new()),
        };
        Ok(Self { schema, sink })
    }

    /// Adds users of a block, in order.
    pub(super) fn write(&mut self, block: &Block, given: &[Given], names: &[String]) -> Result<()> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if block.ids.is_empty() {
            let numbers = given.iter().map(|own| block.rows[own.user] as i64);
            arrays.push(Arc::new(Int64Array::from_iter_values(numbers)));
        } else {
            let users = UInt32Array::from_iter_values(given.iter().map(|own| own.user as u32));
            for id in &block.ids {
                let taken = arrow_select::take::take(id, &users, None);
                arrays.push(taken.map_err(|error| Error::other(format!("cannot take ids: {error}")))?);
            }
        }
        let policies = given.iter().map(|own| names[own.option].as_str());
        arrays.push(Arc::new(StringArray::from_iter_values(policies)));
        arrays.push(Arc::new(Float64Array::from_iter_values(given.iter().map(|own| own.share))));
        for outcome in 0..block.scores.mean.len() {
            let effects = given.iter().map(|own| block.effect(outcome, own.user, own.option) as f32);
            arrays.push(Arc::new(Float32Array::from_iter_values(effects)));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(|error| {
            Error::other(format!("cannot assemble the allocation: {error}")).source(error)
        })?;
        match &mut self.sink {
            Sink::File(writer) => writer.write(&batch),
            Sink::Memory(batches) => {
                batches.push(batch);
                Ok(())
            }
        }
    }

    /// Makes the file appear, or gives the table.
    pub(super) fn finish(self) -> Result<Option<Batches>> {
        match self.sink {
            Sink::File(writer) => writer.finish().map(|_| None),
            Sink::Memory(batches) => Ok(Some((self.schema, batches))),
        }
    }
}
