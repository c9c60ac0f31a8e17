//! Tables out: Parquet or CSV by extension, appearing whole or not at all.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use crate::{AtomicFile, Error, Result};

/// Writes record batches of one schema to a `.parquet` or `.csv` file.
///
/// The file appears under its name at [`finish`](Self::finish); a writer that is dropped leaves nothing behind.
/// The bytes depend on the rows and on the sizes of the batches, never on the number of threads. Memory is
/// bounded by one row group, about 128 MiB however wide the table is.
pub struct TableWriter {
    path: PathBuf,
    schema: SchemaRef,
    n_rows: u64,
    format: Format,
}

enum Format {
    Parquet(Box<ParquetFile>),
    Csv(Box<csv::Writer<AtomicFile>>),
}

impl TableWriter {
    /// Starts a table at `path`; the extension chooses the format.
    pub fn create(path: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let format = match extension.as_deref() {
            Some("parquet") => Format::Parquet(Box::new(ParquetFile::create(&path, Arc::clone(&schema))?)),
            Some("csv") => Format::Csv(Box::new(create_csv(&path, &schema)?)),
            _ => {
                let error = Error::usage("the name of a table must end in `.parquet` or `.csv`").file(&path);
                return Err(error.hint("`.parquet` is smaller and faster, `.csv` opens anywhere"));
            }
        };
        Ok(Self { path, schema, n_rows: 0, format })
    }

    /// Appends the rows of `batch`, which must have the columns the table was created with.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema_ref();
        let types = |schema: &Schema| -> Vec<DataType> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if !Arc::ptr_eq(schema, &self.schema) && types(schema) != types(&self.schema) {
            return Err(Error::other("the rows do not have the columns of the table").file(&self.path));
        }
        match &mut self.format {
            Format::Parquet(file) => file.write(batch).map_err(|error| parquet_error(&self.path, error))?,
            Format::Csv(writer) => write_csv(writer, batch, &self.path)?,
        }
        self.n_rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Makes the table appear under its name and returns its number of rows.
    pub fn finish(self) -> Result<u64> {
        let Self { path, n_rows, format, .. } = self;
        let file = match format {
            Format::Parquet(file) => file.finish().map_err(|error| parquet_error(&path, error))?,
            Format::Csv(writer) => writer.into_inner().map_err(|error| {
                let error = error.into_error();
                Error::output(&path, error)
            })?,
        };
        file.commit()?;
        Ok(n_rows)
    }
}

/// A Parquet file whose columns are encoded in parallel, one row group at a time.
struct ParquetFile {
    schema: SchemaRef,
    file: SerializedFileWriter<AtomicFile>,
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<ArrowColumnWriter>,
    n_open: usize,
    n_group: usize,
}

impl ParquetFile {
    fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
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
        Ok(Self { schema, file, factory, columns: Vec::new(), n_open: 0, n_group })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
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

    fn finish(mut self) -> Result<AtomicFile, ParquetError> {
        self.close_group()?;
        self.file.into_inner()
    }
}

