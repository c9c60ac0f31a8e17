//! Many comparisons at once: simultaneous bands, p-values, false-discovery rates.
//!
//! The band is that of max-t: the level quantile of max_k |Z_k| with Z ~ N(0, R), R the correlation of the estimates. That
//! is the Gaussian multiplier bootstrap of the studentised influence functions (Chernozhukov, Chetverikov and Kato 2013):
//! given the data, the multiplied sums are normal with just this correlation, so it is enough to draw from N(0, R).
//! Where R is not known, Šidák's quantile holds for any R (Šidák 1967), and is exact for independent estimates.
//!
//! False discoveries are controlled by Benjamini and Hochberg (1995). Comparisons with one control are positively
//! dependent, for which it holds (Benjamini and Yekutieli 2001); their own correction for any dependence costs a factor
//! of log K and is not applied.

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::stats::chi_square::upper_tail;
use crate::stats::{normal_quantile, semidefinite_factor};
use crate::{Rng, Seed};

const DRAWS: usize = 10_000;

/// Two-sided p-value of an estimate.
pub(in crate::evaluate) fn p_value(effect: f64, se: f64) -> Option<f64> {
    (se > 0.0).then(|| upper_tail((effect / se).powi(2), 1))
}

/// The number of standard errors within which all of `n` estimates are with probability `level`, at least.
pub(crate) fn sidak_quantile(n: usize, level: f64) -> f64 {
    let each = level.powf(1.0 / n.max(1) as f64);
    normal_quantile(0.5 + each / 2.0)
}

/// The same for estimates with the covariance `covariance`, K × K.
pub(crate) fn max_t_quantile(covariance: &[f64], n: usize, level: f64, seed: Seed) -> f64 {
    if n <= 1 {
        return sidak_quantile(n, level);
    }
    let factor = semidefinite_factor(&correlation(covariance, n), n);
    let mut largest: Vec<f64> = Vec::with_capacity(DRAWS);
    let mut rng: Rng = seed.rng();
    let mut normal = vec![0.0; n];
    for _ in 0..DRAWS {
        normal.iter_mut().for_each(|value| *value = rng.sample(StandardNormal));
        let of =
            |row: usize| factor[row * n..][..=row].iter().zip(&normal).map(|(a, b)| a * b).sum::<f64>().abs();
        largest.push((0..n).map(of).fold(0.0, f64::max));
    }
    let place = ((level * DRAWS as f64).ceil() as usize).clamp(1, DRAWS) - 1;
    *largest.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Benjamini and Hochberg's adjusted p-values: the false-discovery rate at which each is found.
pub(super) fn q_values(p_values: &[f64]) -> Vec<f64> {
    let n = p_values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| p_values[*b].total_cmp(&p_values[*a]));
    let mut q_values = vec![1.0; n];
    let mut least: f64 = 1.0;
    for (place, index) in order.into_iter().enumerate() {
        let rank = n - place;
        least = least.min(p_values[index] * n as f64 / rank as f64);
        q_values[index] = least;
    }
    q_values
}

fn correlation(covariance: &[f64], n: usize) -> Vec<f64> {
    let sd: Vec<f64> = (0..n).map(|k| covariance[k * n + k].sqrt()).collect();
    let mut correlation = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..n {
            let size = sd[row] * sd[column];
            let value = if size > 0.0 { covariance[row * n + column] / size } else { 0.0 };
            correlation[row * n + column] = if row == column { 1.0 } else { value };
        }
    }
    correlation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_band_follows_the_correlation() {
        let n = 5;
        let of = |share: f64| -> Vec<f64> {
            (0..n * n).map(|k| if k / n == k % n { 4.0 } else { 4.0 * share }).collect()
        };
        let quantile = |share| max_t_quantile(&of(share), n, 0.9, Seed::new(1));
        // Independent: Šidák's; the same estimate five times: that of one; between them in between.
        assert!((quantile(0.0) - sidak_quantile(n, 0.9)).abs() < 0.05);
        assert!((quantile(1.0) - normal_quantile(0.95)).abs() < 0.05);
        assert!(quantile(0.5) < quantile(0.0) - 0.02 && quantile(0.5) > quantile(1.0) + 0.3);
        assert_eq!(quantile(0.5), quantile(0.5));
        assert!((max_t_quantile(&[1.0], 1, 0.9, Seed::new(1)) - 1.644_853_6).abs() < 1e-6);
    }

    #[test]
    fn q_values_are_those_of_r() {
        // R: p.adjust(c(.01, .04, .03, .005, .8), "BH").
        let q = q_values(&[0.01, 0.04, 0.03, 0.005, 0.8]);
        let known = [0.025, 0.05, 0.05, 0.025, 0.8];
        assert!(q.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-12), "{q:?}");
        assert!(q_values(&[]).is_empty());
    }

    #[test]
    fn p_values_are_two_sided() {
        assert!((p_value(1.959_963_985, 1.0).unwrap() - 0.05).abs() < 1e-9);
        assert!((p_value(-2.0 * 1.959_963_985, 2.0).unwrap() - 0.05).abs() < 1e-9);
        assert_eq!(p_value(0.0, 1.0), Some(1.0));
        assert_eq!(p_value(1.0, 0.0), None);
        let far = p_value(10.0, 1.0).unwrap();
        assert!((far / 1.523_970_6e-23 - 1.0).abs() < 1e-6, "{far}");
    }
}
