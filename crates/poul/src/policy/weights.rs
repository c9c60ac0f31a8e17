//! Context weights w(s): given in a file, or estimated from an exposure log as shares of its rows (Sec. 2.1).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use super::builder::{Source, Weight, is_blank, wrong_number};
use super::table::{self, Choice, TableRow};
use crate::{Error, Result};

/// Weights by context, before they are normalised.
#[derive(Clone, Debug)]
pub struct ContextWeights {
    pub(super) entries: Vec<Weight>,
    pub(super) source: Source,
}

/// What one row of a file of contexts says.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    /// The weight of its context, once.
    Weight,
    /// So many exposures.
    Count,
    /// One exposure.
    Row,
}

impl ContextWeights {
    /// Reads a CSV or Parquet file with columns `context` and `weight`; or `context` and `count`, where counts of
    /// the same context add up; or a log with a column `context`, where every row counts 1.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_column(path, None)
    }

    /// Weights from memory, in no file.
    pub fn from_map(weights: &BTreeMap<String, f64>) -> Self {
        let entries = weights
            .iter()
            .map(|(context, weight)| Weight { context: context.clone(), weight: *weight, place: 0 })
            .collect();
        Self { entries, source: Source::default() }
    }

    /// Weights by name of the context.
    pub fn to_map(&self) -> BTreeMap<String, f64> {
        self.entries.iter().map(|entry| (entry.context.clone(), entry.weight)).collect()
    }

    fn read_column(path: &Path, column: Option<&str>) -> Result<Self> {
        let source = Source::new(path, table::unit_of(path)?);
        let measure = Cell::new(Measure::Row);
        let mut found: BTreeMap<String, (f64, u32)> = BTreeMap::new();
        table::read_file(
            path,
            |columns| {
                let (found, choice) = choose(columns, column)?;
                measure.set(found);
                Ok(choice)
            },
            |row| add(&mut found, &row, measure.get(), &source),
        )?;
        if found.is_empty() {
            let error = Error::input("there are no contexts").file(path);
            return Err(error.hint("the file needs at least one row below the column names"));
        }
        let entries =
            found.into_iter().map(|(context, (weight, place))| Weight { context, weight, place }).collect();
        Ok(Self { entries, source })
    }
}

/// Weights estimated from an exposure log: how often each context occurs in `column`, one row one exposure.
///
/// Without a column the file is read as [`ContextWeights::read`] does: its `context` column, by `weight` or
/// `count` where it has one. The log is streamed; only the distinct contexts are held.
pub fn exposure_weights(path: &Path, column: Option<&str>) -> Result<BTreeMap<String, f64>> {
    Ok(ContextWeights::read_column(path, column)?.to_map())
}

fn choose(columns: &[&str], column: Option<&str>) -> Result<(Measure, Choice)> {
    let find = |name: &str| columns.iter().position(|candidate| *candidate == name);
    let name = column.unwrap_or("context");
    let context = find(name).ok_or_else(|| match column {
        Some(name) => Error::missing_column(name, columns.iter().copied()),
        None => table::missing_column(name, columns, &["context", "weight", "count"]),
    })?;
    let (measure, value) = match (column, find("weight"), find("count")) {
        (Some(_), _, _) | (None, None, None) => (Measure::Row, None),
        (None, Some(weight), None) => (Measure::Weight, Some(weight)),
        (None, None, Some(count)) => (Measure::Count, Some(count)),
        (None, Some(_), Some(_)) => {
            let error = Error::input("the file has both a column `weight` and a column `count`");
            return Err(error.hint("keep the one that the contexts should be weighted by"));
        }
    };
    Ok((measure, [Some(context), value, None, None]))
}

fn measure_of(row: &TableRow<'_>, measure: Measure, source: &Source) -> Result<f64> {
    let noun = match measure {
        Measure::Weight => "weight",
        Measure::Count => "count",
        Measure::Row => return Ok(1.0),
    };
    let name = row.cells[0].name();
    let fail = |what: String| {
        let error = source.place(Error::input(format!("the {noun} of context `{name}` {what}")), row.place);
        error.hint(format!("a {noun} is a finite number, 0 or more"))
    };
    let value = row.cells[1].number().map_err(fail)?;
    match wrong_number(value) {
        Some(what) => Err(fail(format!("is {what}"))),
        None => Ok(value),
    }
}

fn add(
    found: &mut BTreeMap<String, (f64, u32)>,
    row: &TableRow<'_>,
    measure: Measure,
    source: &Source,
) -> Result<()> {
    let value = measure_of(row, measure, source)?;
    let name = row.cells[0].name();
    if is_blank(&name) {
        let error = source.place(Error::input("the name of the context is empty"), row.place);
        return Err(error.hint("fill it in, or leave the row out"));
    }
    match found.get_mut(name.as_ref()) {
        None => {
            found.insert(name.into_owned(), (value, row.place));
        }
        Some((_, first)) if measure == Measure::Weight => {
            let before = source.describe(*first).unwrap_or_default();
            let error = Error::input(format!("context `{name}` has two weights (first on {before})"));
            return Err(source.place(error, row.place).hint("keep one of them"));
        }
        Some((sum, _)) => {
            *sum += value;
            if sum.is_infinite() {
                let error = Error::input(format!("the counts of context `{name}` add up to infinity"));
                return Err(source.place(error, row.place).hint("count in larger units"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is finite, and their sum is not.
    #[test]
    fn counts_that_add_up_to_infinity_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.csv");
        std::fs::write(&path, "context,count\npeak,1e308\npeak,1e308\n").unwrap();
        let error = ContextWeights::read(&path).unwrap_err().to_string();
        assert!(error.contains("the counts of context `peak` add up to infinity"), "{error}");
    }
}
