//! CSV rows into typed Arrow batches.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use csv::ByteRecord;

use super::{CsvReader, boolean, is_null, not_utf8, reader};
use crate::data::batches::FileBatches;
use crate::data::source::{SourceFile, places};
use crate::{Error, Result};

/// Bytes of text after which a batch ends however few rows it has: text is guessed to be short.
const MOST_TEXT: usize = 256 << 20;

/// The columns that `wanted` names, parsed in batches.
pub(crate) fn batches(
    source: &SourceFile,
    gzip: bool,
    wanted: &SchemaRef,
    batch_rows: usize,
) -> Result<FileBatches> {
    let mut reader = reader(&source.path, gzip)?;
    let header = reader.header(&source.path)?;
    if header.iter().ne(source.schema.fields().iter().map(|field| field.name().as_bytes())) {
        return Err(Error::input("the header changed while reading").file(&source.path));
    }
    let places = places(&source.schema);
    let columns = wanted.fields().iter().filter_map(|field| places.get(field.name().as_str()).copied());
    let columns: Vec<usize> = columns.collect();
    let fields: Vec<Field> = columns.iter().map(|idx| source.schema.field(*idx).clone()).collect();
    Ok(Box::new(CsvBatches {
        path: source.path.clone(),
        reader,
        record: ByteRecord::new(),
        schema: Arc::new(Schema::new(fields)),
        columns,
        batch_rows,
    }))
}

struct CsvBatches {
    path: PathBuf,
    reader: CsvReader,
    record: ByteRecord,
    schema: SchemaRef,
    columns: Vec<usize>,
    batch_rows: usize,
}

impl Iterator for CsvBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl CsvBatches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut cells: Vec<Cells> =
            self.schema.fields().iter().map(|field| Cells::new(field.data_type(), self.batch_rows)).collect();
        let (mut n_rows, mut n_text) = (0, 0);
        while n_rows < self.batch_rows
            && n_text < MOST_TEXT
            && self.reader.read(&mut self.record, &self.path)?
        {
            for (cells, column) in cells.iter_mut().zip(&self.columns) {
                // Rows are as long as the header: the reader checks.
                let cell = self.record.get(*column).unwrap_or_default();
                n_text += if matches!(cells, Cells::Text(_)) { cell.len() } else { 0 };
                if cells.push(cell).is_none() {
                    return Err(self.bad_cell(*column));
                }
            }
            n_rows += 1;
        }
        if n_rows == 0 {
            return Ok(None);
        }
        let arrays: Vec<ArrayRef> = cells.into_iter().map(Cells::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map(Some)
            .map_err(|error| Error::other(format!("cannot assemble a batch: {error}")).source(error))
    }

    fn bad_cell(&self, column: usize) -> Error {
        let line = self.record.position().map_or(0, csv::Position::line);
        let name = self.reader_name(column);
        match std::str::from_utf8(self.record.get(column).unwrap_or_default()) {
            Err(_) => not_utf8(&self.path, line, &name),
            Ok(cell) => {
                let what = format!("`{cell}` is not what the column held when the file was opened");
                let error = Error::input(what).file(&self.path).at(format!("line {line}"));
                error.at(format!("column `{name}`")).hint("the file changed while it was read")
            }
        }
    }

    fn reader_name(&self, column: usize) -> String {
        let position = self.columns.iter().position(|other| *other == column);
        position.map_or_else(String::new, |position| self.schema.field(position).name().clone())
    }
}

/// The cells of one column of the batch under way.
enum Cells {
    Null(usize),
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

impl Cells {
    fn new(data_type: &DataType, n_rows: usize) -> Self {
        let n_rows = n_rows.min(1 << 16);
        match data_type {
            DataType::Null => Self::Null(0),
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(n_rows)),
            DataType::Int64 => Self::Integer(Int64Builder::with_capacity(n_rows)),
            DataType::Float64 => Self::Float(Float64Builder::with_capacity(n_rows)),
            _ => Self::Text(StringBuilder::with_capacity(n_rows, n_rows * 8)),
        }
    }

