//! A column from NumPy or from Python objects, without pyarrow; numbers are borrowed, not copied.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, Float64Array, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use poul::Error;
use pyo3::buffer::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::capsule::{arrow_error, borrow_buffer, take_array, take_stream};
use crate::failure::raise;

/// A named column: one array, or several one after the other.
#[pyclass(frozen, module = "poul._poul")]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) chunks: Vec<ArrayRef>,
}

#[pymethods]
impl Column {
    /// A contiguous NumPy array of numbers or booleans; `dtype` is its name.
    #[staticmethod]
    fn from_numpy(name: String, array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Self> {
        let array: ArrayRef = match dtype {
            "float32" => numbers::<Float32Type>(array)?,
            "float64" => numbers::<Float64Type>(array)?,
            "int8" => numbers::<Int8Type>(array)?,
            "int16" => numbers::<Int16Type>(array)?,
            "int32" => numbers::<Int32Type>(array)?,
            "int64" => numbers::<Int64Type>(array)?,
            "uint8" => numbers::<UInt8Type>(array)?,
            "uint16" => numbers::<UInt16Type>(array)?,
            "uint32" => numbers::<UInt32Type>(array)?,
            "uint64" => numbers::<UInt64Type>(array)?,
            // Handed over as the bytes that they are.
            "bool" => {
                let bytes = borrow_buffer::<u8>(array)?;
                Arc::new(BooleanArray::from_iter(bytes.iter().map(|byte| Some(*byte != 0))))
            }
            other => return Err(PyTypeError::new_err(format!("no column of dtype {other}"))),
        };
        Ok(Self::of(name, array))
    }

    /// Times: whole numbers since 1970 in `unit` (`s`, `ms`, `us` or `ns`), the smallest of all being no time.
    #[staticmethod]
    fn from_times(name: String, array: &Bound<'_, PyAny>, unit: &str) -> PyResult<Self> {
        let values = borrow_buffer::<i64>(array)?;
        let nulls = nulls(values.iter().map(|value| *value != i64::MIN));
        let unit = match unit {
            "s" => TimeUnit::Second,
            "ms" => TimeUnit::Millisecond,
            "us" => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        };
        let array: ArrayRef = match unit {
            TimeUnit::Second => Arc::new(PrimitiveArray::<TimestampSecondType>::new(values, nulls)),
            TimeUnit::Millisecond => Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, nulls)),
            TimeUnit::Microsecond => Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, nulls)),
            TimeUnit::Nanosecond => Arc::new(PrimitiveArray::<TimestampNanosecondType>::new(values, nulls)),
        };
        Ok(Self::of(name, array))
    }

    /// A categorical: 32-bit codes into the cells of `categories`, negative where missing.
    #[staticmethod]
    fn from_codes(
        py: Python<'_>,
        name: String,
        codes: &Bound<'_, PyAny>,
        categories: &Self,
    ) -> PyResult<Self> {
        let codes = borrow_buffer::<i32>(codes)?;
        let nulls = nulls(codes.iter().map(|code| *code >= 0));
        let Some(values) = categories.chunks.first() else {
            return Err(PyTypeError::new_err("a categorical needs its categories"));
        };
        let keys = PrimitiveArray::<Int32Type>::new(codes, nulls);
        let array = DictionaryArray::try_new(keys, Arc::clone(values)).map_err(arrow_error(py))?;
        Ok(Self::of(name, Arc::new(array)))
    }

    /// Python objects that are all text, all numbers or all booleans; `missing` marks those that are nothing.
    #[staticmethod]
    fn from_objects(
        py: Python<'_>,
        name: String,
        values: Vec<Bound<'_, PyAny>>,
        missing: Option<&[u8]>,
    ) -> PyResult<Self> {
        let mut found: Option<(Cell, usize)> = None;
        let is_missing = |row: usize, value: &Bound<'_, PyAny>| {
            value.is_none() || missing.and_then(|marks| marks.get(row)).is_some_and(|mark| *mark != 0)
        };
        for (row, value) in values.iter().enumerate() {
            if is_missing(row, value) {
                continue;
            }
            let cell = Cell::of(value).ok_or_else(|| strange(py, &name, row, value))?;
            match found {
                None => found = Some((cell, row)),
                Some((first, _)) if first == cell => {}
                Some((first, first_row)) => return Err(mixed(py, &name, (first, first_row), (cell, row))),
            }
        }
        let cells = values.iter().enumerate().map(|(row, value)| (!is_missing(row, value)).then_some(value));
        let array: ArrayRef = match found.map(|(cell, _)| cell) {
            None => arrow_array::new_null_array(&DataType::Null, values.len()),
            Some(Cell::Text) => {
                let texts = cells.map(|cell| cell.map(PyAnyMethods::extract::<String>).transpose());
                Arc::new(texts.collect::<PyResult<StringArray>>()?)
            }
            Some(Cell::Boolean) => {
                let flags = cells.map(|cell| cell.map(PyAnyMethods::is_truthy).transpose());
                Arc::new(flags.collect::<PyResult<BooleanArray>>()?)
            }
            Some(Cell::Number) => {
                let numbers = cells.map(|cell| cell.map(PyAnyMethods::extract::<f64>).transpose());
                Arc::new(numbers.collect::<PyResult<Float64Array>>()?)
            }
        };
        Ok(Self::of(name, array))
    }

    /// Anything that speaks the Arrow C data interface for one column.
    #[staticmethod]
    fn from_arrow(py: Python<'_>, name: String, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !object.hasattr("__arrow_c_stream__")? {
            let (_, array) = take_array(object)?;
            return Ok(Self::of(name, array));
        }
        let stream = take_stream(object)?;
        let (data_type, chunks) = py
            .detach(|| {
                let reader = arrow_array::ffi_stream::ArrayStreamReader::try_new(stream)?;
                let data_type = arrow_array::ArrayReader::field(&reader).data_type().clone();
                Ok((data_type, reader.collect::<Result<Vec<_>, _>>()?))
            })
            .map_err(arrow_error(py))?;
        Ok(Self { name, data_type, chunks })
    }

    fn __len__(&self) -> usize {
        self.n_rows()
    }
}

