//! Calibration of the outcome model: m̂ out of fold, or the user's own, against what happened.

use super::{check_result, short};
use crate::effect::{OutcomeColumn, ValidTrainingData};
use crate::evaluate::{CheckResult, OutcomeCalibration, Verdict};
use crate::nuisance::{Folds, OutcomeFit, OutcomeLoss, OutcomeParams, OutcomeProblem, fit_outcome};
use crate::{Progress, Result, Seed};

/// Groups of rows by prediction.
const N_BINS: usize = 10;
/// A group is off where its mean differs by so many standard errors, and by so many standard deviations.
const OFF_ERRORS: f64 = 4.0;
const OFF_DEVIATIONS: f64 = 0.1;
/// Shares of the variance by which m may be worse than the mean.
const WORSE: f64 = 0.02;
const MUCH_WORSE: f64 = 0.2;

/// m̂ of every row.
pub(super) struct OutOfFold {
    fit: OutcomeFit,
    n_outcomes: usize,
}

/// Cross-fits m on the rows, with a shorter schedule than a fit has: it is here to be judged, not used.
pub(super) fn cross_fit(
    data: &ValidTrainingData<'_>,
    folds: &Folds,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<OutOfFold> {
    let mut params = OutcomeParams { members: 1, ..OutcomeParams::default() };
    (params.schedule.epochs, params.schedule.patience) = (15, 2);
    let n_outcomes = data.outcomes.len();
    let rows = 0..data.n_rows();
    let values: Vec<f32> =
        rows.flat_map(|row| data.outcomes.iter().map(move |own| own.values[row] as f32)).collect();
    let weight: Option<Vec<f32>> = data.weight.map(|weight| weight.iter().map(|w| *w as f32).collect());
    let given: Vec<(usize, Vec<f32>)> = data
        .outcomes
        .iter()
        .enumerate()
        .filter_map(|(idx, own)| Some((idx, own.prediction?.iter().map(|value| *value as f32).collect())))
        .collect();
    let given: Vec<(usize, &[f32])> = given.iter().map(|(idx, values)| (*idx, values.as_slice())).collect();
    let losses = vec![OutcomeLoss::Squared; n_outcomes];
    let problem = OutcomeProblem {
        weight: weight.as_deref(),
        cluster: data.cluster,
        given: &given,
        ..OutcomeProblem::new(data.x, &values, &losses)
    };
    let fit = fit_outcome(&problem, folds, &params.check()?, seed.child("outcome model"), progress)?;
    Ok(OutOfFold { fit, n_outcomes })
}

impl OutOfFold {
    /// m̂ of one outcome in one row.
    pub(super) fn predicted(&self, row: usize, outcome: usize) -> f64 {
        f64::from(self.fit.predicted[row * self.n_outcomes + outcome])
    }

    /// The calibration of each outcome, and the verdict on it.
    pub(super) fn calibrations(
        &self,
        data: &ValidTrainingData<'_>,
    ) -> Vec<(OutcomeCalibration, CheckResult)> {
        let outcomes = data.outcomes.iter().enumerate();
        outcomes.map(|(idx, outcome)| self.calibration(data, idx, outcome)).collect()
    }

    fn calibration(
        &self,
        data: &ValidTrainingData<'_>,
        idx: usize,
        outcome: &OutcomeColumn<'_>,
    ) -> (OutcomeCalibration, CheckResult) {
        let n_rows = data.n_rows();
        let weight = |row: usize| data.weight.map_or(1.0, |weight| weight[row]);
        let predicted: Vec<f64> = (0..n_rows).map(|row| self.predicted(row, idx)).collect();
        let mut order: Vec<usize> = (0..n_rows).filter(|row| weight(*row) > 0.0).collect();
        order.sort_by(|a, b| predicted[*a].total_cmp(&predicted[*b]));
        let mean_of = |rows: &[usize], value: &dyn Fn(usize) -> f64| {
            let mass: f64 = rows.iter().map(|row| weight(*row)).sum();
            rows.iter().map(|row| weight(*row) * value(*row)).sum::<f64>() / mass
        };
        let mean = mean_of(&order, &|row| outcome.values[row]);
        let sd = mean_of(&order, &|row| (outcome.values[row] - mean).powi(2)).sqrt();
        let mut bins = Vec::with_capacity(N_BINS);
        let (mut worst, mut is_off) = (0.0_f64, false);
        for rows in
            (0..N_BINS).map(|bin| &order[bin * order.len() / N_BINS..(bin + 1) * order.len() / N_BINS])
        {
            if rows.is_empty() {
                continue;
            }
            let (m, y) = (mean_of(rows, &|row| predicted[row]), mean_of(rows, &|row| outcome.values[row]));
            // The error of a weighted mean, of y − m.
            let own: f64 = rows.iter().map(|row| weight(*row)).sum();
            let squares: f64 = rows
                .iter()
                .map(|row| (weight(*row) * (outcome.values[*row] - predicted[*row] - y + m)).powi(2))
                .sum();
            let error = squares.sqrt() / own;
            let off = (y - m).abs();
            worst = worst.max(off);
            is_off |= off > OFF_ERRORS * error && off > OFF_DEVIATIONS * sd;
            bins.push([m, y]);
        }
        let r2 = self.fit.r2[idx];
        let verdict = match r2 {
            r2 if r2 < -MUCH_WORSE => Verdict::Fail,
            r2 if r2 < -WORSE || is_off => Verdict::Doubt,
            _ => Verdict::Pass,
        };
        let whose = if outcome.prediction.is_some() { "the given prediction " } else { "" };
        let explains = match r2 < 0.0 {
            true => format!(
                "{whose}predicts `{}` worse than its mean, by {:.1} % of the variance",
                outcome.name,
                -100.0 * r2
            ),
            false => format!("{whose}explains {:.1} % of the variance of `{}`", 100.0 * r2, outcome.name),
        };
        let text =
            format!("{explains}; the worst decile is off by {} ({} sd)", short(worst), short(worst / sd));
        let calibration = OutcomeCalibration { outcome: outcome.name.to_owned(), r2, bins };
        (calibration, check_result("outcome model", verdict, text))
    }
}
