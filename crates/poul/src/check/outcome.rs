//! Running summary of one outcome, over all rows and by policy.

use serde::Serialize;

/// What an outcome looks like.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeSummary {
    /// The outcome column.
    pub outcome: String,
    /// Mean over rows.
    pub mean: f64,
    /// Standard deviation over rows.
    pub sd: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Share of rows that are exactly zero.
    pub zeros: f64,
    /// Whether every value is 0 or 1.
    pub binary: bool,
}

/// Accumulates an outcome in one pass. Weights do not enter: this describes the rows.
pub(super) struct Accumulator {
    n_rows: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
    zeros: u64,
    binary: bool,
    by_policy: Vec<(u64, f64)>,
}

impl Accumulator {
    pub(super) fn new(n_policies: usize) -> Self {
        Self {
            n_rows: 0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            zeros: 0,
            binary: true,
            by_policy: vec![(0, 0.0); n_policies],
        }
    }

    pub(super) fn add(&mut self, value: f64, policy: usize) {
        // Welford's update: stable whatever the scale of the outcome.
        self.n_rows += 1;
        let before = value - self.mean;
        self.mean += before / self.n_rows as f64;
        self.squares += before * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.zeros += u64::from(value == 0.0);
        self.binary &= value == 0.0 || value == 1.0;
        let (rows, mean) = &mut self.by_policy[policy];
        *rows += 1;
        *mean += (value - *mean) / *rows as f64;
    }

    pub(super) fn policy_mean(&self, policy: usize) -> f64 {
        self.by_policy[policy].1
    }

    pub(super) fn sd(&self) -> f64 {
        (self.squares / self.n_rows.max(1) as f64).sqrt()
    }

    pub(super) fn summary(&self, outcome: &str) -> OutcomeSummary {
        OutcomeSummary {
            outcome: outcome.to_string(),
            mean: self.mean,
            sd: self.sd(),
            min: self.min,
            max: self.max,
            zeros: self.zeros as f64 / self.n_rows.max(1) as f64,
            binary: self.binary,
        }
    }
}
