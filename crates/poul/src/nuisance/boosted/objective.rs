//! What boosted trees make small, with gradients and curvatures along their outputs.

use serde::{Deserialize, Serialize};

/// The probability nearest to 0 or 1 that a loss counts with.
const LEAST: f64 = 1e-7;

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Objective {
    /// Half of the squared error.
    Squared,
    /// −log-likelihood of an outcome that is 0, 1 or a share; the output is its logit.
    Logistic,
    /// −log-likelihood of one of so many classes; outputs are logits.
    Softmax(usize),
}

impl Objective {
    /// How many outputs a row has.
    pub(super) fn n_outputs(self) -> usize {
        match self {
            Self::Squared | Self::Logistic => 1,
            Self::Softmax(n_classes) => n_classes,
        }
    }

    /// The most that the curvature of a row of weight 1 can be.
    pub(super) fn most_curvature(self) -> f64 {
        match self {
            Self::Squared => 1.0,
            Self::Logistic => 0.25,
            Self::Softmax(n_classes) => 0.25 * softmax_factor(n_classes),
        }
    }

    /// Gradient and curvature along one output. `target` is the outcome, or the class; `outputs` are what
    /// [`settle`](Self::settle) made of them.
    pub(super) fn derivatives(self, outputs: &[f32], output: usize, target: f32) -> [f32; 2] {
        let value = outputs[output];
        match self {
            Self::Squared => [value - target, 1.0],
            Self::Logistic => [value - target, value * (1.0 - value)],
            Self::Softmax(n_classes) => {
                let own = if target as usize == output { 1.0 } else { 0.0 };
                // The curvature along one logit alone would let steps of all classes together go too far.
                [value - own, softmax_factor(n_classes) as f32 * value * (1.0 - value)]
            }
        }
    }

    /// Turns the outputs of a row into what the loss is taken of: themselves, or probabilities.
    pub(super) fn settle(self, outputs: &mut [f32]) {
        match self {
            Self::Squared => (),
            Self::Logistic => outputs.iter_mut().for_each(|output| *output = sigmoid(*output)),
            Self::Softmax(_) => {
                let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                outputs.iter_mut().for_each(|output| *output = (*output - most).exp());
                let total: f32 = outputs.iter().sum();
                outputs.iter_mut().for_each(|output| *output /= total);
            }
        }
    }

    /// The loss of a row whose outputs are settled.
    pub(super) fn loss(self, outputs: &[f32], target: f32) -> f64 {
        let log = |p: f32| f64::from(p).max(LEAST).ln();
        match self {
            Self::Squared => f64::from(outputs[0] - target).powi(2) / 2.0,
            Self::Logistic => {
                let y = f64::from(target);
                -(y * log(outputs[0]) + (1.0 - y) * log(1.0 - outputs[0]))
            }
            Self::Softmax(_) => -log(outputs[target as usize]),
        }
    }
}

/// What makes a step along the logits of all classes as long as one along those of all but one.
fn softmax_factor(n_classes: usize) -> f64 {
    n_classes as f64 / (n_classes.max(2) - 1) as f64
}

fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss_at(objective: Objective, outputs: &[f32], target: f32) -> f64 {
        let mut settled = outputs.to_vec();
        objective.settle(&mut settled);
        objective.loss(&settled, target)
    }

    #[test]
    fn derivatives_are_finite_differences() {
        let cases = [
            (Objective::Squared, vec![0.7], 1.3),
            (Objective::Logistic, vec![-0.4], 1.0),
            (Objective::Logistic, vec![0.9], 0.25),
            (Objective::Softmax(4), vec![0.3, -1.0, 0.8, 0.1], 2.0),
            (Objective::Softmax(4), vec![0.3, -1.0, 0.8, 0.1], 1.0),
            (Objective::Softmax(2), vec![0.5, -0.2], 0.0),
        ];
        for (objective, outputs, target) in cases {
            let mut settled = outputs.clone();
            objective.settle(&mut settled);
            for output in 0..objective.n_outputs() {
                let step = 0.02_f32;
                let moved = |by: f32| {
                    let mut moved = outputs.clone();
                    moved[output] += by;
                    loss_at(objective, &moved, target)
                };
                let (up, here, down) = (moved(step), moved(0.0), moved(-step));
                let slope = (up - down) / f64::from(2.0 * step);
                let bend = (up - 2.0 * here + down) / f64::from(step * step);
                let [gradient, curvature] = objective.derivatives(&settled, output, target).map(f64::from);
                assert!((gradient - slope).abs() < 2e-4, "{objective:?}: {gradient} {slope}");
                let factor = match objective {
                    Objective::Softmax(n_classes) => softmax_factor(n_classes),
                    _ => 1.0,
                };
                assert!((curvature - factor * bend).abs() < 5e-3, "{objective:?}: {curvature} {bend}");
                assert!(curvature <= objective.most_curvature() + 1e-6);
            }
        }
    }

    #[test]
    fn far_logits_stay_probabilities() {
        let mut outputs = [300.0, -300.0, 0.0];
        Objective::Softmax(3).settle(&mut outputs);
        assert_eq!(outputs, [1.0, 0.0, 0.0]);
        assert!(Objective::Softmax(3).loss(&outputs, 1.0).is_finite());
    }
}
