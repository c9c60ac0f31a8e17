//! Products of a few rows, such as one that a service is asked about: without filling up to a block, to the same bits.
//!
//! The product of a block adds up x_k·w_kj for k in order by fused multiply-add, in one go where there are not too many k.
//! So does this. Whether the machine's block product really gives the same bits is tried once; where it does not, or where
//! there are more k, rows are filled up to a block.

use std::sync::OnceLock;

use super::product::{Matrix, multiply};

/// Most rows that are worth it.
pub(in crate::net) const FEW_ROWS: usize = 4;
/// From here on, block products give a row the same bits whatever the number of rows.
pub(in crate::net) const BLOCK_ROWS: usize = 80;
/// Beyond, block products add up in several goes.
const MOST_INNER: usize = 256;
/// Outputs that are computed together: four AVX2 registers.
const N_LANES: usize = 32;

/// y = x·w for at most [`FEW_ROWS`] rows of x, to the bits that they would have in a block.
pub(in crate::net) fn multiply_few(x: &[f32], w: Matrix<'_>, y: &mut [f32]) {
    let (n_inner, n_out) = w.shape();
    let plain = w.as_rows().filter(|_| n_inner <= MOST_INNER && n_out >= 4 && agrees());
    match plain {
        Some(w) => {
            for (x, y) in x.chunks_exact(n_inner.max(1)).zip(y.chunks_exact_mut(n_out)) {
                multiply_row(x, w, y);
            }
        }
        None => {
            let mut block = vec![0.0; BLOCK_ROWS * n_inner];
            block[..x.len()].copy_from_slice(x);
            let mut product = vec![0.0; BLOCK_ROWS * n_out];
            multiply(Matrix::new(&block, BLOCK_ROWS, n_inner), w, &mut product, false);
            y.copy_from_slice(&product[..y.len()]);
        }
    }
}

/// Whether the machine's block product gives the bits of [`multiply_row`].
fn agrees() -> bool {
    static AGREES: OnceLock<bool> = OnceLock::new();
    *AGREES.get_or_init(|| {
        [(MOST_INNER, 64), (100, 128), (33, 4), (64, 7)].into_iter().all(|(n_inner, n_out)| {
            let number = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 1009.0 - 0.5;
            let x: Vec<f32> = (0..BLOCK_ROWS * n_inner).map(number).collect();
            let w: Vec<f32> = (0..n_inner * n_out).map(|i| number(i + 12_345)).collect();
            let mut block = vec![0.0; BLOCK_ROWS * n_out];
            multiply(
                Matrix::new(&x, BLOCK_ROWS, n_inner),
                Matrix::new(&w, n_inner, n_out),
                &mut block,
                false,
            );
            let mut row = vec![0.0; n_out];
            x.chunks_exact(n_inner).zip(block.chunks_exact(n_out)).all(|(x, block)| {
                multiply_row(x, &w, &mut row);
                row.iter().zip(block).all(|(a, b)| a.to_bits() == b.to_bits())
            })
        })
    })
}

fn multiply_row(x: &[f32], w: &[f32], y: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn wide(x: &[f32], w: &[f32], y: &mut [f32]) {
            body(x, w, y);
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            #[allow(unsafe_code, reason = "calls a safe function compiled for detected features")]
            // SAFETY: `wide` is safe but for needing AVX2 and FMA, which were detected on this machine just above.
            return unsafe { wide(x, w, y) };
        }
    }
    body(x, w, y);
}

#[inline(always)]
fn body(x: &[f32], w: &[f32], y: &mut [f32]) {
    let n_out = y.len();
    let mut first = 0;
    while first + N_LANES <= n_out {
        lanes::<N_LANES>(x, w, n_out, first, &mut y[first..first + N_LANES]);
        first += N_LANES;
    }
    while first + 8 <= n_out {
        lanes::<8>(x, w, n_out, first, &mut y[first..first + 8]);
        first += 8;
    }
    while first < n_out {
        lanes::<1>(x, w, n_out, first, &mut y[first..=first]);
        first += 1;
    }
}

#[inline(always)]
fn lanes<const N: usize>(x: &[f32], w: &[f32], n_out: usize, first: usize, y: &mut [f32]) {
    let mut sums = [0.0_f32; N];
    for (x, w) in x.iter().zip(w.chunks_exact(n_out)) {
        for (sum, w) in sums.iter_mut().zip(&w[first..first + N]) {
            *sum = x.mul_add(*w, *sum);
        }
    }
    y.copy_from_slice(&sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_the_bits_of_a_block() {
        for (n_inner, n_out) in
            [(100, 128), (128, 64), (64, 16), (16, 5), (3, 200), (256, 33), (723, 128), (7, 2)]
        {
            let number = |i: usize| ((i * 40_503) % 65_537) as f32 / 65_537.0 - 0.5;
            let x: Vec<f32> = (0..BLOCK_ROWS * n_inner).map(number).collect();
            let w: Vec<f32> = (0..n_inner * n_out).map(|i| number(i + 77)).collect();
            let w = Matrix::new(&w, n_inner, n_out);
            let mut block = vec![0.0; BLOCK_ROWS * n_out];
            multiply(Matrix::new(&x, BLOCK_ROWS, n_inner), w, &mut block, false);
            for n_rows in 1..=FEW_ROWS {
                let mut few = vec![0.0; n_rows * n_out];
                multiply_few(&x[..n_rows * n_inner], w, &mut few);
                assert_eq!(few, block[..n_rows * n_out], "{n_rows} × {n_inner} × {n_out}");
            }
        }
    }
}
