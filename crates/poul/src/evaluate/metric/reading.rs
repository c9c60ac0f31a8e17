//! All metrics of one draw at once: the sample and every bootstrap draw are read by the same code.

use super::area::{GainArea, QiniArea};
use super::calibration::relative_errors;
use super::causalml::{GainSum, QiniSum};
use super::gain_curve::CurveSampler;
use super::params::ValidParams;
use super::ranked::{Rows, Totals};
use super::rate::rate_sums;
use super::registry::Metric;
use super::residual::ResidualSums;
use super::sklift::{self, CurveArea};
use super::slope::SlopeSums;
use super::top_share::TopSums;
use super::truth::TruthSums;

/// Columns beside score and outcome, in rank order.
pub(super) struct Columns {
    pub(super) dr_score: Vec<f64>,
    pub(super) residual: Vec<f64>,
    pub(super) arm_residual: Vec<f64>,
    pub(super) truth: Option<Vec<f64>>,
    /// Variance of the residual within what a row stands for, where it stands for many.
    pub(super) residual_variance: Option<Vec<f64>>,
}

/// Rows with the sums that metrics share, so that each pass over them is made once. A metric that needs others makes a pass of
/// its own over `rows`.
pub(super) struct Pass<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) totals: Totals,
    pub(super) params: &'a ValidParams,
    pub(super) gain: GainArea,
    pub(super) qini: QiniArea,
    /// The areas of scikit-uplift's two curves, where outcomes are 0 and 1.
    pub(super) binary: Option<[CurveArea; 2]>,
    pub(super) gain_sum: GainSum,
    pub(super) qini_sum: QiniSum,
    pub(super) slope: SlopeSums,
    pub(super) residual: ResidualSums,
    pub(super) score_sum: f64,
    pub(super) truth: Option<TruthSums>,
    /// MAPE and weighted MAPE.
    pub(super) relative_errors: (Option<f64>, Option<f64>),
    /// AUTOC and QINI.
    pub(super) rate: Option<(f64, f64)>,
}

/// One value for each metric of two arms, NaN where undefined; then two for each top share, then the curve.
pub(super) struct Reading(pub(super) Vec<f64>);

impl Reading {
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        self.at(metric as usize)
    }

    pub(super) fn at(&self, place: usize) -> Option<f64> {
        self.0.get(place).copied().filter(|value| value.is_finite())
    }
}

/// Place of the overall effect in the top share number `share`; the effect by group follows it.
pub(super) fn top_share_place(share: usize) -> usize {
    Metric::ARMS.len() + 2 * share
}

/// Place of a point of the curve, which holds gain over rows: G(k)/n.
pub(super) fn curve_place(params: &ValidParams, point: usize) -> usize {
    top_share_place(params.top_shares.len()) + point
}

/// Computes every metric in a few passes over the rows.
pub(super) fn read(rows: Rows<'_>, columns: &Columns, params: &ValidParams) -> Reading {
    let totals = rows.totals();
    let mut values = vec![f64::NAN; curve_place(params, params.curve_points)];
    let mut set = |place: usize, value: Option<f64>| values[place] = value.unwrap_or(f64::NAN);
    let (gain, qini, binary) = read_cuts(rows, &totals, params, &mut set);
    let mut pass = Pass {
        rows,
        totals,
        params,
        gain,
        qini,
        binary,
        gain_sum: GainSum::default(),
        qini_sum: QiniSum::default(),
        slope: SlopeSums::around(rows),
        residual: ResidualSums::default(),
        score_sum: 0.0,
        truth: None,
        relative_errors: relative_errors(rows, &totals, params.bins),
        rate: rate_sums(rows, &columns.dr_score),
    };
    read_rows(&mut pass, columns);
    for metric in Metric::ARMS {
        set(*metric as usize, (metric.definition().read)(&pass));
    }
    Reading(values)
}

/// What changes only at distinct scores: the curve and the top shares are set, areas handed on.
fn read_cuts(
    rows: Rows<'_>,
    totals: &Totals,
    params: &ValidParams,
    set: &mut impl FnMut(usize, Option<f64>),
) -> (GainArea, QiniArea, Option<[CurveArea; 2]>) {
    let (mut gain, mut qini) = (GainArea::default(), QiniArea::default());
    let mut curve = CurveSampler::new(totals, params.curve_points);
    rows.for_each_cut(|before, after| {
        gain.add(before, after);
        qini.add(before, after);
        curve.add(before, after);
    });
    for (point, gain) in curve.gains().iter().enumerate() {
        set(curve_place(params, point), Some(gain / totals.k()));
    }

    let binary = rows.ranked.is_binary().then(|| {
        let (mut uplift, mut qini) = (CurveArea::default(), CurveArea::default());
        rows.for_each_cut(|before, after| {
            uplift.add(before, after, sklift::uplift);
            qini.add(before, after, sklift::qini);
        });
        [uplift, qini]
    });

    let mut tops: Vec<TopSums> =
        params.top_shares.iter().filter_map(|share| TopSums::new(rows, totals, *share)).collect();
    rows.for_each_cut(|before, after| tops.iter_mut().for_each(|top| top.add(before, after)));
    for (share, top) in tops.iter().enumerate() {
        set(top_share_place(share), top.overall());
        set(top_share_place(share) + 1, top.by_group());
    }
    (gain, qini, binary)
}

/// Sums over rows.
fn read_rows(pass: &mut Pass<'_>, columns: &Columns) {
    let (mut gain, mut qini) = (GainSum::default(), QiniSum::default());
    let mut slope = SlopeSums::around(pass.rows);
    let mut residual = ResidualSums::default();
    let mut score_sum = 0.0;
    let mut top = Totals::default();
    pass.rows.for_each(|row| {
        top.add(row);
        gain.add(row, &top);
        qini.add(row, &top);
        slope.add(row);
        residual.add(row.mass, columns.residual[row.index], columns.arm_residual[row.index], row.score);
        if let Some(variance) = &columns.residual_variance {
            residual.add_variance(row.mass, variance[row.index]);
        }
        score_sum += row.mass * row.score;
    });
    (pass.gain_sum, pass.qini_sum) = (gain, qini);
    (pass.slope, pass.residual, pass.score_sum) = (slope, residual, score_sum);

    pass.truth = columns.truth.as_ref().map(|truth| {
        let mut sums = TruthSums::new(truth);
        pass.rows.for_each(|row| sums.add(row.mass, row.score, truth[row.index]));
        sums
    });
}
