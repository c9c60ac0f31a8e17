//! Evenly spaced rows with their features as they are, for who gains: as many as a tree needs, however long the table.

use super::measure::Compared;
use crate::Result;
use crate::data::{Feature, RawColumn};
use crate::evaluate::{Effects, SampledEffects, WhoGains, who_gains};
use arrow_array::{Array, ArrayRef, UInt32Array};

/// Rows that are kept, at most.
const MOST_ROWS: usize = 20_000;
/// Policies of an outcome that are looked at, those with most rows.
const MOST_POLICIES: usize = 50;

/// Every `stride`-th row.
pub(super) struct SampledRows {
    columns: Vec<RawColumn>,
    rows: Vec<u32>,
    stride: usize,
    n_seen: usize,
}

impl SampledRows {
    pub(super) fn new(features: &[Feature]) -> Self {
        let column = |feature: &Feature| RawColumn::new(feature.name.as_str(), feature.kind);
        Self { columns: features.iter().map(column).collect(), rows: Vec::new(), stride: 1, n_seen: 0 }
    }

    /// Takes its rows out of the next batch.
    pub(super) fn add(&mut self, features: &[ArrayRef]) -> Result<()> {
        let n_rows = features.first().map_or(0, Array::len);
        let first = self.n_seen.next_multiple_of(self.stride) - self.n_seen;
        let chosen: Vec<u32> = (first..n_rows).step_by(self.stride).map(|row| row as u32).collect();
        self.rows.extend(chosen.iter().map(|row| self.n_seen as u32 + row));
        let chosen = UInt32Array::from(chosen);
        for (column, array) in self.columns.iter_mut().zip(features) {
            column.append(array.as_ref(), Some(&chosen))?;
        }
        self.n_seen += n_rows;
        while self.rows.len() > MOST_ROWS {
            self.rows = self.rows.iter().copied().step_by(2).collect();
            self.columns.iter_mut().for_each(RawColumn::thin);
            self.stride *= 2;
        }
        Ok(())
    }

    /// Who gains by each policy, on each outcome.
    pub(super) fn who_gains(&self, compared: &Compared<'_>) -> Result<Vec<WhoGains>> {
        let Compared { rows: table, policies, against, effects } = *compared;
        if effects.is_empty() {
            return Ok(Vec::new());
        }
        let n_rows = table.policy_rows(policies.len());
        let mut common: Vec<usize> = effects.iter().map(|own| own.policy).collect();
        common.sort_unstable();
        common.dedup();
        common.sort_by_key(|policy| std::cmp::Reverse(n_rows[*policy]));
        common.truncate(MOST_POLICIES);
        let taken = |values: &[f64]| self.rows.iter().map(|row| values[*row as usize]).collect::<Vec<f64>>();
        let chosen: Vec<(&Effects<'_>, Vec<f64>)> = effects
            .iter()
            .filter(|own| common.contains(&own.policy))
            .map(|own| (own, taken(own.values)))
            .collect();
        let sampled: Vec<SampledEffects<'_>> = chosen
            .iter()
            .map(|(own, values)| SampledEffects {
                outcome: own.outcome.map_or("", |outcome| &table.outcome_names[outcome]),
                policy: policies.name(own.policy),
                against: policies.name(against),
                values,
            })
            .collect();
        let weight = table.weight.as_deref().map(taken);
        who_gains(&sampled, &self.columns, weight.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ColumnKind, RawCells};
    use arrow_array::Float64Array;
    use std::sync::Arc;

    #[test]
    fn rows_are_evenly_spaced_whatever_the_batches() {
        let sample = |batch: usize| {
            let mut sampled = SampledRows::new(&[Feature { name: "x".to_owned(), kind: ColumnKind::Number }]);
            let values: Vec<f64> = (0..130_000).map(f64::from).collect();
            for values in values.chunks(batch) {
                sampled.add(&[Arc::new(Float64Array::from(values.to_vec())) as ArrayRef]).unwrap();
            }
            sampled
        };
        let one = sample(130_000);
        assert_eq!((one.stride, one.rows.len()), (8, 16_250));
        assert!(one.rows.iter().enumerate().all(|(place, row)| *row as usize == 8 * place));
        for batch in [777, 65_536] {
            let other = sample(batch);
            assert_eq!(other.rows, one.rows);
            let RawCells::Numbers(values) = other.columns[0].cells() else { panic!("not numbers") };
            assert!(values.iter().zip(&one.rows).all(|(value, row)| *value == f64::from(*row)));
        }
    }
}
