//! The change of axes (A⁻ᵀg, Ah) that makes h white and E[g gᵀ] diagonal, from their moments; in f64.

use crate::stats::SymmetricEigen;

/// Variance of h along an axis, relative to the largest, below which training policies count as the same.
const LEAST_VARIANCE: f64 = 1e-6;

/// The axes of h by its covariance, and what each is divided by.
pub(super) struct Scaling {
    eigen: SymmetricEigen,
    scales: Vec<f64>,
    /// Axes along which training policies differ; they come first.
    n_significant: usize,
}

/// Row vectors are multiplied by these: h by `forward`, g by `backward`.
pub(super) struct Turn {
    pub(super) forward: Vec<f64>,
    pub(super) backward: Vec<f64>,
    /// Of the variance of gᵀh, the share that each axis carries.
    pub(super) axes: Vec<f64>,
}

impl Scaling {
    /// Unit variance along every axis, or, without `whiten`, the scale as it is.
    pub(super) fn of(covariance: &[f64], d: usize, whiten: bool) -> Self {
        let eigen = SymmetricEigen::of(covariance.to_vec(), d);
        let largest = eigen.values.first().copied().unwrap_or(0.0);
        if largest <= 0.0 || !whiten {
            return Self { scales: vec![1.0; d], n_significant: d, eigen };
        }
        let is_significant = |value: &&f64| **value > LEAST_VARIANCE * largest;
        let n_significant = eigen.values.iter().take_while(is_significant).count();
        let scales = eigen.values.iter().enumerate();
        let scales = scales.map(|(k, value)| if k < n_significant { *value } else { largest }.sqrt());
        Self { scales: scales.collect(), n_significant, eigen }
    }

    /// Turns the scaled axes so that E[g gᵀ] is diagonal among those that count, and among the others.
    pub(super) fn turn(&self, g_second: &[f64], g_mean: &[f64], d: usize) -> Turn {
        // Along scaled axis i, h is h·v_i / scale_i and g is g·v_i · scale_i.
        let back = |i: usize, of: &[f64]| -> f64 {
            self.scales[i] * of.iter().zip(self.eigen.vector(i)).map(|(a, b)| a * b).sum::<f64>()
        };
        let rotated: Vec<Vec<f64>> = (0..d)
            .map(|i| {
                let by_row: Vec<f64> = g_second.chunks_exact(d).map(|row| back(i, row)).collect();
                (0..d).map(|j| back(j, &by_row)).collect()
            })
            .collect();
        let (mut forward, mut backward) = (vec![0.0; d * d], vec![0.0; d * d]);
        let mut axes = Vec::with_capacity(d);
        for block in [0..self.n_significant, self.n_significant..d] {
            let n = block.len();
            let inner = block.clone().flat_map(|i| rotated[i][block.clone()].to_vec()).collect();
            let turned = SymmetricEigen::of(inner, n);
            for k in 0..n {
                let vector = turned.vector(k);
                let mean: f64 = block.clone().zip(vector).map(|(i, v)| v * back(i, g_mean)).sum();
                let sign = if mean < 0.0 { -1.0 } else { 1.0 };
                let (axis, mut variance) = (block.start + k, 0.0);
                for (i, v) in block.clone().zip(vector) {
                    variance += v * v * self.eigen.values[i].max(0.0) / self.scales[i].powi(2);
                    for (row, e) in self.eigen.vector(i).iter().enumerate() {
                        forward[row * d + axis] += sign * v * e / self.scales[i];
                        backward[row * d + axis] += sign * v * e * self.scales[i];
                    }
                }
                axes.push(turned.values[k].max(0.0) * variance);
            }
        }
        let total: f64 = axes.iter().sum();
        axes.iter_mut().for_each(|axis| *axis /= total.max(f64::MIN_POSITIVE));
        Turn { forward, backward, axes }
    }
}
