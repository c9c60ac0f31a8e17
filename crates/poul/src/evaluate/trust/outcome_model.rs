//! Calibration of the outcome model: the m̂ that average effects were taken with, fitted out of fold or the user's own,
//! against what happened.

use super::{Trial, check_result, short};
use crate::effect::{OutcomeColumn, ValidTrainingData};
use crate::evaluate::{CheckResult, OutcomeCalibration, Verdict};

/// Groups of rows by prediction.
const N_BINS: usize = 10;
/// A group is off where its mean differs by so many standard errors, and by so many standard deviations.
const OFF_ERRORS: f64 = 4.0;
const OFF_DEVIATIONS: f64 = 0.1;
/// Shares of the variance by which m may be worse than the mean.
const WORSE: f64 = 0.02;
const MUCH_WORSE: f64 = 0.2;

/// The calibration of each outcome that has an m̂, and the verdict on it.
pub(super) fn calibrations(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
) -> Vec<(Option<OutcomeCalibration>, CheckResult)> {
    let of = |(outcome, expected): (&OutcomeColumn<'_>, &Option<Vec<f64>>)| match expected {
        Some(predicted) => {
            let (found, check) = calibration(data, outcome, predicted);
            (Some(found), check)
        }
        None => {
            let text = format!("too few rows for an outcome model of `{}`", outcome.name);
            (None, check_result("outcome model", Verdict::Doubt, text))
        }
    };
    data.outcomes.iter().zip(trial.expected).map(of).collect()
}

fn calibration(
    data: &ValidTrainingData<'_>,
    outcome: &OutcomeColumn<'_>,
    predicted: &[f64],
) -> (OutcomeCalibration, CheckResult) {
    let n_rows = data.n_rows();
    let weight = |row: usize| data.weight.map_or(1.0, |weight| weight[row]);
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
    for rows in (0..N_BINS).map(|bin| &order[bin * order.len() / N_BINS..(bin + 1) * order.len() / N_BINS]) {
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
    let left = mean_of(&order, &|row| (outcome.values[row] - predicted[row]).powi(2));
    let r2 = if sd > 0.0 { 1.0 - left / (sd * sd) } else { 0.0 };
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
    let text = format!("{explains}; the worst decile is off by {} ({} sd)", short(worst), short(worst / sd));
    let calibration = OutcomeCalibration { outcome: outcome.name.to_owned(), r2, bins };
    (calibration, check_result("outcome model", verdict, text))
}
