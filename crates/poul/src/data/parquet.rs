//! Parquet files.

mod pages;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

pub(crate) use self::pages::Pages;
use super::batches::{FileBatches, guarded};
use super::source::{Content, SourceFile, places};
use super::state::FileState;
use crate::{Error, Result};

/// Reads the footer of a Parquet file.
pub(crate) fn open(path: &Path) -> Result<SourceFile> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    let state = FileState::of(&file, path)?;
    let metadata = guarded(path, || {
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
            .map_err(|error| corrupt(path, &error.to_string()))
    })?;
    let n_rows = u64::try_from(metadata.metadata().file_metadata().num_rows())
        .map_err(|_| corrupt(path, "the number of rows is negative"))?;
    let groups = metadata.metadata().row_groups();
    let of_groups = groups.iter().try_fold(0_i64, |sum, group| sum.checked_add(group.num_rows()));
    if of_groups.and_then(|sum| u64::try_from(sum).ok()) != Some(n_rows) {
        return Err(corrupt(path, "the rows of its groups are not as many as the file says"));
    }
    Ok(SourceFile {
        path: path.to_path_buf(),
        n_bytes: state.n_bytes(),
        state: Some(state),
        n_rows,
        schema: Arc::clone(metadata.schema()),
        content: Content::Parquet(metadata),
    })
}

/// The columns that `wanted` names, decoded in batches; pages are read as they are needed.
pub(crate) fn batches(
    source: &SourceFile,
    metadata: &ArrowReaderMetadata,
    wanted: &Schema,
    batch_rows: usize,
) -> Result<FileBatches> {
    let path = source.path.clone();
    let file = File::open(&path).map_err(|error| Error::read(&path, error))?;
    let places = places(metadata.schema());
    let roots = wanted.fields().iter().filter_map(|field| places.get(field.name().as_str()).copied());
    let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
    let pages = Pages::new(file, metadata.metadata());
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata.clone())
        .with_projection(mask)
        .with_batch_size(batch_rows)
        .build()
        .map_err(|error| corrupt(&path, &error.to_string()))?;
    Ok(Box::new(reader.map(move |batch| batch.map_err(|error| corrupt(&path, &error.to_string())))))
}

fn corrupt(path: &Path, what: &str) -> Error {
    let error = Error::input(format!("cannot be read as Parquet: {what}")).file(path);
    error.hint("the file may be cut short or damaged: write it again")
}
