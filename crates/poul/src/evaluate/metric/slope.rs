//! The calibration slope: by how much the true effect rises when the predicted effect rises by one.
//!
//! The best linear predictor of the effect given its prediction (Chernozhukov et al., generic machine learning) has
//! slope Cov(τ, τ̂)/Var(τ̂). In a randomised comparison it is the slope of Y on τ̂ among treated rows less that among
//! control rows. 1 means sizes are right, 0 that the heterogeneity is noise, above 1 that effects are understated.

use super::ate::{cluster_se, row_se};
use super::definition::{About, Beside, Better, Definition, Shown};
use super::ranked::{Ranked, Row, Rows};
use super::registry::Metric;

pub(super) const CALIBRATION_SLOPE: Definition = Definition {
    better: Better::Neither,
    evaluated: Shown::VALUE,
    reported: Shown::INTERVAL,
    se: Some(|whole| calibration_slope(whole.ranked)?.se),
    beside: Some(Beside::Bins),
    notes: |told| {
        let note = "calibration_slope: the predicted effects of an arm do not vary";
        told.metrics[Metric::CalibrationSlope].value.is_none().then(|| note.to_owned()).into_iter().collect()
    },
    ..Definition::new("calibration_slope", "slope", About::Sizes, |pass| pass.slope.slope())
};

/// A calibration slope with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The slope.
    pub value: f64,
    /// Its standard error, robust to unequal variances, and by cluster where clusters are given.
    pub se: Option<f64>,
}

/// The calibration slope; `None` where the predictions of an arm do not vary.
pub fn calibration_slope(ranked: &Ranked) -> Option<Slope> {
    let rows = ranked.rows();
    let sums = SlopeSums::of(rows);
    let arms = [sums.line(0)?, sums.line(1)?];
    let influence = |row: Row| {
        let arm = usize::from(row.treated > 0.0);
        let line = &arms[arm];
        let x = row.score - sums.centre_score - line.mean_score;
        let residual = row.outcome - sums.centre_outcome - line.mean_outcome - line.slope * x;
        (arm, row.mass * x * residual / line.spread)
    };
    let se = match ranked.cluster() {
        None => row_se(rows, influence, 2),
        Some(cluster) => cluster_se(rows, cluster, ranked.n_units(), |row| {
            let (arm, influence) = influence(row);
            if arm == 1 { influence } else { -influence }
        }),
    };
    Some(Slope { value: arms[1].slope - arms[0].slope, se })
}

/// Sums of each arm's regression of outcome on score, around centres that keep squares small.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlopeSums {
    centre_score: f64,
    centre_outcome: f64,
    arms: [ArmSums; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct ArmSums {
    mass: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

struct Line {
    mean_score: f64,
    mean_outcome: f64,
    spread: f64,
    slope: f64,
}

impl SlopeSums {
    fn of(rows: Rows<'_>) -> Self {
        let mut sums = Self::around(rows);
        rows.for_each(|row| sums.add(row));
        sums
    }

    /// Empty sums, centred on the median score and on an outcome of the sample.
    pub(super) fn around(rows: Rows<'_>) -> Self {
        let middle = rows.ranked.n_rows() / 2;
        Self {
            centre_score: rows.ranked.score().get(middle).copied().unwrap_or(0.0),
            centre_outcome: rows.ranked.outcome().get(middle).copied().unwrap_or(0.0),
            ..Self::default()
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, row: Row) {
        let x = row.score - self.centre_score;
        let y = row.outcome - self.centre_outcome;
        let treated = row.mass * row.treated;
        for (arm, mass) in self.arms.iter_mut().zip([row.mass - treated, treated]) {
            arm.mass += mass;
            arm.x += mass * x;
            arm.y += mass * y;
            arm.xx += mass * x * x;
            arm.xy += mass * x * y;
        }
    }

    pub(super) fn slope(&self) -> Option<f64> {
        Some(self.line(1)?.slope - self.line(0)?.slope)
    }

    fn line(&self, arm: usize) -> Option<Line> {
        let ArmSums { mass, x, y, xx, xy } = self.arms[arm];
        let (mean_score, mean_outcome) = (x / mass, y / mass);
        let spread = xx - x * mean_score;
        // Below rounding the scores of the arm are constant.
        (mass > 0.0 && spread > 1e-13 * xx).then(|| Line {
            mean_score,
            mean_outcome,
            spread,
            slope: (xy - x * mean_outcome) / spread,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    #[test]
    fn a_prediction_twice_too_large_has_slope_one_half() {
        let score: Vec<f64> = (0..40).map(|i| f64::from(i / 2)).collect();
        let treated: Vec<bool> = (0..40).map(|i| i % 2 == 0).collect();
        let outcome: Vec<f64> =
            score.iter().zip(&treated).map(|(s, t)| 7.0 - s + if *t { 0.5 * s + 1.0 } else { 0.0 }).collect();
        let slope =
            calibration_slope(&Ranked::new(&Sample::new(&score, &outcome, &treated).unwrap())).unwrap();
        assert!((slope.value - 0.5).abs() < 1e-12);
        assert!(slope.se.unwrap() < 1e-10);
        let constant = Sample::new(&[0.1; 40], &outcome, &treated).unwrap();
        assert_eq!(calibration_slope(&Ranked::new(&constant)), None);
    }

    #[test]
    fn the_standard_error_is_the_spread_of_the_slope() {
        let n_rows = 400;
        let (values, errors): (Vec<f64>, Vec<f64>) = (0..300)
            .map(|draw| {
                let mut rng = Seed::new(5).child("slope").index(draw).rng();
                let score: Vec<f64> = (0..n_rows).map(|_| rng.random_range(-1.0..1.0)).collect();
                let treated: Vec<bool> = (0..n_rows).map(|_| rng.random_range(0..2) == 1).collect();
                let outcome: Vec<f64> = score
                    .iter()
                    .zip(&treated)
                    .map(|(s, t)| f64::from(u8::from(*t)) * s + rng.random_range(-1.0..1.0) * (1.0 + s.abs()))
                    .collect();
                let slope =
                    calibration_slope(&Ranked::new(&Sample::new(&score, &outcome, &treated).unwrap()))
                        .unwrap();
                (slope.value, slope.se.unwrap())
            })
            .unzip();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let spread =
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
        let mean_error = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!((mean - 1.0).abs() < 3.0 * spread / (values.len() as f64).sqrt(), "{mean}");
        assert!((mean_error / spread - 1.0).abs() < 0.15, "{mean_error} {spread}");
    }
}
