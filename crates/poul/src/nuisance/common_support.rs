//! Which rows had a real chance of a policy: what can be compared without extrapolation.
//!
//! A row overlaps with policy t where π(t|x) ≥ max(share/10, min(clip, share/4)). A tenth of the share bounds the stabilised
//! weight share/π by 10; below a share of 10 % the clip, .01, is the stricter of the two. It stops at a quarter of the share:
//! of a policy that one row in a hundred gets, no row has a chance much above .01, and all may overlap.

use super::Propensity;

/// The least chance of a policy that is not rare.
const CLIP: f64 = 0.01;
/// The largest stabilised weight.
const MOST_WEIGHT: f64 = 10.0;
/// The same, where the clip decides.
const MOST_WEIGHT_OF_RARE: f64 = 4.0;
/// f32 rounds what was lifted to a floor.
const ROUNDING: f64 = 1e-5;

/// The rows' chances, and the least that counts for each policy.
#[derive(Clone, Debug)]
pub struct CommonSupport<'a> {
    propensity: &'a Propensity,
    least: Vec<f32>,
}

impl<'a> CommonSupport<'a> {
    /// By the weight of each policy's rows.
    pub fn new(propensity: &'a Propensity, mass: &[f64]) -> Self {
        let total: f64 = mass.iter().sum();
        Self { propensity, least: mass.iter().map(|mass| least(mass / total)).collect() }
    }

    /// Whether a row had a real chance of the policy. Panics beyond the last row, as slices do.
    #[inline]
    pub(crate) fn holds(&self, row: usize, policy: usize) -> bool {
        let own = self.propensity.of_row(row, self.least.len())[policy];
        own > 0.0 && own >= self.least[policy]
    }

    /// π of a policy in a row.
    #[inline]
    pub(crate) fn chance(&self, row: usize, policy: usize) -> f64 {
        f64::from(self.propensity.of_row(row, self.least.len())[policy])
    }
}

fn least(share: f64) -> f32 {
    let least = (share / MOST_WEIGHT).max(CLIP.min(share / MOST_WEIGHT_OF_RARE));
    (least * (1.0 + ROUNDING)) as f32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_least_chance_follows_the_share() {
        for (share, expected) in [(0.5, 0.05), (0.1, 0.01), (0.06, 0.01), (0.01, 0.0025)] {
            assert!((f64::from(least(share)) / expected - 1.0).abs() < 1e-4, "{share}: {}", least(share));
        }
    }

    #[test]
    fn rows_without_a_chance_do_not_overlap() {
        // Half of the rows got each: the least chance is .05.
        let table = vec![0.96, 0.04, 0.5, 0.5, 0.04, 0.96, 0.94, 0.06];
        let propensity = Propensity::Rows(Arc::new(table));
        let support = CommonSupport::new(&propensity, &[2.0, 2.0]);
        let of = |policy| (0..4).map(|row| support.holds(row, policy)).collect::<Vec<bool>>();
        assert_eq!(of(0), [true, true, false, true]);
        assert_eq!(of(1), [false, true, true, true]);
    }

    #[test]
    fn everyone_overlaps_with_a_rare_policy_that_anyone_may_get() {
        let policy: Vec<u32> = (0..500).map(|row| u32::from(row % 100 == 0)).collect();
        let propensity = Propensity::shares(&policy, None, 2);
        let support = CommonSupport::new(&propensity, &[495.0, 5.0]);
        assert!((0..500).all(|row| support.holds(row, 0) && support.holds(row, 1)));
        // A policy without rows has no chance anywhere.
        let none = Propensity::shares(&policy, None, 3);
        assert!(!CommonSupport::new(&none, &[495.0, 5.0, 0.0]).holds(0, 2));
    }
}
