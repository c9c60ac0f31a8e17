//! How often each unit enters a bootstrap draw.

use rand::{Rng as _, RngExt};

use crate::Rng;

/// From this many units on, counts are drawn independently.
///
/// A multinomial draw of n from n units has counts that are each nearly Poisson(1) and nearly independent; from a
/// thousand units on, independent Poisson(1) counts (and fair coins for half samples) give the same distribution of
/// any smooth statistic up to O(1/n), and are drawn in sequence instead of by scattered writes.
pub(super) const INDEPENDENT_UNITS: usize = 1000;

/// Counts of a draw with replacement: multinomial below [`INDEPENDENT_UNITS`], Poisson(1) from there.
pub(super) fn with_replacement(rng: &mut Rng, counts: &mut [u8]) {
    if counts.len() >= INDEPENDENT_UNITS {
        return poisson(rng, counts);
    }
    counts.fill(0);
    for _ in 0..counts.len() {
        let unit = rng.random_range(0..counts.len());
        counts[unit] = counts[unit].saturating_add(1);
    }
}

/// Counts of a draw of half of the units: exactly ⌊n/2⌋ below [`INDEPENDENT_UNITS`], fair coins from there.
pub(super) fn half(rng: &mut Rng, counts: &mut [u8]) {
    if counts.len() >= INDEPENDENT_UNITS {
        for chunk in counts.chunks_mut(64) {
            let bits = rng.next_u64();
            for (bit, count) in chunk.iter_mut().enumerate() {
                *count = ((bits >> bit) & 1) as u8;
            }
        }
        return;
    }
    counts.fill(0);
    let mut wanted = counts.len() / 2;
    let n_units = counts.len();
    for (unit, count) in counts.iter_mut().enumerate() {
        if rng.random_range(0..n_units - unit) < wanted {
            *count = 1;
            wanted -= 1;
        }
    }
}

/// Poisson(1) by inversion: the count is the number of cut points at or below 32 random bits.
fn poisson(rng: &mut Rng, counts: &mut [u8]) {
    const LANES: usize = 64;
    let mut bits = [0_u32; LANES];
    let mut found = [0_u32; LANES];
    for chunk in counts.chunks_mut(LANES) {
        for pair in bits.chunks_exact_mut(2) {
            let word = rng.next_u64();
            pair[0] = word as u32;
            pair[1] = (word >> 32) as u32;
        }
        found.fill(0);
        for cut in POISSON_CUTS {
            for (found, bits) in found.iter_mut().zip(&bits) {
                *found += u32::from(*bits >= cut);
            }
        }
        for (count, found) in chunk.iter_mut().zip(&found) {
            *count = *found as u8;
        }
    }
}

/// 2³² · P(N ≤ j) for j = 0, 1, …, rounded; beyond the last the chance is below 2⁻³².
const POISSON_CUTS: [u32; 12] = poisson_cuts();

const fn poisson_cuts() -> [u32; 12] {
    let mut cuts = [0; 12];
    let mut probability = 0.367_879_441_171_442_33_f64;
    let mut below = 0.0;
    let mut j = 0;
    while j < cuts.len() {
        below += probability;
        cuts[j] = (below * 4_294_967_296.0 + 0.5) as u32;
        probability /= (j + 1) as f64;
        j += 1;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn moments(counts: &[u8]) -> (f64, f64) {
        let n = counts.len() as f64;
        let mean = counts.iter().map(|count| f64::from(*count)).sum::<f64>() / n;
        let square = counts.iter().map(|count| f64::from(*count).powi(2)).sum::<f64>() / n;
        (mean, square - mean * mean)
    }

    #[test]
    fn many_units_are_poisson() {
        let mut counts = vec![0; 1_000_000];
        with_replacement(&mut Seed::new(2).rng(), &mut counts);
        let (mean, variance) = moments(&counts);
        assert!((mean - 1.0).abs() < 0.005 && (variance - 1.0).abs() < 0.01, "{mean} {variance}");
        let mut factorial = 1.0;
        for j in 0..6_u8 {
            factorial *= f64::from(j.max(1));
            let expected = (-1.0_f64).exp() / factorial;
            let found = counts.iter().filter(|count| **count == j).count() as f64 / 1e6;
            assert!((found - expected).abs() < 0.002, "{j}: {found} {expected}");
        }
        half(&mut Seed::new(2).rng(), &mut counts);
        assert!((moments(&counts).0 - 0.5).abs() < 0.003);
    }

    #[test]
    fn few_units_are_drawn_exactly() {
        for n_units in [1, 2, 7, 999] {
            let mut counts = vec![0; n_units];
            with_replacement(&mut Seed::new(3).rng(), &mut counts);
            assert_eq!(counts.iter().map(|count| usize::from(*count)).sum::<usize>(), n_units);
            half(&mut Seed::new(3).rng(), &mut counts);
            assert_eq!(counts.iter().map(|count| usize::from(*count)).sum::<usize>(), n_units / 2);
        }
    }
}
