//! One step of AdamW over a stretch of weights (Kingma & Ba 2015; decoupled decay, Loshchilov & Hutter 2019).

use crate::dispatch::kernels;

/// The step's constants, with the bias corrections folded into the rate and the epsilon.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct AdamStep {
    /// Learning rate · √(1 − β₂ᵗ) / (1 − β₁ᵗ).
    pub(in crate::net) rate: f32,
    /// ε · √(1 − β₂ᵗ).
    pub(in crate::net) epsilon: f32,
    /// 1 − learning rate · decay.
    pub(in crate::net) shrink: f32,
    pub(in crate::net) beta1: f32,
    pub(in crate::net) beta2: f32,
    /// What the gradient is multiplied by: 1, or less where it is clipped.
    pub(in crate::net) gradient_scale: f32,
}

kernels! {
    /// Moves the weights by one step.
    fn adam(step: AdamStep, gradient: &[f32], weights: &mut [f32], first: &mut [f32], second: &mut [f32]) {
        let (rest1, rest2) = (1.0 - step.beta1, 1.0 - step.beta2);
        for (((weight, gradient), first), second) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
            let gradient = gradient * step.gradient_scale;
            *first = step.beta1 * *first + rest1 * gradient;
            *second = step.beta2 * *second + rest2 * gradient * gradient;
            *weight = *weight * step.shrink - step.rate * *first / (second.sqrt() + step.epsilon);
        }
    }

    /// average += rest · (weights − average).
    fn average(rest: f32, weights: &[f32], average: &mut [f32]) {
        for (average, weight) in average.iter_mut().zip(weights) {
            *average += rest * (weight - *average);
        }
    }

    /// Σ x².
    fn sum_of_squares(x: &[f32]) -> f64 {
        let mut lanes = [0.0_f64; 8];
        let blocks = x.chunks_exact(8);
        let rest: f64 = blocks.remainder().iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        for block in blocks {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *lane += f64::from(*x) * f64::from(*x);
            }
        }
        lanes.iter().sum::<f64>() + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_summed_over_every_element() {
        for n in 0..30_usize {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let exact: usize = (0..n).map(|i| i * i).sum();
            assert_eq!(sum_of_squares(&x), exact as f64);
        }
    }
}
