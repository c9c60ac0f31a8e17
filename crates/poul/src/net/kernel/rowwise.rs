//! Loops over the rows of a matrix: dot products, sums, softmax, and rows brought to a common length or scale.

use super::special::exp;
use crate::dispatch::kernels;

/// Partial sums kept apart in a dot product: two AVX2 registers.
const N_LANES: usize = 16;

/// a·b, in a fixed order.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; N_LANES];
    let (a_blocks, b_blocks) = (a.chunks_exact(N_LANES), b.chunks_exact(N_LANES));
    let (a_rest, b_rest) = (a_blocks.remainder(), b_blocks.remainder());
    for (a, b) in a_blocks.zip(b_blocks) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    fold(&lanes) + rest
}

/// Σ a, in a fixed order.
#[inline(always)]
pub(super) fn total(a: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; N_LANES];
    let blocks = a.chunks_exact(N_LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for (lane, a) in lanes.iter_mut().zip(block) {
            *lane += a;
        }
    }
    fold(&lanes) + rest.iter().sum::<f32>()
}

#[inline(always)]
fn fold(lanes: &[f32; N_LANES]) -> f32 {
    let mut sums = *lanes;
    let mut width = N_LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

kernels! {
    /// y = the dot product of each row of a with the same row of b.
    fn row_dots(n_cols: usize, a: &[f32], b: &[f32], y: &mut [f32]) {
        for ((y, a), b) in y.iter_mut().zip(a.chunks_exact(n_cols)).zip(b.chunks_exact(n_cols)) {
            *y = dot(a, b);
        }
    }

    /// Each row of dx += dy of that row times the same row of b.
    fn add_scaled_rows(n_cols: usize, dy: &[f32], b: &[f32], dx: &mut [f32]) {
        for ((dx, dy), b) in dx.chunks_exact_mut(n_cols).zip(dy).zip(b.chunks_exact(n_cols)) {
            for (dx, b) in dx.iter_mut().zip(b) {
                *dx += dy * b;
            }
        }
    }

    /// y = the sum of each row of x.
    fn row_sums(n_cols: usize, x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x.chunks_exact(n_cols)) {
            *y = total(x);
        }
    }

    /// y (+)= the sum of each column of x.
    fn col_sums(x: &[f32], y: &mut [f32], accumulate: bool) {
        if !accumulate {
            y.fill(0.0);
        }
        for x in x.chunks_exact(y.len()) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += x;
            }
        }
    }

    /// Softmax of each row, and the logarithm of each row's normaliser.
    fn softmax(n_cols: usize, x: &[f32], y: &mut [f32], log_sums: &mut [f32]) {
        for ((y, x), log_sum) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)).zip(log_sums) {
            let top = x.iter().fold(f32::NEG_INFINITY, |top, x| if *x > top { *x } else { top });
            for (y, x) in y.iter_mut().zip(x) {
                *y = exp(x - top);
            }
            let sum = total(y);
            for y in y.iter_mut() {
                *y /= sum;
            }
            *log_sum = top + sum.ln();
        }
    }

    /// dx += gradient of softmax, whose values are y.
    fn softmax_gradient(n_cols: usize, y: &[f32], dy: &[f32], dx: &mut [f32]) {
        let rows = y.chunks_exact(n_cols).zip(dy.chunks_exact(n_cols));
        for (dx, (y, dy)) in dx.chunks_exact_mut(n_cols).zip(rows) {
            let mean = dot(y, dy);
            for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
                *dx += y * (dy - mean);
            }
        }
    }

    /// Each row divided by its Euclidean length (at least `floor`); `inverses` are what rows were multiplied by.
    fn unit_rows(n_cols: usize, floor: f32, x: &[f32], y: &mut [f32], inverses: &mut [f32]) {
        for ((y, x), inverse) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)).zip(inverses) {
            *inverse = 1.0 / dot(x, x).sqrt().max(floor);
            for (y, x) in y.iter_mut().zip(x) {
                *y = x * *inverse;
            }
        }
    }

    /// dx += gradient of [`unit_rows`], whose values are y.
    fn unit_rows_gradient(n_cols: usize, y: &[f32], inverses: &[f32], dy: &[f32], dx: &mut [f32]) {
        let rows = y.chunks_exact(n_cols).zip(dy.chunks_exact(n_cols)).zip(inverses);
        for (dx, ((y, dy), inverse)) in dx.chunks_exact_mut(n_cols).zip(rows) {
            let along = dot(y, dy);
            for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
                *dx += inverse * (dy - y * along);
            }
        }
    }

    /// Each row less its mean, divided by its standard deviation (with `epsilon` added to the variance).
    fn standard_rows(n_cols: usize, epsilon: f32, x: &[f32], y: &mut [f32], inverses: &mut [f32]) {
        let width = n_cols as f32;
        for ((y, x), inverse) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)).zip(inverses) {
            let mean = total(x) / width;
            for (y, x) in y.iter_mut().zip(x) {
                *y = x - mean;
            }
            *inverse = 1.0 / (dot(y, y) / width + epsilon).sqrt();
            for y in y.iter_mut() {
                *y *= *inverse;
            }
        }
    }

    /// dx += gradient of [`standard_rows`], whose values are y.
    fn standard_rows_gradient(n_cols: usize, y: &[f32], inverses: &[f32], dy: &[f32], dx: &mut [f32]) {
        let width = n_cols as f32;
        let rows = y.chunks_exact(n_cols).zip(dy.chunks_exact(n_cols)).zip(inverses);
        for (dx, ((y, dy), inverse)) in dx.chunks_exact_mut(n_cols).zip(rows) {
            let (mean, along) = (total(dy) / width, dot(y, dy) / width);
            for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
                *dx += inverse * (dy - mean - y * along);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_sums_reach_every_element() {
        for n in 0..70_usize {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(total(&a), (n * n.saturating_sub(1) / 2) as f32);
            assert_eq!(dot(&a, &vec![2.0; n]), (n * n.saturating_sub(1)) as f32);
        }
    }

    #[test]
    fn softmax_survives_large_logits() {
        let (mut y, mut log_sum) = ([0.0; 3], [0.0]);
        softmax(3, &[1000.0, 1000.0, -1000.0], &mut y, &mut log_sum);
        assert!((y[0] - 0.5).abs() < 1e-6 && (y[1] - 0.5).abs() < 1e-6 && y[2] < 1e-30);
        assert!((log_sum[0] - 1_000.693_1).abs() < 1e-3);
    }

    #[test]
    fn standard_rows_have_mean_zero_and_variance_one() {
        let x: Vec<f32> = (0..40).map(|i| 100.0 + (i * i % 17) as f32).collect();
        let (mut y, mut inverses) = (vec![0.0; 40], [0.0; 2]);
        standard_rows(20, 1e-5, &x, &mut y, &mut inverses);
        for row in y.chunks(20) {
            assert!(total(row).abs() < 1e-4);
            assert!((dot(row, row) / 20.0 - 1.0).abs() < 1e-4);
        }
    }
}