    /// `None` if the cell does not have the column's type.
    fn push(&mut self, cell: &[u8]) -> Option<()> {
        if is_null(cell) {
            match self {
                Self::Null(n) => *n += 1,
                Self::Boolean(builder) => builder.append_null(),
                Self::Integer(builder) => builder.append_null(),
                Self::Float(builder) => builder.append_null(),
                Self::Text(builder) => builder.append_null(),
            }
            return Some(());
        }
        match self {
            Self::Null(_) => return None,
            Self::Boolean(builder) => builder.append_value(boolean(cell.trim_ascii())?),
            Self::Integer(builder) => builder.append_value(integer(cell.trim_ascii())?),
            Self::Float(builder) => {
                builder.append_value(std::str::from_utf8(cell.trim_ascii()).ok()?.parse().ok()?);
            }
            Self::Text(builder) => builder.append_value(std::str::from_utf8(cell).ok()?),
        }
        Some(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Null(n) => Arc::new(NullArray::new(n)),
            Self::Boolean(mut builder) => Arc::new(builder.finish()),
            Self::Integer(mut builder) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Text(mut builder) => Arc::new(builder.finish()),
        }
    }
}

fn integer(cell: &[u8]) -> Option<i64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::data::Source;
    use crate::{Error, Result};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_schema::DataType;
    use std::io::Write;

    fn open(text: &[u8]) -> Result<(tempfile::TempDir, Source)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        Ok((folder, Source::open(path.to_str().unwrap())?))
    }

    fn error(text: &[u8]) -> Error {
        open(text).expect_err("an error")
    }

    fn only_batch(source: &Source) -> RecordBatch {
        source.batches(&source.column_names(), 100).unwrap().next().unwrap().unwrap()
    }

    #[test]
    fn cells_are_typed() {
        let text = b"\xef\xbb\xbfi,f,b,t,n\n1,1.5,true,None,\n-2,NaN,,\"a,\"\"b\"\"\nc\",NA\n";
        let (_folder, source) = open(text).unwrap();
        let types: Vec<&DataType> = source.schema().fields().iter().map(|field| field.data_type()).collect();
        let expected =
            [DataType::Int64, DataType::Float64, DataType::Boolean, DataType::Utf8, DataType::Null];
        assert_eq!(types, expected.iter().collect::<Vec<_>>());
        let batch = only_batch(&source);
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, -2]);
        assert_eq!(batch.column(1).as_primitive::<Float64Type>().value(0), 1.5);
        assert!(batch.column(1).is_null(1) && batch.column(2).is_null(1));
        assert_eq!(batch.column(3).as_string::<i32>().value(0), "None");
        assert_eq!(batch.column(3).as_string::<i32>().value(1), "a,\"b\"\nc");
    }

    #[test]
    fn gzip_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv.gz");
        let mut encoder =
            flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
        encoder.write_all(b"x,y\n1,a\n2,b\n").unwrap();
        encoder.finish().unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        assert_eq!(source.n_rows(), Some(2));
        assert_eq!(only_batch(&source).column(1).as_string::<i32>().value(1), "b");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(Source::open(path.to_str().unwrap()).is_err());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let ragged = error(b"a,b\n1,2\n\"x\ny\",2\n3\n");
        assert!(ragged.to_string().ends_with("line 5: the row has 1 cell, the header 2"), "{ragged}");
        let latin = error(b"a,b\n1,2\n3,caf\xe9\n");
        assert!(latin.to_string().ends_with("line 3: column `b`: the text is not UTF-8"), "{latin}");
        assert!(error(b"a,a\n1,2\n").to_string().ends_with("line 1: two columns are called `a`"));
        assert!(error(b",a\n1,2\n").to_string().ends_with("line 1: column 1 has no name"));
        assert!(error(b"a,b\n").to_string().ends_with("there are no rows below the header"));
        assert!(error(b"\n\n").to_string().ends_with("the file has no header"));
        assert!(error(b"").to_string().ends_with("the file is empty"));
    }

    #[test]
    fn a_folder_is_one_table() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1.csv"), "a,b\n1,\n").unwrap();
        std::fs::write(folder.path().join("2.csv"), "b,a\ntrue,2.5\n").unwrap();
        let source = Source::open(folder.path().to_str().unwrap()).unwrap();
        let types: Vec<&DataType> = source.schema().fields().iter().map(|field| field.data_type()).collect();
        assert_eq!(types, [&DataType::Float64, &DataType::Boolean]);
        let batches: Vec<_> = source.batches(&["b", "a"], 10).unwrap().map(Result::unwrap).collect();
        assert_eq!(batches[1].column(1).as_primitive::<Float64Type>().value(0), 2.5);
        std::fs::write(folder.path().join("3.csv"), "a,c\n1,2\n").unwrap();
        let error = Source::open(folder.path().to_str().unwrap()).err().unwrap();
        assert!(error.to_string().contains("3.csv: column `c` is not in"), "{error}");
    }
}
