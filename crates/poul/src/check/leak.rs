//! Correlation of every encoded column with every outcome: a feature that *is* the outcome must not be one.

use rayon::prelude::*;
use serde::Serialize;

/// A feature that follows an outcome too closely to have been known before it.
#[derive(Clone, Debug, Serialize)]
pub struct Leak {
    /// Encoded column.
    pub column: String,
    /// The outcome it follows.
    pub outcome: String,
    /// Their correlation.
    pub correlation: f64,
}

/// Correlations at least this strong are reported.
const SUSPICIOUS: f64 = 0.95;
/// Columns that are summed together: one cache line of a row.
const BLOCK: usize = 16;

/// Sums for Pearson correlations, over all rows.
pub(super) struct Correlations {
    width: usize,
    n_rows: f64,
    /// By column: Σx, Σx² and, for each outcome, Σxy.
    columns: Vec<ColumnSums>,
    /// By outcome: Σy, Σy².
    outcomes: Vec<(f64, f64)>,
    /// Outcomes are shifted by their first value, so that a large mean does not eat the digits.
    shift: Vec<Option<f64>>,
}

#[derive(Clone)]
struct ColumnSums {
    sum: f64,
    square: f64,
    cross: Vec<f64>,
}

impl Correlations {
    pub(super) fn new(width: usize, n_outcomes: usize) -> Self {
        let column = ColumnSums { sum: 0.0, square: 0.0, cross: vec![0.0; n_outcomes] };
        Self {
            width,
            n_rows: 0.0,
            columns: vec![column; width],
            outcomes: vec![(0.0, 0.0); n_outcomes],
            shift: vec![None; n_outcomes],
        }
    }

    /// Adds a block of row-major encoded rows; each column is summed in row order.
    pub(super) fn add(&mut self, x: &[f32], outcomes: &[Vec<f64>], n_rows: usize) {
        let width = self.width;
        let mut shifted = Vec::with_capacity(outcomes.len());
        for ((values, shift), (sum, square)) in outcomes.iter().zip(&mut self.shift).zip(&mut self.outcomes) {
            let shift = *shift.get_or_insert(values.first().copied().unwrap_or(0.0));
            let values: Vec<f64> = values.iter().map(|value| value - shift).collect();
            *sum += values.iter().sum::<f64>();
            *square += values.iter().map(|value| value * value).sum::<f64>();
            shifted.push(values);
        }
        self.n_rows += n_rows as f64;
        // A cache line of each row at a time: whole columns would fetch every row again for each of them.
        self.columns.par_chunks_mut(BLOCK).enumerate().for_each(|(block, columns)| {
            for row in 0..n_rows {
                let x = &x[row * width + block * BLOCK..][..columns.len()];
                for (sums, x) in columns.iter_mut().zip(x) {
                    let value = f64::from(*x);
                    sums.sum += value;
                    sums.square += value * value;
                    for (cross, outcome) in sums.cross.iter_mut().zip(&shifted) {
                        *cross += value * outcome[row];
                    }
                }
            }
        });
    }

    /// The columns that follow an outcome suspiciously closely.
    pub(super) fn leaks(&self, columns: &[String], outcomes: &[String]) -> Vec<Leak> {
        let mut leaks = Vec::new();
        let n_rows = self.n_rows.max(1.0);
        for (name, sums) in columns.iter().zip(&self.columns) {
            let x_variance = sums.square / n_rows - (sums.sum / n_rows).powi(2);
            for ((outcome, (sum, square)), cross) in outcomes.iter().zip(&self.outcomes).zip(&sums.cross) {
                let y_variance = square / n_rows - (sum / n_rows).powi(2);
                let covariance = cross / n_rows - sums.sum / n_rows * sum / n_rows;
                let correlation = covariance / (x_variance * y_variance).sqrt();
                if x_variance > 1e-12 && correlation.abs() >= SUSPICIOUS {
                    leaks.push(Leak { column: name.clone(), outcome: outcome.clone(), correlation });
                }
            }
        }
        leaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    #[test]
    fn a_copy_of_the_outcome_is_found_and_a_mere_predictor_is_not() {
        let mut rng = Seed::new(1).rng();
        let outcome: Vec<f64> = (0..3000).map(|_| 1e6 + rng.random_range(0.0..10.0)).collect();
        let x: Vec<f32> = outcome
            .iter()
            .flat_map(|y| {
                let y = (y - 1e6) as f32;
                [y * 0.3 - 2.0, y + rng.random_range(-9.0_f32..9.0)]
            })
            .collect();
        let mut correlations = Correlations::new(2, 1);
        correlations.add(&x[..2000], &[outcome[..1000].to_vec()], 1000);
        correlations.add(&x[2000..], &[outcome[1000..].to_vec()], 2000);
        let leaks = correlations.leaks(&["copy".into(), "predictor".into()], &["y".into()]);
        assert_eq!(leaks.len(), 1, "{leaks:?}");
        assert_eq!(leaks[0].column, "copy");
        assert!((leaks[0].correlation - 1.0).abs() < 1e-5);
    }
}
