//! Correlated numeric features with the shapes, scales and gaps of a real table.

use arrow_array::{Array, Float32Array};
use arrow_buffer::NullBuffer;
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::{Rng, Seed};

/// Draws columns that share a few hidden factors.
pub(super) struct Features {
    columns: Vec<Column>,
}

/// A latent standard normal (two factors and a part of its own), then a shape.
struct Column {
    loadings: [(usize, f32); 2],
    own: f32,
    shape: Shape,
    missing: f64,
}

#[derive(Clone, Copy)]
enum Shape {
    /// offset + scale · z.
    Normal { offset: f32, scale: f32 },
    /// scale · exp(0.8 z).
    Skewed { scale: f32 },
    /// z > threshold.
    Binary { threshold: f32 },
    /// ⌊exp(0.7 z + 0.7)⌋.
    Count,
}

impl Features {
    /// Draws the shapes of `n_columns` columns that load on `n_factors` factors; one column's shape does not
    /// depend on how many there are.
    pub(super) fn draw(n_columns: usize, n_factors: usize, seed: Seed) -> Self {
        let column = |idx| Column::draw(n_factors, &mut seed.index(idx).rng());
        Self { columns: (0..n_columns as u64).map(column).collect() }
    }

    /// Draws a column for the rows whose factors are given.
    pub(super) fn column(&self, column_idx: usize, factors: &[Vec<f32>], seed: Seed) -> Float32Array {
        let column = &self.columns[column_idx];
        let seed = seed.index(column_idx as u64);
        let mut rng = seed.rng();
        let [(a, load_a), (b, load_b)] = column.loadings;
        let mut values: Vec<f32> = factors[a].iter().map(|_| rng.sample(StandardNormal)).collect();
        for ((value, a), b) in values.iter_mut().zip(&factors[a]).zip(&factors[b]) {
            *value = column.own * *value + load_a * a + load_b * b;
        }
        column.shape.apply(&mut values);
        let gaps = (column.missing > 0.0).then(|| {
            let mut rng = seed.child("missing").rng();
            NullBuffer::from_iter(values.iter().map(|_| !rng.random_bool(column.missing)))
        });
        Float32Array::new(values.into(), gaps)
    }

    /// A column on the scale of its latent normal, from what is seen of it: 0 where it is missing.
    pub(super) fn signal(&self, column_idx: usize, values: &Float32Array) -> Vec<f64> {
        let shape = self.columns[column_idx].shape;
        let value = |row| if values.is_valid(row) { shape.signal(f64::from(values.value(row))) } else { 0.0 };
        (0..values.len()).map(value).collect()
    }
}

/// Hidden standard normal factors, column after column.
pub(super) fn factors(n_factors: usize, n_rows: usize, seed: Seed) -> Vec<Vec<f32>> {
    let factor = |idx| normals(n_rows, seed.index(idx));
    (0..n_factors as u64).map(factor).collect()
}

fn normals(n_rows: usize, seed: Seed) -> Vec<f32> {
    let mut rng = seed.rng();
    (0..n_rows).map(|_| rng.sample(StandardNormal)).collect()
}

impl Column {
    fn draw(n_factors: usize, rng: &mut Rng) -> Self {
        let communality: f32 = rng.random_range(0.1..0.6);
        let angle: f32 = rng.random_range(0.0..std::f32::consts::TAU);
        let first = rng.random_range(0..n_factors);
        let second = (first + rng.random_range(1..n_factors)) % n_factors;
        let (sin, cos) = (angle.sin() * communality.sqrt(), angle.cos() * communality.sqrt());
        let shape = match rng.random_range(0..100) {
            0..70 => Shape::Normal { offset: rng.random_range(-3.0..3.0), scale: decades(rng) },
            70..82 => Shape::Skewed { scale: decades(rng) },
            82..92 => Shape::Binary { threshold: rng.random_range(-0.8..0.8) },
            _ => Shape::Count,
        };
        let missing = if rng.random_bool(0.05) { rng.random_range(0.02..0.15) } else { 0.0 };
        Self { loadings: [(first, cos), (second, sin)], own: (1.0 - communality).sqrt(), shape, missing }
    }
}

/// Units differ by two orders of magnitude.
fn decades(rng: &mut Rng) -> f32 {
    10.0_f32.powf(rng.random_range(-1.0..1.0))
}

impl Shape {
    fn apply(self, values: &mut [f32]) {
        match self {
            Self::Normal { offset, scale } => values.iter_mut().for_each(|z| *z = offset + scale * *z),
            Self::Skewed { scale } => values.iter_mut().for_each(|z| *z = scale * (0.8 * *z).exp()),
            Self::Binary { threshold } => {
                values.iter_mut().for_each(|z| *z = if *z > threshold { 1.0 } else { 0.0 });
            }
            Self::Count => values.iter_mut().for_each(|z| *z = (0.7 * *z + 0.7).exp().floor()),
        }
    }

    fn signal(self, value: f64) -> f64 {
        match self {
            Self::Normal { offset, scale } => (value - f64::from(offset)) / f64::from(scale),
            Self::Skewed { scale } => (value / f64::from(scale)).ln() / 0.8,
            Self::Binary { .. } => 2.0 * value - 1.0,
            Self::Count => (value.ln_1p() - 1.05) / 0.55,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::world::mean_and_sd;

    #[test]
    fn signals_are_nearly_standard_and_recovered_from_what_is_seen() {
        let features = Features::draw(200, 6, Seed::new(1));
        let factors = factors(6, 4096, Seed::new(2));
        let mut n_missing = 0;
        for column_idx in 0..200 {
            let column = features.column(column_idx, &factors, Seed::new(3));
            n_missing += usize::from(column.null_count() > 0);
            let (mean, sd) = mean_and_sd(features.signal(column_idx, &column));
            assert!(mean.abs() < 0.7 && (0.6..1.4).contains(&sd), "column {column_idx}: {mean} {sd}");
        }
        assert!((2..=25).contains(&n_missing), "{n_missing}");
    }

    #[test]
    fn more_columns_leave_the_first_as_they_were() {
        let factors = factors(6, 64, Seed::new(2));
        let few = Features::draw(10, 6, Seed::new(1)).column(9, &factors, Seed::new(3));
        let many = Features::draw(500, 6, Seed::new(1)).column(9, &factors, Seed::new(3));
        assert_eq!(few, many);
    }

    #[test]
    fn columns_are_correlated() {
        let features = Features::draw(60, 6, Seed::new(1));
        let factors = factors(6, 4096, Seed::new(2));
        let signals: Vec<Vec<f64>> =
            (0..60).map(|j| features.signal(j, &features.column(j, &factors, Seed::new(3)))).collect();
        let correlation = |a: &[f64], b: &[f64]| {
            let ((mean_a, sd_a), (mean_b, sd_b)) =
                (mean_and_sd(a.iter().copied()), mean_and_sd(b.iter().copied()));
            let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
            products.sum::<f64>() / a.len() as f64 / sd_a / sd_b
        };
        let largest = (1..60).map(|j| correlation(&signals[0], &signals[j]).abs()).fold(0.0, f64::max);
        assert!((0.15..0.9).contains(&largest), "{largest}");
    }
}
