//! A checked filter on the rows of a batch.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use super::compile::{Condition, Value};
use super::parse::Relation;
use crate::data::values::{Texts, dictionary_keys, numbers};
use crate::{Error, Result};

/// For each row, whether `condition` holds.
pub(super) fn mask(condition: &Condition, batch: &RecordBatch) -> Result<Vec<bool>> {
    let column = |name: &str| {
        let names = batch.schema();
        batch.column_by_name(name).cloned().ok_or_else(|| {
            Error::missing_column(name, names.fields().iter().map(|field| field.name().as_str()))
        })
    };
    let zip = |left: Vec<bool>, right: Vec<bool>, join: fn(bool, bool) -> bool| {
        left.into_iter().zip(right).map(|(left, right)| join(left, right)).collect()
    };
    Ok(match condition {
        Condition::Compare { column: name, relation, value } => compare(&column(name)?, *relation, value)?,
        Condition::In { column: name, values } => {
            let array = column(name)?;
            let mut found = vec![false; array.len()];
            for value in values {
                found = zip(found, compare(&array, Relation::Equal, value)?, |left, right| left || right);
            }
            found
        }
        Condition::IsNull { column: name } => is_null(&column(name)?),
        Condition::Not(inner) => mask(inner, batch)?.into_iter().map(|holds| !holds).collect(),
        Condition::And(left, right) => {
            zip(mask(left, batch)?, mask(right, batch)?, |left, right| left && right)
        }
        Condition::Or(left, right) => {
            zip(mask(left, batch)?, mask(right, batch)?, |left, right| left || right)
        }
    })
}

fn compare(array: &ArrayRef, relation: Relation, value: &Value) -> Result<Vec<bool>> {
    match value {
        Value::Text(value) => compare_texts(array, |cell| holds(relation, &cell, &value.as_str())),
        Value::Integer(value) if array.data_type() == &DataType::Int64 => {
            let cells = array.as_primitive::<Int64Type>();
            Ok(cells.iter().map(|cell| cell.is_some_and(|cell| holds(relation, &cell, value))).collect())
        }
        Value::Integer(value) => compare_numbers(array, relation, *value as f64),
        Value::Number(value) => compare_numbers(array, relation, *value),
    }
}

fn compare_numbers(array: &ArrayRef, relation: Relation, value: f64) -> Result<Vec<bool>> {
    let cells = numbers(array).ok_or_else(|| changed(array))?;
    Ok(cells.into_iter().map(|cell| !cell.is_nan() && holds(relation, &cell, &value)).collect())
}

fn compare_texts(array: &ArrayRef, test: impl Fn(&str) -> bool) -> Result<Vec<bool>> {
    if let DataType::Dictionary(..) = array.data_type() {
        let values = array.as_any_dictionary().values();
        let values = Texts::of(values).ok_or_else(|| changed(array))?;
        let tested: Vec<bool> = (0..values.len()).map(|idx| values.get(idx).is_some_and(&test)).collect();
        return Ok(dictionary_keys(array)
            .into_iter()
            .map(|key| key.is_some_and(|key| tested[key]))
            .collect());
    }
    let cells = Texts::of(array).ok_or_else(|| changed(array))?;
    Ok((0..cells.len()).map(|row| cells.get(row).is_some_and(&test)).collect())
}

fn is_null(array: &ArrayRef) -> Vec<bool> {
    match array.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            numbers(array).unwrap_or_default().into_iter().map(f64::is_nan).collect()
        }
        _ => match array.logical_nulls() {
            Some(nulls) => nulls.iter().map(|valid| !valid).collect(),
            None => vec![false; array.len()],
        },
    }
}

fn holds<T: PartialOrd>(relation: Relation, left: &T, right: &T) -> bool {
    match relation {
        Relation::Equal => left == right,
        Relation::NotEqual => left != right,
        Relation::Less => left < right,
        Relation::LessOrEqual => left <= right,
        Relation::Greater => left > right,
        Relation::GreaterOrEqual => left >= right,
    }
}

