//! 0/1 outcomes: logit P(y = 1 | x, t) = logit m̂(x) + g(x)ᵀ(h(t) − e_h(x)), the log-likelihood form of Eq. 5 of the paper.

use crate::effect::{OutcomeColumn, ValidTrainingData};
use crate::{Error, Result, row_name};

/// Probabilities are kept this far from 0 and 1, where the logit has no value.
const MARGIN: f32 = 1e-6;

/// 0/1 outcomes and logit m̂(x), row-major, one column per outcome.
pub(super) struct Binary {
    pub(super) outcome: Vec<f32>,
    pub(super) logit: Vec<f32>,
}

impl Binary {
    /// From the outcomes and m̂ out of fold, a probability.
    pub(super) fn new(data: &ValidTrainingData<'_>, predicted: &[f32]) -> Self {
        let rows = 0..data.n_rows();
        let outcome = rows.flat_map(|row| data.outcomes.iter().map(move |column| column.values[row] as f32));
        Self { outcome: outcome.collect(), logit: predicted.iter().map(|p| logit(*p)).collect() }
    }
}

/// Checks that every outcome is 0 or 1 in every row, and that the user's own predictions are probabilities.
pub(super) fn check_binary(data: &ValidTrainingData<'_>) -> Result<()> {
    for OutcomeColumn { name, values, prediction } in &data.outcomes {
        let place = |row: usize| {
            let number = data.rows.and_then(|rows| rows.get(row).copied()).unwrap_or(row as u64);
            row_name(number)
        };
        if let Some(row) = values.iter().position(|value| *value != 0.0 && *value != 1.0) {
            let what =
                format!("the outcome `{name}` is {}, and the logistic loss is for 0 and 1", values[row]);
            return Err(Error::input(what).at(place(row)).hint("set `model.loss` to `squared`"));
        }
        let outside = |prediction: &&[f64]| prediction.iter().position(|p| !(0.0..=1.0).contains(p));
        if let Some(row) = prediction.as_ref().and_then(outside) {
            let what = format!("the prediction of `{name}` is no probability");
            let hint = "the logistic loss needs P(y = 1 | x), or set `model.loss` to `squared`";
            return Err(Error::input(what).at(place(row)).hint(hint));
        }
    }
    Ok(())
}

fn logit(probability: f32) -> f32 {
    let p = f64::from(probability.clamp(MARGIN, 1.0 - MARGIN));
    (p / (1.0 - p)).ln() as f32
}

#[cfg(test)]
mod tests {
    use super::logit;

    #[test]
    fn the_logit_is_finite_everywhere() {
        assert_eq!(logit(0.5), 0.0);
        assert!((logit(0.9) - 9.0_f32.ln()).abs() < 1e-6);
        assert!(logit(0.0).is_finite() && logit(1.0).is_finite() && logit(0.0) < -13.0);
    }
}
