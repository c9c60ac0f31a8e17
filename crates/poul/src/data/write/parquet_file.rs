//! A Parquet file, written row group by row group.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use crate::{AtomicFile, Error, Result};

/// A Parquet file whose columns are encoded in parallel, one row group at a time.
pub(super) struct ParquetFile {
    path: PathBuf,
    schema: SchemaRef,
    file: SerializedFileWriter<AtomicFile>,
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<ArrowColumnWriter>,
    n_open: usize,
    n_group: usize,
}

impl ParquetFile {
    /// Starts a file.
    pub(super) fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        let level = ZstdLevel::try_new(1).map_err(|error| parquet_error(path, error))?;
        let mut properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
        for field in schema.fields() {
            // Hashing measured numbers into a dictionary costs more than writing them, and never pays.
            if field.data_type().is_floating() {
                let column = ColumnPath::from(field.name().as_str());
                properties = properties.set_column_dictionary_enabled(column, false);
            }
        }
        let n_group = rows_per_group(&schema);
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties.build()));
        let (file, factory) = writer
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| parquet_error(path, error))?;
        Ok(Self { path: path.to_path_buf(), schema, file, factory, columns: Vec::new(), n_open: 0, n_group })
    }

    /// Appends rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.split_by_group(batch).map_err(|error| parquet_error(&self.path, error))
    }

    /// Makes the file appear.
    pub(super) fn finish(mut self) -> Result<()> {
        let closed = self.close_group().and_then(|()| self.file.into_inner());
        closed.map_err(|error| parquet_error(&self.path, error))?.commit()
    }

    fn split_by_group(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut start = 0;
        while start < batch.num_rows() {
            let n_rows = (self.n_group - self.n_open).min(batch.num_rows() - start);
            self.write_within_group(&batch.slice(start, n_rows))?;
            start += n_rows;
            self.n_open += n_rows;
            if self.n_open == self.n_group {
                self.close_group()?;
            }
        }
        Ok(())
    }

    fn write_within_group(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        if self.n_open == 0 {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        self.columns.par_iter_mut().zip(leaves).try_for_each(|(writer, leaf)| writer.write(&leaf))
    }

    fn close_group(&mut self) -> Result<(), ParquetError> {
        if self.n_open == 0 {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns);
        let chunks = columns
            .into_par_iter()
            .map(ArrowColumnWriter::close)
            .collect::<Result<Vec<_>, ParquetError>>()?;
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.n_open = 0;
        Ok(())
    }
}

/// Rows of a row group: 128 Ki, or fewer where the table is so wide that they would not fit into 128 MiB.
fn rows_per_group(schema: &Schema) -> usize {
    const BYTES: usize = 128 << 20;
    let row_bytes: usize = schema.fields().iter().map(|field| width(field)).sum();
    (BYTES / row_bytes.max(1)).clamp(1 << 8, 1 << 17)
}

/// Bytes that a value takes, guessed for text.
fn width(field: &Field) -> usize {
    field.data_type().primitive_width().unwrap_or(16)
}

fn parquet_error(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => Error::output(path, *error),
            Err(source) => Error::output(path, io::Error::other(source)),
        },
        error => Error::output(path, io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;

    #[test]
    fn wide_tables_get_short_row_groups() {
        let schema = |n_columns: usize| {
            let field = |j| Field::new(format!("f{j}"), DataType::Float32, false);
            Schema::new((0..n_columns).map(field).collect::<Vec<_>>())
        };
        assert_eq!(rows_per_group(&schema(10)), 1 << 17);
        let rows = rows_per_group(&schema(723));
        assert!((40_000..65_536).contains(&rows), "{rows}");
        assert_eq!(rows_per_group(&schema(0)), 1 << 17);
    }
}
