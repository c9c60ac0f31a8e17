//! One schema for all files of a table, and arrays brought to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::ColumnKind;
use super::source::{SourceFile, locate, places};
use super::values::{Texts, dictionary_keys, numbers};
use crate::{Error, Result};
use arrow_array::cast::AsArray;

/// The columns of the first file, each with a type that holds what every file has.
pub(crate) fn unify(files: &[SourceFile]) -> Result<SchemaRef> {
    let Some(first) = files.first() else { return Err(Error::input("there are no files")) };
    for file in files {
        check_names(file)?;
    }
    let mut types: Vec<DataType> =
        first.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let index: BTreeMap<&str, usize> =
        first.schema.fields().iter().enumerate().map(|(idx, field)| (field.name().as_str(), idx)).collect();
    for file in &files[1..] {
        for field in file.schema.fields() {
            let Some(idx) = index.get(field.name().as_str()) else {
                let what = format!("column `{}` is not in `{}`", field.name(), first.path.display());
                return Err(
                    locate(Error::input(what), &file.path).hint("all files of a table have the same columns")
                );
            };
            types[*idx] = wider(&types[*idx], field.data_type()).ok_or_else(|| {
                let what = format!("is {}, but {} in earlier files", field.data_type(), types[*idx]);
                let error = Error::input(what).at(format!("column `{}`", field.name()));
                locate(error, &file.path).hint("all files of a table have the same types")
            })?;
        }
        let own = places(&file.schema);
        if let Some(name) = index.keys().find(|name| !own.contains_key(*name)) {
            let what = format!("column `{name}` is missing, which `{}` has", first.path.display());
            return Err(
                locate(Error::input(what), &file.path).hint("all files of a table have the same columns")
            );
        }
    }
    let fields = first.schema.fields().iter().zip(types);
    let fields: Vec<Field> =
        fields.map(|(field, data_type)| Field::new(field.name(), data_type, true)).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// `array` as `target`, a type that [`unify`] found to hold it.
pub(crate) fn widen(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    let impossible =
        || Error::input(format!("the type changed from {} to {target} while reading", array.data_type()));
    match (array.data_type(), target) {
        (DataType::Null, _) => Ok(new_null_array(target, array.len())),
        (_, DataType::Float64) => {
            let values = numbers(array).ok_or_else(impossible)?;
            Ok(Arc::new(Float64Array::new(values.into(), array.logical_nulls())))
        }
        (_, DataType::Utf8) => text(array).ok_or_else(impossible),
        _ => Err(impossible()),
    }
}

fn check_names(file: &SourceFile) -> Result<()> {
    let mut names: Vec<&str> = file.schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let error = Error::input(format!("two columns are called `{}`", pair[0]));
        return Err(locate(error, &file.path).hint("give each column its own name"));
    }
    if names.is_empty() {
        return Err(locate(Error::input("the table has no columns"), &file.path));
    }
    Ok(())
}

fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(a.clone());
    }
    match (a, b) {
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        _ => match (ColumnKind::of(a)?, ColumnKind::of(b)?) {
            (ColumnKind::Number, ColumnKind::Number) => Some(DataType::Float64),
            (ColumnKind::Text, ColumnKind::Text) => Some(DataType::Utf8),
            _ => None,
        },
    }
}

fn text(array: &ArrayRef) -> Option<ArrayRef> {
    if let DataType::Dictionary(..) = array.data_type() {
        let values = array.as_any_dictionary().values();
        let values = Texts::of(values)?;
        let keys = dictionary_keys(array);
        let cells = keys.into_iter().map(|key| key.and_then(|key| values.get(key)));
        return Some(Arc::new(cells.collect::<StringArray>()));
    }
    let values = Texts::of(array)?;
    Some(Arc::new((0..values.len()).map(|row| values.get(row)).collect::<StringArray>()))
}
