//! A bounded sample of each column for quantiles: the values of the rows whose hashed numbers are smallest.
//!
//! Which rows these are depends on the row numbers alone, so neither batches nor threads can change the sample.

use crate::Seed;

/// Values kept per column.
pub(super) const CAPACITY: usize = 4096;

/// The rows of a batch in the order of their hashes.
pub(super) struct HashOrder(Vec<(u64, u32)>);

impl HashOrder {
    pub(super) fn new(rows: &[u64]) -> Self {
        let seed = Seed::new(0).child("encoder sample");
        let hashes = rows.iter().zip(0..).map(|(row, position)| (seed.index(*row).value(), position));
        let mut order: Vec<(u64, u32)> = hashes.collect();
        order.sort_unstable();
        Self(order)
    }
}

/// The sample of one column: values with the hashes of their rows, smallest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    kept: Vec<(u64, f64)>,
}

impl Sample {
    /// Adds the rows of a batch; `value` gives a row's value, NaN where it is missing.
    pub(super) fn add(&mut self, order: &HashOrder, value: impl Fn(usize) -> f64) {
        let limit = if self.kept.len() < CAPACITY { u64::MAX } else { self.kept[CAPACITY - 1].0 };
        let mut new: Vec<(u64, f64)> = Vec::new();
        for (hash, position) in &order.0 {
            if *hash > limit || new.len() == CAPACITY {
                break;
            }
            let value = value(*position as usize);
            if value.is_finite() {
                new.push((*hash, value));
            }
        }
        if new.is_empty() {
            return;
        }
        self.kept.extend(new);
        // Two sorted runs: the sort merges them. Row numbers differ, and so do their hashes.
        self.kept.sort_by_key(|(hash, _)| *hash);
        self.kept.truncate(CAPACITY);
    }

    /// The values, smallest first.
    pub(super) fn into_sorted(self) -> Vec<f64> {
        let mut values: Vec<f64> = self.kept.into_iter().map(|(_, value)| value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile;

    #[test]
    fn batches_do_not_change_the_sample() {
        let rows: Vec<u64> = (0..20_000).collect();
        let value = |row: u64| if row.is_multiple_of(7) { f64::NAN } else { (row as f64).sin() };
        let sampled = |size: usize| {
            let mut sample = Sample::default();
            for batch in rows.chunks(size) {
                sample.add(&HashOrder::new(batch), |position| value(batch[position]));
            }
            sample.into_sorted()
        };
        let whole = sampled(20_000);
        assert_eq!(whole.len(), CAPACITY);
        assert_eq!(whole, sampled(999));
        assert!((quantile(&whole, 0.5)).abs() < 0.05);
    }
}
