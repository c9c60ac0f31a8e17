//! The factor L of a positive definite matrix A = L·Lᵀ, in 64 bits.

/// Sums are kept in so many parts, which the processor adds side by side. Part of the result.
const LANES: usize = 8;

/// A lower triangular factor, row after row.
#[derive(Clone, Debug)]
pub(crate) struct Cholesky {
    factor: Vec<f64>,
    n: usize,
}

impl Cholesky {
    /// Factors an n × n matrix, of which the lower triangle is read; none where it is not positive definite.
    pub(crate) fn new(matrix: Vec<f64>, n: usize) -> Option<Self> {
        Self::factored(matrix, n, |pivot| (pivot > 0.0 && pivot.is_finite()).then_some(pivot))
    }

    /// The same for a matrix that rounding may have left short of positive definite: pivots below `least` count as `least`.
    pub(crate) fn floored(matrix: Vec<f64>, n: usize, least: f64) -> Option<Self> {
        Self::factored(matrix, n, |pivot| pivot.is_finite().then_some(pivot.max(least)))
    }

    fn factored(mut matrix: Vec<f64>, n: usize, pivot_of: impl Fn(f64) -> Option<f64>) -> Option<Self> {
        for row in 0..n {
            let (above, rest) = matrix.split_at_mut(row * n);
            let own = &mut rest[..n];
            for column in 0..row {
                let other = &above[column * n..][..=column];
                own[column] = (own[column] - dot(&own[..column], &other[..column])) / other[column];
            }
            let pivot = pivot_of(own[row] - dot(&own[..row], &own[..row]))?;
            own[row] = pivot.sqrt();
            own[row + 1..].fill(0.0);
        }
        Some(Self { factor: matrix, n })
    }

    /// L, row after row.
    pub(crate) fn into_factor(self) -> Vec<f64> {
        self.factor
    }

    /// log |A|.
    pub(crate) fn log_determinant(&self) -> f64 {
        2.0 * (0..self.n).map(|row| self.factor[row * self.n + row].ln()).sum::<f64>()
    }

    /// L⁻¹·v in place.
    pub(crate) fn forward(&self, v: &mut [f64]) {
        for row in 0..self.n {
            let own = &self.factor[row * self.n..][..=row];
            v[row] = (v[row] - dot(&own[..row], &v[..row])) / own[row];
        }
    }

    /// L⁻ᵀ·v in place.
    pub(crate) fn backward(&self, v: &mut [f64]) {
        for row in (0..self.n).rev() {
            let own = &self.factor[row * self.n..][..=row];
            v[row] /= own[row];
            let value = v[row];
            v[..row].iter_mut().zip(own).for_each(|(v, l)| *v -= l * value);
        }
    }

    /// A⁻¹·v in place.
    pub(crate) fn solve(&self, v: &mut [f64]) {
        self.forward(v);
        self.backward(v);
    }
}

/// The lower factor of a positive semidefinite matrix; pivots that rounding made negative count as zero.
pub(crate) fn semidefinite_factor(matrix: &[f64], n: usize) -> Vec<f64> {
    let mut factor = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| factor[row * n + k] * factor[column * n + k]).sum();
            let rest = matrix[row * n + column] - dot;
            factor[row * n + column] = match row == column {
                true => rest.max(0.0).sqrt(),
                false if factor[column * n + column] > 1e-8 => rest / factor[column * n + column],
                false => 0.0,
            };
        }
    }
    factor
}

/// aᵀb.
#[inline]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (whole_a, whole_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = whole_a.remainder().iter().zip(whole_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in whole_a.zip(whole_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_factored_is_solved() {
        let n = 13;
        let entry = |i: usize, j: usize| ((i * 7 + j * 7 + i * j) % 11) as f64 / 11.0;
        let root: Vec<f64> =
            (0..n * n).map(|k| entry(k / n, k % n) + f64::from(u8::from(k / n == k % n))).collect();
        let row = |i: usize| &root[i * n..][..n];
        let matrix: Vec<f64> = (0..n * n)
            .map(|k| dot(row(k / n), row(k % n)) + if k / n == k % n { 0.1 } else { 0.0 })
            .collect();
        let factor = Cholesky::new(matrix.clone(), n).unwrap();
        let truth: Vec<f64> = (0..n).map(|i| i as f64 - 4.0).collect();
        let mut solved: Vec<f64> = (0..n).map(|i| dot(&matrix[i * n..][..n], &truth)).collect();
        factor.solve(&mut solved);
        assert!(solved.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-8), "{solved:?}");
        // 4 and 9 on the diagonal: |A| = 36.
        let diagonal = Cholesky::new(vec![4.0, 0.0, 0.0, 9.0], 2).unwrap();
        assert!((diagonal.log_determinant() - 36.0_f64.ln()).abs() < 1e-12);
        assert!(Cholesky::new(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::new(vec![f64::NAN], 1).is_none());
        let floored = Cholesky::floored(vec![4.0, 0.0, 2.0, 1.0 - 1e-15], 2, 1e-6).unwrap();
        assert_eq!(floored.into_factor(), [2.0, 0.0, 1.0, 1e-3]);
        // The example of many a textbook.
        let published = Cholesky::new(vec![25.0, 15.0, -5.0, 15.0, 18.0, 0.0, -5.0, 0.0, 11.0], 3).unwrap();
        assert_eq!(published.into_factor(), [5.0, 0.0, 0.0, 3.0, 3.0, 0.0, -1.0, 1.0, 3.0]);
        // Of rank one: the second column has nothing left.
        assert_eq!(semidefinite_factor(&[4.0, 2.0, 2.0, 1.0], 2), [2.0, 0.0, 1.0, 0.0]);
    }
}
