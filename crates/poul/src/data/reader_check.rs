//! What can be wrong with the cells of a role, and how it is told.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::filter::Filter;
use super::source::locate;
use super::values::numbers;
use crate::{Error, Result};

/// Squares of numbers up to this one, and of their ratios, fit into single precision or into sums of double precision; effects
/// are in single precision.
pub(crate) const LARGEST: f64 = 1e30;

fn is_usable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// Where the rows of a batch stand.
pub(crate) struct Place<'a> {
    pub(crate) path: &'a Path,
    /// The number in its file of a row of the batch, from 0.
    pub(crate) row_in_file: &'a (dyn Fn(usize) -> u64 + Sync),
}

impl Place<'_> {
    fn error(&self, what: String, column: &str, row: usize) -> Error {
        let error = Error::input(what).at_row((self.row_in_file)(row));
        locate(error.at(format!("column `{column}`")), self.path)
    }

    /// A treatment, cluster or stratum that is null.
    pub(crate) fn null_label(&self, role: &str, column: &str, row: usize) -> Error {
        self.error(format!("the {role} is null"), column, row).hint(leave_out(column))
    }

    pub(crate) fn check_weights(&self, column: &str, weights: &[f64]) -> Result<()> {
        match weights.iter().position(|weight| !(*weight >= 0.0 && *weight <= LARGEST)) {
            None => Ok(()),
            Some(row) => {
                let what = match weights[row] {
                    weight if weight.is_nan() => "the weight is null or NaN".to_owned(),
                    weight if weight.is_infinite() => "the weight is infinite".to_owned(),
                    weight if weight > 0.0 => {
                        format!("the weight is {weight:e}, too large to calculate with")
                    }
                    weight => format!("the weight is negative: {weight}"),
                };
                Err(self
                    .error(what, column, row)
                    .hint("weights are numbers from 0 on; only their ratios matter"))
            }
        }
    }

    pub(crate) fn check_probabilities(&self, column: &str, values: &[f64]) -> Result<()> {
        match values.iter().position(|value| !(0.0..=1.0).contains(value)) {
            None => Ok(()),
            Some(row) => {
                let what = match values[row] {
                    value if value.is_nan() => "the propensity is null or NaN".to_owned(),
                    value => format!("the propensity is {value}"),
                };
                Err(self.error(what, column, row).hint("probabilities lie between 0 and 1"))
            }
        }
    }

    pub(crate) fn check_exposure(&self, column: &str, values: &[f64]) -> Result<()> {
        // Beyond what single precision holds, a sum over contexts would be infinite.
        let is_wrong = |value: &f64| !(*value >= 0.0 && *value <= f64::from(f32::MAX));
        match values.iter().position(is_wrong) {
            None => Ok(()),
            Some(row) => {
                let what = match values[row] {
                    value if value.is_nan() => "the exposure is null or NaN".to_owned(),
                    value if value > 0.0 => "the exposure is infinite".to_owned(),
                    value => format!("the exposure is negative: {value}"),
                };
                let hint =
                    "how often a row meets a context is a number from 0 on; write 0 where it never does";
                Err(self.error(what, column, row).hint(hint))
            }
        }
    }

    /// Features may be missing or infinite, which counts as missing, but not so large that their squares overflow.
    pub(crate) fn check_feature(&self, column: &str, cells: &ArrayRef) -> Result<()> {
        let is_large = |value: f64| value.is_finite() && !is_usable(value);
        let valid = |row: usize| cells.is_valid(row);
        let found = match cells.data_type() {
            DataType::Float32 => {
                let values = cells.as_primitive::<Float32Type>().values();
                let large = |(row, value): (usize, &f32)| is_large(f64::from(*value)) && valid(row);
                values
                    .iter()
                    .enumerate()
                    .find(|pair| large(*pair))
                    .map(|(row, value)| (row, f64::from(*value)))
            }
            DataType::Float64 => {
                let values = cells.as_primitive::<Float64Type>().values();
                let large = |(row, value): (usize, &f64)| is_large(*value) && valid(row);
                values.iter().enumerate().find(|pair| large(*pair)).map(|(row, value)| (row, *value))
            }
            DataType::Decimal128(..) | DataType::Decimal256(..) => {
                let values = numbers(cells).unwrap_or_default();
                values.iter().position(|value| is_large(*value)).map(|row| (row, values[row]))
            }
            // Whole numbers of 64 bits are smaller.
            _ => None,
        };
        let Some((row, value)) = found else { return Ok(()) };
        let what = format!("the feature is {value:e}, too large to calculate with");
        Err(self.error(what, column, row).hint(format!(
            "if it stands for a missing value, leave the cell empty; or leave the column out: ‹exclude={column}›"
        )))
    }

    pub(crate) fn check_finite(&self, role: &str, column: &str, values: &[f64]) -> Result<()> {
        match values.iter().position(|value| !is_usable(*value)) {
            None => Ok(()),
            Some(row) => Err(self.not_usable(role, column, row, values[row])),
        }
    }

    fn not_usable(&self, role: &str, column: &str, row: usize, value: f64) -> Error {
        if value.is_nan() {
            return self.error(format!("the {role} is null or NaN"), column, row).hint(leave_out(column));
        }
        let name = quoted(column);
        let leave_out = format!("‹population={name} > -1e30 and {name} < 1e30›");
        if value.is_infinite() {
            let hint = format!("leave such rows out: {leave_out}");
            return self.error(format!("the {role} is infinite"), column, row).hint(hint);
        }
        let what = format!("the {role} is {value:e}, too large to calculate with");
        let hint = format!(
            "write it in larger units; if it stands for a missing value, leave such rows out: {leave_out}"
        );
        self.error(what, column, row).hint(hint)
    }
}

