//! Standard errors of a forest from groups of trees that share a half-sample: the bootstrap of little bags (Sexton and
//! Laake 2009; Athey, Tibshirani and Wager 2019, sec. 4.1).

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The standard error of a mean of trees, given what each tree adds to it, less the mean: trees in order, groups of
/// equal size.
///
/// The variance between groups has the noise of a finite forest in it, which the variance within groups tells. What
/// is left may be negative: the mean of the positive part of its sampling distribution is taken.
pub(super) fn standard_error(deviations: impl Iterator<Item = f64>, group_trees: usize) -> f64 {
    let size = group_trees as f64;
    let (mut n_groups, mut between, mut within) = (0.0, 0.0, 0.0);
    let (mut sum, mut squares, mut in_group) = (0.0, 0.0, 0);
    for deviation in deviations {
        sum += deviation;
        squares += deviation * deviation;
        in_group += 1;
        if in_group == group_trees {
            let mean = sum / size;
            between += mean * mean;
            within += (squares / size - mean * mean).max(0.0);
            n_groups += 1.0;
            (sum, squares, in_group) = (0.0, 0.0, 0);
        }
    }
    if n_groups == 0.0 || group_trees < 2 {
        return 0.0;
    }
    let between = between / n_groups;
    let noise = within / n_groups / (size - 1.0);
    positive_part(between - noise, between.max(noise) * (2.0 / n_groups).sqrt()).sqrt()
}

/// E[v | v > 0] for v normal with this mean and standard deviation.
fn positive_part(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let ratio = mean / deviation;
    (mean + deviation * hazard(ratio)).max(0.0)
}

/// φ(r) / Φ(r): by Laplace's continued fraction far below 0, by the series of Φ elsewhere.
fn hazard(ratio: f64) -> f64 {
    if ratio < -3.0 {
        let x = -ratio;
        return (1..60).rev().fold(x, |fraction, term| x + f64::from(term) / fraction);
    }
    let density = (-ratio * ratio / 2.0).exp() * FRAC_1_SQRT_2 / PI.sqrt();
    if ratio > 6.0 {
        return density;
    }
    let (mut term, mut sum) = (ratio, ratio);
    for odd in (3..200).step_by(2) {
        term *= ratio * ratio / f64::from(odd);
        sum += term;
    }
    density / (0.5 + density * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_those_of_tables() {
        for (ratio, expected) in
            [(0.0, 0.797_884_560_8), (1.0, 0.287_599_970_9), (-2.0, 2.373_215_532_8), (-4.0, 4.225_607_144_5)]
        {
            assert!((hazard(ratio) - expected).abs() < 1e-8, "{ratio}: {}", hazard(ratio));
        }
        // The two ways meet.
        assert!((hazard(-3.0 - 1e-12) - hazard(-3.0 + 1e-12)).abs() < 1e-9);
    }

    #[test]
    fn groups_that_differ_tell_and_trees_that_differ_do_not() {
        let between = standard_error((0..400).map(|tree| if tree % 4 < 2 { 1.0 } else { -1.0 }), 2);
        assert!((between - 1.0).abs() < 0.05, "{between}");
        let within = standard_error((0..400).map(|tree| if tree % 2 == 0 { 1.0 } else { -1.0 }), 2);
        assert!(within < 0.3, "{within}");
        assert_eq!(standard_error([1.0, 2.0].into_iter(), 1), 0.0);
    }
}
