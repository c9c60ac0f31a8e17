//! How far areas under a ranking of buckets may be from those under the ranking of the rows.
//!
//! At the ends of buckets both curves are the same. Within a bucket, whatever the order of its rows, the sum of any first rows
//! lies between that of all values below 0 and that of all above, and no mean of them leaves the range of the values. So the
//! curve lies in a band, and the areas differ by no more than what the bands hold. A bucket whose rows all have one effect adds
//! nothing.

use super::buckets::{Bucket, Values};

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

/// Bounds on |value by buckets − value by rows|.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// Of the area under G, over n.
    pub(super) gain: f64,
    /// Of the area under Q.
    pub(super) qini: f64,
    /// Of AUTOC.
    pub(super) autoc: f64,
    /// Of the QINI of RATE.
    pub(super) rate_qini: f64,
}

/// The rows before and within a bucket.
struct Step<'a> {
    /// Weight and Σ w·v before it.
    mass: f64,
    sum: f64,
    /// Weight within it.
    own: f64,
    values: &'a Values,
    scale: f64,
}

/// `buckets` from the highest effects to the lowest; `effect` is the difference of the arms' means, and `scale` what weights are
/// multiplied by.
pub(super) fn bounds<'a>(buckets: impl Iterator<Item = &'a Bucket>, effect: f64, scale: f64) -> Bounds {
    let (mut mass, mut sum, mut score) = ([0.0; 2], [0.0; 2], 0.0);
    let (mut gain, mut qini) = (Pending::default(), Pending::default());
    let mut bounds = Bounds::default();
    for bucket in buckets {
        let own = [0, 1].map(|arm| scale * bucket.arms[arm].mass.value());
        let step = |arm: usize| {
            let values = &bucket.arms[arm].outcome;
            Step { mass: mass[arm], sum: sum[arm], own: own[arm], values, scale }
        };
        let means = [step(0).means(), step(1).means()];
        let (k, within) = (mass[0] + mass[1], own[0] + own[1]);
        let is_known = |arm: usize| mass[arm] + own[arm] > 0.0;
        if is_known(0) && is_known(1) {
            let lift =
                Range { low: means[1].low - means[0].high, high: means[1].high - means[0].low }.plus(effect);
            gain.add(
                within,
                Range { low: k, high: k + within }.times(lift),
                bucket,
                mass[0] > 0.0 && mass[1] > 0.0,
            );
        } else {
            gain.wait(within, bucket);
        }
        if is_known(0) {
            let treated = step(1).sums();
            let rest = Range { low: mass[1], high: mass[1] + own[1] }.times(means[0].negative().plus(effect));
            let q = Range { low: treated.low + rest.low, high: treated.high + rest.high };
            qini.add(within, q, bucket, mass[0] > 0.0);
        } else {
            qini.wait(within, bucket);
        }
        if !bucket.is_one_tie() {
            let step = Step { mass: k, sum: score, own: within, values: &bucket.score, scale };
            bounds.autoc += within * step.means().size();
            bounds.rate_qini += within * step.sums().size();
        }
        score += scale * bucket.score.sum.value();
        for arm in 0..2 {
            mass[arm] += own[arm];
            sum[arm] += scale * bucket.arms[arm].outcome.sum.value();
        }
    }
    let n = mass[0] + mass[1];
    (bounds.gain, bounds.qini) = (gain.bound / n, qini.bound);
    bounds.autoc /= n;
    bounds.rate_qini /= n * n;
    bounds
}

/// Bounds of a curve that is a line from the origin until both of its arms are known.
#[derive(Default)]
struct Pending {
    /// Weight so far, and whether a bucket so far parts its rows.
    waiting: f64,
    is_parted: bool,
    bound: f64,
}

impl Pending {
    fn wait(&mut self, within: f64, bucket: &Bucket) {
        self.waiting += within;
        self.is_parted |= !bucket.is_one_tie();
    }

    /// `was_known`: already before this bucket.
    fn add(&mut self, within: f64, range: Range, bucket: &Bucket, was_known: bool) {
        if was_known {
            if !bucket.is_one_tie() {
                self.bound += within * range.size();
            }
            return;
        }
        self.wait(within, bucket);
        if self.is_parted {
            self.bound += self.waiting * range.with_zero().size();
        }
    }
}

impl Step<'_> {
    /// Where the mean of the rows before and any first rows of the bucket may lie.
    fn means(&self) -> Range {
        let Values { above, below, least, most, .. } = *self.values;
        if self.own <= 0.0 {
            let mean = if self.mass > 0.0 { self.sum / self.mass } else { 0.0 };
            return Range { low: mean, high: mean };
        }
        // The most that c of the rows can add is c·most, and no more than what is above 0; a mean is then greatest where one of
        // them gives way to the other, or at an end.
        let extreme = |limit: f64, best: f64| {
            let turn = if best != 0.0 { (limit / best).clamp(0.0, self.own) } else { 0.0 };
            let mean = move |c: f64| {
                let added = if best > 0.0 { limit.min(c * best) } else { limit.max(c * best) };
                (self.sum + added) / (self.mass + c)
            };
            let at_start = if self.mass > 0.0 { self.sum / self.mass } else { best };
            [at_start, if self.mass + turn > 0.0 { mean(turn) } else { best }, mean(self.own)]
        };
        let greatest = if most > 0.0 { extreme(self.scale * above, most) } else { self.all_alike(most) };
        let smallest = if least < 0.0 { extreme(self.scale * below, least) } else { self.all_alike(least) };
        Range {
            low: smallest.into_iter().fold(f64::INFINITY, f64::min),
            high: greatest.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The means at both ends if every row had this value.
    fn all_alike(&self, value: f64) -> [f64; 3] {
        let end = (self.sum + self.own * value) / (self.mass + self.own);
        [if self.mass > 0.0 { self.sum / self.mass } else { value }, end, end]
    }

    /// Where the sum may lie.
    fn sums(&self) -> Range {
        Range {
            low: self.sum + self.scale * self.values.below,
            high: self.sum + self.scale * self.values.above,
        }
    }
}

impl Range {
    fn size(self) -> f64 {
        self.high - self.low
    }

    fn plus(self, number: f64) -> Self {
        Self { low: self.low + number, high: self.high + number }
    }

    fn negative(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    fn times(self, other: Self) -> Self {
        let ends =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        Self {
            low: ends.into_iter().fold(f64::INFINITY, f64::min),
            high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    fn with_zero(self) -> Self {
        Self { low: self.low.min(0.0), high: self.high.max(0.0) }
    }
}
