//! Rows with about the same predicted effect: what a ranking of buckets needs, and how far a ranking of the rows themselves may be
//! from it.

use crate::stats::Exact;
use crate::wire::wire;

/// The rows of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    /// Control, then treated.
    pub(super) arms: [BucketArm; 2],
    /// Doubly robust scores of both, less their mean over all rows.
    pub(super) score: Values,
    /// The lowest and the highest effect, as keys.
    lowest: u32,
    highest: u32,
}

/// The rows of an arm in a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BucketArm {
    pub(super) mass: Exact,
    /// Outcomes less the mean of the arm.
    pub(super) outcome: Values,
}

/// Values with weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Values {
    /// Σ w·v.
    pub(super) sum: Exact,
    /// The same of the values above 0.
    pub(super) above: f64,
    /// The same of the values below 0.
    pub(super) below: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

wire!(Bucket { arms, score, lowest, highest });
wire!(BucketArm { mass, outcome });
wire!(Values { sum, above, below, least, most });

impl Default for Values {
    fn default() -> Self {
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { sum: Exact::default(), above: 0.0, below: 0.0, least, most }
    }
}

impl Default for Bucket {
    fn default() -> Self {
        Self { arms: Default::default(), score: Values::default(), lowest: u32::MAX, highest: 0 }
    }
}

impl Bucket {
    #[inline(always)]
    pub(super) fn add(&mut self, arm: usize, weight: f64, key: u32, outcome: f64, score: f64) {
        self.arms[arm].mass.add(weight);
        self.arms[arm].outcome.add(weight, outcome);
        self.score.add(weight, score);
        (self.lowest, self.highest) = (self.lowest.min(key), self.highest.max(key));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.arms.iter_mut().zip(&other.arms) {
            own.mass.merge(&other.mass);
            own.outcome.merge(&other.outcome);
        }
        self.score.merge(&other.score);
        (self.lowest, self.highest) = (self.lowest.min(other.lowest), self.highest.max(other.highest));
    }

    /// Whether all rows have the same effect, so that a ranking of rows does not part them either.
    pub(super) fn is_one_tie(&self) -> bool {
        self.lowest >= self.highest
    }
}

impl Values {
    #[inline(always)]
    fn add(&mut self, weight: f64, value: f64) {
        let term = weight * value;
        self.sum.add(term);
        self.above += term.max(0.0);
        self.below += term.min(0.0);
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
    }

    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.above += other.above;
        self.below += other.below;
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
    }
}
