//! All metrics of one draw at once: the sample and every bootstrap draw are read by the same code.

use super::area::{GainArea, QiniArea};
use super::calibration::relative_errors;
use super::causalml::{GainSum, QiniSum};
use super::gain_curve::CurveSampler;
use super::params::ValidParams;
use super::ranked::{Rows, Totals};
use super::rate::rate_sums;
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

/// The place of each scalar metric in a reading.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar {
    Ate,
    AtePredicted,
    Auuc,
    Qini,
    AuucCausalml,
    QiniCausalml,
    UpliftAucSklift,
    QiniAucSklift,
    Mape,
    Wmape,
    Slope,
    RateAutoc,
    RateQini,
    RLoss,
    RScore,
    AteTrue,
    Pehe,
    NormalisedPehe,
    AteError,
}

const N_SCALARS: usize = Scalar::AteError as usize + 1;

/// One value for each metric, NaN where undefined: scalars, then two for each top share, then the curve.
pub(super) struct Reading(pub(super) Vec<f64>);

impl Reading {
    pub(super) fn scalar(&self, scalar: Scalar) -> Option<f64> {
        self.at(scalar as usize)
    }

    pub(super) fn at(&self, place: usize) -> Option<f64> {
        self.0.get(place).copied().filter(|value| value.is_finite())
    }
}

/// Place of the overall effect in the top share number `share`; the effect by group follows it.
pub(super) fn top_share_place(share: usize) -> usize {
    N_SCALARS + 2 * share
}

/// Place of a point of the curve, which holds gain over rows: G(k)/n.
pub(super) fn curve_place(params: &ValidParams, point: usize) -> usize {
    N_SCALARS + 2 * params.top_shares.len() + point
}

/// Computes every metric in a few passes over the rows.
pub(super) fn read(rows: Rows<'_>, columns: &Columns, params: &ValidParams) -> Reading {
    let totals = rows.totals();
    let mut values = vec![f64::NAN; curve_place(params, params.curve_points)];
    let mut set = |place: usize, value: Option<f64>| values[place] = value.unwrap_or(f64::NAN);
    set(Scalar::Ate as usize, totals.lift());
    read_cuts(rows, &totals, params, &mut set);
    read_rows(rows, &totals, columns, &mut set);
    let (mape, wmape) = relative_errors(rows, &totals, params.bins);
    set(Scalar::Mape as usize, mape);
    set(Scalar::Wmape as usize, wmape);
    let (autoc, qini) = rate_sums(rows, &columns.dr_score).unzip();
    set(Scalar::RateAutoc as usize, autoc);
    set(Scalar::RateQini as usize, qini);
    Reading(values)
}

/// Metrics that change only at distinct scores.
fn read_cuts(
    rows: Rows<'_>,
    totals: &Totals,
    params: &ValidParams,
    set: &mut impl FnMut(usize, Option<f64>),
) {
    let (mut gain, mut qini) = (GainArea::default(), QiniArea::default());
    let mut curve = CurveSampler::new(totals, params.curve_points);
    rows.for_each_cut(|before, after| {
        gain.add(before, after);
        qini.add(before, after);
        curve.add(before, after);
    });
    set(Scalar::Auuc as usize, gain.auuc(totals));
    set(Scalar::Qini as usize, qini.qini(totals));
    for (point, gain) in curve.gains().iter().enumerate() {
        set(curve_place(params, point), Some(gain / totals.k()));
    }

    if rows.ranked.is_binary() {
        let (mut uplift, mut qini) = (CurveArea::default(), CurveArea::default());
        rows.for_each_cut(|before, after| {
            uplift.add(before, after, sklift::uplift);
            qini.add(before, after, sklift::qini);
        });
        set(Scalar::UpliftAucSklift as usize, sklift::uplift_auc(rows, &uplift, totals));
        set(Scalar::QiniAucSklift as usize, sklift::qini_auc(rows, &qini, totals, params.negative_effect));
    }

    let mut tops: Vec<TopSums> =
        params.top_shares.iter().filter_map(|share| TopSums::new(rows, totals, *share)).collect();
    rows.for_each_cut(|before, after| tops.iter_mut().for_each(|top| top.add(before, after)));
    for (share, top) in tops.iter().enumerate() {
        set(top_share_place(share), top.overall());
        set(top_share_place(share) + 1, top.by_group());
    }
}

/// Metrics that are sums over rows.
fn read_rows(rows: Rows<'_>, totals: &Totals, columns: &Columns, set: &mut impl FnMut(usize, Option<f64>)) {
    let (mut gain, mut qini) = (GainSum::default(), QiniSum::default());
    let mut slope = SlopeSums::around(rows);
    let mut residual = ResidualSums::default();
    let mut score_sum = 0.0;
    let mut top = Totals::default();
    rows.for_each(|row| {
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
    set(Scalar::AtePredicted as usize, (totals.k() > 0.0).then(|| score_sum / totals.k()));
    set(Scalar::AuucCausalml as usize, gain.auuc(totals));
    set(Scalar::QiniCausalml as usize, qini.qini(totals));
    set(Scalar::Slope as usize, slope.slope());
    set(Scalar::RLoss as usize, residual.r_loss());
    set(Scalar::RScore as usize, residual.r_score());

    if let Some(truth) = &columns.truth {
        let mut sums = TruthSums::new(truth);
        rows.for_each(|row| sums.add(row.mass, row.score, truth[row.index]));
        set(Scalar::AteTrue as usize, sums.true_mean());
        set(Scalar::Pehe as usize, sums.pehe());
        set(Scalar::NormalisedPehe as usize, sums.normalised_pehe());
        set(Scalar::AteError as usize, sums.ate_error());
    }
}
