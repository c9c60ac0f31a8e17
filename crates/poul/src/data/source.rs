//! A table in files: one file, a folder or a glob of Parquet, CSV or Arrow IPC, streamed in batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::batches::Batches;
use super::fingerprint::Digest;
use super::listing::{self, Format};
use super::state::FileState;
use super::unify::unify;
use super::{csv, ipc, parquet as parquet_file};
use crate::{Error, Kind, Result};

/// A table that is read in batches, as often as needed, in bounded memory.
///
/// Files are taken in the order of their names, so that the order in which a disk lists them cannot matter. Opening
/// reads only metadata, except for CSV, whose column types take one pass over the text.
#[derive(Clone, Debug)]
pub struct Source {
    files: Arc<[SourceFile]>,
    schema: SchemaRef,
    n_rows: u64,
    /// As it was named; nothing for a table in memory.
    location: Option<Arc<Path>>,
    /// Whether it is a part of a larger table.
    is_part: bool,
    /// What the content was when it was first asked for.
    fingerprint: Arc<OnceLock<String>>,
}

/// One file of a source, with what its metadata says.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) n_bytes: u64,
    /// As it was when it was opened; none for a table in memory.
    pub(crate) state: Option<FileState>,
    pub(crate) n_rows: u64,
    /// The columns as the file has them; types may differ from the source's, which are the widest of all files.
    pub(crate) schema: SchemaRef,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Parquet(ArrowReaderMetadata),
    Csv { gzip: bool },
    IpcFile,
    IpcStream,
    Memory(Vec<RecordBatch>),
}

impl Source {
    /// Opens `location`: a file, a folder (every data file below it) or a glob such as `data/*.parquet`.
    ///
    /// All files must be of one format and have the same columns, in any order. Integer and float types that differ
    /// between files are widened to 64-bit floats; any other difference is an error that names file and column.
    pub fn open(location: &str) -> Result<Self> {
        Self::open_path(location)
    }

    /// As [`open`](Self::open), for a name that need not be text, as file names on Unix need not.
    pub fn open_path(location: impl AsRef<Path>) -> Result<Self> {
        let location = location.as_ref();
        let listing = listing::find(location)?;
        let files = match listing.format {
            Format::Parquet => {
                listing.paths.iter().map(|path| parquet_file::open(path)).collect::<Result<Vec<_>>>()?
            }
            Format::Csv => csv::open(&listing.paths)?,
            Format::Ipc => listing.paths.iter().map(|path| ipc::open(path)).collect::<Result<Vec<_>>>()?,
        };
        Ok(Self { location: Some(location.into()), ..Self::from_files(files)? })
    }

