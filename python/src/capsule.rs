//! All unsafe code: Arrow data through the C data interface (the PyCapsule protocol), and the memory of NumPy columns.
//!
//! Nothing is copied. Whoever made the data keeps ownership until the last array that points into them is dropped.
//! As with every such hand-over, the data must not be written to while they are read.

#![allow(unsafe_code, reason = "the C data interface is one of pointers; each use says why it is sound")]

use std::panic::RefUnwindSafe;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatchReader, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_schema::Field;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::raise;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";
const ARRAY: &std::ffi::CStr = c"arrow_array";

/// The stream of an object that has `__arrow_c_stream__`.
pub(crate) fn take_stream(object: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowArrayStream> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a pointer to a valid stream that the consumer may move out of: so says the
    // protocol, and the name was checked. What is left behind is marked as released, so the capsule frees nothing.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) })
}

/// The array of an object that has `__arrow_c_array__`.
pub(crate) fn take_array(object: &Bound<'_, PyAny>) -> PyResult<(Field, ArrayRef)> {
    let pair = object.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
    // SAFETY: as for a stream; the schema is only looked at while `pair` keeps its capsule alive.
    let (schema, array) = unsafe {
        (schema.cast::<FFI_ArrowSchema>().as_ref(), FFI_ArrowArray::from_raw(array.cast().as_ptr()))
    };
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow array was already taken"));
    }
    let field = Field::try_from(schema).map_err(arrow_error(object.py()))?;
    // SAFETY: the protocol promises that the array is valid for the schema beside it.
    let data = unsafe { from_ffi(array, schema) }.map_err(arrow_error(object.py()))?;
    Ok((field, make_array(data)))
}

/// A capsule with a stream of record batches.
pub(crate) fn give_stream<'py>(
    py: Python<'py>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// The memory of a contiguous one-dimensional NumPy array (or any other buffer), borrowed.
pub(crate) fn borrow_buffer<T: Element + ArrowNativeType>(
    object: &Bound<'_, PyAny>,
) -> PyResult<ScalarBuffer<T>> {
    let buffer = PyBuffer::<T>::get(object)?;
    let Some(values) = buffer.as_slice_ptr() else {
        return Err(PyValueError::new_err("the values of a column must lie one after the other"));
    };
    let (n_values, n_bytes) = (buffer.item_count(), buffer.len_bytes());
    if n_values == 0 {
        return Ok(Vec::new().into());
    }
    // SAFETY: `PyBuffer` has checked type and alignment, and holds the exporter's memory in place until it is dropped,
    // which the buffer below does last of all.
    let buffer = unsafe { Buffer::from_custom_allocation(values.cast(), n_bytes, Arc::new(Owner(buffer))) };
    Ok(ScalarBuffer::new(buffer, 0, n_values))
}

/// Keeps the memory of a Python object in place.
struct Owner<T: Element>(#[expect(dead_code, reason = "held, never read")] PyBuffer<T>);

impl<T: Element> RefUnwindSafe for Owner<T> {}

/// Data that break the rules of Arrow.
pub(crate) fn arrow_error(py: Python<'_>) -> impl Fn(arrow_schema::ArrowError) -> PyErr {
    move |error| raise(py, &poul::Error::input(format!("the Arrow data cannot be read: {error}")))
}
