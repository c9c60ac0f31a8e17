//! Gradients and curvatures as whole numbers, both in one: a sum by bin is one addition, exact, and so the same whatever the
//! order of rows or the number of threads.

use rayon::prelude::*;

/// Rows whose sums fit: 2¹⁴ rows of at most 17 bits and a sign, or of 18 bits, stay within half a word each.
pub(super) const BLOCK_ROWS: usize = 1 << 14;
const MOST_GRADIENT: f64 = ((1_u64 << 17) - 1) as f64;
const MOST_CURVATURE: f64 = ((1_u64 << 18) - 1) as f64;

/// The derivatives of all rows, in units of their largest.
pub(super) struct Quantised {
    /// gradient · 2³² + curvature of each row.
    pub(super) packed: Vec<i64>,
    /// What a curvature of 1 counts.
    pub(super) curvature_unit: f64,
}

impl Quantised {
    /// None where all gradients are smaller than `least`, or no row has a curvature: there is nothing left to fit.
    pub(super) fn new(derivatives: &[[f32; 2]], least: f32, mut packed: Vec<i64>) -> Option<Self> {
        let [gradient, curvature] = derivatives
            .par_chunks(BLOCK_ROWS)
            .map(|rows| {
                rows.iter().fold([0.0_f32; 2], |most, own| [most[0].max(own[0].abs()), most[1].max(own[1])])
            })
            .reduce(|| [0.0; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
        if !(gradient > least && curvature > 0.0 && gradient.is_finite() && curvature.is_finite()) {
            return None;
        }
        let units = [MOST_GRADIENT / f64::from(gradient), MOST_CURVATURE / f64::from(curvature)];
        packed.resize(derivatives.len(), 0);
        packed.par_chunks_mut(BLOCK_ROWS).zip(derivatives.par_chunks(BLOCK_ROWS)).for_each(
            |(packed, own)| {
                for (packed, [gradient, curvature]) in packed.iter_mut().zip(own) {
                    let gradient = rounded(f64::from(*gradient) * units[0]);
                    let curvature = rounded(f64::from(*curvature) * units[1]);
                    *packed = (gradient << 32) + curvature;
                }
            },
        );
        Some(Self { packed, curvature_unit: units[1] })
    }
}

/// Gradient and curvature of a packed sum.
#[inline(always)]
pub(super) fn unpacked(sum: i64) -> [f64; 2] {
    [(sum >> 32) as f64, (sum & 0xffff_ffff) as f64]
}

/// To the nearest whole number, halves away from 0.
#[inline(always)]
fn rounded(value: f64) -> i64 {
    (value + 0.5_f64.copysign(value)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_parts() {
        let derivatives: Vec<[f32; 2]> =
            (0..BLOCK_ROWS).map(|row| [if row % 3 == 0 { -1.0 } else { 0.999 }, 0.25]).collect();
        let quantised = Quantised::new(&derivatives, 0.0, Vec::new()).unwrap();
        let [gradient, curvature] = unpacked(quantised.packed.iter().sum());
        let expected: f64 = derivatives.iter().map(|own| f64::from(own[0])).sum();
        assert!((gradient / MOST_GRADIENT - expected).abs() < 0.1, "{gradient} {expected}");
        assert_eq!(curvature / quantised.curvature_unit, 0.25 * BLOCK_ROWS as f64);
        let all_down = vec![[-2.0, 1.0]; BLOCK_ROWS];
        let quantised = Quantised::new(&all_down, 0.0, Vec::new()).unwrap();
        let sums = unpacked(quantised.packed.iter().sum());
        assert_eq!(sums, [-MOST_GRADIENT, MOST_CURVATURE].map(|most| most * BLOCK_ROWS as f64));
    }

    #[test]
    fn nothing_is_left_of_rows_that_fit() {
        assert!(Quantised::new(&[[1e-9, 1.0], [0.0, 1.0]], 1e-6, Vec::new()).is_none());
        assert!(Quantised::new(&[[1.0, 0.0]], 1e-6, Vec::new()).is_none());
        assert!(Quantised::new(&[], 1e-6, Vec::new()).is_none());
    }
}
