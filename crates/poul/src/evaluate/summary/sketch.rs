//! How predicted effects are distributed: their values and how many rows have each, as finely as fits.
//!
//! Effects are numbers of single precision. Beyond so many different ones their last bits are dropped, one after the other,
//! until what is left fits. A part of the rows never has more different values than all of them, so that how many bits are
//! dropped in the end, and with them the whole sketch, follows from the rows alone: neither order nor parts matter.

use crate::wire::wire;

/// Most different values that are kept.
const MOST_VALUES: usize = 1 << 15;

/// Values of effects with their numbers of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sketch {
    /// How many of the last bits are dropped.
    shift: u32,
    /// By value, ascending.
    values: Vec<u32>,
    rows: Vec<u64>,
}

wire!(Sketch { shift, values, rows });

/// A number of single precision as a whole number, in the same order. Both zeros are one.
#[inline(always)]
pub(super) fn key_of(effect: f32) -> u32 {
    let bits = (effect + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | (1 << 31) }
}

/// The number that has this key.
pub(super) fn effect_of(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

impl Sketch {
    /// Adds the keys of some effects.
    pub(super) fn add(&mut self, mut keys: Vec<u32>) {
        keys.iter_mut().for_each(|key| *key >>= self.shift);
        keys.sort_unstable();
        let mut added = Self { shift: self.shift, ..Self::default() };
        keys.iter().for_each(|key| added.push(*key, 1));
        self.merge(added);
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        let shift = self.shift.max(other.shift);
        self.coarsen(shift);
        other.coarsen(shift);
        let mut both = Self { shift, ..Self::default() };
        let mut own = self.pairs().peekable();
        let mut others = other.pairs().peekable();
        loop {
            let from = match (own.peek(), others.peek()) {
                (Some((a, _)), Some((b, _))) if a <= b => own.next(),
                (_, Some(_)) => others.next(),
                (_, None) => own.next(),
            };
            let Some((value, rows)) = from else { break };
            both.push(value, rows);
        }
        drop(own);
        while both.values.len() > MOST_VALUES {
            both.coarsen(both.shift + 1);
        }
        *self = both;
    }

    /// Cuts the effects into about so many buckets with as many rows each, one for each value where there are fewer: the lowest
    /// key of each bucket, ascending.
    pub(super) fn cut(&self, n_buckets: usize) -> Vec<u32> {
        let lowest = |value: &u32| value << self.shift;
        if self.values.len() <= n_buckets {
            return self.values.iter().map(lowest).collect();
        }
        let n_rows: u64 = self.rows.iter().sum();
        let (mut cuts, mut before, mut is_first) = (Vec::new(), 0, true);
        for (value, rows) in self.pairs() {
            if is_first {
                cuts.push(lowest(&value));
            }
            before += rows;
            is_first = before as u128 * n_buckets as u128 >= cuts.len() as u128 * u128::from(n_rows);
        }
        cuts
    }

    /// An effect in the middle; 0 without rows.
    pub(super) fn middle(&self) -> f64 {
        let half = self.rows.iter().sum::<u64>() / 2;
        let mut before = 0;
        for (value, rows) in self.pairs() {
            before += rows;
            if before > half {
                return f64::from(effect_of(value << self.shift));
            }
        }
        0.0
    }

    fn pairs(&self) -> impl Iterator<Item = (u32, u64)> {
        self.values.iter().copied().zip(self.rows.iter().copied())
    }

    fn push(&mut self, value: u32, rows: u64) {
        match (self.values.last(), self.rows.last_mut()) {
            (Some(last), Some(sum)) if *last == value => *sum += rows,
            _ => {
                self.values.push(value);
                self.rows.push(rows);
            }
        }
    }

    fn coarsen(&mut self, shift: u32) {
        if shift == self.shift {
            return;
        }
        let more = shift - self.shift;
        let mut coarse = Self { shift, ..Self::default() };
        self.pairs().for_each(|(value, rows)| coarse.push(value >> more, rows));
        *self = coarse;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(n: u32) -> Vec<f32> {
        (0..n)
            .map(|i| {
                ((i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 7.0)
                    * if i % 3 == 0 { 1e-3 } else { 1.0 }
            })
            .collect()
    }

    fn sketch(effects: &[f32]) -> Sketch {
        let mut sketch = Sketch::default();
        sketch.add(effects.iter().map(|effect| key_of(*effect)).collect());
        sketch
    }

    #[test]
    fn keys_have_the_order_of_effects() {
        let ascending = [f32::NEG_INFINITY, -2.5, -1e-40, 0.0, 1e-40, 1.0, 2.5, f32::MAX];
        assert!(ascending.windows(2).all(|pair| key_of(pair[0]) < key_of(pair[1])));
        assert!(ascending.iter().all(|effect| effect_of(key_of(*effect)) == *effect));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    #[test]
    fn neither_order_nor_parts_matter() {
        let all = effects(200_000);
        let whole = sketch(&all);
        assert!(whole.shift > 0 && whole.values.len() <= MOST_VALUES, "{}", whole.shift);
        assert_eq!(whole.rows.iter().sum::<u64>(), 200_000);
        let mut backwards = all.clone();
        backwards.reverse();
        for part_rows in [199_999, 40_000, 977] {
            let mut merged = Sketch::default();
            backwards.chunks(part_rows).for_each(|part| merged.merge(sketch(part)));
            assert_eq!(merged, whole, "{part_rows}");
        }
    }

    #[test]
    fn few_values_have_a_bucket_each_and_many_share_evenly() {
        let few = sketch(&[0.5, -1.0, 0.5, 2.0]);
        assert_eq!(few.cut(4096), [-1.0, 0.5, 2.0].map(key_of));
        assert_eq!(few.middle(), 0.5);
        let many = effects(50_000);
        let cuts = sketch(&many).cut(100);
        assert!((95..=100).contains(&cuts.len()), "{}", cuts.len());
        let bucket = |effect: &f32| cuts.partition_point(|cut| *cut <= key_of(*effect));
        let mut rows = vec![0; cuts.len() + 1];
        many.iter().for_each(|effect| rows[bucket(effect)] += 1);
        assert_eq!(rows[0], 0);
        assert!(rows[1..].iter().all(|rows| (300..=800).contains(rows)), "{rows:?}");
    }
}
