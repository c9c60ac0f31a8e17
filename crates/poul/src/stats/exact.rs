//! Sums that do not depend on the order of their terms, nor on who added which of them.

use crate::Result;
use crate::wire::{Reader, Wire};

/// A sum and what rounding took from it (Kahan and Babuška's, as Neumaier wrote it): off by about the square of the precision of
/// a double, times the number of terms, so that two orders of adding give the same double but for its last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Exact {
    high: f64,
    low: f64,
}

impl Exact {
    #[inline(always)]
    pub(crate) fn add(&mut self, term: f64) {
        let sum = self.high + term;
        // What of `term` arrived; the rest of both is what rounding took (Knuth).
        let arrived = sum - self.high;
        self.low += (self.high - (sum - arrived)) + (term - arrived);
        self.high = sum;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.add(other.high);
        self.low += other.low;
    }

    pub(crate) fn value(&self) -> f64 {
        self.high + self.low
    }
}

impl Wire for Exact {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.high.write(bytes);
        self.low.write(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { high: f64::read(reader)?, low: f64::read(reader)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_order_and_no_cut_changes_the_sum() {
        // Large terms that cancel, with small ones between them: a plain sum keeps none of the small ones.
        let mut terms: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-9).collect();
        let small: f64 = terms.iter().sum();
        terms.extend((1..=500).flat_map(|i| [f64::from(i) * 1e9, f64::from(i) * -1e9]));
        let sum = |terms: &[f64]| {
            let mut sum = Exact::default();
            terms.iter().for_each(|term| sum.add(*term));
            sum
        };
        let whole = sum(&terms).value();
        assert!((whole / small - 1.0).abs() < 1e-12, "{whole} {small}");
        terms.sort_by(f64::total_cmp);
        assert!((sum(&terms).value() - whole).abs() <= 1e-15 * whole);
        for cut in [1, 7, 600, 1999] {
            let mut parts = sum(&terms[cut..]);
            parts.merge(&sum(&terms[..cut]));
            assert!((parts.value() - whole).abs() <= 1e-15 * whole, "{cut}");
        }
    }
}
