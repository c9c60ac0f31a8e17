//! The normal distribution function, and what a normal gain is worth if it may be declined.

use std::f64::consts::PI;

/// P(Z ≤ z), by the series of Marsaglia (2004).
pub(crate) fn normal_below(z: f64) -> f64 {
    if z.abs() > 8.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut n) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() && n < 400.0 {
        n += 2.0;
        term *= z * z / n;
        sum += term;
    }
    (0.5 + sum * density(z)).clamp(0.0, 1.0)
}

/// E[max(0, D)] of a normal D.
pub(crate) fn expected_gain(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let z = mean / deviation;
    (mean * normal_below(z) + deviation * density(z)).max(0.0)
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // R: pnorm.
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-1.959_963_984_540_054, 0.025),
            (5.0, 0.999_999_713_348_428),
        ] {
            assert!((normal_below(z) - p).abs() < 1e-12, "{z}: {}", normal_below(z));
        }
        assert!((expected_gain(0.0, 2.0) - 2.0 * 0.398_942_280_401_433).abs() < 1e-12);
        assert_eq!((expected_gain(3.0, 0.0), expected_gain(-3.0, 0.0)), (3.0, 0.0));
        assert!(expected_gain(-1.0, 1.0) > 0.0 && expected_gain(9.0, 1.0) >= 9.0);
    }
}
