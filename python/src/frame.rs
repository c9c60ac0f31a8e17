//! A table, in memory or in files, as the library reads it; and results on their way back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, RecordBatch, RecordBatchIterator, RecordBatchOptions, StructArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use poul::Error;
use poul::data::{Source, numbers};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::capsule::{arrow_error, give_stream, take_array, take_stream};
use crate::column::Column;
use crate::failure::{argument_error, caught, guarded, raise};
use crate::texts::texts;

/// A table.
#[pyclass(frozen, module = "poul._poul")]
pub(crate) struct Frame {
    pub(crate) source: Source,
    /// The batches of a table in memory; none for one in files.
    batches: Option<Vec<RecordBatch>>,
}

#[pymethods]
impl Frame {
    /// A file, a folder or a glob of Parquet, CSV or Arrow IPC, streamed when it is used.
    #[staticmethod]
    fn open(py: Python<'_>, location: std::path::PathBuf) -> PyResult<Self> {
        let source = guarded(py, || Source::open_path(location))?;
        Ok(Self { source, batches: None })
    }

    /// Anything that speaks the Arrow C data interface for a table.
    #[staticmethod]
    fn from_arrow(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        caught(py, || Self::read_arrow(py, object))
    }

    /// Columns of the same length.
    #[staticmethod]
    fn from_columns(py: Python<'_>, columns: Vec<PyRef<'_, Column>>) -> PyResult<Self> {
        caught(py, || Self::of_columns(py, &columns))
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.source.column_names()
    }

    /// Bytes that the columns in memory take.
    #[getter]
    fn n_bytes(&self) -> usize {
        self.batches.iter().flatten().map(RecordBatch::get_array_memory_size).sum()
    }

    fn __len__(&self) -> usize {
        self.source.n_rows().unwrap_or(0) as usize
    }

    /// The same as a part of a larger table, in which no row need count.
    fn part(&self) -> Self {
        Self { source: self.source.clone().part(), batches: self.batches.clone() }
    }

    /// The Arrow C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore a request that it cannot meet.
        let _ = requested_schema;
        let batches = match &self.batches {
            Some(batches) => batches.clone(),
            None => {
                let names = self.source.column_names();
                guarded(py, || self.source.batches(&names, 1 << 16)?.collect())?
            }
        };
        let schema = Arc::clone(self.source.schema());
        let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        give_stream(py, Box::new(batches))
    }

    /// A column in memory as a list of texts, or as bytes with the dtype that NumPy reads them by.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some((idx, field)) = self.source.schema().column_with_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let chunks: Vec<&ArrayRef> = self.batches.iter().flatten().map(|batch| batch.column(idx)).collect();
        if let Some(texts) = chunks.iter().map(|chunk| texts(chunk)).collect::<Option<Vec<_>>>()
            && !chunks.is_empty()
        {
            return texts.concat().into_pyobject(py);
        }
        let (dtype, bytes) = plain(field.data_type(), &chunks)
            .ok_or_else(|| PyTypeError::new_err(format!("column `{name}` has type {}", field.data_type())))?;
        (dtype, PyBytes::new(py, &bytes)).into_pyobject(py).map(Bound::into_any)
    }
}

impl Frame {
    fn read_arrow(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.hasattr("__arrow_c_stream__")? {
            let stream = take_stream(object)?;
            // A producer may run a whole query here, on threads that need the interpreter.
            let (schema, batches) = py
                .detach(|| {
                    let reader = arrow_array::ffi_stream::RecordBatchStreamReader::try_new(stream)?;
                    let schema = arrow_array::RecordBatchReader::schema(&reader);
                    Ok((schema, reader.collect::<Result<Vec<_>, _>>()?))
                })
                .map_err(arrow_error(py))?;
            return Self::of(py, schema, batches);
        }
        let (_, array) = take_array(object)?;
        let DataType::Struct(fields) = array.data_type() else {
            return Err(no_table(py, array.data_type()));
        };
        if array.null_count() > 0 {
            let row = (0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0);
            let error = Error::input("is null as a whole").at_row(row);
            return Err(raise(py, &error.hint("leave such rows out, or give null to each column")));
        }
        let schema = Arc::new(Schema::new(fields.clone()));
        let batch = RecordBatch::from(StructArray::from(array.to_data()));
        Self::of(py, schema, vec![batch])
    }

