//! Count, mean, variance and range in one stable pass, merged block by block (Chan, Golub & LeVeque).

/// Values looked at together; small enough for the first cache.
pub(super) const BLOCK: usize = 1024;
const LANES: usize = 8;

/// The moments of the values seen so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) n: u64,
    pub(super) mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Moments {
    pub(super) fn new() -> Self {
        Self { n: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Adds at most [`BLOCK`] finite values.
    pub(super) fn add(&mut self, values: &[f64]) {
        if values.is_empty() {
            return;
        }
        let n = values.len() as f64;
        let mean = sum(values, |value| value) / n;
        let squares = sum(values, |value| (value - mean) * (value - mean));
        let (min, max) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| (value.min(min), value.max(max)));
        self.merge(&Self { n: values.len() as u64, mean, squares, min, max });
    }

    fn merge(&mut self, other: &Self) {
        let n = (self.n + other.n) as f64;
        let shift = other.mean - self.mean;
        let share = other.n as f64 / n;
        self.squares += other.squares + shift * shift * self.n as f64 * share;
        self.mean += shift * share;
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The standard deviation, dividing by n.
    pub(super) fn sd(&self) -> f64 {
        if self.n == 0 { 0.0 } else { (self.squares / self.n as f64).sqrt() }
    }
}

/// A sum in lanes: quick, and always in the same order.
fn sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|value| term(*value)).sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += term(*value);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_stable_far_from_zero() {
        let values: Vec<f64> = (0..5000).map(|i| 1e9 + f64::from(i % 10)).collect();
        let mut moments = Moments::new();
        values.chunks(BLOCK).for_each(|block| moments.add(block));
        assert_eq!(moments.n, 5000);
        assert!((moments.mean - (1e9 + 4.5)).abs() < 1e-6);
        assert!((moments.sd() - 8.25_f64.sqrt()).abs() < 1e-6);
        assert_eq!((moments.min, moments.max), (1e9, 1e9 + 9.0));
    }
}
