//! Numeric features: standardised, bent where tails are heavy, held to the range seen.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::moments::Moments;
use super::params::EncoderParams;
use super::sample::{HashOrder, Sample};
use crate::stats::quantile;

/// The interquartile range of a normal variable in standard deviations.
const IQR_OF_NORMAL: f64 = 1.349;
/// One value this many robust standard deviations out makes a tail heavy, however rare it is.
const EXTREME: f64 = 50.0;

/// How a numeric or boolean feature is encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NumberCode {
    /// `None` for a constant.
    pub(super) value: Option<Standard>,
    /// Whether missing cells have a column of their own.
    pub(super) missing: bool,
}

/// z = (y − centre) / scale, held to [lower, upper], where y = x or asinh((x − median) / unit).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Standard {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    bend: Option<Bend>,
    centre: f64,
    scale: f64,
    lower: f32,
    upper: f32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Bend {
    median: f64,
    unit: f64,
}

/// What fitting gathers about a numeric feature.
#[derive(Clone, Debug)]
pub(super) struct NumberFit {
    moments: Moments,
    sample: Sample,
    n_missing: u64,
}

impl NumberFit {
    pub(super) fn new() -> Self {
        Self { moments: Moments::new(), sample: Sample::default(), n_missing: 0 }
    }

    pub(super) fn add(&mut self, cells: &Cells<'_>, order: &HashOrder) {
        let before = self.moments.n;
        cells.for_each_block(|block| self.moments.add(block));
        self.n_missing += cells.len() as u64 - (self.moments.n - before);
        self.sample.add(order, |row| cells.get(row));
    }

    /// The code, and a note if the feature says nothing.
    pub(super) fn finish(
        self,
        is_boolean: bool,
        params: &EncoderParams,
    ) -> (NumberCode, Option<&'static str>) {
        let missing = self.n_missing > 0;
        let Moments { n, min, max, mean, .. } = self.moments;
        if n == 0 {
            return (NumberCode { value: None, missing: false }, Some("is missing in every row"));
        }
        if min == max {
            let note = (!missing).then_some("is constant");
            return (NumberCode { value: None, missing }, note);
        }
        let value = if is_boolean {
            Standard { bend: None, centre: mean, scale: 1.0, lower: -mean as f32, upper: (1.0 - mean) as f32 }
        } else {
            standard(&self.moments, &self.sample.into_sorted(), params)
        };
        (NumberCode { value: Some(value), missing }, None)
    }
}

fn standard(moments: &Moments, sorted: &[f64], params: &EncoderParams) -> Standard {
    let median = quantile(sorted, 0.5);
    let unit = robust_deviation(moments, sorted, median);
    let tail = (quantile(sorted, 0.995) - median).max(median - quantile(sorted, 0.005)) / unit;
    let extreme = (moments.max - median).max(median - moments.min) / unit;
    let heavy = params.heavy_tail.is_finite() && (tail > params.heavy_tail || extreme > EXTREME);
    let mut standard = if heavy || !moments.sd().is_finite() {
        let bend = Bend { median, unit };
        let mut bent = Moments::new();
        let values: Vec<f64> = sorted.iter().map(|value| bend.apply(*value)).collect();
        values.chunks(super::moments::BLOCK).for_each(|block| bent.add(block));
        Standard { bend: Some(bend), centre: bent.mean, scale: bent.sd(), lower: 0.0, upper: 0.0 }
    } else {
        Standard { bend: None, centre: moments.mean, scale: moments.sd(), lower: 0.0, upper: 0.0 }
    };
    if !(standard.scale > 0.0 && standard.scale.is_finite()) {
        standard.scale = 1.0;
    }
    standard.lower = standard.z(moments.min).max(-params.clip) as f32;
    standard.upper = standard.z(moments.max).min(params.clip) as f32;
    standard
}

/// A standard deviation that few values cannot move. Where half of the values are equal, the typical distance of the
/// others from them.
fn robust_deviation(moments: &Moments, sorted: &[f64], median: f64) -> f64 {
    let spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / IQR_OF_NORMAL;
    if spread > 0.0 && spread.is_finite() {
        return spread;
    }
    let mut distances: Vec<f64> =
        sorted.iter().map(|value| (value - median).abs()).filter(|distance| *distance > 0.0).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let typical = quantile(&distances, 0.5);
    let range = (moments.max - median).max(median - moments.min);
    [typical, range].into_iter().find(|unit| *unit > 0.0 && unit.is_finite()).unwrap_or(1.0)
}

impl Bend {
    fn apply(&self, value: f64) -> f64 {
        ((value - self.median) / self.unit).asinh()
    }
}

impl Standard {
    fn z(&self, value: f64) -> f64 {
        let value = self.bend.as_ref().map_or(value, |bend| bend.apply(value));
        (value - self.centre) / self.scale
    }

    /// Encodes a range of rows; missing cells are 0, the centre.
    pub(super) fn encode(&self, cells: &Cells<'_>, rows: Range<usize>, out: &mut [f32]) {
        match cells {
            Cells::Single(values, _) => self.encode_single(&values[rows.clone()], out),
            Cells::Double(values, _) => self.encode_double(values[rows.clone()].iter().copied(), out),
            Cells::Owned(values) => self.encode_double(values[rows.clone()].iter().copied(), out),
        }
        if let Some(nulls) = cells.nulls() {
            for (out, row) in out.iter_mut().zip(rows) {
                if nulls.is_null(row) {
                    *out = 0.0;
                }
            }
        }
    }

    fn encode_single(&self, values: &[f32], out: &mut [f32]) {
        // The centre in two parts: x − high is exact near it, so that nothing is lost in single precision.
        let high = self.centre as f32;
        let low = (self.centre - f64::from(high)) as f32;
        let factor = (1.0 / self.scale) as f32;
        if self.bend.is_some() || !high.is_finite() || !factor.is_normal() {
            return self.encode_double(values.iter().map(|value| f64::from(*value)), out);
        }
        let (lower, upper) = (self.lower, self.upper);
        for (out, value) in out.iter_mut().zip(values) {
            let z = (((value - high) - low) * factor).max(lower).min(upper);
            *out = if value.is_finite() { z } else { 0.0 };
        }
    }

    fn encode_double(&self, values: impl Iterator<Item = f64>, out: &mut [f32]) {
        let factor = 1.0 / self.scale;
        let (centre, lower, upper) = (self.centre, self.lower, self.upper);
        let finish = |value: f64, y: f64| {
            let z = (((y - centre) * factor) as f32).max(lower).min(upper);
            if value.is_finite() { z } else { 0.0 }
        };
        match &self.bend {
            Some(bend) => {
                for (out, value) in out.iter_mut().zip(values) {
                    *out = finish(value, bend.apply(value));
                }
            }
            None => {
                for (out, value) in out.iter_mut().zip(values) {
                    *out = finish(value, value);
                }
            }
        }
    }
}
