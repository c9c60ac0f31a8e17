//! Doubly robust scores: Γ = m₁ − m₀ + W(Y − m₁)/e − (1 − W)(Y − m₀)/(1 − e), whose mean given x is the effect.

use super::sample::Sample;
use crate::{Error, Result};

/// Doubly robust scores from the arms' outcome models and the propensity of each row.
pub fn dr_scores(
    sample: &Sample<'_>,
    treated_mean: &[f64],
    control_mean: &[f64],
    propensity: &[f64],
) -> Result<Vec<f64>> {
    let n_rows = sample.n_rows();
    for (what, column) in
        [("treated means", treated_mean), ("control means", control_mean), ("propensities", propensity)]
    {
        if column.len() != n_rows {
            return Err(Error::input(format!("there are {} {what} for {n_rows} rows", column.len()))
                .hint("give one value for each row"));
        }
    }
    let usable = |row: usize| {
        treated_mean[row].is_finite()
            && control_mean[row].is_finite()
            && propensity[row] > 0.0
            && propensity[row] < 1.0
    };
    if let Some(row) = (0..n_rows).find(|row| !usable(*row)) {
        return Err(Error::input(format!(
            "the arms' means are {} and {}, the propensity {}",
            treated_mean[row], control_mean[row], propensity[row]
        ))
        .at_row(row)
        .hint("means are finite; propensities lie strictly between 0 and 1"));
    }
    Ok((0..n_rows)
        .map(|row| {
            dr_score(
                sample.outcome()[row],
                sample.treated()[row],
                treated_mean[row],
                control_mean[row],
                propensity[row],
            )
        })
        .collect())
}

/// Doubly robust scores of a randomised experiment about which nothing else is known: the propensity is the treated
/// share, the outcome models are the arms' means (all weighted).
pub fn dr_scores_randomized(sample: &Sample<'_>) -> Vec<f64> {
    let mut mass = [0.0; 2];
    let mut sum = [0.0; 2];
    for (row, (treated, outcome)) in sample.treated().iter().zip(sample.outcome()).enumerate() {
        let arm = usize::from(*treated);
        mass[arm] += sample.weight_of(row);
        sum[arm] += sample.weight_of(row) * outcome;
    }
    let (treated_mean, control_mean) = (sum[1] / mass[1], sum[0] / mass[0]);
    let propensity = mass[1] / (mass[0] + mass[1]);
    let rows = sample.outcome().iter().zip(sample.treated());
    rows.map(|(outcome, treated)| dr_score(*outcome, *treated, treated_mean, control_mean, propensity))
        .collect()
}

pub(super) fn dr_score(
    outcome: f64,
    treated: bool,
    treated_mean: f64,
    control_mean: f64,
    propensity: f64,
) -> f64 {
    let correction = if treated {
        (outcome - treated_mean) / propensity
    } else {
        -(outcome - control_mean) / (1.0 - propensity)
    };
    treated_mean - control_mean + correction
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORE: [f64; 5] = [5.0, 4.0, 3.0, 2.0, 1.0];
    const OUTCOME: [f64; 5] = [3.0, 1.0, 4.0, 1.0, 5.0];
    const TREATED: [bool; 5] = [true, false, true, false, false];

    #[test]
    fn the_mean_of_randomised_scores_is_the_difference_in_means() {
        let weight = [1.0, 2.0, 0.5, 1.0, 3.0];
        let sample = Sample::new(&SCORE, &OUTCOME, &TREATED).unwrap().with_weight(&weight).unwrap();
        let scores = dr_scores_randomized(&sample);
        let mean = scores.iter().zip(&weight).map(|(s, w)| s * w).sum::<f64>() / weight.iter().sum::<f64>();
        let difference = (3.0 + 4.0 * 0.5) / 1.5 - (2.0 + 1.0 + 15.0) / 6.0;
        assert!((mean - difference).abs() < 1e-12);
        let again = dr_scores(&sample, &[5.0 / 1.5; 5], &[3.0; 5], &[1.5 / 7.5; 5]).unwrap();
        assert!(scores.iter().zip(again).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn a_certain_arm_is_an_error_with_its_row() {
        let sample = Sample::new(&SCORE, &OUTCOME, &TREATED).unwrap();
        let error = dr_scores(&sample, &[0.0; 5], &[0.0; 5], &[0.5, 0.5, 1.0, 0.5, 0.5]).unwrap_err();
        assert!(error.to_string().starts_with("row 2 (counted from 0): "), "{error}");
    }
}
