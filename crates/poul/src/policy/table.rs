//! Rows of a few named columns, streamed from CSV or Parquet with their place in the file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{AnyDictionaryArray, Array, ArrayRef};
use arrow_schema::DataType;
use flate2::read::MultiGzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;

use crate::data::Pages;
use crate::error::nearest_name;
use crate::{Error, Result};

/// The most columns any caller reads.
pub(super) const MAX_COLUMNS: usize = 4;

/// The indices of the columns to read, found in the header.
pub(super) type Choice = [Option<usize>; MAX_COLUMNS];

/// One value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Text(&'a str),
    Integer(i128),
    Number(f64),
    /// A null.
    Missing,
    /// The column was not chosen.
    Absent,
}

/// A row of the chosen columns; `place` is its line in a CSV file, its row in a Parquet file, from 1.
pub(super) struct TableRow<'a> {
    pub(super) place: u32,
    pub(super) cells: [Cell<'a>; MAX_COLUMNS],
}

impl Cell<'_> {
    /// The value as a name; integers are names too, as they are in CSV.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Integer(integer) => Cow::Owned(integer.to_string()),
            Cell::Number(number) => Cow::Owned(number.to_string()),
            Cell::Missing | Cell::Absent => Cow::Borrowed(""),
        }
    }

    /// The value as a number, or what it is instead.
    pub(super) fn number(&self) -> Result<f64, String> {
        match self {
            Cell::Text(text) if text.trim().is_empty() => Err("is empty".to_owned()),
            Cell::Text(text) => text.trim().parse().map_err(|_| format!("`{text}` is not a number")),
            Cell::Integer(integer) => Ok(*integer as f64),
            Cell::Number(number) => Ok(*number),
            Cell::Missing | Cell::Absent => Err("is missing".to_owned()),
        }
    }
}

/// Streams a `.csv`, `.csv.gz` or `.parquet` file. `choose` finds columns in the header, `visit` gets the rows.
///
/// Returns what a place is called: "line" or "row".
pub(super) fn read_file(
    path: &Path,
    choose: impl FnOnce(&[&str]) -> Result<Choice>,
    visit: impl FnMut(TableRow<'_>) -> Result<()>,
) -> Result<&'static str> {
    let unit = unit_of(path)?;
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    if unit == "row" {
        read_parquet(file, path, choose, visit)?;
    } else if is_gzip(path) {
        read_csv(MultiGzDecoder::new(BufReader::new(file)), path, choose, visit)?;
    } else {
        read_csv(file, path, choose, visit)?;
    }
    Ok(unit)
}

/// What a place in a table of this name is called; an error where the name is not that of a table.
pub(super) fn unit_of(path: &Path) -> Result<&'static str> {
    let name = path.to_string_lossy().to_lowercase();
    if name.ends_with(".csv") || name.ends_with(".csv.gz") {
        Ok("line")
    } else if name.ends_with(".parquet") {
        Ok("row")
    } else {
        let error = Error::input("the file's type is not known from its name").file(path);
        Err(error.hint("use a file that ends in .csv, .csv.gz or .parquet"))
    }
}

fn is_gzip(path: &Path) -> bool {
    path.to_string_lossy().to_lowercase().ends_with(".gz")
}

/// Streams CSV; every record must have as many fields as the header.
pub(super) fn read_csv(
    input: impl Read,
    file: &Path,
    choose: impl FnOnce(&[&str]) -> Result<Choice>,
    mut visit: impl FnMut(TableRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(input);
    let headers = reader.byte_headers().map_err(|error| csv_error(error, file))?.clone();
    let columns = headers.iter().map(std::str::from_utf8).collect::<Result<Vec<&str>, _>>();
    let columns = columns.map_err(|_| not_utf8(file, 1))?;
    let columns: Vec<&str> =
        columns.into_iter().map(|name| name.trim_start_matches('\u{feff}').trim()).collect();
    if columns.is_empty() {
        let error = Error::input("the file is empty").file(file);
        return Err(error.hint("the first line must name the columns"));
    }
    refuse_repeated(&columns, file)?;
    let choice = choose(&columns).map_err(|error| error.file(file))?;

    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| csv_error(error, file))? {
        let place =
            record.position().map_or(0, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
        let mut cells = [Cell::Absent; MAX_COLUMNS];
        for (cell, column) in cells.iter_mut().zip(choice) {
            if let Some(bytes) = column.and_then(|column| record.get(column)) {
                *cell = Cell::Text(std::str::from_utf8(bytes).map_err(|_| not_utf8(file, place))?);
            }
        }
        visit(TableRow { place, cells })?;
    }
    Ok(())
}

/// Streams Parquet, decoding only the chosen columns.
pub(super) fn read_parquet(
    input: impl ChunkReader + 'static,
    file: &Path,
    choose: impl FnOnce(&[&str]) -> Result<Choice>,
    mut visit: impl FnMut(TableRow<'_>) -> Result<()>,
) -> Result<()> {
    let builder = guard(file, || {
        let metadata = ArrowReaderMetadata::load(&input, ArrowReaderOptions::new())?;
        let pages = Pages::new(input, metadata.metadata());
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata))
    })?;
    let schema = builder.schema().clone();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    refuse_repeated(&columns, file)?;
    let choice = choose(&columns).map_err(|error| error.file(file))?;
    for column in choice.into_iter().flatten() {
        check_type(columns[column], schema.field(column).data_type()).map_err(|error| error.file(file))?;
    }
    // A projected batch keeps the file's order of columns.
    let mut projected: Vec<usize> = choice.into_iter().flatten().collect();
    projected.sort_unstable();
    projected.dedup();
    let mut reader = guard(file, || {
        let mask = ProjectionMask::roots(builder.parquet_schema(), projected.iter().copied());
        Ok(builder.with_projection(mask).build()?)
    })?;
    let mut place = 0_u32;
    while let Some(batch) = guard(file, || Ok(reader.next().transpose()?))? {
        let columns: [Option<Column<'_>>; MAX_COLUMNS] = choice.map(|column| {
            let position = column.and_then(|column| projected.iter().position(|wanted| *wanted == column));
            position.map(|position| Column::new(batch.column(position)))
        });
        for row in 0..batch.num_rows() {
            place = place.saturating_add(1);
            let mut cells = [Cell::Absent; MAX_COLUMNS];
            for (cell, column) in cells.iter_mut().zip(&columns) {
                if let Some(column) = column {
                    *cell = column.cell(row);
                }
            }
            visit(TableRow { place, cells })?;
        }
    }
    Ok(())
}

