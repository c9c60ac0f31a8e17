//! Matrix products, one thread each: the batch is what is split, never a product.

use gemm::Parallelism;

use super::rowwise::dot;
use crate::dispatch::kernels;

/// A row-major matrix, or its transpose.
#[derive(Clone, Copy)]
pub(in crate::net) struct Matrix<'a> {
    values: &'a [f32],
    n_rows: usize,
    n_cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// `values` read as `n_rows` rows of `n_cols`.
    pub(in crate::net) fn new(values: &'a [f32], n_rows: usize, n_cols: usize) -> Self {
        assert_eq!(values.len(), n_rows * n_cols, "a matrix of {n_rows} × {n_cols}");
        Self { values, n_rows, n_cols, row_stride: n_cols, col_stride: 1 }
    }

    /// Rows for columns.
    pub(in crate::net) fn transpose(self) -> Self {
        Self {
            n_rows: self.n_cols,
            n_cols: self.n_rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// Its rows and columns.
    pub(super) fn shape(self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    /// Its values row after row, unless it is a transpose.
    pub(super) fn as_rows(self) -> Option<&'a [f32]> {
        (self.row_stride == self.n_cols && self.col_stride == 1).then_some(self.values)
    }

    /// [`transpose`](Self::transpose) where asked for.
    pub(in crate::net) fn transpose_if(self, transposed: bool) -> Self {
        if transposed { self.transpose() } else { self }
    }
}

/// c = a·b, or c += a·b, with c row-major.
pub(in crate::net) fn multiply(a: Matrix<'_>, b: Matrix<'_>, c: &mut [f32], accumulate: bool) {
    assert_eq!(a.n_cols, b.n_rows, "inner dimensions of a product");
    assert_eq!(c.len(), a.n_rows * b.n_cols, "size of a product");
    let (n_rows, n_cols, n_inner) = (a.n_rows, b.n_cols, a.n_cols);
    #[allow(unsafe_code, reason = "the matrix product takes pointers and strides")]
    // SAFETY: a `Matrix` holds exactly n_rows · n_cols values and its strides are (n_cols, 1) or, transposed,
    // (1, n_rows of the transpose's source), so every offset i · row_stride + j · col_stride with i < n_rows and
    // j < n_cols is below values.len(). The same holds for c with strides (n_cols, 1), by the assertion above. The
    // strides fit isize because slices are at most isize::MAX bytes. c is borrowed mutably, so it overlaps
    // neither a nor b.
    unsafe {
        gemm::gemm(
            n_rows,
            n_cols,
            n_inner,
            c.as_mut_ptr(),
            1,
            n_cols as isize,
            accumulate,
            a.values.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0_f32,
            1.0_f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

kernels! {
    /// y = x·w for a single column w.
    fn multiply_column(x: &[f32], w: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x.chunks_exact(w.len())) {
            *y = dot(x, w);
        }
    }

    /// dw (+)= xᵀ·dy for a single column dy.
    fn column_weight_gradient(x: &[f32], dy: &[f32], dw: &mut [f32], accumulate: bool) {
        if !accumulate {
            dw.fill(0.0);
        }
        for (x, dy) in x.chunks_exact(dw.len()).zip(dy) {
            for (dw, x) in dw.iter_mut().zip(x) {
                *dw += dy * x;
            }
        }
    }

    /// dx (+)= dy·wᵀ for a single column w.
    fn column_input_gradient(dy: &[f32], w: &[f32], dx: &mut [f32], accumulate: bool) {
        for (dx, dy) in dx.chunks_exact_mut(w.len()).zip(dy) {
            if accumulate {
                dx.iter_mut().zip(w).for_each(|(dx, w)| *dx += dy * w);
            } else {
                dx.iter_mut().zip(w).for_each(|(dx, w)| *dx = dy * w);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        (0..n as u64).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 504.5 - 1.0).collect()
    }

    fn plain(a: &[f32], b: &[f32], (n, k, m): (usize, usize, usize)) -> Vec<f64> {
        let mut c = vec![0.0; n * m];
        for i in 0..n {
            for j in 0..m {
                c[i * m + j] = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * m + j])).sum();
            }
        }
        c
    }

    fn transposed(a: &[f32], n_rows: usize, n_cols: usize) -> Vec<f32> {
        (0..n_rows * n_cols).map(|i| a[(i % n_rows) * n_cols + i / n_rows]).collect()
    }

    #[test]
    fn products_of_all_orientations_agree_with_the_definition() {
        for (n, k, m) in [(1, 1, 1), (3, 5, 2), (17, 33, 9), (128, 100, 64), (2, 700, 1), (1, 3, 40)] {
            let (a, b) = (numbers(n * k, 1), numbers(k * m, 2));
            let exact = plain(&a, &b, (n, k, m));
            let (at, bt) = (transposed(&a, n, k), transposed(&b, k, m));
            for (flip_a, flip_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let left = if flip_a { Matrix::new(&at, k, n).transpose() } else { Matrix::new(&a, n, k) };
                let right = if flip_b { Matrix::new(&bt, m, k).transpose() } else { Matrix::new(&b, k, m) };
                let mut c = vec![1.0; n * m];
                multiply(left, right, &mut c, true);
                for (c, exact) in c.iter().zip(&exact) {
                    assert!((f64::from(*c) - 1.0 - exact).abs() < 1e-3);
                }
            }
        }
    }

    #[test]
    fn column_kernels_agree_with_products() {
        let (n, k) = (19, 37);
        let (x, w, dy) = (numbers(n * k, 3), numbers(k, 4), numbers(n, 5));
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
        let (mut y, mut expected) = (vec![0.0; n], vec![0.0; n]);
        multiply_column(&x, &w, &mut y);
        multiply(Matrix::new(&x, n, k), Matrix::new(&w, k, 1), &mut expected, false);
        assert!(near(&y, &expected));
        let (mut dw, mut expected) = (vec![1.0; k], vec![1.0; k]);
        column_weight_gradient(&x, &dy, &mut dw, true);
        multiply(Matrix::new(&x, n, k).transpose(), Matrix::new(&dy, n, 1), &mut expected, true);
        assert!(near(&dw, &expected));
        let (mut dx, mut expected) = (vec![9.0; n * k], vec![9.0; n * k]);
        column_input_gradient(&dy, &w, &mut dx, false);
        multiply(Matrix::new(&dy, n, 1), Matrix::new(&w, k, 1).transpose(), &mut expected, false);
        assert!(near(&dx, &expected));
    }
}
