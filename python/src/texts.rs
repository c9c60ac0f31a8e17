//! The cells of a text column of any Arrow type.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Every cell, `None` where it is null; `None` for columns that are no text.
pub(crate) fn texts(array: &ArrayRef) -> Option<Vec<Option<&str>>> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = texts(dictionary.values())?;
            if values.is_empty() {
                return Some(vec![None; array.len()]);
            }
            let keys = dictionary.normalized_keys();
            let cell = |row: usize| match dictionary.keys().is_valid(row) {
                true => values.get(keys[row]).copied().flatten(),
                false => None,
            };
            (0..array.len()).map(cell).collect()
        }
        _ => return None,
    })
}