impl Column {
    fn of(name: String, array: ArrayRef) -> Self {
        Self { name, data_type: array.data_type().clone(), chunks: vec![array] }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.chunks.iter().map(Array::len).sum()
    }
}

/// What an object may be.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Text,
    Number,
    Boolean,
}

impl Cell {
    fn of(value: &Bound<'_, PyAny>) -> Option<Self> {
        if value.is_instance_of::<PyString>() {
            Some(Self::Text)
        } else if value.is_instance_of::<PyBool>() || value.get_type().name().is_ok_and(|name| name == "bool")
        {
            Some(Self::Boolean)
        } else if value.extract::<f64>().is_ok() {
            Some(Self::Number)
        } else {
            None
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Boolean => "true or false",
        }
    }
}

fn numbers<T>(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: Element,
{
    let values: ScalarBuffer<T::Native> = borrow_buffer(array)?;
    Ok(Arc::new(PrimitiveArray::<T>::new(values, None)))
}

/// No mask at all where nothing is missing.
fn nulls(valid: impl Iterator<Item = bool> + Clone) -> Option<NullBuffer> {
    valid.clone().any(|valid| !valid).then(|| NullBuffer::from_iter(valid))
}

fn mixed(py: Python<'_>, name: &str, first: (Cell, usize), other: (Cell, usize)) -> PyErr {
    let what = format!(
        "mixes types: row {} is {}, row {} is {} (counted from 0)",
        first.1,
        first.0.words(),
        other.1,
        other.0.words()
    );
    let error = Error::input(what).at(format!("column `{name}`"));
    raise(py, &error.hint("make it one type first, such as df[column].astype(str)"))
}

fn strange(py: Python<'_>, name: &str, row: usize, value: &Bound<'_, PyAny>) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let error = Error::input(format!("is a Python `{kind}`")).at(format!("column `{name}`"));
    let error = error.at_row(row);
    raise(
        py,
        &error.hint("columns hold numbers, booleans, text, categories or times; convert it, or exclude it"),
    )
}
