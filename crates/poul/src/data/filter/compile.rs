//! A parsed filter against the columns of a table: names exist, types fit.

use arrow_schema::{DataType, Schema};

use super::instant::instant;
use super::parse::{Expression, Literal, LiteralValue, Name, Relation};
use super::token::wrong;
use crate::data::ColumnKind;
use crate::{Error, Result, nearest_name};

/// A condition whose columns exist and whose values have the types of their columns.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Compare { column: String, relation: Relation, value: Value },
    In { column: String, values: Vec<Value> },
    IsNull { column: String },
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Compared exactly where the column holds 64-bit integers.
    Integer(i64),
    Number(f64),
    Text(String),
}

/// Checks `expression`; adds the columns it names to `columns`.
pub(super) fn compile(
    text: &str,
    expression: &Expression,
    schema: &Schema,
    columns: &mut Vec<String>,
) -> Result<Condition> {
    let mut pair = |left: &Expression, right: &Expression| -> Result<_> {
        let left = compile(text, left, schema, columns)?;
        Ok((Box::new(left), Box::new(compile(text, right, schema, columns)?)))
    };
    match expression {
        Expression::And(left, right) => pair(left, right).map(|(left, right)| Condition::And(left, right)),
        Expression::Or(left, right) => pair(left, right).map(|(left, right)| Condition::Or(left, right)),
        Expression::Not(inner) => Ok(Condition::Not(Box::new(compile(text, inner, schema, columns)?))),
        Expression::IsNull(name) => {
            column(text, name, schema, columns)?;
            Ok(Condition::IsNull { column: name.name.clone() })
        }
        Expression::Holds(name) => match column(text, name, schema, columns)? {
            (ColumnKind::Boolean, _) => {
                let column = name.name.clone();
                Ok(Condition::Compare { column, relation: Relation::Equal, value: Value::Number(1.0) })
            }
            (kind, _) => {
                let what = format!("column `{}` is {}, not a boolean", name.name, kind.words());
                Err(wrong(text, name.position, what).hint(format!("compare it, as in `{} = 1`", name.name)))
            }
        },
        Expression::Compare { column: name, relation, literal } => {
            let (kind, data_type) = column(text, name, schema, columns)?;
            let ordered = !matches!(relation, Relation::Equal | Relation::NotEqual);
            if kind == ColumnKind::Boolean && ordered {
                return Err(wrong(
                    text,
                    name.position,
                    format!("`{}` is a boolean: it has no order", name.name),
                ));
            }
            let value = value(text, name, kind, data_type, literal)?;
            Ok(Condition::Compare { column: name.name.clone(), relation: *relation, value })
        }
        Expression::In { column: name, literals } => {
            let (kind, data_type) = column(text, name, schema, columns)?;
            let values = literals.iter().map(|literal| value(text, name, kind, data_type, literal));
            Ok(Condition::In { column: name.name.clone(), values: values.collect::<Result<_>>()? })
        }
    }
}

fn column<'a>(
    text: &str,
    name: &Name,
    schema: &'a Schema,
    columns: &mut Vec<String>,
) -> Result<(ColumnKind, &'a DataType)> {
    let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let Ok(field) = schema.field_with_name(&name.name) else {
        let error = wrong(text, name.position, format!("there is no column `{}`", name.name));
        return Err(match nearest_name(&name.name, &known) {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None => error.hint("put text in quotes and column names that have spaces in backquotes"),
        });
    };
    if !columns.contains(&name.name) {
        columns.push(name.name.clone());
    }
    let kind = ColumnKind::of(field.data_type()).ok_or_else(|| {
        let what = format!("column `{}` has type {}, which cannot be compared", name.name, field.data_type());
        wrong(text, name.position, what)
    })?;
    Ok((kind, field.data_type()))
}

fn value(
    text: &str,
    name: &Name,
    kind: ColumnKind,
    data_type: &DataType,
    literal: &Literal,
) -> Result<Value> {
    let moment = matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    match (kind, &literal.value) {
        (ColumnKind::Number, LiteralValue::Integer(value)) => Ok(Value::Integer(*value)),
        (ColumnKind::Number, LiteralValue::Number(value)) => Ok(Value::Number(*value)),
        (ColumnKind::Boolean, LiteralValue::Boolean(value)) => Ok(Value::Number(f64::from(u8::from(*value)))),
        (ColumnKind::Boolean, LiteralValue::Integer(value @ 0..=1)) => Ok(Value::Number(*value as f64)),
        (ColumnKind::Text, LiteralValue::Text(value)) => Ok(Value::Text(value.clone())),
        (ColumnKind::Time, LiteralValue::Text(value)) if moment => {
            instant(value, data_type).map(Value::Number).ok_or_else(|| {
                let error = wrong(text, literal.position, format!("`{value}` is not a date"));
                error.hint("write \"2024-03-01\" or \"2024-03-01 18:30:00\"")
            })
        }
        (ColumnKind::Time, LiteralValue::Integer(value)) if !moment => Ok(Value::Integer(*value)),
        (ColumnKind::Time, LiteralValue::Number(value)) if !moment => Ok(Value::Number(*value)),
        _ => Err(mismatch(text, name, kind, literal)),
    }
}

fn mismatch(text: &str, name: &Name, kind: ColumnKind, literal: &Literal) -> Error {
    let (found, plain) = match &literal.value {
        LiteralValue::Integer(value) => ("a number", value.to_string()),
        LiteralValue::Number(value) => ("a number", value.to_string()),
        LiteralValue::Text(value) => ("text", value.clone()),
        LiteralValue::Boolean(value) => ("a boolean", value.to_string()),
    };
    let what = format!("column `{}` is {}, but is compared with {found}", name.name, kind.words());
    let error = wrong(text, literal.position, what);
    match (kind, &literal.value) {
        (ColumnKind::Text, _) => error.hint(format!("write \"{plain}\"")),
        (ColumnKind::Number, LiteralValue::Text(_)) => error.hint("write numbers without quotes"),
        (ColumnKind::Boolean, _) => error.hint("write true or false"),
        (ColumnKind::Time, _) => error.hint("write a date in quotes, such as \"2024-03-01\""),
        _ => error,
    }
}