/// A column of one batch; the values of a dictionary are looked up through its keys.
struct Column<'a> {
    array: &'a ArrayRef,
    dictionary: Option<&'a dyn AnyDictionaryArray>,
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> Self {
        Self { array, dictionary: array.as_any_dictionary_opt() }
    }

    fn cell(&self, row: usize) -> Cell<'a> {
        if self.array.is_null(row) {
            return Cell::Missing;
        }
        match self.dictionary {
            None => value(self.array, row),
            Some(dictionary) => match value(dictionary.keys(), row) {
                Cell::Integer(key) => value(dictionary.values(), key as usize),
                _ => Cell::Missing,
            },
        }
    }
}

fn value(array: &dyn Array, row: usize) -> Cell<'_> {
    if row >= array.len() || array.is_null(row) {
        return Cell::Missing;
    }
    match array.data_type() {
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row)),
        DataType::Int8 => Cell::Integer(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Cell::Integer(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Cell::Integer(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::Integer(array.as_primitive::<Int64Type>().value(row).into()),
        DataType::UInt8 => Cell::Integer(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Cell::Integer(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Cell::Integer(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Cell::Integer(array.as_primitive::<UInt64Type>().value(row).into()),
        DataType::Float32 => Cell::Number(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Cell::Number(array.as_primitive::<Float64Type>().value(row)),
        _ => Cell::Missing,
    }
}

/// Names are strings or integers, `probability`, `weight` and `count` are numbers.
fn check_type(column: &str, data_type: &DataType) -> Result<()> {
    let plain = match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let text = matches!(plain, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let float = matches!(plain, DataType::Float32 | DataType::Float64);
    let numeric = matches!(column, "probability" | "weight" | "count");
    if plain.is_integer() || (numeric && float) || (!numeric && text) {
        return Ok(());
    }
    let wanted = if numeric { "numbers" } else { "strings" };
    Err(Error::input(format!("column `{column}` holds {data_type}, not {wanted}"))
        .hint(format!("write the column as {wanted}")))
}

/// Runs the Parquet decoder, which may panic on damaged bytes, and turns whatever goes wrong into one error.
fn guard<T>(file: &Path, decode: impl FnOnce() -> Result<T, DecodeError>) -> Result<T> {
    let damaged = |why: String| {
        let error = Error::input(format!("cannot read the Parquet file: {why}")).file(file);
        error.hint("the file may be damaged or incomplete: write or copy it again")
    };
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(damaged(error.to_string()).source(error)),
        Err(_) => Err(damaged("its contents contradict each other".to_owned())),
    }
}

type DecodeError = Box<dyn std::error::Error + Send + Sync>;

fn refuse_repeated(columns: &[&str], file: &Path) -> Result<()> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let error = Error::input(format!("column `{}` appears twice", pair[0])).file(file);
            Err(error.hint("keep one of the two columns"))
        }
        None => Ok(()),
    }
}

fn csv_error(error: csv::Error, file: &Path) -> Error {
    let line = error.position().map(csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the line has {len} fields where the header has {expected_len}")
        }
        csv::ErrorKind::Io(error) => format!("cannot read: {error}"),
        _ => format!("not valid CSV: {error}"),
    };
    let hint = match error.kind() {
        csv::ErrorKind::UnequalLengths { .. } => {
            "give every line the same fields; quote values that hold commas"
        }
        csv::ErrorKind::Io(_) => "the file may be damaged or incomplete: write or copy it again",
        _ => "save the file as CSV in UTF-8",
    };
    let placed = Error::input(what).file(file).hint(hint).source(error);
    match line {
        Some(line) => placed.at(format!("line {line}")),
        None => placed,
    }
}

fn not_utf8(file: &Path, line: u32) -> Error {
    Error::input("the text is not UTF-8").file(file).at(format!("line {line}")).hint("save the file as UTF-8")
}

/// A column whose name is fixed is not there: a near one that has no part of its own should be renamed.
pub(super) fn missing_column(name: &str, columns: &[&str], fixed: &[&str]) -> Error {
    let error = Error::missing_column(name, columns.iter().copied());
    let others: Vec<&str> = columns.iter().copied().filter(|column| !fixed.contains(column)).collect();
    match nearest_name(name, &others) {
        Some(nearest) => error.hint(format!("rename `{nearest}` to `{name}`")),
        None => error,
    }
}
