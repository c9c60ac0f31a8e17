//! The `population` expression: which rows count.
//!
//! ```text
//! core = 1
//! city == "a" and not (age < 18 or age is null)
//! segment in ("x", "y") and `days since last` <= 30
//! ```
//! A comparison with null (or NaN) is false, whichever way it is asked; `is null` finds both.

mod apply;
mod compile;
mod instant;
mod parse;
mod token;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use self::compile::Condition;
use crate::Result;

/// A checked expression over the columns of a table.
///
/// Comparisons `=` `==` `!=` `<>` `<` `<=` `>` `>=`, `in (…)`, `not in (…)`, `is null`, `is not null`, a boolean column on its own,
/// joined by `and`, `or`, `not` and parentheses. Text and dates stand in quotes, names with spaces in backquotes.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    columns: Vec<String>,
    condition: Condition,
}

impl Filter {
    /// Parses `text` and checks its columns and types against `schema`.
    ///
    /// ```
    /// # use arrow_schema::{DataType, Field, Schema};
    /// let schema = Schema::new(vec![Field::new("age", DataType::Int64, true)]);
    /// let filter = poul::data::Filter::parse("age >= 18", &schema)?;
    /// assert_eq!(filter.columns(), ["age"]);
    /// # Ok::<(), poul::Error>(())
    /// ```
    pub fn parse(text: &str, schema: &Schema) -> Result<Self> {
        let expression = parse::parse(text)?;
        let mut columns = Vec::new();
        let condition = compile::compile(text, &expression, schema, &mut columns)?;
        Ok(Self { text: text.to_owned(), columns, condition })
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns it looks at, in the order of their first mention.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// For each row of `batch`, whether the expression holds.
    pub fn mask(&self, batch: &RecordBatch) -> Result<Vec<bool>> {
        apply::mask(&self.condition, batch)
    }
}