    fn of_columns(py: Python<'_>, columns: &[PyRef<'_, Column>]) -> PyResult<Self> {
        let n_rows = columns.first().map_or(0, |column| column.n_rows());
        if let Some(other) = columns.iter().find(|column| column.n_rows() != n_rows) {
            let what = format!("has {} rows instead of {n_rows}", other.n_rows());
            return Err(raise(py, &Error::input(what).at(format!("column `{}`", other.name))));
        }
        let field = |column: &PyRef<'_, Column>| Field::new(&column.name, column.data_type.clone(), true);
        let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let chunks: Vec<&[ArrayRef]> = columns.iter().map(|column| column.chunks.as_slice()).collect();
        let batches = aligned(&schema, &chunks, n_rows).map_err(arrow_error(py))?;
        Self::of(py, schema, batches)
    }

    /// A table in memory.
    pub(crate) fn of(py: Python<'_>, schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Self> {
        let source = guarded(py, || Source::from_batches(schema, batches.clone()))?;
        Ok(Self { source, batches: Some(batches) })
    }

    /// Names the file in an error about its columns, which knows only the schema.
    pub(crate) fn locate(&self, error: Error) -> Error {
        self.source.locate(error)
    }
}

fn no_table(py: Python<'_>, data_type: &DataType) -> PyErr {
    let what = format!("an Arrow array of type {data_type} is no table");
    argument_error(py, &what, "give a table, or an array of structs")
}

/// Batches cut wherever a chunk of some column ends.
fn aligned(
    schema: &SchemaRef,
    columns: &[&[ArrayRef]],
    n_rows: usize,
) -> Result<Vec<RecordBatch>, arrow_schema::ArrowError> {
    let mut ends: Vec<usize> = vec![n_rows];
    for chunks in columns {
        let mut end = 0;
        for chunk in *chunks {
            end += chunk.len();
            ends.push(end);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut at: Vec<(usize, usize)> = vec![(0, 0); columns.len()];
    let mut start = 0;
    let mut batches = Vec::new();
    for end in ends.into_iter().filter(|end| *end > 0) {
        let n = end - start;
        let mut arrays = Vec::with_capacity(columns.len());
        for (chunks, (chunk, offset)) in columns.iter().zip(&mut at) {
            while chunks[*chunk].len() == *offset {
                (*chunk, *offset) = (*chunk + 1, 0);
            }
            arrays.push(chunks[*chunk].slice(*offset, n));
            *offset += n;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        batches.push(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?);
        start = end;
    }
    Ok(batches)
}

/// The name of a NumPy dtype and the bytes of the cells. Numbers with nulls become 64-bit floats.
fn plain(data_type: &DataType, chunks: &[&ArrayRef]) -> Option<(&'static str, Vec<u8>)> {
    let has_nulls = chunks.iter().any(|chunk| chunk.null_count() > 0);
    Some(match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => ("datetime64[s]", times::<TimestampSecondType>(chunks)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            ("datetime64[ms]", times::<TimestampMillisecondType>(chunks))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            ("datetime64[us]", times::<TimestampMicrosecondType>(chunks))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            ("datetime64[ns]", times::<TimestampNanosecondType>(chunks))
        }
        DataType::Float32 if !has_nulls => ("float32", bytes::<Float32Type>(chunks)),
        DataType::Int64 if !has_nulls => ("int64", bytes::<Int64Type>(chunks)),
        DataType::Int32 if !has_nulls => ("int32", bytes::<Int32Type>(chunks)),
        DataType::UInt64 if !has_nulls => ("uint64", bytes::<UInt64Type>(chunks)),
        DataType::UInt32 if !has_nulls => ("uint32", bytes::<UInt32Type>(chunks)),
        DataType::Boolean if !has_nulls => {
            let cells = chunks.iter().flat_map(|chunk| chunk.as_boolean().values().iter());
            ("bool", cells.map(u8::from).collect())
        }
        _ => {
            let numbers = chunks.iter().map(|chunk| numbers(chunk)).collect::<Option<Vec<_>>>()?;
            ("float64", numbers.into_iter().flatten().flat_map(f64::to_ne_bytes).collect())
        }
    })
}

fn bytes<T: ArrowPrimitiveType>(chunks: &[&ArrayRef]) -> Vec<u8> {
    let cells = chunks.iter().map(|chunk| chunk.as_primitive::<T>().values().inner().as_slice());
    cells.collect::<Vec<_>>().concat()
}

/// The smallest number of all is no time, as in NumPy.
fn times<T: ArrowPrimitiveType<Native = i64>>(chunks: &[&ArrayRef]) -> Vec<u8> {
    let cells = chunks.iter().flat_map(|chunk| chunk.as_primitive::<T>().iter());
    cells.flat_map(|cell| cell.unwrap_or(i64::MIN).to_ne_bytes()).collect()
}
