//! A CSV file, and the text form of each type of column.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::{AtomicFile, Error, Result};

/// A CSV file with a header; numbers are printed in the shortest form that reads back the same, nulls are empty.
pub(super) struct CsvFile {
    path: PathBuf,
    writer: csv::Writer<AtomicFile>,
}

impl CsvFile {
    /// Starts a file.
    pub(super) fn create(path: &Path, schema: &Schema) -> Result<Self> {
        let mut writer = csv::Writer::from_writer(AtomicFile::create(path)?);
        let names = schema.fields().iter().map(|field| guarded(field.name()).into_owned());
        writer.write_record(names).map_err(|error| csv_error(path, error))?;
        Ok(Self { path: path.to_path_buf(), writer })
    }

    /// Appends rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        write_rows(&mut self.writer, batch, &self.path)
    }

    /// Makes the file appear.
    pub(super) fn finish(self) -> Result<()> {
        let Self { path, writer } = self;
        let file = writer.into_inner().map_err(|error| Error::output(path, error.into_error()))?;
        file.commit()
    }
}

fn write_rows(writer: &mut csv::Writer<AtomicFile>, batch: &RecordBatch, path: &Path) -> Result<()> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let Some(print) = printer(column.as_ref()) else {
            let what = format!("CSV cannot hold its type, {}", column.data_type());
            let error = Error::usage(what).file(path).at(format!("column `{}`", field.name()));
            return Err(error.hint("write `.parquet` instead"));
        };
        columns.push(print);
    }
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for print in &columns {
            text.clear();
            print(row, &mut text);
            writer.write_field(&text).map_err(|error| csv_error(path, error))?;
        }
        writer.write_record(None::<&[u8]>).map_err(|error| csv_error(path, error))?;
    }
    Ok(())
}

fn csv_error(path: &Path, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Error::output(path, error),
        kind => Error::output(path, io::Error::other(format!("{kind:?}"))),
    }
}

type Printer<'a> = Box<dyn Fn(usize, &mut String) + 'a>;

/// What prints a value of `array`, nothing for a null; `None` where CSV has no form for the type.
fn printer(array: &dyn Array) -> Option<Printer<'_>> {
    macro_rules! numbers {
        ($kind:ty, $format:literal) => {{
            let array = array.as_primitive::<$kind>();
            print_valid(array, move |row, text| write!(text, $format, array.value(row)))
        }};
    }
    macro_rules! times {
        ($kind:ty, $zone:expr) => {{
            let array = array.as_primitive::<$kind>();
            let suffix = if $zone { "Z" } else { "" };
            print_valid(array, move |row, text| match array.value_as_datetime(row) {
                Some(time) => write!(text, "{time:?}{suffix}"),
                None => Ok(()),
            })
        }};
    }
    Some(match array.data_type() {
        DataType::Null => Box::new(|_, _| {}),
        DataType::Boolean => {
            let array = array.as_boolean();
            print_valid(array, move |row, text| write!(text, "{}", array.value(row)))
        }
        DataType::Int8 => numbers!(Int8Type, "{}"),
        DataType::Int16 => numbers!(Int16Type, "{}"),
        DataType::Int32 => numbers!(Int32Type, "{}"),
        DataType::Int64 => numbers!(Int64Type, "{}"),
        DataType::UInt8 => numbers!(UInt8Type, "{}"),
        DataType::UInt16 => numbers!(UInt16Type, "{}"),
        DataType::UInt32 => numbers!(UInt32Type, "{}"),
        DataType::UInt64 => numbers!(UInt64Type, "{}"),
        // The debug form is the shortest that reads back as the same number, and 1.0 stays a float.
        DataType::Float32 => numbers!(Float32Type, "{:?}"),
        DataType::Float64 => numbers!(Float64Type, "{:?}"),
        DataType::Utf8 => print_text(array, array.as_string::<i32>()),
        DataType::LargeUtf8 => print_text(array, array.as_string::<i64>()),
        DataType::Utf8View => print_text(array, array.as_string_view()),
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            print_valid(array, move |row, text| match array.value_as_date(row) {
                Some(date) => write!(text, "{date}"),
                None => Ok(()),
            })
        }
        DataType::Timestamp(TimeUnit::Second, zone) => times!(TimestampSecondType, zone.is_some()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => times!(TimestampMillisecondType, zone.is_some()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => times!(TimestampMicrosecondType, zone.is_some()),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => times!(TimestampNanosecondType, zone.is_some()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let (keys, print) = (dictionary.normalized_keys(), printer(dictionary.values().as_ref())?);
            Box::new(move |row, text| {
                if array.is_valid(row) {
                    print(keys[row], text);
                }
            })
        }
        _ => return None,
    })
}

/// Text that a spreadsheet would run as a formula, with an apostrophe before it, as spreadsheets mark text; numbers stay what
/// they are. Whoever opens a result did not write the names and identifiers in it.
fn guarded(text: &str) -> Cow<'_, str> {
    let begins_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number = || text.parse::<f64>().is_ok();
    // A lone sign computes nothing.
    match begins_formula && text.len() > 1 && !is_number() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

fn print_valid<'a>(
    array: &'a dyn Array,
    print: impl Fn(usize, &mut String) -> std::fmt::Result + 'a,
) -> Printer<'a> {
    Box::new(move |row, text| {
        if array.is_valid(row) {
            let infallible = print(row, text);
            debug_assert!(infallible.is_ok(), "writing to a string cannot fail");
        }
    })
}

fn print_text<'a>(
    array: &'a dyn Array,
    values: impl arrow_array::ArrayAccessor<Item = &'a str> + 'a,
) -> Printer<'a> {
    print_valid(array, move |row, text| text.write_str(&guarded(values.value(row))))
}
