//! Tables out: Parquet or CSV by extension, appearing whole or not at all.

mod csv_file;
mod parquet_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};

use self::csv_file::CsvFile;
use self::parquet_file::ParquetFile;
use crate::{Error, Result};

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
    Csv(Box<CsvFile>),
}

impl TableWriter {
    /// Starts a table at `path`; the extension chooses the format.
    pub fn create(path: impl AsRef<Path>, schema: SchemaRef) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let format = match extension.as_deref() {
            Some("parquet") => Format::Parquet(Box::new(ParquetFile::create(&path, Arc::clone(&schema))?)),
            Some("csv") => Format::Csv(Box::new(CsvFile::create(&path, &schema)?)),
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
            Format::Parquet(file) => file.write(batch)?,
            Format::Csv(file) => file.write(batch)?,
        }
        self.n_rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Makes the table appear under its name and returns its number of rows.
    pub fn finish(self) -> Result<u64> {
        let Self { n_rows, format, .. } = self;
        match format {
            Format::Parquet(file) => file.finish()?,
            Format::Csv(file) => file.finish()?,
        }
        Ok(n_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, StringArray,
        TimestampSecondArray, UInt64Array,
    };
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::metadata::RowGroupMetaData;

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
    fn text_in_csv_is_no_formula_and_numbers_stay_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let text = ["=HYPERLINK(1)", "+cmd", "-2+3", "@sum", "\tx", "-5", "+1e3", "a=b", "-"];
        let labels: DictionaryArray<Int32Type> = text.iter().copied().collect();
        let table = batch(vec![
            ("=id", Arc::new(StringArray::from(text.to_vec()))),
            ("label", Arc::new(labels)),
            ("x", Arc::new(Float64Array::from(vec![-1.0; text.len()]))),
        ]);
        write(&path, &[table]);
        let written = std::fs::read_to_string(&path).unwrap();
        let first: Vec<&str> = written.lines().map(|line| line.split(',').next().unwrap()).collect();
        let guarded = ["'=HYPERLINK(1)", "'+cmd", "'-2+3", "'@sum", "'\tx", "-5", "+1e3", "a=b", "-"];
        assert_eq!(first[0], "'=id");
        assert_eq!(first[1..], guarded);
        assert!(
            written.lines().skip(1).zip(guarded).all(|(line, cell)| line == format!("{cell},{cell},-1.0"))
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
        assert_eq!(groups.iter().map(RowGroupMetaData::num_rows).collect::<Vec<_>>(), [131_072, 18_929]);
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
}