/// Rows of a row group: 128 Ki, or fewer where the table is so wide that they would not fit into 128 MiB.
fn rows_per_group(schema: &Schema) -> usize {
    const BYTES: usize = 128 << 20;
    let row_bytes: usize = schema.fields().iter().map(|field| width(field)).sum();
    (BYTES / row_bytes.max(1)).clamp(1 << 10, 1 << 17)
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

fn create_csv(path: &Path, schema: &Schema) -> Result<csv::Writer<AtomicFile>> {
    let mut writer = csv::Writer::from_writer(AtomicFile::create(path)?);
    let names = schema.fields().iter().map(|field| field.name());
    writer.write_record(names).map_err(|error| csv_error(path, error))?;
    Ok(writer)
}

fn write_csv(writer: &mut csv::Writer<AtomicFile>, batch: &RecordBatch, path: &Path) -> Result<()> {
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
    print_valid(array, move |row, text| text.write_str(values.value(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, StringArray,
        TimestampSecondArray, UInt64Array,
    };
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    fn write(path: &Path, batches: &[RecordBatch]) -> u64 {
        let mut writer = TableWriter::create(path, batches[0].schema()).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn csv_quotes_text_and_prints_numbers_shortest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let labels: DictionaryArray<Int32Type> =
            vec![Some("a,b"), None, Some("say \"hi\"")].into_iter().collect();
        let table = batch(vec![
            ("label", Arc::new(labels)),
            ("small", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN)]))),
            ("large", Arc::new(Float64Array::from(vec![1.0, 1e300, 0.1 + 0.2]))),
            ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
            ("time", Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(86_399)]))),
        ]);
        assert_eq!(write(&path, &[table]), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "label,small,large,flag,time\n\
             \"a,b\",0.1,1.0,true,1970-01-01T00:00:00\n\
             ,,1e300,,\n\
             \"say \"\"hi\"\"\",NaN,0.30000000000000004,false,1970-01-01T23:59:59\n"
        );
    }

    #[test]
    fn parquet_round_trips_over_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        // Two batches that do not divide the row group of 131,072 rows.
        let parts: Vec<RecordBatch> = [0..100_000_u64, 100_000..150_001]
            .into_iter()
            .map(|range| {
                let text = range.clone().map(|i| (i % 7 != 0).then(|| format!("t{}", i % 5)));
                batch(vec![
                    ("i", Arc::new(UInt64Array::from_iter_values(range.clone()))),
                    ("x", Arc::new(Float32Array::from_iter_values(range.clone().map(|i| i as f32)))),
                    ("t", Arc::new(text.collect::<StringArray>())),
                ])
            })
            .collect();
        assert_eq!(write(&path, &parts), 150_001);
        let file = std::fs::File::open(&path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let groups = reader.metadata().row_groups().to_vec();
        assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [131_072, 18_929]);
        assert!(groups[0].column(1).dictionary_page_offset().is_none());
        assert!(groups[0].column(2).dictionary_page_offset().is_some());
        let read: Vec<RecordBatch> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
        let whole = arrow_select::concat::concat_batches(&parts[0].schema(), &parts).unwrap();
        assert_eq!(arrow_select::concat::concat_batches(&parts[0].schema(), &read).unwrap(), whole);
    }

    #[test]
    fn bytes_do_not_depend_on_threads() {
        let folder = tempfile::tempdir().unwrap();
        let columns: Vec<(String, ArrayRef)> = (0..9_u64)
            .map(|j| {
                let values = (0..5_000).map(move |i| ((i * (j + 1)) % 997) as f64 / 7.0);
                (format!("c{j}"), Arc::new(Float64Array::from_iter_values(values)) as ArrayRef)
            })
            .collect();
        let table = RecordBatch::try_from_iter(columns).unwrap();
        let bytes = [1, 3].map(|n_threads| {
            let path = folder.path().join(format!("{n_threads}.parquet"));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| write(&path, std::slice::from_ref(&table)));
            std::fs::read(path).unwrap()
        });
        assert!(bytes[0] == bytes[1]);
    }

    #[test]
    fn nothing_is_left_of_an_unfinished_table() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv"] {
            let table = batch(vec![("i", Arc::new(UInt64Array::from(vec![1, 2])))]);
            let mut writer = TableWriter::create(folder.path().join(name), table.schema()).unwrap();
            writer.write(&table).unwrap();
            drop(writer);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_empty_table_is_still_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let schema = batch(vec![("i", Arc::new(UInt64Array::from(vec![1])))]).schema();
        assert_eq!(TableWriter::create(&path, Arc::clone(&schema)).unwrap().finish().unwrap(), 0);
        let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.schema().fields(), schema.fields());
    }

    #[test]
    fn wrong_names_and_wrong_rows_are_refused() {
        let table = batch(vec![("i", Arc::new(UInt64Array::from(vec![1])))]);
        let error = TableWriter::create("a.xlsx", table.schema()).err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Usage);
        assert!(error.to_string().contains("`.parquet` or `.csv`"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let mut writer = TableWriter::create(folder.path().join("a.csv"), table.schema()).unwrap();
        let other = batch(vec![("i", Arc::new(Float64Array::from(vec![1.0])))]);
        assert!(writer.write(&other).is_err());
    }

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