/// Tells an outcome with a gap from an outcome that was never observed: until a value is seen, the first gap waits.
pub(crate) struct OutcomeCheck {
    name: String,
    any_value: bool,
    first_gap: Option<Error>,
}

impl OutcomeCheck {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), any_value: false, first_gap: None }
    }

    pub(crate) fn check(&mut self, values: &[f64], place: &Place<'_>) -> Result<()> {
        if self.first_gap.is_none()
            && let Some(row) = values.iter().position(|value| !is_usable(*value))
        {
            self.first_gap = Some(place.not_usable("outcome", &self.name, row, values[row]));
        }
        self.any_value |= values.iter().any(|value| !value.is_nan());
        match self.first_gap.take_if(|_| self.any_value) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Of a part, in which a gap is a gap even where there is nothing else.
    pub(crate) fn finish_part(&mut self) -> Result<()> {
        self.first_gap.take().map_or(Ok(()), Err)
    }

    pub(crate) fn finish(&mut self, paths: &[PathBuf]) -> Result<()> {
        if self.first_gap.take().is_none() {
            return Ok(());
        }
        let error = Error::input("the outcome is null in every row").at(format!("column `{}`", self.name));
        Err(of_table(error, paths).hint("is it the right column, and was it observed for these rows?"))
    }
}

/// No row is left to work with.
pub(crate) fn nothing_left(paths: &[PathBuf], population: Option<&Filter>, n_read: u64) -> Error {
    let error = match population {
        Some(filter) if n_read > 0 => {
            let what = format!("the population `{}` holds for none of the {n_read} rows", filter.text());
            Error::input(what).hint("comparisons with null are false; is the value spelled as in the data?")
        }
        _ => Error::input("the table has no rows"),
    };
    of_table(error, paths)
}

pub(crate) fn all_weights_zero(paths: &[PathBuf], column: &str) -> Error {
    let error = Error::input("all weights are zero").at(format!("column `{column}`"));
    of_table(error, paths).hint("at least one row must count")
}

/// An error of the whole table, told of its first file.
fn of_table(error: Error, paths: &[PathBuf]) -> Error {
    match paths.first() {
        Some(path) => locate(error, path),
        None => error,
    }
}

fn leave_out(column: &str) -> String {
    format!("leave such rows out: ‹population={} is not null›", quoted(column))
}

/// A column's name as a population expression takes it.
fn quoted(column: &str) -> String {
    let plain = column.chars().all(|char| char.is_alphanumeric() || char == '_')
        && !column.starts_with(|char: char| char.is_numeric());
    if plain { column.to_owned() } else { format!("`{}`", column.replace('`', "``")) }
}
