//! Dropout masks that are computed, never stored: the fate of an element is a hash of the stream and its position.

use crate::dispatch::kernels;

kernels! {
    /// y (+)= x where kept, scaled by `scale`; 0 elsewhere.
    ///
    /// An element is kept if the hash of `key` and of its position, counted from `first`, is below `threshold`. The
    /// same call with gradients for values is the derivative.
    fn dropout(
        key: u64,
        first: u32,
        threshold: u32,
        scale: f32,
        x: &[f32],
        y: &mut [f32],
        accumulate: bool,
    ) {
        let (low, high) = (key as u32, (key >> 32) as u32);
        if accumulate {
            for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
                let factor = if hash(first.wrapping_add(i as u32), low, high) < threshold { scale } else { 0.0 };
                *y += x * factor;
            }
        } else {
            for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
                let factor = if hash(first.wrapping_add(i as u32), low, high) < threshold { scale } else { 0.0 };
                *y = x * factor;
            }
        }
    }
}

/// Two rounds of a 32-bit finaliser, one for each half of the key.
#[inline(always)]
fn hash(position: u32, low: u32, high: u32) -> u32 {
    finalise(finalise(position.wrapping_mul(0x9e37_79b1) ^ low).wrapping_add(high))
}

/// A bijection of 32 bits whose every output bit depends on every input bit (Wellons' "lowbias32").
#[inline(always)]
fn finalise(value: u32) -> u32 {
    let mut h = value;
    h = (h ^ (h >> 16)).wrapping_mul(0x7feb_352d);
    h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(key: u64, first: u32, n: usize) -> Vec<f32> {
        let mut y = vec![0.0; n];
        dropout(key, first, (0.7 * 4_294_967_296.0) as u32, 1.0, &vec![1.0; n], &mut y, false);
        y
    }

    #[test]
    fn the_share_kept_is_right_and_positions_and_keys_are_unrelated() {
        let n = 100_000;
        let (a, b, shifted) = (mask(1, 0, n), mask(2, 0, n), mask(1, 1, n));
        let mean = |y: &[f32]| y.iter().map(|y| f64::from(*y)).sum::<f64>() / n as f64;
        let both =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>() / n as f64;
        // Five standard errors.
        assert!((mean(&a) - 0.7).abs() < 5.0 * (0.21 / n as f64).sqrt());
        for other in [&b, &shifted] {
            assert!((both(&a, other) - 0.49).abs() < 5.0 * (0.25 / n as f64).sqrt());
        }
        assert_eq!(a[1..], shifted[..n - 1]);
    }
}
