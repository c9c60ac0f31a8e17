//! Quantiles and tails of Student's t for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).

use std::f64::consts::FRAC_2_PI;

use super::normal_quantile;

/// More degrees of freedom than this are as good as a normal distribution.
const NORMAL_FROM: usize = 10_000;

/// The quantile of Student's t with `degrees` degrees of freedom: NaN for `p` outside (0, 1) or no degrees.
pub fn student_quantile(p: f64, degrees: usize) -> f64 {
    if !(p > 0.0 && p < 1.0) || degrees == 0 {
        return f64::NAN;
    }
    if degrees >= NORMAL_FROM {
        return normal_quantile(p);
    }
    if p == 0.5 {
        return 0.0;
    }
    // By bisection on the angle θ = atan(t/√ν), in which the distribution is a finite sum.
    let inside = (2.0 * p - 1.0).abs();
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if central_share(middle, degrees) < inside { low = middle } else { high = middle }
    }
    ((0.5 * (low + high)).tan() * (degrees as f64).sqrt()).copysign(p - 0.5)
}

/// P(|T| ≥ |t|) for Student's t with `degrees` degrees of freedom: NaN without any.
pub(crate) fn student_tails(t: f64, degrees: usize) -> f64 {
    if degrees == 0 || t.is_nan() {
        return f64::NAN;
    }
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    (1.0 - central_share(angle, degrees)).clamp(0.0, 1.0)
}

/// P(|T| ≤ √ν·tan θ).
fn central_share(angle: f64, degrees: usize) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let square = cos * cos;
    let is_odd = degrees % 2 == 1;
    // Terms cosᵏθ·(products of even over odd numbers, or the reverse), k from 1 (odd ν) or 0 (even ν), in steps of 2.
    let n_terms = if is_odd { (degrees - 1) / 2 } else { degrees / 2 };
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = 0.0;
    for index in 0..n_terms {
        sum += term;
        let k = 2.0 * index as f64;
        term *= square * if is_odd { (k + 2.0) / (k + 3.0) } else { (k + 1.0) / (k + 2.0) };
    }
    if is_odd { FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles() {
        // R: qt(.95, c(1, 2, 3, 4, 10, 30, 101)), qt(.995, 3).
        let known = [
            (0.95, 1, 6.313_751_514_675_043),
            (0.95, 2, 2.919_985_580_353_726),
            (0.95, 3, 2.353_363_434_801_823),
            (0.95, 4, 2.131_846_786_326_649),
            (0.95, 10, 1.812_461_122_811_676),
            (0.95, 30, 1.697_260_886_593_957),
            (0.995, 3, 5.840_909_309_733_355),
        ];
        for (p, degrees, expected) in known {
            let found = student_quantile(p, degrees);
            assert!((found / expected - 1.0).abs() < 1e-9, "{p}, {degrees}: {found}");
            assert!((student_quantile(1.0 - p, degrees) + found).abs() < 1e-9 * expected);
        }
        for (p, degrees, quantile) in known {
            assert!((student_tails(quantile, degrees) - 2.0 * (1.0 - p)).abs() < 1e-12);
            assert!((student_tails(-quantile, degrees) - 2.0 * (1.0 - p)).abs() < 1e-12);
        }
        assert_eq!(student_tails(0.0, 4), 1.0);
        assert!(student_tails(1.0, 0).is_nan());
        assert_eq!(student_quantile(0.5, 3), 0.0);
        assert!(student_quantile(0.9, 0).is_nan() && student_quantile(1.0, 3).is_nan());
        assert!((student_quantile(0.95, 9_999) - normal_quantile(0.95)).abs() < 1e-3);
    }
}
