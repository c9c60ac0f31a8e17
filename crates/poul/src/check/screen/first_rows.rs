//! Numbers that are different in every row: ids and row numbers, by the first rows of the table as they are.
//!
//! Text of many levels needs no care: a level of few rows has no column of its own.

use arrow_array::ArrayRef;

use super::super::findings::{Finding, Level};
use super::{about, exclude};
use crate::data::{ColumnKind, Columns, numbers};

/// Rows that are looked at.
const MOST: usize = 8_192;
/// Fewer say nothing.
const FEWEST: usize = 200;
/// Pairs of equal values that chance would have given among whole numbers of the same range: none is no chance then.
const EXPECTED_PAIRS: f64 = 20.0;

/// The first cells of the numeric features.
pub(crate) struct FirstRows {
    columns: Vec<Option<(String, Vec<f64>)>>,
}

impl FirstRows {
    pub(crate) fn new(columns: &Columns) -> Self {
        let of = |feature: &crate::data::Feature| {
            (feature.kind == ColumnKind::Number).then(|| (feature.name.clone(), Vec::new()))
        };
        Self { columns: columns.features.iter().map(of).collect() }
    }

    /// Adds a batch; whether more rows are wanted. A column that cannot be an id is forgotten.
    pub(crate) fn add(&mut self, features: &[ArrayRef]) -> bool {
        let mut wanted = false;
        for (column, cells) in self.columns.iter_mut().zip(features) {
            let Some((_, values)) = column else { continue };
            let left = MOST.saturating_sub(values.len());
            let Some(new) = (left > 0).then(|| numbers(&*cells.slice(0, left.min(cells.len())))).flatten()
            else {
                continue;
            };
            values.extend(new);
            match values.iter().all(|value| value.is_finite() && value.fract() == 0.0) {
                true => wanted |= values.len() < MOST,
                false => *column = None,
            }
        }
        wanted
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let is = |check: fn(&str, &[f64]) -> bool| -> Vec<&str> {
            let found = self.columns.iter().flatten().filter(|(name, values)| check(name, values));
            found.map(|(name, _)| name.as_str()).collect()
        };
        let of = |names: Vec<&str>, one: &str, many: &str| {
            let hint = format!("leave it out with {}, or keep it as ‹id›", exclude(&names));
            let what = if names.len() == 1 { one } else { many };
            (!names.is_empty()).then(|| about(Level::Warning, &names, what, &hint))
        };
        let counts = of(is(|_, values| counts_rows(values)), "counts the rows", "count the rows");
        let ids = of(
            is(|name, values| !counts_rows(values) && is_unique(name, values)),
            "is different in every row, like an id",
            "are different in every row, like ids",
        );
        counts.into_iter().chain(ids).collect()
    }
}

fn counts_rows(values: &[f64]) -> bool {
    values.len() >= FEWEST && values.windows(2).all(|pair| pair[1] - pair[0] == 1.0)
}

/// Whether values repeat less than chance allows, or do not repeat at all in a column that is called an id.
fn is_unique(name: &str, values: &[f64]) -> bool {
    if values.len() < FEWEST {
        return false;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return false;
    }
    let range = sorted[sorted.len() - 1] - sorted[0] + 1.0;
    let pairs = (values.len() as f64).powi(2) / (2.0 * range);
    let name = name.to_ascii_lowercase();
    pairs >= EXPECTED_PAIRS || name == "id" || name.ends_with("_id") || name.ends_with("uid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    #[test]
    fn ids_are_told_from_numbers() {
        let mut rng = Seed::new(1).rng();
        let count: Vec<f64> = (0..1000).map(|row| 7.0 + f64::from(row)).collect();
        // Every number below 8192 once, out of order.
        let shuffled: Vec<f64> = (0..8192).map(|row| f64::from(row * 4051 % 8192)).collect();
        let sparse: Vec<f64> = (0..500).map(|_| f64::from(rng.random::<u32>())).collect();
        let age: Vec<f64> = (0..8192).map(|_| f64::from(rng.random_range(18..90))).collect();
        assert!(counts_rows(&count) && !counts_rows(&shuffled) && !counts_rows(&count[..100]));
        assert!(is_unique("x", &shuffled) && is_unique("user_id", &sparse));
        assert!(!is_unique("balance", &sparse) && !is_unique("age", &age) && !is_unique("city_id", &age));
    }
}
