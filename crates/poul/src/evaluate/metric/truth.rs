//! Distance from the true effects, where they are known (simulated or semi-synthetic data).

use super::definition::{About, Better, Definition, Shown};

pub(super) const ATE_TRUE: Definition = Definition {
    better: Better::Neither,
    has_interval: false,
    needs_truth: true,
    ..Definition::new("ate_true", "true effect", About::Truth, |pass| pass.truth.as_ref()?.true_mean())
};

pub(super) const PEHE: Definition = Definition {
    better: Better::Less,
    in_comparisons: true,
    needs_truth: true,
    ..Definition::new("pehe", "PEHE", About::Truth, |pass| pass.truth.as_ref()?.pehe())
};

pub(super) const NORMALISED_PEHE: Definition = Definition {
    better: Better::Less,
    evaluated: Shown::VALUE,
    reported: Shown::VALUE,
    compared: Shown::DIFFERENCE,
    in_comparisons: true,
    needs_truth: true,
    ..Definition::new("normalised_pehe", "nPEHE", About::Truth, |pass| pass.truth.as_ref()?.normalised_pehe())
};

pub(super) const ATE_ERROR: Definition = Definition {
    better: Better::Less,
    needs_truth: true,
    ..Definition::new("ate_error", "error of the effect", About::Truth, |pass| {
        pass.truth.as_ref()?.ate_error()
    })
};

/// Root mean squared error of predicted against true effects (precision in estimating heterogeneous effects).
///
/// `None` where the lengths differ, nothing has weight, or a value is not finite.
pub fn pehe(predicted: &[f64], truth: &[f64], weight: Option<&[f64]>) -> Option<f64> {
    sums(predicted, truth, weight)?.pehe()
}

/// [`pehe`] over the standard deviation of the true effects: 1 is what predicting the mean would give.
pub fn normalised_pehe(predicted: &[f64], truth: &[f64], weight: Option<&[f64]>) -> Option<f64> {
    sums(predicted, truth, weight)?.normalised_pehe()
}

/// Absolute difference between the mean predicted and the mean true effect.
pub fn ate_error(predicted: &[f64], truth: &[f64], weight: Option<&[f64]>) -> Option<f64> {
    sums(predicted, truth, weight)?.ate_error()
}

fn sums(predicted: &[f64], truth: &[f64], weight: Option<&[f64]>) -> Option<TruthSums> {
    if predicted.len() != truth.len() || weight.is_some_and(|weight| weight.len() != truth.len()) {
        return None;
    }
    let mut sums = TruthSums::new(truth);
    for (row, (predicted, truth)) in predicted.iter().zip(truth).enumerate() {
        sums.add(weight.map_or(1.0, |weight| weight[row]), *predicted, *truth);
    }
    Some(sums)
}

/// Weighted sums of errors and of the truth around a centre near its mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TruthSums {
    centre: f64,
    mass: f64,
    error: f64,
    squared_error: f64,
    truth: f64,
    squared_truth: f64,
}

impl TruthSums {
    /// Any centre gives the same result; one inside the data keeps the squares small.
    pub(super) fn new(truth: &[f64]) -> Self {
        Self { centre: truth.first().copied().unwrap_or(0.0), ..Self::default() }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, mass: f64, predicted: f64, truth: f64) {
        let error = predicted - truth;
        let truth = truth - self.centre;
        self.mass += mass;
        self.error += mass * error;
        self.squared_error += mass * error * error;
        self.truth += mass * truth;
        self.squared_truth += mass * truth * truth;
    }

    pub(super) fn pehe(&self) -> Option<f64> {
        finite((self.squared_error / self.mass).sqrt())
    }

    pub(super) fn normalised_pehe(&self) -> Option<f64> {
        let mean = self.truth / self.mass;
        let variance = self.squared_truth / self.mass - mean * mean;
        finite((self.squared_error / self.mass / variance.max(0.0)).sqrt())
    }

    pub(super) fn ate_error(&self) -> Option<f64> {
        finite((self.error / self.mass).abs())
    }

    pub(super) fn true_mean(&self) -> Option<f64> {
        finite(self.centre + self.truth / self.mass)
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_by_hand() {
        let (predicted, truth) = ([1.0, 2.0, 4.0], [1.0, 3.0, 2.0]);
        assert!((pehe(&predicted, &truth, None).unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((ate_error(&predicted, &truth, None).unwrap() - 1.0 / 3.0).abs() < 1e-15);
        let weighted = pehe(&predicted, &truth, Some(&[1.0, 2.0, 0.0])).unwrap();
        let repeated = pehe(&[1.0, 2.0, 2.0], &[1.0, 3.0, 3.0], None).unwrap();
        assert_eq!(weighted, repeated);
    }

    #[test]
    fn predicting_the_mean_has_normalised_error_one() {
        let truth = [1e6 + 1.0, 1e6 + 3.0, 1e6 + 2.0];
        assert!((normalised_pehe(&[1e6 + 2.0; 3], &truth, None).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(normalised_pehe(&[1.0; 2], &[3.0; 2], None), None);
        assert_eq!(pehe(&[1.0], &[1.0, 2.0], None), None);
    }
}
