//! Are the sizes right: predicted against observed effects in bins of the predicted effect (the paper's MAPE).

use serde::{Deserialize, Serialize};

use super::definition::{About, Beside, Better, Definition, Shown};
use super::ranked::{Rows, Totals};
use super::registry::Metric;

pub(super) const MAPE: Definition = Definition {
    better: Better::Less,
    evaluated: Shown::VALUE,
    reported: Shown::VALUE,
    compared: Shown::VALUE,
    in_comparisons: true,
    is_quotient: true,
    beside: Some(Beside::FlaggedBins),
    notes: |told| {
        let (bins, n_bins) = (&told.metrics.calibration, told.params.bins);
        let n_empty = bins.iter().filter(|bin| bin.observed.is_none()).count();
        let n_flagged = told.metrics.mape_flagged_bins;
        let mut notes = Vec::new();
        if n_empty > 0 {
            notes.push(format!("mape, wmape: {n_empty} of {n_bins} bins lack an arm and are left out"));
        }
        if told.metrics[Metric::Mape].value.is_none() && n_empty < bins.len() {
            notes.push("mape: an observed effect is exactly zero".to_owned());
        }
        if n_flagged > 0 {
            let why = "the observed effect is smaller than its standard error";
            notes.push(format!("mape: in {n_flagged} of {n_bins} bins {why}"));
        }
        notes
    },
    ..Definition::new("mape", "MAPE", About::Sizes, |pass| pass.relative_errors.0)
};

pub(super) const WMAPE: Definition = Definition {
    better: Better::Less,
    reported: Shown::VALUE,
    compared: Shown::VALUE,
    in_comparisons: true,
    is_quotient: true,
    ..Definition::new("wmape", "wMAPE", About::Sizes, |pass| pass.relative_errors.1)
};

/// Predicted and observed effects by bin, and how far apart they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// From the highest predicted effects to the lowest.
    pub bins: Vec<Bin>,
    /// Mean of |τ̂ − τ|/|τ| over bins that have both arms; `None` where none has, or an observed effect is 0.
    pub mape: Option<f64>,
    /// Σ|τ̂ − τ| / Σ|τ| over the same bins.
    pub wmape: Option<f64>,
}

/// One bin of the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Mean predicted effect.
    pub predicted: f64,
    /// Difference of the arms' mean outcomes; `None` where an arm is empty.
    pub observed: Option<f64>,
    /// Standard error of the observed effect; `None` where an arm has one row.
    pub se: Option<f64>,
    /// Whether the observed effect is smaller than its standard error, so that a relative error says little.
    pub flagged: bool,
    /// Treated rows (sum of weights).
    pub n_treated: f64,
    /// Control rows (sum of weights).
    pub n_control: f64,
}

/// Cuts the ranking into `n_bins` of equal size and compares effects in each.
///
/// A tie group across a cut is shared in proportion, so that the order of tied rows cannot matter.
pub fn calibration<'a>(rows: impl Into<Rows<'a>>, n_bins: usize) -> Calibration {
    let rows = rows.into();
    let bins: Vec<Bin> = bin_sums(rows, &rows.totals(), n_bins).iter().filter_map(BinSums::bin).collect();
    let (mape, wmape) = errors(&bins);
    Calibration { bins, mape, wmape }
}

/// MAPE and weighted MAPE of a resample, without keeping the bins.
pub(super) fn relative_errors(rows: Rows<'_>, totals: &Totals, n_bins: usize) -> (Option<f64>, Option<f64>) {
    let bins: Vec<Bin> = bin_sums(rows, totals, n_bins).iter().filter_map(BinSums::bin).collect();
    errors(&bins)
}

fn errors(bins: &[Bin]) -> (Option<f64>, Option<f64>) {
    let largest = bins.iter().filter_map(|bin| bin.observed).fold(0.0_f64, |most, own| most.max(own.abs()));
    let (mut n_known, mut relative, mut absolute, mut size) = (0.0, 0.0, 0.0, 0.0);
    for (bin, observed) in bins.iter().filter_map(|bin| Some((bin, bin.observed?))) {
        let error = (bin.predicted - observed).abs();
        n_known += 1.0;
        // Two arms of equal means differ by rounding alone: that is no effect to divide by.
        relative += if observed.abs() <= 1e-9 * largest { f64::INFINITY } else { error / observed.abs() };
        absolute += error;
        size += observed.abs();
    }
    let known = |value: f64| value.is_finite().then_some(value);
    (known(relative / n_known), known(absolute / size))
}

/// Sums of one bin by arm (control, treated); outcomes are taken around a common centre.
#[derive(Clone, Copy, Debug, Default)]
struct BinSums {
    score: f64,
    mass: [f64; 2],
    squared_mass: [f64; 2],
    outcome: [f64; 2],
    squared_outcome: [f64; 2],
}

fn bin_sums(rows: Rows<'_>, totals: &Totals, n_bins: usize) -> Vec<BinSums> {
    let n = totals.k();
    let centre = (totals.y_treated + totals.y_control) / n;
    let mut bins = vec![BinSums::default(); n_bins];
    let mut group = BinSums::default();
    let (mut bin, mut k) = (0, 0.0);
    let mut bin_end = n / n_bins as f64;
    rows.for_each(|row| {
        group.add(row.mass, row.treated, row.score, row.outcome - centre);
        if !row.last_of_tie {
            return;
        }
        let end = k + group.mass[0] + group.mass[1];
        while end > bin_end && bin + 1 < n_bins {
            let share = (bin_end - k) / (end - k);
            bins[bin].add_share(&group, share);
            group.scale(1.0 - share);
            k = bin_end;
            bin += 1;
            bin_end = n * (bin + 1) as f64 / n_bins as f64;
        }
        bins[bin].add_share(&group, 1.0);
        k = end;
        group = BinSums::default();
    });
    bins
}

