//! Exponential, logarithm and what is made of them, without branches, so that loops over them vectorise.
//!
//! The polynomials are those of the Cephes library (single precision); errors are below 3 units in the last place
//! of the larger of the result and the terms it is a difference of.

/// 1.5 · 2²³: adding it rounds a small number to an integer held in the low bits.
const ROUNDING: f32 = 12_582_912.0;
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// eˣ, held within the range of normal numbers.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.336, 88.37);
    let rounded = x * std::f32::consts::LOG2_E + ROUNDING;
    let power = rounded - ROUNDING;
    let r = x - power * LN_2_HIGH - power * LN_2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_6e-1;
    let p = p * r + 0.5;
    let mantissa = p * r * r + r + 1.0;
    let exponent = rounded.to_bits().wrapping_sub(ROUNDING.to_bits()).wrapping_add(127);
    mantissa * f32::from_bits(exponent << 23)
}

/// Natural logarithm; −∞ at 0, NaN below.
#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    // Split x = m · 2ᵉ with m in [√½, √2).
    let offset = x.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = (offset as i32) >> 23;
    let f = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let e = exponent as f32;
    let z = f * f;
    let p = 7.037_683_6e-2;
    let p = p * f - 1.151_461e-1;
    let p = p * f + 1.167_699_9e-1;
    let p = p * f - 1.242_014_1e-1;
    let p = p * f + 1.424_932_3e-1;
    let p = p * f - 1.666_805_7e-1;
    let p = p * f + 2.000_071_5e-1;
    let p = p * f - 2.499_999_4e-1;
    let p = p * f + 3.333_333e-1;
    let y = p * f * z + e * LN_2_LOW - 0.5 * z;
    let y = f + y + e * LN_2_HIGH;
    let y = if x < f32::MIN_POSITIVE { f32::NEG_INFINITY } else { y };
    let y = if x < f32::INFINITY { y } else { x };
    if x < 0.0 { f32::NAN } else { y }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let size = x.abs();
    let z = x * x;
    let p = -5.704_988_7e-3;
    let p = p * z + 2.063_909e-2;
    let p = p * z - 5.373_971_4e-2;
    let p = p * z + 1.333_144_2e-1;
    let p = p * z - 3.333_328e-1;
    let near = p * z * x + x;
    let far = (1.0 - 2.0 / (exp(2.0 * size) + 1.0)).copysign(x);
    if size < 0.625 { near } else { far }
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// ln(1 + eˣ), without overflow.
#[inline(always)]
pub(super) fn softplus(x: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    positive + ln(1.0 + exp(-x.abs()))
}

/// x above 0, eˣ − 1 below.
#[inline(always)]
pub(super) fn elu(x: f32) -> f32 {
    let below = exp(if x > 0.0 { 0.0 } else { x }) - 1.0;
    if x > 0.0 { x } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_double_precision() {
        type Pair = (fn(f32) -> f32, fn(f64) -> f64);
        let reference: [Pair; 5] = [
            (exp, f64::exp),
            (tanh, f64::tanh),
            (sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
            (softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
            (elu, |x| if x > 0.0 { x } else { x.exp_m1() }),
        ];
        for step in -8000..8000 {
            let x = step as f32 * 0.01;
            for (which, (ours, exact)) in reference.iter().enumerate() {
                let (ours, exact) = (f64::from(ours(x)), exact(f64::from(x)));
                let scale = if which == 0 { exact } else { exact.abs().max(0.5) };
                assert!(
                    (ours - exact).abs() <= 4e-7 * scale,
                    "function {which} at {x}: {ours} against {exact}"
                );
            }
        }
    }

    #[test]
    fn logarithm_is_accurate_over_all_magnitudes_and_honest_outside() {
        let mut x = 1.2e-38_f32;
        while x < 1e38 {
            let (ours, exact) = (f64::from(ln(x)), f64::from(x).ln());
            assert!((ours - exact).abs() <= 3e-7 * exact.abs().max(0.3), "at {x}: {ours} against {exact}");
            x *= 1.0173;
        }
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert!(ln(-1.0).is_nan() && ln(f32::NAN).is_nan());
    }

    #[test]
    fn not_a_number_stays_so() {
        for f in [exp, tanh, sigmoid, softplus, elu] {
            assert!(f(f32::NAN).is_nan());
        }
    }
}
