//! AUUC and Qini exactly as causalml 0.18 computes them (`auuc_score`, `qini_score`): row by row, ties in input order.
//!
//! causalml knows no weights. Here a row of weight w is one step of length w, and the mean over the points 0…n
//! becomes a weighted mean over W + 1; unit weights give causalml's value.

use super::definition::{About, Definition};
use super::ranked::{Row, Rows, Totals};

pub(super) const AUUC_CAUSALML: Definition =
    Definition::new("auuc_causalml", "AUUC (causalml)", About::Ranking, |pass| {
        pass.gain_sum.auuc(&pass.totals)
    });

pub(super) const QINI_CAUSALML: Definition =
    Definition::new("qini_causalml", "Qini (causalml)", About::Ranking, |pass| {
        pass.qini_sum.qini(&pass.totals)
    });

/// `auuc_score(normalize=True)`. `None` where the average effect is zero.
pub fn auuc_causalml<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    normalised(gain_mean(rows.into()))
}

/// `auuc_score(normalize=False)`.
pub fn auuc_causalml_unnormalised<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    gain_mean(rows.into()).map(|(mean, _)| mean)
}

/// `qini_score(normalize=True)`. `None` where Q(n) is zero.
pub fn qini_causalml<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    normalised(qini_mean(rows.into()))
}

/// `qini_score(normalize=False)`.
pub fn qini_causalml_unnormalised<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    qini_mean(rows.into()).map(|(mean, _)| mean)
}

fn normalised(mean_and_end: Option<(f64, f64)>) -> Option<f64> {
    let (mean, end) = mean_and_end?;
    (end != 0.0).then(|| mean / end.abs())
}

/// The mean of G over the points 0…n, and G(n).
fn gain_mean(rows: Rows<'_>) -> Option<(f64, f64)> {
    let mut gain = GainSum::default();
    let mut totals = Totals::default();
    rows.for_each(|row| {
        totals.add(row);
        gain.add(row, &totals);
    });
    gain.mean(&totals)
}

fn qini_mean(rows: Rows<'_>) -> Option<(f64, f64)> {
    let mut qini = QiniSum::default();
    let mut totals = Totals::default();
    rows.for_each(|row| {
        totals.add(row);
        qini.add(row, &totals);
    });
    qini.mean(&totals)
}

/// Sum of G = k·Lift over rows; a missing Lift is interpolated linearly from Lift(0) = 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GainSum {
    known: bool,
    sum: f64,
    end: f64,
}

impl GainSum {
    #[inline(always)]
    pub(super) fn add(&mut self, row: Row, after: &Totals) {
        let k = after.k();
        let Some(lift) = after.lift() else {
            self.sum += row.mass * k * k;
            return;
        };
        if !self.known {
            self.sum *= lift / k;
            self.known = true;
        }
        self.end = k * lift;
        self.sum += row.mass * self.end;
    }

    pub(super) fn auuc(&self, totals: &Totals) -> Option<f64> {
        normalised(self.mean(totals))
    }

    fn mean(&self, totals: &Totals) -> Option<(f64, f64)> {
        self.known.then(|| (self.sum / (totals.k() + 1.0), self.end))
    }
}

/// Sum of Q over rows; Q is missing where control is empty, and interpolated linearly from 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QiniSum {
    known: bool,
    sum: f64,
    end: f64,
}

impl QiniSum {
    #[inline(always)]
    pub(super) fn add(&mut self, row: Row, after: &Totals) {
        let k = after.k();
        if after.n_control == 0.0 {
            self.sum += row.mass * k;
            return;
        }
        self.end = after.y_treated - after.y_control * after.n_treated / after.n_control;
        if !self.known {
            self.sum *= self.end / k;
            self.known = true;
        }
        self.sum += row.mass * self.end;
    }

    pub(super) fn qini(&self, totals: &Totals) -> Option<f64> {
        normalised(self.mean(totals))
    }

    fn mean(&self, totals: &Totals) -> Option<(f64, f64)> {
        (self.known && totals.n_treated > 0.0)
            .then(|| (self.sum / (totals.k() + 1.0) - self.end / 2.0, self.end))
    }
}
