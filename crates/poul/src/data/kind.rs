//! What a column holds, whatever its Arrow type.

use arrow_schema::DataType;

/// The kinds of column that roles, filters and encoders tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Integers, floats and decimals; also a column that holds nothing but nulls.
    Number,
    /// True and false.
    Boolean,
    /// Strings, plain or dictionary-encoded.
    Text,
    /// Dates, times and timestamps; numbers to an encoder.
    Time,
}

impl ColumnKind {
    /// The kind of `data_type`, or `None` for nested and binary types, which have no use here.
    pub fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Null
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => Some(Self::Number),
            DataType::Boolean => Some(Self::Boolean),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Date32
            | DataType::Date64
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_) => Some(Self::Time),
            DataType::Dictionary(_, values) => match values.as_ref() {
                DataType::Dictionary(..) => None,
                values => Self::of(values),
            },
            _ => None,
        }
    }

    /// The kind in words, for messages: `a number`, `text`, …
    pub fn words(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Text => "text",
            Self::Time => "a date or time",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_what_they_hold() {
        let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values));
        assert_eq!(ColumnKind::of(&dictionary(DataType::Utf8)), Some(ColumnKind::Text));
        assert_eq!(ColumnKind::of(&dictionary(DataType::Int64)), Some(ColumnKind::Number));
        assert_eq!(ColumnKind::of(&DataType::Binary), None);
    }
}
