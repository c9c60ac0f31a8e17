//! The rows of a source, file after file, as batches of one schema.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::source::{Content, SourceFile, locate, places};
use super::unify::widen;
use super::{csv, ipc, parquet};
use crate::{Error, Result};

/// Iterates over the batches of a source.
pub(crate) struct Batches {
    files: Arc<[SourceFile]>,
    /// The columns asked for, with the types of the source.
    schema: SchemaRef,
    batch_rows: usize,
    file_idx: usize,
    current: Option<FileBatches>,
    rows_in_file: u64,
    first_row: u64,
    failed: bool,
}

/// What a format gives: batches with some of the asked columns' names in any order.
pub(crate) type FileBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// A batch and where it came from.
pub(crate) struct Located {
    pub(crate) batch: RecordBatch,
    pub(crate) file_idx: usize,
    /// The number of the batch's first row in its file, from 0.
    pub(crate) first_row_in_file: u64,
    /// The number of the batch's first row in the source, from 0.
    pub(crate) first_row: u64,
}

impl Batches {
    pub(crate) fn new(
        files: Arc<[SourceFile]>,
        schema: &Schema,
        columns: &[&str],
        batch_rows: usize,
    ) -> Result<Self> {
        let places = places(schema);
        let field = |name: &&str| {
            let known = schema.fields().iter().map(|field| field.name().as_str());
            let place = places.get(name).ok_or_else(|| Error::missing_column(name, known))?;
            Ok(schema.field(*place).clone())
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>();
        let fields = fields.map_err(|error| match files.first() {
            Some(file) => locate(error, &file.path),
            None => error,
        })?;
        Ok(Self {
            files,
            schema: Arc::new(Schema::new(fields)),
            batch_rows: batch_rows.max(1),
            file_idx: 0,
            current: None,
            rows_in_file: 0,
            first_row: 0,
            failed: false,
        })
    }

    fn next_batch(&mut self) -> Result<Option<Located>> {
        loop {
            let Some(file) = self.files.get(self.file_idx) else { return Ok(None) };
            let batches = match &mut self.current {
                Some(batches) => batches,
                None => {
                    self.rows_in_file = 0;
                    file.check_unchanged()?;
                    let opened = guarded(&file.path, || open(file, &self.schema, self.batch_rows));
                    self.current.insert(opened.map_err(|error| told(file, error))?)
                }
            };
            match guarded(&file.path, || batches.next().transpose()).map_err(|error| told(file, error))? {
                None => {
                    file.check_unchanged()?;
                    self.current = None;
                    self.file_idx += 1;
                }
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let batch = conform(&batch, &self.schema).map_err(|error| locate(error, &file.path))?;
                    let located = Located {
                        file_idx: self.file_idx,
                        first_row_in_file: self.rows_in_file,
                        first_row: self.first_row,
                        batch,
                    };
                    self.rows_in_file += located.batch.num_rows() as u64;
                    self.first_row += located.batch.num_rows() as u64;
                    return Ok(Some(located));
                }
            }
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_batch().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// What went wrong when a file was read: that it changed, if it did.
fn told(file: &SourceFile, error: Error) -> Error {
    file.check_unchanged().err().unwrap_or(error)
}

/// Runs code of a format's reader, whose panics on corrupt files become errors.
///
/// The Parquet and IPC readers index by numbers that stand in the file: see `tests/data_corrupt.rs`, where both panic.
/// Nothing of theirs is used after a panic.
pub(crate) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the reader gave up");
        let error = Error::input(format!("the file is corrupt: {text}"));
        Err(locate(error, path).hint("write it again, or leave it out"))
    })
}

fn open(file: &SourceFile, schema: &SchemaRef, batch_rows: usize) -> Result<FileBatches> {
    match &file.content {
        Content::Parquet(metadata) => parquet::batches(file, metadata, schema, batch_rows),
        Content::Csv { gzip } => csv::batches(file, *gzip, schema, batch_rows),
        Content::IpcFile => ipc::file_batches(file, schema, batch_rows),
        Content::IpcStream => ipc::stream_batches(file, schema, batch_rows),
        Content::Memory(batches) => {
            let batches = batches.clone().into_iter().flat_map(move |batch| sliced(batch, batch_rows));
            Ok(Box::new(batches.map(Ok)))
        }
    }
}

/// `batch` in pieces of at most `batch_rows` rows, without copying.
pub(crate) fn sliced(batch: RecordBatch, batch_rows: usize) -> impl Iterator<Item = RecordBatch> + Send {
    let n_rows = batch.num_rows();
    (0..n_rows).step_by(batch_rows).map(move |start| batch.slice(start, batch_rows.min(n_rows - start)))
}

/// The columns of `schema`, in its order and with its types.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let read = batch.schema();
    let found = places(&read);
    let mut arrays = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let array = found
            .get(field.name().as_str())
            .map(|place| batch.column(*place))
            .ok_or_else(|| Error::input(format!("column `{}` went missing while reading", field.name())))?;
        arrays.push(
            widen(array, field.data_type())
                .map_err(|error| error.at(format!("column `{}`", field.name())))?,
        );
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(|error| Error::other(format!("cannot assemble a batch: {error}")).source(error))
}