impl BinSums {
    #[inline(always)]
    fn add(&mut self, mass: f64, treated: f64, score: f64, outcome: f64) {
        self.score += mass * score;
        let treated_mass = mass * treated;
        for (arm, mass) in [mass - treated_mass, treated_mass].into_iter().enumerate() {
            self.mass[arm] += mass;
            self.squared_mass[arm] += mass * mass;
            self.outcome[arm] += mass * outcome;
            self.squared_outcome[arm] += mass * outcome * outcome;
        }
    }

    /// Adds a share of the rows of `other`.
    #[inline(always)]
    fn add_share(&mut self, other: &Self, share: f64) {
        self.score += other.score * share;
        for arm in 0..2 {
            self.mass[arm] += other.mass[arm] * share;
            self.squared_mass[arm] += other.squared_mass[arm] * share;
            self.outcome[arm] += other.outcome[arm] * share;
            self.squared_outcome[arm] += other.squared_outcome[arm] * share;
        }
    }

    fn scale(&mut self, share: f64) {
        let whole = std::mem::take(self);
        self.add_share(&whole, share);
    }

    fn bin(&self) -> Option<Bin> {
        let [n_control, n_treated] = self.mass;
        if n_control + n_treated <= 0.0 {
            return None;
        }
        let observed = (n_control > 0.0 && n_treated > 0.0)
            .then(|| self.outcome[1] / n_treated - self.outcome[0] / n_control);
        let se = self.variance_of_mean(0).zip(self.variance_of_mean(1)).map(|(a, b)| (a + b).sqrt());
        Some(Bin {
            predicted: self.score / (n_control + n_treated),
            observed,
            se,
            flagged: observed.is_some_and(|observed| se.is_none_or(|se| observed.abs() < se)),
            n_treated,
            n_control,
        })
    }

    /// Variance of an arm's weighted mean; s²/n with unit weights.
    fn variance_of_mean(&self, arm: usize) -> Option<f64> {
        let mass = self.mass[arm];
        let n_effective = mass * mass / self.squared_mass[arm];
        if n_effective.is_nan() || n_effective <= 1.0 + 1e-9 {
            return None;
        }
        let mean = self.outcome[arm] / mass;
        let variance = (self.squared_outcome[arm] / mass - mean * mean).max(0.0);
        Some(variance / (n_effective - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ranked, Sample};
    use super::*;

    #[test]
    fn two_bins_by_hand() {
        let score = [4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0];
        let treated = [true, false, true, false, true, false, true, false];
        let outcome = [6.0, 1.0, 5.0, 2.0, 3.0, 2.0, 3.0, 2.0];
        let sample = Sample::new(&score, &outcome, &treated).unwrap();
        let calibration = calibration(&Ranked::new(&sample), 2);
        let [top, bottom] = calibration.bins[..] else { panic!("{calibration:?}") };
        assert_eq!((top.predicted, top.observed), (3.5, Some(4.0)));
        assert_eq!((bottom.predicted, bottom.observed), (1.5, Some(1.0)));
        // Variances of two values one apart are 1/2, over two rows an arm.
        assert!((top.se.unwrap() - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!(!top.flagged && !bottom.flagged);
        assert!((calibration.mape.unwrap() - (0.5 / 4.0 + 0.5) / 2.0).abs() < 1e-12);
        assert!((calibration.wmape.unwrap() - 1.0 / 5.0).abs() < 1e-12);
    }

    #[test]
    fn one_tie_group_is_shared_by_all_bins() {
        let treated: Vec<bool> = (0..25).map(|i| i % 2 == 0).collect();
        let outcome: Vec<f64> = (0..25).map(f64::from).collect();
        let sample = Sample::new(&[2.0; 25], &outcome, &treated).unwrap();
        let calibration = calibration(&Ranked::new(&sample), 10);
        assert_eq!(calibration.bins.len(), 10);
        for bin in &calibration.bins {
            assert!((bin.n_treated - 1.3).abs() < 1e-9 && (bin.n_control - 1.2).abs() < 1e-9);
            assert!((bin.predicted - 2.0).abs() < 1e-12);
            assert!((bin.observed.unwrap() - calibration.bins[0].observed.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn a_bin_with_one_arm_is_left_out_and_a_small_effect_flagged() {
        let sample = Sample::new(
            &[4.0, 3.0, 2.0, 2.0, 1.0, 1.0],
            &[1.0, 1.0, 5.0, 0.0, 0.1, 4.9],
            &[true, true, true, false, true, false],
        )
        .unwrap();
        let calibration = calibration(&Ranked::new(&sample), 3);
        assert_eq!(calibration.bins[0].observed, None);
        assert!(calibration.mape.is_some());
        let noisy = Sample::new(&[1.0; 4], &[5.0, 0.0, 1.0, 4.0], &[true, true, false, false]).unwrap();
        let bins = super::calibration(&Ranked::new(&noisy), 1).bins;
        assert!(bins[0].flagged);
    }
}
