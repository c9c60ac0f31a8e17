//! A column as it is in the table, before any encoding: what groups of rows are named by.

use std::sync::Arc;

use arrow_array::{Array, UInt32Array};

use super::kind::ColumnKind;
use super::labels::Labels;
use super::moment::{moment_name, seconds_in_unit};
use super::values::{number_label, numbers};
use crate::{Error, Result};

/// The code of a missing category.
pub(crate) const MISSING: u32 = u32::MAX;

/// The cells of a column: numbers (dates in their own unit), or categories.
#[derive(Clone, Debug)]
pub enum RawCells {
    /// Numbers; NaN is missing.
    Numbers(Vec<f64>),
    /// Text and booleans: codes into the labels; `MISSING` is missing.
    Categories {
        /// The code of each row.
        codes: Vec<u32>,
        /// The labels by code.
        labels: Labels,
    },
}

/// A named column, filled batch after batch.
#[derive(Clone, Debug)]
pub struct RawColumn {
    name: String,
    cells: RawCells,
    /// Of dates and timestamps, how many seconds the unit of the numbers is.
    unit: Option<f64>,
}

impl RawColumn {
    /// A column without rows.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        let cells = match kind {
            ColumnKind::Number | ColumnKind::Time => RawCells::Numbers(Vec::new()),
            ColumnKind::Text | ColumnKind::Boolean => {
                RawCells::Categories { codes: Vec::new(), labels: Labels::new() }
            }
        };
        Self { name: name.into(), cells, unit: None }
    }

    /// A column of numbers; NaN is missing.
    pub fn of_numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), cells: RawCells::Numbers(values), unit: None }
    }

    /// A column of categories; `None` is missing.
    pub fn of_categories<'t>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = Option<&'t str>>,
    ) -> Self {
        let mut labels = Labels::new();
        let code = |value: Option<&str>| value.map_or(MISSING, |value| labels.intern(value));
        let codes = values.into_iter().map(code).collect();
        Self { name: name.into(), cells: RawCells::Categories { codes, labels }, unit: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its cells.
    pub fn cells(&self) -> &RawCells {
        &self.cells
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        match &self.cells {
            RawCells::Numbers(values) => values.len(),
            RawCells::Categories { codes, .. } => codes.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the cells of a batch, or some rows of it.
    pub fn append(&mut self, array: &dyn Array, rows: Option<&UInt32Array>) -> Result<()> {
        let taken = match rows {
            Some(rows) => arrow_select::take::take(array, rows, None),
            None => Ok(arrow_array::make_array(array.to_data())),
        };
        let array =
            taken.map_err(|error| Error::other(format!("cannot take rows: {error}")).source(error))?;
        self.unit = seconds_in_unit(array.data_type());
        match &mut self.cells {
            RawCells::Numbers(values) => {
                let Some(new) = numbers(array.as_ref()) else {
                    return Err(Error::other(format!("column `{}` changed its type", self.name)));
                };
                values.extend(new.into_iter().map(|value| if value.is_finite() { value } else { f64::NAN }));
            }
            RawCells::Categories { codes, labels } => append_labels(array.as_ref(), codes, labels),
        }
        Ok(())
    }

    /// Keeps the rows at even places.
    pub fn thin(&mut self) {
        match &mut self.cells {
            RawCells::Numbers(values) => *values = values.iter().copied().step_by(2).collect(),
            RawCells::Categories { codes, .. } => *codes = codes.iter().copied().step_by(2).collect(),
        }
    }

    /// Whether its numbers are dates or timestamps.
    pub(crate) fn is_time(&self) -> bool {
        self.unit.is_some()
    }

    /// A number of this column as it is shown in the name of a group; dates as dates.
    pub(crate) fn number_name(&self, value: f64) -> String {
        match self.unit {
            Some(unit) => moment_name(value * unit),
            None => short_number(value),
        }
    }

    /// The label of a category.
    pub fn label(&self, code: u32) -> Arc<str> {
        match &self.cells {
            RawCells::Categories { labels, .. } => labels.names().get(code as usize).cloned(),
            RawCells::Numbers(_) => None,
        }
        .unwrap_or_else(|| "missing".into())
    }
}

/// A number as it is shown in the name of a group: at most four significant digits where that is enough.
fn short_number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e9 {
        return number_label(value);
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    number_label(rounded)
}

fn append_labels(array: &dyn Array, codes: &mut Vec<u32>, labels: &mut Labels) {
    // Between two nulls there are labels only.
    let mut first = 0;
    let nulls: Vec<usize> = match array.logical_nulls() {
        Some(nulls) => (0..array.len()).filter(|row| nulls.is_null(*row)).collect(),
        None => Vec::new(),
    };
    for end in nulls.into_iter().chain([array.len()]) {
        if end > first {
            let part = array.slice(first, end - first);
            codes.extend(labels.codes_of(part.as_ref()).unwrap_or_else(|_| vec![MISSING; end - first]));
        }
        if end < array.len() {
            codes.push(MISSING);
        }
        first = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Float32Array, StringArray};

    #[test]
    fn cells_come_as_they_are() {
        let mut city = RawColumn::new("city", ColumnKind::Text);
        let batch = StringArray::from(vec![Some("Rome"), None, Some("Oslo"), Some("Rome"), None]);
        city.append(&batch, None).unwrap();
        city.append(&batch, Some(&UInt32Array::from(vec![2, 1]))).unwrap();
        let RawCells::Categories { codes, .. } = city.cells() else { panic!("not categories") };
        assert_eq!(codes, &[0, MISSING, 1, 0, MISSING, 1, MISSING]);
        assert_eq!(city.label(1).as_ref(), "Oslo");
        city.thin();
        assert_eq!(city.len(), 4);
        let mut new = RawColumn::new("new", ColumnKind::Boolean);
        new.append(&BooleanArray::from(vec![Some(true), None]), None).unwrap();
        assert_eq!(new.label(0).as_ref(), "true");
        let mut trips = RawColumn::new("trips", ColumnKind::Number);
        trips.append(&Float32Array::from(vec![Some(1.5), None, Some(f32::INFINITY)]), None).unwrap();
        let RawCells::Numbers(values) = trips.cells() else { panic!("not numbers") };
        assert!(values[0] == 1.5 && values[1].is_nan() && values[2].is_nan());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short_number(12.0), "12");
        assert_eq!(short_number(1.234_567), "1.235");
        assert_eq!(short_number(-1_234.567), "-1235");
    }
}
