//! Labels of treatments, clusters and strata as small numbers.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_schema::DataType;

use super::values::{Texts, dictionary_keys, number_label, numbers};

/// Distinct labels in the order of their first appearance; a label's code is its place.
///
/// Numbers and booleans are labels too: `1`, `2.5`, `true`.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    names: Vec<Arc<str>>,
    // Looked up, never iterated: its order cannot reach a result.
    codes: HashMap<Arc<str>, u32>,
    // Numbers already turned to text, by their bits.
    numbers: HashMap<u64, u32>,
}

impl Labels {
    /// No labels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The labels, by code.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The label of a code, if there is one.
    pub fn name(&self, code: u32) -> Option<&str> {
        self.names.get(code as usize).map(AsRef::as_ref)
    }

    /// The code of a label, if it was seen.
    pub fn code(&self, name: &str) -> Option<u32> {
        self.codes.get(name).copied()
    }

    /// The code of a label, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(code) = self.codes.get(name) {
            return *code;
        }
        let code = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.codes.insert(name, code);
        code
    }

    /// The codes of a column's cells, or the first row that is null.
    pub(crate) fn codes_of(&mut self, array: &dyn Array) -> Result<Vec<u32>, usize> {
        match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let Some(texts) = Texts::of(array) else { return Err(0) };
                // Neighbours are often equal: clusters and sorted tables.
                let mut last: Option<(&str, u32)> = None;
                let code = |row| {
                    let text = texts.get(row).ok_or(row)?;
                    match last {
                        Some((same, code)) if same == text => Ok(code),
                        _ => {
                            let code = self.intern(text);
                            last = Some((text, code));
                            Ok(code)
                        }
                    }
                };
                (0..texts.len()).map(code).collect()
            }
            DataType::Boolean => {
                let cell = |(row, cell): (usize, Option<bool>)| match cell {
                    Some(value) => Ok(self.intern(if value { "true" } else { "false" })),
                    None => Err(row),
                };
                array.as_boolean().iter().enumerate().map(cell).collect()
            }
            DataType::Int64 => {
                let cells = array.as_primitive::<Int64Type>().iter().enumerate();
                let code = |(row, cell): (usize, Option<i64>)| {
                    let value = cell.ok_or(row)?;
                    Ok(self.intern_number(value as u64, || value.to_string()))
                };
                cells.map(code).collect()
            }
            DataType::UInt64 => {
                let cells = array.as_primitive::<UInt64Type>().iter().enumerate();
                let code = |(row, cell): (usize, Option<u64>)| {
                    let value = cell.ok_or(row)?;
                    Ok(self.intern_number(value, || value.to_string()))
                };
                cells.map(code).collect()
            }
            DataType::Dictionary(..) => {
                let mut codes: Vec<Option<u32>> = vec![None; array.as_any_dictionary().values().len()];
                let values = array.as_any_dictionary().values();
                let keys = dictionary_keys(array);
                let code = |(row, key): (usize, Option<usize>)| {
                    let key = key.ok_or(row)?;
                    // Only values in use become labels, in the order of rows.
                    match codes[key] {
                        Some(code) => Ok(code),
                        None => {
                            let code = self.codes_of(&values.slice(key, 1)).map_err(|_| row)?[0];
                            codes[key] = Some(code);
                            Ok(code)
                        }
                    }
                };
                keys.into_iter().enumerate().map(code).collect()
            }
            _ => {
                let cells = numbers(array).ok_or(0_usize)?;
                let code = |(row, value): (usize, f64)| match value.is_nan() {
                    true => Err(row),
                    // Both zeros are one label.
                    false => Ok(self.intern_number((value + 0.0).to_bits(), || number_label(value + 0.0))),
                };
                cells.into_iter().enumerate().map(code).collect()
            }
        }
    }

    fn intern_number(&mut self, bits: u64, text: impl Fn() -> String) -> u32 {
        if let Some(code) = self.numbers.get(&bits) {
            return *code;
        }
        let code = self.intern(&text());
        self.numbers.insert(bits, code);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, DictionaryArray, Float64Array, Int8Array, Int64Array, StringArray};

    #[test]
    fn codes_count_first_appearances() {
        let mut labels = Labels::new();
        assert_eq!(labels.codes_of(&StringArray::from(vec!["b", "a", "b", "b"])), Ok(vec![0, 1, 0, 0]));
        assert_eq!(labels.codes_of(&StringArray::from(vec!["c", "a"])), Ok(vec![2, 1]));
        assert_eq!(labels.names().iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["b", "a", "c"]);
        assert_eq!((labels.code("c"), labels.code("z"), labels.name(1)), (Some(2), None, Some("a")));
        assert_eq!(labels.codes_of(&StringArray::from(vec![Some("a"), None])), Err(1));
    }

    #[test]
    fn every_type_has_labels() {
        let names = |array: &dyn Array| {
            let mut labels = Labels::new();
            labels.codes_of(array).unwrap();
            labels.names().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&Float64Array::from(vec![1.0, 2.5, -0.0, 0.0])), ["1", "2.5", "0"]);
        assert_eq!(names(&Int64Array::from(vec![i64::MAX, -1])), ["9223372036854775807", "-1"]);
        assert_eq!(names(&BooleanArray::from(vec![false, true])), ["false", "true"]);
        let dictionary = DictionaryArray::new(
            Int8Array::from(vec![2, 0, 2]),
            Arc::new(StringArray::from(vec!["x", "unused", "y"])),
        );
        assert_eq!(names(&dictionary), ["y", "x"]);
        assert_eq!(Labels::new().codes_of(&Float64Array::from(vec![1.0, f64::NAN])), Err(1));
    }
}