fn changed(array: &ArrayRef) -> Error {
    Error::input(format!("a column of the population has type {} in this batch", array.data_type()))
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use arrow_array::{
        ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array, RecordBatch,
        StringArray,
    };
    use std::sync::Arc;

    fn batch() -> RecordBatch {
        let big = (1_i64 << 60) + 1;
        let city: DictionaryArray<arrow_array::types::Int32Type> =
            vec![Some("a"), Some("b"), None, Some("a")].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("core", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
            ("age", Arc::new(Float64Array::from(vec![Some(17.0), Some(f64::NAN), None, Some(30.0)]))),
            ("id", Arc::new(Int64Array::from(vec![big, big - 1, 3, 4]))),
            ("city", Arc::new(city)),
            ("my name", Arc::new(StringArray::from(vec!["x", "it's", "", "z"]))),
            ("day", Arc::new(Date32Array::from(vec![0, 1, 2, 3]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn rows(text: &str) -> Vec<usize> {
        let batch = batch();
        let mask = Filter::parse(text, &batch.schema()).unwrap().mask(&batch).unwrap();
        (0..4).filter(|row| mask[*row]).collect()
    }

    #[test]
    fn expressions_select_rows() {
        for (text, expected) in [
            ("core", &[0, 3][..]),
            ("core = 1", &[0, 3]),
            ("core == false", &[1]),
            ("not core", &[1, 2]),
            ("age < 18", &[0]),
            ("18 >= age", &[0]),
            ("age != 17", &[3]),
            ("not (age < 18 or age is null)", &[3]),
            ("age is null", &[1, 2]),
            ("age is not null and core", &[0, 3]),
            ("id = 1152921504606846977", &[0]),
            ("id in (3, 4)", &[2, 3]),
            ("id not in (3, 4) and id > -1e3", &[0, 1]),
            ("city == \"a\" and not (age < 18 or age is null)", &[3]),
            ("city not in ('a')", &[1]),
            ("city != 'a'", &[1]),
            ("`my name` = 'it''s' OR `my name` = \"z\"", &[1, 3]),
            ("`my name` < 'y'", &[0, 1, 2]),
            ("day >= '1970-01-03'", &[2, 3]),
            ("core or core and age > 100", &[0, 3]),
        ] {
            assert_eq!(rows(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_have_positions_and_hints() {
        let schema = batch().schema();
        for (text, position, what, hint) in [
            ("cor = 1", 1, "there is no column `cor`", "did you mean `core`?"),
            ("core and agee < 3", 10, "there is no column `agee`", "did you mean `age`?"),
            ("city = a", 8, "expected a value", "write \"a\" for text"),
            ("city = 3", 8, "is compared with a number", "write \"3\""),
            ("age = 'x'", 7, "is compared with text", "without quotes"),
            ("age", 1, "not a boolean", "compare it"),
            ("core < true", 1, "it has no order", ""),
            ("age < 3 age", 9, "expected `and`, `or` or the end", ""),
            ("(age < 3", 9, "expected `)`, found the end", ""),
            ("age < ", 7, "expected a value, found the end", ""),
            ("", 1, "expected a column, found the end", ""),
            ("city = 'a", 8, "never closed", ""),
            ("age ~ 3", 5, "has no meaning", ""),
            ("day > 'soon'", 7, "is not a date", "2024-03-01"),
            ("age = null", 7, "expected a value", "is null"),
            ("age < 1.2.3", 7, "is not a number", ""),
        ] {
            let error = Filter::parse(text, &schema).err().unwrap_or_else(|| panic!("`{text}` passed"));
            let shown = error.to_string();
            assert!(shown.contains(&format!("position {position}: ")), "{text}: {shown}");
            assert!(shown.contains(what), "{text}: {shown}");
            assert!(error.hint_text().unwrap_or_default().contains(hint), "{text}: {:?}", error.hint_text());
        }
        let deep = format!("{}core{}", "(".repeat(5000), ")".repeat(5000));
        assert!(Filter::parse(&deep, &schema).is_err());
    }
}
