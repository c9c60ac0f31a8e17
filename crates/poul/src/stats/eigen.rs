//! Eigenvalues of small symmetric matrices, and from them the largest singular value of any: in f64, always the same.

/// Rotations stop once what is off the diagonal is this small beside the whole.
const TOLERANCE: f64 = 1e-15;
const MAX_SWEEPS: usize = 60;

/// A = Σ values[k]·v_k v_kᵀ, the largest value first.
#[derive(Clone, Debug)]
pub(crate) struct SymmetricEigen {
    pub(crate) values: Vec<f64>,
    /// v_k is row k.
    pub(crate) vectors: Vec<f64>,
}

impl SymmetricEigen {
    /// By cyclic Jacobi rotations (Golub & Van Loan, sec. 8.5); `matrix` is n × n and symmetric.
    pub(crate) fn of(mut matrix: Vec<f64>, n: usize) -> Self {
        let mut vectors = vec![0.0; n * n];
        (0..n).for_each(|i| vectors[i * n + i] = 1.0);
        let whole: f64 = matrix.iter().map(|value| value * value).sum();
        for _ in 0..MAX_SWEEPS {
            let off: f64 = (0..n)
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .map(|(i, j)| matrix[i * n + j].powi(2))
                .sum();
            if off <= TOLERANCE * TOLERANCE * whole {
                break;
            }
            for p in 0..n {
                for q in p + 1..n {
                    rotate(&mut matrix, &mut vectors, n, p, q);
                }
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|i, j| matrix[j * n + j].total_cmp(&matrix[i * n + i]));
        Self {
            values: order.iter().map(|k| matrix[k * n + k]).collect(),
            vectors: order.iter().flat_map(|k| vectors[k * n..][..n].to_vec()).collect(),
        }
    }

    /// v_k.
    pub(crate) fn vector(&self, k: usize) -> &[f64] {
        let n = self.values.len();
        &self.vectors[k * n..][..n]
    }
}

/// Makes the entry (p, q) zero; rows of `vectors` turn along.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let pq = matrix[p * n + q];
    if pq == 0.0 {
        return;
    }
    let tau = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * pq);
    let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = t * c;
    for k in 0..n {
        let (a, b) = (matrix[k * n + p], matrix[k * n + q]);
        (matrix[k * n + p], matrix[k * n + q]) = (c * a - s * b, s * a + c * b);
    }
    for values in [&mut *matrix, vectors] {
        for k in 0..n {
            let (a, b) = (values[p * n + k], values[q * n + k]);
            (values[p * n + k], values[q * n + k]) = (c * a - s * b, s * a + c * b);
        }
    }
}

/// The largest singular value of a matrix, σ = leftᵀ·W·right.
#[derive(Clone, Debug)]
pub(crate) struct TopSingular {
    pub(crate) norm: f64,
    pub(crate) left: Vec<f64>,
    pub(crate) right: Vec<f64>,
}

impl TopSingular {
    /// Of a matrix with `n_cols` columns, row after row.
    pub(crate) fn of(matrix: &[f32], n_cols: usize) -> Self {
        let n_rows = matrix.len() / n_cols;
        let at = |i: usize, j: usize| f64::from(matrix[i * n_cols + j]);
        // The smaller of W·Wᵀ and Wᵀ·W.
        let by_rows = n_rows <= n_cols;
        let (n, n_inner) = if by_rows { (n_rows, n_cols) } else { (n_cols, n_rows) };
        let entry = |i: usize, k: usize| if by_rows { at(i, k) } else { at(k, i) };
        let mut gram = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let dot: f64 = (0..n_inner).map(|k| entry(i, k) * entry(j, k)).sum();
                (gram[i * n + j], gram[j * n + i]) = (dot, dot);
            }
        }
        let near = SymmetricEigen::of(gram, n).vector(0).to_vec();
        let mut far: Vec<f64> = (0..n_inner).map(|k| (0..n).map(|i| entry(i, k) * near[i]).sum()).collect();
        let norm = far.iter().map(|value| value * value).sum::<f64>().sqrt();
        far.iter_mut().for_each(|value| *value /= norm.max(f64::MIN_POSITIVE));
        let (left, right) = if by_rows { (near, far) } else { (far, near) };
        Self { norm, left, right }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    #[test]
    fn a_matrix_is_put_together_from_its_parts() {
        for n in [1, 2, 5, 16, 33] {
            let mut rng = Seed::new(1).index(n as u64).rng();
            let mut matrix = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..=i {
                    let value = rng.random_range(-1.0..1.0);
                    (matrix[i * n + j], matrix[j * n + i]) = (value, value);
                }
            }
            let eigen = SymmetricEigen::of(matrix.clone(), n);
            assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1]));
            for i in 0..n {
                for j in 0..n {
                    let sum: f64 =
                        (0..n).map(|k| eigen.values[k] * eigen.vector(k)[i] * eigen.vector(k)[j]).sum();
                    assert!((sum - matrix[i * n + j]).abs() < 1e-12, "{n}: {sum}");
                    let dot: f64 = eigen.vector(i).iter().zip(eigen.vector(j)).map(|(a, b)| a * b).sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
        }
    }

    /// The second difference on n points: 2 − 2cos(kπ/(n + 1)), k = n … 1.
    #[test]
    fn eigenvalues_that_are_known_in_closed_form() {
        for n in [3, 8] {
            let entry = |place: usize| match (place / n).abs_diff(place % n) {
                0 => 2.0,
                1 => -1.0,
                _ => 0.0,
            };
            let eigen = SymmetricEigen::of((0..n * n).map(entry).collect(), n);
            for (k, value) in (1..=n).rev().zip(&eigen.values) {
                let known = 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (n + 1) as f64).cos();
                assert!((value - known).abs() < 1e-12, "{n}: {value} {known}");
            }
        }
    }

    #[test]
    fn diagonal_and_zero_matrices_are_no_trouble() {
        let eigen = SymmetricEigen::of(vec![1.0, 0.0, 0.0, 3.0], 2);
        assert_eq!(
            (eigen.values.as_slice(), eigen.vectors.as_slice()),
            (&[3.0, 1.0][..], &[0.0, 1.0, 1.0, 0.0][..])
        );
        assert_eq!(SymmetricEigen::of(vec![0.0; 9], 3).values, [0.0; 3]);
        assert_eq!(TopSingular::of(&[0.0; 6], 2).norm, 0.0);
    }

    #[test]
    fn no_direction_is_stretched_more_than_the_top_one() {
        let mut rng = Seed::new(2).rng();
        for (n_rows, n_cols) in [(3, 7), (7, 3), (1, 4)] {
            let matrix: Vec<f32> = (0..n_rows * n_cols).map(|_| rng.random_range(-1.0..1.0)).collect();
            let top = TopSingular::of(&matrix, n_cols);
            let product = |left: &[f64], right: &[f64]| -> f64 {
                (0..n_rows * n_cols)
                    .map(|i| left[i / n_cols] * f64::from(matrix[i]) * right[i % n_cols])
                    .sum()
            };
            assert!((product(&top.left, &top.right) - top.norm).abs() < 1e-12);
            for _ in 0..200 {
                let mut unit = |n: usize| {
                    let v: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
                    let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
                    v.into_iter().map(|v| v / norm).collect::<Vec<_>>()
                };
                let (left, right) = (unit(n_rows), unit(n_cols));
                assert!(product(&left, &right).abs() <= top.norm + 1e-12);
            }
        }
    }
}
