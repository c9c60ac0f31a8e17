//! The least of ½βᵀHβ + qᵀβ over β ≥ 0, Σβ = 1, by active sets: exact but for rounding.
//!
//! From the best corner on, the coordinate whose gradient is least below the multiplier joins those that are free; the free
//! ones move to their own least, and one that would turn negative on the way is bound again. Every full step lowers the
//! objective, so that no set comes twice.

use super::cholesky::{Cholesky, dot};

/// What makes H strictly convex, in units of its mean diagonal: members that say the same share their weight.
const RIDGE: f64 = 1e-10;
/// How far below the multiplier a gradient counts, in units of the largest.
const TOLERANCE: f64 = 1e-12;

/// The weights; H is n × n, symmetric and positive semidefinite, row after row.
pub(crate) fn least_on_simplex(hessian: &[f64], linear: &[f64]) -> Vec<f64> {
    let n = linear.len();
    let mean: f64 = (0..n).map(|k| hessian[k * n + k]).sum::<f64>() / n.max(1) as f64;
    let ridge = (RIDGE * mean).max(f64::MIN_POSITIVE.sqrt());
    let entry = |a: usize, b: usize| hessian[a * n + b] + if a == b { ridge } else { 0.0 };
    let corner = |k: usize| 0.5 * entry(k, k) + linear[k];
    let first = (0..n).min_by(|a, b| corner(*a).total_cmp(&corner(*b))).unwrap_or(0);
    let mut weights = vec![0.0; n];
    let mut free = vec![first];
    if let Some(weight) = weights.get_mut(first) {
        *weight = 1.0;
    }
    let scale = (0..n).map(|k| entry(k, k).abs().max(linear[k].abs())).fold(0.0, f64::max);
    // Each set is visited once at most; the bound is for rounding alone.
    for _ in 0..100 * n {
        // The free coordinates at their least, by steps within the simplex.
        while let Some(target) = least_of_free(&entry, linear, &free) {
            let step = free
                .iter()
                .zip(&target)
                .filter(|(_, to)| **to <= 0.0)
                .map(|(k, to)| weights[*k] / (weights[*k] - to))
                .fold(1.0, f64::min);
            for (k, to) in free.iter().zip(&target) {
                weights[*k] += step * (to - weights[*k]);
            }
            if step >= 1.0 && target.iter().all(|to| *to > 0.0) {
                break;
            }
            // What hit the boundary is bound: at least one does.
            let least = free.iter().map(|k| weights[*k]).fold(f64::MAX, f64::min).max(0.0);
            free.retain(|k| {
                let stays = weights[*k] > least + f64::EPSILON;
                if !stays {
                    weights[*k] = 0.0;
                }
                stays
            });
            if free.len() < 2 {
                break;
            }
        }
        if let [only] = free[..] {
            weights[only] = 1.0;
        }
        let gradient =
            |k: usize| linear[k] + (0..n).map(|other| entry(k, other) * weights[other]).sum::<f64>();
        let multiplier: f64 = free.iter().map(|k| weights[*k] * gradient(*k)).sum();
        let bound = (0..n).filter(|k| !free.contains(k));
        let steepest = bound.map(|k| (gradient(k), k)).min_by(|a, b| a.0.total_cmp(&b.0));
        match steepest {
            Some((slope, k)) if slope < multiplier - TOLERANCE * scale => free.push(k),
            _ => break,
        }
        free.sort_unstable();
    }
    weights
}

/// Where the objective of the free coordinates is least with sum 1, whatever their signs.
fn least_of_free(entry: &impl Fn(usize, usize) -> f64, linear: &[f64], free: &[usize]) -> Option<Vec<f64>> {
    let n = free.len();
    let matrix = (0..n * n).map(|pair| entry(free[pair / n], free[pair % n])).collect();
    let system = Cholesky::new(matrix, n)?;
    let (mut ones, mut slopes) = (vec![1.0; n], free.iter().map(|k| linear[*k]).collect::<Vec<f64>>());
    system.solve(&mut ones);
    system.solve(&mut slopes);
    let unit = vec![1.0; n];
    let multiplier = (1.0 + dot(&slopes, &unit)) / dot(&ones, &unit);
    Some(ones.iter().zip(&slopes).map(|(one, slope)| multiplier * one - slope).collect())
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    fn value(hessian: &[f64], linear: &[f64], at: &[f64]) -> f64 {
        let n = linear.len();
        let rows = (0..n).map(|k| at[k] * dot(&hessian[k * n..][..n], at)).sum::<f64>();
        0.5 * rows + dot(linear, at)
    }

    #[test]
    fn the_least_is_that_of_a_fine_grid() {
        let mut rng = Seed::new(9).rng();
        for case in 0..200 {
            let n = 3;
            let roots: Vec<f64> = (0..n * 4).map(|_| rng.random_range(-1.0..1.0)).collect();
            let hessian: Vec<f64> = (0..n * n)
                .map(|pair| (0..4).map(|k| roots[pair / n * 4 + k] * roots[pair % n * 4 + k]).sum())
                .collect();
            let linear: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
            let found = least_on_simplex(&hessian, &linear);
            assert!(found.iter().all(|own| *own >= 0.0), "{case}: {found:?}");
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{case}: {found:?}");
            let own = value(&hessian, &linear, &found);
            let steps = 200;
            for i in 0..=steps {
                for j in 0..=steps - i {
                    let at = [i, j, steps - i - j].map(|part| part as f64 / steps as f64);
                    assert!(own < value(&hessian, &linear, &at) + 1e-8, "{case}: {found:?} {at:?}");
                }
            }
        }
    }

    #[test]
    fn the_conditions_of_the_least_hold_with_many_members() {
        let mut rng = Seed::new(10).rng();
        for case in 0..50 {
            let n = 2 + case % 20;
            let roots: Vec<f64> = (0..n * 30).map(|_| rng.random_range(-1.0..1.0)).collect();
            let row = |k: usize| &roots[k * 30..][..30];
            let hessian: Vec<f64> = (0..n * n).map(|pair| dot(row(pair / n), row(pair % n))).collect();
            let linear: Vec<f64> = (0..n).map(|_| rng.random_range(-5.0..5.0)).collect();
            let found = least_on_simplex(&hessian, &linear);
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let gradient: Vec<f64> =
                (0..n).map(|k| linear[k] + dot(&hessian[k * n..][..n], &found)).collect();
            let multiplier = dot(&gradient, &found);
            for (own, slope) in found.iter().zip(&gradient) {
                assert!(*own >= 0.0 && *slope > multiplier - 1e-6, "{case}: {found:?} {gradient:?}");
            }
        }
    }

    #[test]
    fn members_that_say_the_same_share_their_weight() {
        let hessian = [2.0, 2.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 2.0];
        let found = least_on_simplex(&hessian, &[0.0; 3]);
        for (found, expected) in found.iter().zip([0.25, 0.25, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_eq!(least_on_simplex(&[0.0; 4], &[0.0, 1.0]), [1.0, 0.0]);
        assert_eq!(least_on_simplex(&[3.0], &[-1.0]), [1.0]);
    }
}
