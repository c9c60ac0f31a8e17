//! Uplift AUC and Qini AUC exactly as scikit-uplift 0.5 computes them: curves at distinct scores from (0, 0), an empty
//! arm's mean counts 0, and the area above the diagonal over that of the perfect ranking. For 0/1 outcomes only.

use super::definition::{About, Beside, Definition};
use super::ranked::{Rows, Totals};
use super::registry::Metric;

pub(super) const UPLIFT_AUC_SKLIFT: Definition = Definition {
    notes: |told| {
        let both = [Metric::UpliftAucSklift, Metric::QiniAucSklift];
        if both.iter().all(|own| told.metrics[*own].value.is_some()) {
            return Vec::new();
        }
        let why = match told.ranked.is_binary() {
            false => "defined for 0/1 outcomes only",
            true => "there is no perfect ranking to compare with",
        };
        vec![format!("uplift_auc_sklift, qini_auc_sklift: {why}")]
    },
    ..Definition::new("uplift_auc_sklift", "uplift AUC (sklift)", About::Ranking, |pass| {
        uplift_auc(pass.rows, &pass.binary.as_ref()?[0], &pass.totals)
    })
};

pub(super) const QINI_AUC_SKLIFT: Definition = Definition {
    beside: Some(Beside::TopShares),
    ..Definition::new("qini_auc_sklift", "Qini AUC (sklift)", About::Ranking, |pass| {
        qini_auc(pass.rows, &pass.binary.as_ref()?[1], &pass.totals, pass.params.negative_effect)
    })
};

/// `uplift_auc_score`. `None` unless outcomes are 0 and 1, both seen, and the perfect ranking beats the diagonal.
pub fn uplift_auc_sklift<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    let rows = rows.into();
    let mut area = CurveArea::default();
    let mut totals = Totals::default();
    rows.for_each_cut(|before, after| {
        area.add(before, after, uplift);
        totals = *after;
    });
    uplift_auc(rows, &area, &totals)
}

/// `qini_auc_score`; the perfect curve may fall again with `negative_effect` (scikit-uplift's default).
///
/// Without it the perfect curve is undefined where the average effect is negative, and so is the value.
pub fn qini_auc_sklift<'a>(rows: impl Into<Rows<'a>>, negative_effect: bool) -> Option<f64> {
    let rows = rows.into();
    let mut area = CurveArea::default();
    let mut totals = Totals::default();
    rows.for_each_cut(|before, after| {
        area.add(before, after, qini);
        totals = *after;
    });
    qini_auc(rows, &area, &totals, negative_effect)
}

/// Twice the trapezoid area under a curve of (k, value) that starts at (0, 0).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurveArea {
    value: f64,
    twice_area: f64,
}

impl CurveArea {
    #[inline(always)]
    pub(super) fn add(&mut self, before: &Totals, after: &Totals, curve: impl Fn(&Totals) -> f64) {
        let value = curve(after);
        self.twice_area += (after.k() - before.k()) * (self.value + value);
        self.value = value;
    }

    /// Twice the area above the straight line to the curve's end.
    fn above_diagonal(&self, totals: &Totals) -> f64 {
        self.twice_area - totals.k() * self.value
    }
}

#[inline(always)]
pub(super) fn uplift(top: &Totals) -> f64 {
    let mean = |sum: f64, n: f64| if n == 0.0 { 0.0 } else { sum / n };
    (mean(top.y_treated, top.n_treated) - mean(top.y_control, top.n_control)) * top.k()
}

#[inline(always)]
pub(super) fn qini(top: &Totals) -> f64 {
    let ratio = if top.n_control == 0.0 { 0.0 } else { top.n_treated / top.n_control };
    top.y_treated - top.y_control * ratio
}

pub(super) fn uplift_auc(rows: Rows<'_>, area: &CurveArea, totals: &Totals) -> Option<f64> {
    if !has_both_outcomes(rows, totals) {
        return None;
    }
    // The perfect ranking scores a row 2·[y = w] + y, or + w where control responders are not the majority.
    let treated_without = totals.n_treated - totals.y_treated;
    let by_outcome = totals.y_control > treated_without;
    let perfect = perfect_area(totals, uplift, |responds, treated| {
        2 * i32::from(responds == treated) + i32::from(if by_outcome { responds } else { treated })
    });
    ratio(area.above_diagonal(totals), perfect)
}

pub(super) fn qini_auc(
    rows: Rows<'_>,
    area: &CurveArea,
    totals: &Totals,
    negative_effect: bool,
) -> Option<f64> {
    if !has_both_outcomes(rows, totals) {
        return None;
    }
    let perfect = if negative_effect {
        perfect_area(totals, qini, |responds, treated| match (responds, treated) {
            (true, true) => 1,
            (false, _) => 0,
            (true, false) => -1,
        })
    } else {
        // The curve climbs one for one to the incremental responders, then stays: (0, 0), (r, r), (n, r).
        let incremental = totals.y_treated - totals.n_treated * totals.y_control / totals.n_control;
        if incremental < 0.0 {
            return None;
        }
        incremental * incremental + 2.0 * (totals.k() - incremental) * incremental - totals.k() * incremental
    };
    ratio(area.above_diagonal(totals), perfect)
}

fn has_both_outcomes(rows: Rows<'_>, totals: &Totals) -> bool {
    let responders = totals.y_treated + totals.y_control;
    let arms = totals.n_treated > 0.0 && totals.n_control > 0.0;
    rows.ranked.is_binary() && arms && responders > 0.0 && responders < totals.k()
}

fn ratio(actual: f64, perfect: f64) -> Option<f64> {
    (perfect != 0.0).then(|| actual / perfect)
}

/// Twice the area above the diagonal of the curve that ranks the four (outcome, arm) cells by `score`.
fn perfect_area(totals: &Totals, curve: impl Fn(&Totals) -> f64, score: impl Fn(bool, bool) -> i32) -> f64 {
    let cell = |responds: bool, treated: bool| {
        let (n, y) =
            if treated { (totals.n_treated, totals.y_treated) } else { (totals.n_control, totals.y_control) };
        let n = if responds { y } else { n - y };
        let y = if responds { n } else { 0.0 };
        let cell = if treated {
            Totals { n_treated: n, y_treated: y, ..Totals::default() }
        } else {
            Totals { n_control: n, y_control: y, ..Totals::default() }
        };
        (score(responds, treated), cell)
    };
    let mut cells = [cell(true, true), cell(true, false), cell(false, true), cell(false, false)];
    cells.sort_by_key(|(score, _)| -score);

    let mut area = CurveArea::default();
    let mut before = Totals::default();
    for tied in cells.chunk_by(|a, b| a.0 == b.0) {
        let after = tied.iter().fold(before, |sum, (_, cell)| Totals {
            n_treated: sum.n_treated + cell.n_treated,
            n_control: sum.n_control + cell.n_control,
            y_treated: sum.y_treated + cell.y_treated,
            y_control: sum.y_control + cell.y_control,
        });
        area.add(&before, &after, &curve);
        before = after;
    }
    area.above_diagonal(totals)
}
