//! The Hilbert–Schmidt independence criterion of two samples (Gretton et al. 2005): 0 in expectation for independent ones.

use super::imbalance::kernel;
use crate::net::{Tape, Var};

/// Fewest rows of which it is taken.
const MIN_ROWS: usize = 8;

/// tr(K·H·L·H) / (n − 1)² with Gaussian kernels, for rows of unit length; `None` for too few rows.
pub(super) fn hsic(tape: &mut Tape<'_>, a: Var, b: Var) -> Option<Var> {
    let n_rows = tape.shape(a).0;
    if n_rows < MIN_ROWS {
        return None;
    }
    let (a, b) = (kernel(tape, a, a), kernel(tape, b, b));
    let a = centred(tape, a);
    let product = tape.mul(a, b);
    let total = tape.sum(product);
    Some(tape.scale(total, 1.0 / ((n_rows - 1) as f32).powi(2)))
}

/// H·K·H: rows and columns of a symmetric matrix less their means.
fn centred(tape: &mut Tape<'_>, kernel: Var) -> Var {
    let n_rows = tape.shape(kernel).0.max(1) as f32;
    let column = tape.row_sums(kernel);
    let column = tape.scale(column, 1.0 / n_rows);
    let row = tape.transpose(column);
    let mean = tape.mean(kernel);
    let less_rows = tape.sub(kernel, row);
    let less_both = tape.sub(less_rows, column);
    tape.add(less_both, mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::net::{Layout, Workspace};
    use rand::RngExt;

    /// HSIC of unit vectors with others that are a rotation of them, or independent.
    fn of(depends: bool) -> f32 {
        let mut rng = Seed::new(5).rng();
        let mut angle = || rng.random_range(0.0..std::f32::consts::TAU);
        let angles: Vec<(f32, f32)> = (0..120)
            .map(|_| {
                let (a, b) = (angle(), angle());
                (a, if depends { a + 1.0 } else { b })
            })
            .collect();
        let points = |pick: fn(&(f32, f32)) -> f32| -> Vec<f32> {
            angles.iter().map(pick).flat_map(|angle| [angle.cos(), angle.sin()]).collect()
        };
        let (a, b) = (points(|pair| pair.0), points(|pair| pair.1));
        let layout = Layout::builder().finish().unwrap();
        let value = Workspace::default().value(&layout, &[], |tape| {
            let (a, b) = (tape.constant(120, 2, &a), tape.constant(120, 2, &b));
            hsic(tape, a, b).unwrap()
        });
        value.unwrap()[0]
    }

    #[test]
    fn dependence_is_seen_and_independence_is_near_zero() {
        let (dependent, independent) = (of(true), of(false));
        assert!(dependent > 0.05 && independent.abs() < 0.1 * dependent, "{dependent} {independent}");
    }
}
