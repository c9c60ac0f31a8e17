//! Numbers by seed: SplitMix64, which no update of a dependency changes, so that a seed names its input for good.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, which counts as 1 where it is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n`.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of several, of which there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// About normal, with mean 0 and deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Puts values in another order.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end + 1));
        }
    }
}

/// The seed of one execution: it names the input together with the target.
pub(crate) fn seed_of(root: u64, target: &str, execution: u64) -> u64 {
    let mut seed = Random::new(root).next();
    for byte in target.bytes() {
        seed = Random::new(seed ^ u64::from(byte)).next();
    }
    Random::new(seed ^ execution.wrapping_mul(0xd134_2543_de82_ef95)).next()
}
