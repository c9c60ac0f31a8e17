//! Percentile bootstrap by cluster: the ranking is sorted once, and each draw only counts its rows differently.

use rayon::prelude::*;

use super::ranked::{Ranked, Rows};
use super::resample;
use crate::evaluate::result::Interval;
use crate::stats::quantile;
use crate::{Error, Progress, Result, Rng, Seed};

/// Settings of the bootstrap.
///
/// Units are clusters where the sample has them, rows otherwise; below 1000 units a draw is multinomial, from there
/// its counts are independent Poisson(1). Rows without clusters are drawn by rank. To give two rankings of the same
/// rows the same draws (for the difference of two metrics), pass the row numbers as clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Number of draws; default 200; 0 switches intervals off, otherwise 20 to 100,000.
    pub draws: usize,
    /// Share of the draws inside an interval; default 0.9; strictly between 0 and 1.
    pub level: f64,
    /// Root of the draws' random streams; default 3407.
    pub seed: Seed,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { draws: 200, level: 0.9, seed: Seed::new(3407) }
    }
}

impl Bootstrap {
    /// Whether the settings are in range.
    pub fn check(&self) -> Result<()> {
        if self.draws != 0 && !(20..=100_000).contains(&self.draws) {
            return Err(Error::usage(format!("{} bootstrap draws", self.draws))
                .hint("use 20 to 100000 draws, or 0 for no intervals"));
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::usage(format!("the level of the intervals is {}", self.level))
                .hint("the level lies strictly between 0 and 1, such as 0.9"));
        }
        Ok(())
    }

    /// Measures every draw with replacement. Draws run in parallel; the result does not depend on the threads.
    pub fn draw(
        &self,
        ranked: &Ranked,
        progress: &dyn Progress,
        measure: impl Fn(Rows<'_>) -> Vec<f64> + Sync,
    ) -> Result<Draws> {
        self.run("bootstrap", resample::with_replacement, ranked, progress, measure)
    }

    /// Measures every draw of half of the units without replacement.
    pub(crate) fn half_samples(
        &self,
        ranked: &Ranked,
        progress: &dyn Progress,
        measure: impl Fn(Rows<'_>) -> Vec<f64> + Sync,
    ) -> Result<Draws> {
        self.run("half-sample", resample::half, ranked, progress, measure)
    }

    /// The percentile interval of one metric.
    pub fn interval(
        &self,
        ranked: &Ranked,
        progress: &dyn Progress,
        metric: impl Fn(Rows<'_>) -> Option<f64> + Sync,
    ) -> Result<Option<Interval>> {
        let draws = self.draw(ranked, progress, |rows| vec![metric(rows).unwrap_or(f64::NAN)])?;
        Ok(draws.interval(0, self.level))
    }

    fn run(
        &self,
        stream: &str,
        fill: impl Fn(&mut Rng, &mut [u8]) + Sync,
        ranked: &Ranked,
        progress: &dyn Progress,
        measure: impl Fn(Rows<'_>) -> Vec<f64> + Sync,
    ) -> Result<Draws> {
        self.check()?;
        let seed = self.seed.child(stream);
        let measured: Result<Vec<Vec<f64>>> = (0..self.draws)
            .into_par_iter()
            .map_init(Buffers::default, |buffers, draw| {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
                let counts = buffers.counts(ranked, |units| fill(&mut seed.index(draw as u64).rng(), units));
                let measured = measure(Rows { ranked, counts: Some(counts) });
                progress.advance(1);
                Ok(measured)
            })
            .collect();
        Ok(Draws(measured?))
    }
}

/// Kept by a thread from draw to draw.
#[derive(Default)]
struct Buffers {
    units: Vec<u8>,
    rows: Vec<u8>,
}

impl Buffers {
    fn counts(&mut self, ranked: &Ranked, fill: impl Fn(&mut [u8])) -> &[u8] {
        self.units.resize(ranked.n_units(), 0);
        fill(&mut self.units);
        let Some(cluster) = ranked.cluster() else {
            return &self.units;
        };
        self.rows.clear();
        self.rows.extend(cluster.iter().map(|cluster| self.units[*cluster as usize]));
        &self.rows
    }
}

/// What was measured, by draw; NaN where a metric was undefined.
#[derive(Clone, Debug)]
pub struct Draws(Vec<Vec<f64>>);

impl Draws {
    /// Measurements by draw, NaN where undefined.
    pub fn of(values: Vec<Vec<f64>>) -> Self {
        Self(values)
    }

    /// Measurements by draw, NaN where undefined.
    pub fn values(&self) -> &[Vec<f64>] {
        &self.0
    }

    /// The percentile interval of measurement `column`; `None` unless nine draws in ten defined it.
    pub fn interval(&self, column: usize, level: f64) -> Option<Interval> {
        let mut values = self.defined(column)?;
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - level) / 2.0;
        Some([quantile(&values, tail), quantile(&values, 1.0 - tail)])
    }

    /// The standard deviation of measurement `column` over the draws; `None` unless nine in ten defined it.
    pub fn standard_deviation(&self, column: usize) -> Option<f64> {
        let values = self.defined(column)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Some((squares / (values.len() - 1) as f64).sqrt())
    }

    fn defined(&self, column: usize) -> Option<Vec<f64>> {
        let values: Vec<f64> = self
            .0
            .iter()
            .filter_map(|draw| draw.get(column))
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        (values.len() >= 2 && values.len() * 10 >= self.0.len() * 9).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let draws = Draws((0..=100).map(|value| vec![f64::from(100 - value)]).collect());
        let [low, high] = draws.interval(0, 0.9).unwrap();
        assert!((low - 5.0).abs() < 1e-12 && (high - 95.0).abs() < 1e-12);
        assert_eq!(draws.interval(1, 0.9), None);
        assert!((draws.standard_deviation(0).unwrap() - (858.5_f64).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_metric_often_undefined_has_no_interval() {
        let draws = Draws((0..100).map(|i| vec![if i < 11 { f64::NAN } else { 1.0 }]).collect());
        assert_eq!(draws.interval(0, 0.9), None);
        let draws = Draws((0..100).map(|i| vec![if i < 10 { f64::NAN } else { 1.0 }]).collect());
        assert_eq!(draws.interval(0, 0.9), Some([1.0, 1.0]));
    }

    #[test]
    fn settings_out_of_range_are_usage_errors() {
        for wrong in [
            Bootstrap { draws: 5, ..Bootstrap::default() },
            Bootstrap { level: 1.0, ..Bootstrap::default() },
            Bootstrap { level: f64::NAN, ..Bootstrap::default() },
        ] {
            assert_eq!(wrong.check().unwrap_err().kind(), crate::Kind::Usage);
        }
        assert!(Bootstrap { draws: 0, ..Bootstrap::default() }.check().is_ok());
    }
}
