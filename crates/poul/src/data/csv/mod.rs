//! CSV files, plain or compressed with gzip: a header, then rows.

mod infer;
mod read;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    let types_of = |name: &str| {
        let cells = inferred.iter().flat_map(|file| file.columns.iter().filter(|column| column.0 == name));
        cells.fold(CellTypes::default(), |types, column| types.with(column.1)).data_type()
    };
    if inferred.iter().all(|file| file.n_rows == 0) {
        let error = Error::input("there are no rows below the header").file(&paths[0]);
        return Err(error.hint("the first line is read as column names"));
    }
    let files = paths.iter().zip(&inferred).map(|(path, file)| {
        let fields: Vec<Field> =
            file.columns.iter().map(|(name, _)| Field::new(name, types_of(name), true)).collect();
        SourceFile {
            path: path.clone(),
            n_bytes: file.n_bytes,
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

type CsvReader = ::csv::Reader<Box<dyn Read + Send>>;

fn reader(path: &Path, gzip: bool) -> Result<CsvReader> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    let bytes: Box<dyn Read + Send> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(::csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(bytes))
}

fn failed(path: &Path, error: ::csv::Error) -> Error {
    let line = error.position().map(::csv::Position::line);
    let placed = |error: Error| match line {
        Some(line) => error.at(format!("line {line}")),
        None => error,
    };
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Error::read(path, error)
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