    /// A table already in memory.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        if let Some(batch) = batches.iter().find(|batch| batch.schema().fields() != schema.fields()) {
            let found = batch.schema();
            return Err(Error::input(format!("a batch has columns {found:?} instead of {schema:?}")));
        }
        let n_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let n_bytes = batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
        let content = Content::Memory(batches);
        Self::from_files(vec![SourceFile {
            path: PathBuf::new(),
            n_bytes,
            state: None,
            n_rows,
            schema,
            content,
        }])
    }

    fn from_files(files: Vec<SourceFile>) -> Result<Self> {
        let schema = unify(&files)?;
        let n_rows = files.iter().map(|file| file.n_rows).sum();
        Ok(Self {
            files: files.into(),
            schema,
            n_rows,
            location: None,
            is_part: false,
            fingerprint: Arc::default(),
        })
    }

    /// The same as a part of a larger table: that no row of it counts, or none has a weight, is then no mistake.
    #[must_use]
    pub fn part(self) -> Self {
        Self { is_part: true, ..self }
    }

    /// Whether it is a part of a larger table.
    pub(crate) fn is_part(&self) -> bool {
        self.is_part
    }

    /// The columns, in the order of the first file.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names of the columns.
    pub fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The files, in the order in which they are read; a table in memory has none.
    pub fn files(&self) -> Vec<&Path> {
        self.files
            .iter()
            .map(|file| file.path.as_path())
            .filter(|path| !path.as_os_str().is_empty())
            .collect()
    }

    /// The number of rows where it is known before reading, which today is always.
    pub fn n_rows(&self) -> Option<u64> {
        Some(self.n_rows)
    }

    /// About how many bytes one row of the named columns takes once decoded; text is guessed.
    pub(crate) fn decoded_row_bytes(&self, columns: &[&str]) -> usize {
        let bytes = |data_type: &DataType| match data_type {
            DataType::Dictionary(keys, _) => keys.primitive_width().unwrap_or(8),
            DataType::Boolean | DataType::Null => 1,
            data_type => data_type.primitive_width().unwrap_or(20),
        };
        let places = places(&self.schema);
        let fields =
            columns.iter().filter_map(|name| places.get(name).map(|place| self.schema.field(*place)));
        fields.map(|field| bytes(field.data_type())).sum()
    }

    /// The named columns, in that order, in batches of at most `batch_rows` rows, file after file.
    pub fn batches(
        &self,
        columns: &[&str],
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        Ok(self.located_batches(columns, batch_rows)?.map(|located| located.map(|located| located.batch)))
    }

    /// As [`batches`](Self::batches), each with the file it came from.
    pub(crate) fn located_batches(&self, columns: &[&str], batch_rows: usize) -> Result<Batches> {
        Batches::new(Arc::clone(&self.files), &self.schema, columns, batch_rows)
    }

    /// Whether threads can share the work of decoding by taking columns each.
    pub(crate) fn decodes_by_column(&self) -> bool {
        self.files.iter().all(|file| matches!(file.content, Content::Parquet(_)))
    }

    /// The path of each file; empty for a table in memory.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Names the table, as it was opened, in an error about its content that does not say where; one in memory has no name.
    pub fn locate(&self, error: Error) -> Error {
        match &self.location {
            Some(location) if error.kind() == Kind::Input => error.file(&**location),
            _ => error,
        }
    }

    /// A digest of the content that is cheap to take: schema, sizes, row counts, the ends of each file and samples
    /// between them. It does not depend on where the files are, what they are called or when they were written.
    ///
    /// Two different tables have different digests unless they differ only between the sampled places of files of
    /// the same length: it tells mistakes, not forgeries. It is taken once, the first time.
    pub fn fingerprint(&self) -> Result<String> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known.clone());
        }
        let found = self.digest()?;
        Ok(self.fingerprint.get_or_init(|| found).clone())
    }

    /// Refuses a table whose content is no longer what its fingerprint says.
    pub(crate) fn require_unchanged(&self) -> Result<()> {
        if self.digest()? == self.fingerprint()? {
            return Ok(());
        }
        Err(Error::input("the data changed while they were read").hint("run again once they are written"))
    }

    fn digest(&self) -> Result<String> {
        let mut digest = Digest::new();
        for field in self.schema.fields() {
            digest.text(field.name());
            digest.text(&field.data_type().to_string());
        }
        for file in self.files.iter() {
            file.check_unchanged()?;
            digest.number(file.n_rows);
            match &file.content {
                Content::Memory(batches) => digest.batches(batches),
                _ => digest.file(&file.path, file.n_bytes)?,
            }
        }
        Ok(digest.hex())
    }
}

impl SourceFile {
    /// An error if somebody wrote to the file, cut it or put another in its place since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.state.as_ref().map_or(Ok(()), |state| state.check(&self.path))
    }
}

/// Where each column stands: looking names up one by one takes time that grows with the square of their number.
pub(crate) fn places(schema: &Schema) -> BTreeMap<&str, usize> {
    // Of columns with one name the first is meant, as in a search.
    schema.fields().iter().enumerate().rev().map(|(place, field)| (field.name().as_str(), place)).collect()
}

/// Names `path` in `error`, unless the table is in memory.
pub(crate) fn locate(error: Error, path: &Path) -> Error {
    if path.as_os_str().is_empty() { error } else { error.file(path) }
}
