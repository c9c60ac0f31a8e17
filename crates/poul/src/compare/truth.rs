//! True effects of the test rows, where they are known: a table `row, policy, effect_<outcome>…` such as `simulate` writes.

use std::collections::HashMap;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use crate::data::{Source, numbers};
use crate::policy::PolicySet;
use crate::{Error, Result};

/// True effects against one policy, by outcome, target and test row.
pub(crate) struct Truth {
    /// NaN where unknown.
    effects: Vec<Vec<Vec<f64>>>,
}

impl Truth {
    /// Reads the effects of `targets` against `against`; `rows` are the numbers of the test rows in their source.
    pub(crate) fn read(
        source: &Source,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        outcomes: &[String],
        rows: &[u64],
    ) -> Result<Self> {
        let names: Vec<String> = outcomes.iter().map(|outcome| format!("effect_{outcome}")).collect();
        let mut columns = vec!["row", "policy"];
        columns.extend(names.iter().map(String::as_str));
        let known = source.column_names();
        if let Some(missing) = columns.iter().find(|name| !known.contains(name)) {
            let error = Error::missing_column(missing, known).at("truth");
            return Err(
                placed(error, source).otherwise("a truth has the columns row, policy, effect_<outcome>")
            );
        }
        // Only asked, never walked.
        let place: HashMap<u64, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let mut slot = vec![None; policies.len()];
        targets.iter().chain([&against]).enumerate().for_each(|(index, policy)| slot[*policy] = Some(index));
        let mut effects = vec![vec![vec![f64::NAN; rows.len()]; targets.len() + 1]; outcomes.len()];
        let unfit =
            |column: &str, what: &str| placed(Error::input(what).at(format!("column `{column}`")), source);
        for batch in source.batches(&columns, 1 << 16)? {
            let batch = batch?;
            let row = numbers(batch.column(0)).ok_or_else(|| unfit("row", "rows must be numbers"))?;
            let policy = texts(batch.column(1)).ok_or_else(|| unfit("policy", "policies must be names"))?;
            for (outcome, effects) in effects.iter_mut().enumerate() {
                let values = numbers(batch.column(2 + outcome))
                    .ok_or_else(|| unfit(&names[outcome], "effects must be numbers"))?;
                for (index, value) in values.iter().enumerate() {
                    let slot = policies.index(&policy[index]).and_then(|policy| slot[policy]);
                    let place = place.get(&(row[index] as u64)).filter(|_| row[index] >= 0.0);
                    if let (Some(slot), Some(place)) = (slot, place) {
                        effects[slot][*place] = *value;
                    }
                }
            }
        }
        for effects in &mut effects {
            // The file may leave out the policy compared with, whose effect against itself is 0.
            let base = effects.pop().unwrap_or_default();
            for effects in effects {
                for (effect, base) in effects.iter_mut().zip(&base) {
                    *effect -= if base.is_nan() { 0.0 } else { *base };
                }
            }
        }
        Ok(Self { effects })
    }

    /// The true effects of a target on an outcome, NaN where unknown.
    pub(crate) fn of(&self, outcome: usize, target: usize) -> &[f64] {
        &self.effects[outcome][target]
    }
}

fn texts(array: &dyn Array) -> Option<Vec<String>> {
    fn of(cells: impl Iterator<Item = Option<impl AsRef<str>>>) -> Vec<String> {
        cells.map(|cell| cell.map_or_else(String::new, |cell| cell.as_ref().to_owned())).collect()
    }
    match array.data_type() {
        DataType::Utf8 => Some(of(array.as_string_opt::<i32>()?.iter())),
        DataType::LargeUtf8 => Some(of(array.as_string_opt::<i64>()?.iter())),
        DataType::Utf8View => Some(of(array.as_string_view_opt()?.iter())),
        _ => None,
    }
}

fn placed(error: Error, source: &Source) -> Error {
    match source.files().first() {
        Some(file) => error.file(file),
        None => error,
    }
}
