//! CSV files, plain or compressed with gzip: a header, then rows.

mod infer;
mod read;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::csv::ByteRecord;
use arrow_schema::{Field, Schema};
use flate2::read::MultiGzDecoder;

use self::infer::CellTypes;
pub(crate) use self::read::batches;
use super::source::{Content, SourceFile};
use crate::{Error, Result};

/// Reads each file once to find the type of each column.
///
/// A folder of CSV files is one table: a column's type is what holds the cells of all files together, so that it
/// does not depend on how rows are split into files.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<SourceFile>> {
    let inferred = paths.iter().map(|path| infer::infer(path)).collect::<Result<Vec<_>>>()?;
    let mut types: BTreeMap<&str, CellTypes> = BTreeMap::new();
    for (name, cells) in inferred.iter().flat_map(|file| &file.columns) {
        let known = types.entry(name).or_default();
        *known = known.with(*cells);
    }
    if inferred.iter().all(|file| file.n_rows == 0) {
        let error = Error::input("there are no rows below the header").file(&paths[0]);
        return Err(error.hint("the first line is read as column names"));
    }
    let files = paths.iter().zip(&inferred).map(|(path, file)| {
        let fields: Vec<Field> = file
            .columns
            .iter()
            .map(|(name, _)| Field::new(name, types[name.as_str()].data_type(), true))
            .collect();
        SourceFile {
            path: path.clone(),
            n_bytes: file.state.n_bytes(),
            state: Some(file.state.clone()),
            n_rows: file.n_rows,
            schema: Arc::new(Schema::new(fields)),
            content: Content::Csv { gzip: file.gzip },
        }
    });
    Ok(files.collect())
}

/// The cells that mean nothing is there. `None` is a value: it is a common name of an action.
fn is_null(cell: &[u8]) -> bool {
    matches!(cell, b"" | b"NA" | b"NaN" | b"nan" | b"null" | b"NULL")
}

fn boolean(cell: &[u8]) -> Option<bool> {
    match cell {
        b"true" | b"True" | b"TRUE" => Some(true),
        b"false" | b"False" | b"FALSE" => Some(false),
        _ => None,
    }
}

/// Bytes that a row may have: a file whose quote never closes, or that unpacks to one endless cell, is not held in memory.
const MOST_ROW_BYTES: u64 = 64 << 20;

/// Rows of a file, none of them longer than a row can be.
struct CsvReader {
    reader: ::csv::Reader<Limited>,
    since_row: Arc<AtomicU64>,
}

impl CsvReader {
    fn header(&mut self, path: &Path) -> Result<&ByteRecord> {
        self.reader.byte_headers().map_err(|error| failed(path, error, 1))
    }

    /// The next row; false after the last.
    fn read(&mut self, record: &mut ByteRecord, path: &Path) -> Result<bool> {
        self.since_row.store(0, Ordering::Relaxed);
        let line = self.reader.position().line();
        self.reader.read_byte_record(record).map_err(|error| failed(path, error, line))
    }
}

/// Bytes of a file, as long as rows end.
struct Limited {
    bytes: Box<dyn Read + Send>,
    since_row: Arc<AtomicU64>,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.bytes.read(buffer)?;
        if self.since_row.fetch_add(n as u64, Ordering::Relaxed) > MOST_ROW_BYTES {
            return Err(std::io::Error::other(TooLong));
        }
        Ok(n)
    }
}

/// A row that is longer than a row can be.
#[derive(Debug)]
struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the row that begins here is longer than {} MiB", MOST_ROW_BYTES >> 20)
    }
}

impl std::error::Error for TooLong {}

fn reader(path: &Path, gzip: bool) -> Result<CsvReader> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    let bytes: Box<dyn Read + Send> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let since_row = Arc::new(AtomicU64::new(0));
    let bytes = Limited { bytes, since_row: Arc::clone(&since_row) };
    let reader = ::csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(bytes);
    Ok(CsvReader { reader, since_row })
}

fn is_too_long(error: &std::io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<TooLong>())
}

/// What is wrong with the row that begins at a line.
fn failed(path: &Path, error: ::csv::Error, first_line: u64) -> Error {
    let line = error.position().map(::csv::Position::line);
    let placed = |error: Error| match line {
        Some(line) => error.at(format!("line {line}")),
        None => error,
    };
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Error::read(path, error)
        }
        ::csv::ErrorKind::Io(error) if is_too_long(&error) => {
            let error = Error::input(TooLong.to_string()).file(path).at(format!("line {first_line}"));
            error.hint("a quote that is opened there may never be closed")
        }
        ::csv::ErrorKind::Io(error) => {
            let what = format!("cannot read: {error}");
            Error::input(what).file(path).source(error).hint("the file may be cut short or damaged")
        }
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let what = format!("the row has {len} {}, the header {expected_len}", cells(len));
            placed(Error::input(what).file(path)).hint("quote a cell that holds a comma or a line break")
        }
        kind => placed(Error::input(format!("cannot be read as CSV: {kind:?}")).file(path)),
    }
}

fn cells(n: u64) -> &'static str {
    if n == 1 { "cell" } else { "cells" }
}

fn not_utf8(path: &Path, line: u64, column: &str) -> Error {
    let error = Error::input("the text is not UTF-8").file(path);
    error.at(format!("line {line}")).at(format!("column `{column}`")).hint("save the file as UTF-8")
}
