//! Components as a table: a row for each outcome, context and action.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};

use super::Components;
use crate::data::TableWriter;
use crate::evaluate::{AtomEffect, Interval};
use crate::{Error, Result};

impl Components {
    /// The columns `outcome`, `context`, `action`, `control`, `effect`, `se`, `lower`, `upper`, `band_lower`, `band_upper`,
    /// `weight` of the context and training `rows`; empty cells where something is not known.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let texts = |of: fn(&AtomEffect) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.atoms.iter().map(of)))
        };
        let numbers = |of: fn(&AtomEffect) -> Option<f64>| -> ArrayRef {
            Arc::new(self.atoms.iter().map(of).collect::<Float64Array>())
        };
        let is_control: BooleanArray = self.atoms.iter().map(|own| Some(own.control)).collect();
        let rows = Int64Array::from_iter_values(self.atoms.iter().map(|own| own.rows as i64));
        let columns: [(&str, ArrayRef, bool); 12] = [
            ("outcome", texts(|own| &own.outcome), false),
            ("context", texts(|own| &own.context), false),
            ("action", texts(|own| &own.action), false),
            ("control", Arc::new(is_control), false),
            ("effect", numbers(|own| own.effect), true),
            ("se", numbers(|own| own.se), true),
            ("lower", numbers(|own| end(own.interval, 0)), true),
            ("upper", numbers(|own| end(own.interval, 1)), true),
            ("band_lower", numbers(|own| end(own.band, 0)), true),
            ("band_upper", numbers(|own| end(own.band, 1)), true),
            ("weight", numbers(|own| Some(own.weight)), false),
            ("rows", Arc::new(rows), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| Error::other(format!("cannot assemble components: {error}")).source(error))
    }

    /// Writes them to a `.parquet` or `.csv` file; gives how many there are.
    pub fn write(&self, path: &Path) -> Result<u64> {
        let batch = self.to_batch()?;
        let mut writer = TableWriter::create(path, batch.schema())?;
        writer.write(&batch)?;
        writer.finish()
    }
}

fn end(interval: Option<Interval>, side: usize) -> Option<f64> {
    interval.map(|ends| ends[side])
}
