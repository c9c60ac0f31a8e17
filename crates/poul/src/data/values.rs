//! Reading Arrow columns of any type as numbers or as text.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};

/// Every cell as a number: nulls are NaN, booleans 0 or 1, decimals scaled, dates and times in their own unit.
///
/// `None` for text and for types that are no [`ColumnKind`](super::ColumnKind).
pub fn numbers(array: &dyn Array) -> Option<Vec<f64>> {
    fn primitive<T: ArrowPrimitiveType>(array: &dyn Array, number: impl Fn(T::Native) -> f64) -> Vec<f64> {
        let array = array.as_primitive::<T>();
        let mut numbers: Vec<f64> = array.values().iter().map(|value| number(*value)).collect();
        mark_nulls(array, &mut numbers);
        numbers
    }
    let scaled = |scale: &i8| 10f64.powi(-i32::from(*scale));
    Some(match array.data_type() {
        DataType::Null => vec![f64::NAN; array.len()],
        DataType::Boolean => {
            let array = array.as_boolean();
            let mut numbers: Vec<f64> =
                array.values().iter().map(|value| if value { 1.0 } else { 0.0 }).collect();
            mark_nulls(array, &mut numbers);
            numbers
        }
        DataType::Int8 => primitive::<Int8Type>(array, f64::from),
        DataType::Int16 => primitive::<Int16Type>(array, f64::from),
        DataType::Int32 => primitive::<Int32Type>(array, f64::from),
        DataType::Int64 => primitive::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => primitive::<UInt8Type>(array, f64::from),
        DataType::UInt16 => primitive::<UInt16Type>(array, f64::from),
        DataType::UInt32 => primitive::<UInt32Type>(array, f64::from),
        DataType::UInt64 => primitive::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => primitive::<Float16Type>(array, f64::from),
        DataType::Float32 => primitive::<Float32Type>(array, f64::from),
        DataType::Float64 => primitive::<Float64Type>(array, |value| value),
        DataType::Decimal32(_, scale) => {
            let unit = scaled(scale);
            primitive::<Decimal32Type>(array, |value| f64::from(value) * unit)
        }
        DataType::Decimal64(_, scale) => {
            let unit = scaled(scale);
            primitive::<Decimal64Type>(array, |value| value as f64 * unit)
        }
        DataType::Decimal128(_, scale) => {
            let unit = scaled(scale);
            primitive::<Decimal128Type>(array, |value| value as f64 * unit)
        }
        DataType::Decimal256(_, scale) => {
            let unit = scaled(scale);
            primitive::<Decimal256Type>(array, |value| {
                let (low, high) = value.to_parts();
                (high as f64 * 2f64.powi(128) + low as f64) * unit
            })
        }
        DataType::Date32 => primitive::<Date32Type>(array, f64::from),
        DataType::Date64 => primitive::<Date64Type>(array, |value| value as f64),
        DataType::Time32(TimeUnit::Second) => primitive::<Time32SecondType>(array, f64::from),
        DataType::Time32(_) => primitive::<Time32MillisecondType>(array, f64::from),
        DataType::Time64(TimeUnit::Microsecond) => {
            primitive::<Time64MicrosecondType>(array, |value| value as f64)
        }
        DataType::Time64(_) => primitive::<Time64NanosecondType>(array, |value| value as f64),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => primitive::<TimestampSecondType>(array, |value| value as f64),
            TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(array, |value| value as f64),
            TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(array, |value| value as f64),
            TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(array, |value| value as f64),
        },
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => primitive::<DurationSecondType>(array, |value| value as f64),
            TimeUnit::Millisecond => primitive::<DurationMillisecondType>(array, |value| value as f64),
            TimeUnit::Microsecond => primitive::<DurationMicrosecondType>(array, |value| value as f64),
            TimeUnit::Nanosecond => primitive::<DurationNanosecondType>(array, |value| value as f64),
        },
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = numbers(dictionary.values())?;
            dictionary_keys(array).into_iter().map(|key| key.map_or(f64::NAN, |key| values[key])).collect()
        }
        _ => return None,
    })
}

/// For each row of a dictionary array, the index of its value, or `None` where it is null.
pub(crate) fn dictionary_keys(array: &dyn Array) -> Vec<Option<usize>> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return vec![None; array.len()];
    }
    let keys = dictionary.normalized_keys();
    let key_is_null = dictionary.keys().nulls().cloned();
    let value_is_null = values.nulls().cloned();
    let valid = |row: usize, key: usize| {
        key_is_null.as_ref().is_none_or(|nulls| nulls.is_valid(row))
            && value_is_null.as_ref().is_none_or(|nulls| nulls.is_valid(key))
    };
    keys.into_iter().enumerate().map(|(row, key)| valid(row, key).then_some(key)).collect()
}

/// The cells of a text column that is not a dictionary.
#[derive(Clone, Copy)]
pub(crate) enum Texts<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    /// `array` as text, if that is what it is.
    pub(crate) fn of(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Utf8(array.as_string())),
            DataType::LargeUtf8 => Some(Self::LargeUtf8(array.as_string())),
            DataType::Utf8View => Some(Self::Utf8View(array.as_string_view())),
            _ => None,
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Utf8(array) => array.len(),
            Self::LargeUtf8(array) => array.len(),
            Self::Utf8View(array) => array.len(),
        }
    }

    /// The text of a row, `None` where it is null.
    pub(crate) fn get(self, row: usize) -> Option<&'a str> {
        match self {
            Self::Utf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeUtf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Utf8View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// A number as a label: whole numbers without a fraction, others in the shortest form that reads back the same.
pub(crate) fn number_label(value: f64) -> String {
    // Rust prints 1e300 as 301 digits: keep labels readable.
    if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}

fn mark_nulls(array: &dyn Array, numbers: &mut [f64]) {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
    for (number, valid) in numbers.iter_mut().zip(nulls.iter()) {
        if !valid {
            *number = f64::NAN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Int8Array, StringArray,
        TimestampMillisecondArray,
    };
    use std::sync::Arc;

    #[test]
    fn every_type_becomes_numbers() {
        let bools = BooleanArray::from(vec![Some(true), None, Some(false)]);
        let bools = numbers(&bools).unwrap();
        assert_eq!((bools[0], bools[2]), (1.0, 0.0));
        assert!(bools[1].is_nan());
        let money = Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 2).unwrap();
        assert!((numbers(&money).unwrap()[0] - 123.45).abs() < 1e-12);
        assert_eq!(numbers(&TimestampMillisecondArray::from(vec![7])).unwrap(), [7.0]);
        assert_eq!(numbers(&Float32Array::from(vec![1.5])).unwrap(), [1.5]);
        assert!(numbers(&StringArray::from(vec!["1"])).is_none());
    }

    #[test]
    fn a_dictionary_of_numbers_is_looked_up() {
        let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
        let dictionary = DictionaryArray::new(keys, Arc::new(Float32Array::from(vec![2.0, 4.0])));
        let read = numbers(&dictionary).unwrap();
        assert_eq!((read[0], read[2]), (4.0, 2.0));
        assert!(read[1].is_nan());
        let empty = DictionaryArray::new(
            Int8Array::from(vec![None, None]),
            Arc::new(Float32Array::from(vec![0.0; 0])),
        );
        assert!(numbers(&empty).unwrap().iter().all(|value| value.is_nan()));
    }

    #[test]
    fn labels_of_numbers_read_well() {
        assert_eq!(number_label(1.0), "1");
        assert_eq!(number_label(-0.25), "-0.25");
        assert_eq!(number_label(1e300), "1e300");
    }
}
