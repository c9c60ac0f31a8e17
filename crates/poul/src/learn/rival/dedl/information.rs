//! Λ(x) = E[G_θ·G_θᵀ | x], the mean Hessian of ½(Y − G)² in θ, and what residuals are worth under it.
//!
//! The expectation is over policies as they were assigned, so it is a sum over arms: nothing is estimated but θ and, where
//! nobody randomised, π. With K arms and p numbers in θ, Λ = BᵀB for B = D^{1/2}·(G_θ(a))_a; of the p × p system
//! (BᵀB + λI)·u = G_θ(T)·r and the K × K one with BBᵀ the smaller is solved. The latter needs inner products of gradients
//! only: for the sigmoid k(a, b) = θ_{m+1}²·σ′_a·σ′_b·(1 + t_aᵀt_b) + σ_a·σ_b, for the linear link 1 + t_aᵀt_b.

use super::DedlLink;
use crate::stats::{Cholesky, dot};
use crate::{Error, Result};

/// The largest system that is solved for every row.
const MOST_BY_ROW: usize = 256;
/// The largest that is solved once.
const MOST_ONCE: usize = 4096;

/// Refuses what would take hours: one system a row where Λ differs between rows, one for all where it does not.
pub(super) fn check_size(n_arms: usize, n_theta: usize, is_constant: bool) -> Result<()> {
    let most = if is_constant { MOST_ONCE } else { MOST_BY_ROW };
    if n_arms.min(n_theta) <= most {
        return Ok(());
    }
    let what = format!(
        "the averages of {n_arms} policies with {n_theta} numbers for each row cannot be debiased: the smaller must be at \
         most {most}"
    );
    let hint = match is_constant {
        true => "leave averages as they are: `debias = false` under [model]",
        false => "take `link = \"linear\"` in a randomized experiment, or `debias = false`, under [model]",
    };
    Err(Error::input(what).at("learner `dedl`").hint(hint))
}

/// What the arms have in common for all rows.
pub(super) struct Arms<'a> {
    pub(super) link: DedlLink,
    /// Factors of each arm.
    pub(super) factors: &'a [Vec<f64>],
    /// 1 + t_aᵀt_b, arms × arms; empty where the system is that of θ.
    gram: Vec<f64>,
    ridge: f64,
}

impl<'a> Arms<'a> {
    pub(super) fn new(link: DedlLink, factors: &'a [Vec<f64>], ridge: f64) -> Self {
        let n_arms = factors.len();
        let mut arms = Self { link, factors, gram: Vec::new(), ridge };
        if n_arms <= arms.n_theta() {
            let pairs = (0..n_arms * n_arms).map(|pair| (&factors[pair / n_arms], &factors[pair % n_arms]));
            arms.gram = pairs.map(|(a, b)| 1.0 + dot(a, b)).collect();
        }
        arms
    }

    fn n_theta(&self) -> usize {
        let n_factors = self.factors.first().map_or(0, Vec::len);
        n_factors + 1 + usize::from(self.link == DedlLink::Sigmoid)
    }

    /// G_θ of an arm.
    pub(super) fn gradient(&self, arm: usize, at: Point) -> Vec<f64> {
        let (of_index, of_top) = at.slopes(self.link);
        let mut gradient = Vec::with_capacity(self.n_theta());
        gradient.push(of_index);
        gradient.extend(self.factors[arm].iter().map(|factor| of_index * factor));
        gradient.extend(of_top);
        gradient
    }

    /// For each arm a, G_θ(a)ᵀ·Λ⁻¹·Σ_b G_θ(b)·residual_b, where `points` are of a row and `shares` is π(·|x).
    ///
    /// None where the numbers are beyond what can be solved.
    pub(super) fn corrections(&self, points: &[Point], shares: &[f64], residual: &[f64]) -> Option<Vec<f64>> {
        match self.gram.is_empty() {
            false => self.by_arms(points, shares, residual),
            true => self.by_theta(points, shares, residual),
        }
    }

    fn by_arms(&self, points: &[Point], shares: &[f64], residual: &[f64]) -> Option<Vec<f64>> {
        let n_arms = points.len();
        let slopes: Vec<(f64, f64)> = points
            .iter()
            .map(|point| {
                let (of_index, of_top) = point.slopes(self.link);
                (of_index, of_top.unwrap_or(0.0))
            })
            .collect();
        let mut kernel = vec![0.0; n_arms * n_arms];
        for (a, own) in slopes.iter().enumerate() {
            for (b, other) in slopes.iter().enumerate() {
                kernel[a * n_arms + b] = own.0 * other.0 * self.gram[a * n_arms + b] + own.1 * other.1;
            }
        }
        let roots: Vec<f64> = shares.iter().map(|share| share.sqrt()).collect();
        let trace: f64 = (0..n_arms).map(|arm| shares[arm] * kernel[arm * n_arms + arm]).sum();
        let ridge = self.ridge_of(trace);
        let entry = |pair: usize| {
            let (a, b) = (pair / n_arms, pair % n_arms);
            roots[a] * roots[b] * kernel[pair] + if a == b { ridge } else { 0.0 }
        };
        let system = Cholesky::new((0..n_arms * n_arms).map(entry).collect(), n_arms)?;
        // Bᵀ·e_a / √π_a is G_θ(a).
        let weigh = |(residual, root): (&f64, &f64)| if *residual == 0.0 { 0.0 } else { residual / root };
        let mut solved: Vec<f64> = residual.iter().zip(&roots).map(weigh).collect();
        system.solve(&mut solved);
        solved.iter_mut().zip(&roots).for_each(|(own, root)| *own *= root);
        let values: Vec<f64> =
            (0..n_arms).map(|arm| dot(&kernel[arm * n_arms..][..n_arms], &solved)).collect();
        values.iter().all(|value| value.is_finite()).then_some(values)
    }

    fn by_theta(&self, points: &[Point], shares: &[f64], residual: &[f64]) -> Option<Vec<f64>> {
        let n = self.n_theta();
        let (mut matrix, mut solved) = (vec![0.0; n * n], vec![0.0; n]);
        for (arm, (point, (share, residual))) in points.iter().zip(shares.iter().zip(residual)).enumerate() {
            let gradient = self.gradient(arm, *point);
            for (row, value) in gradient.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let scaled = share * value;
                let own = &mut matrix[row * n..][..=row];
                own.iter_mut().zip(&gradient).for_each(|(own, other)| *own += scaled * other);
                solved[row] += residual * value;
            }
        }
        let ridge = self.ridge_of((0..n).map(|row| matrix[row * n + row]).sum());
        (0..n).for_each(|row| matrix[row * n + row] += ridge);
        Cholesky::new(matrix, n)?.solve(&mut solved);
        let of_arm = |(arm, point): (usize, &Point)| dot(&self.gradient(arm, *point), &solved);
        let values: Vec<f64> = points.iter().enumerate().map(of_arm).collect();
        values.iter().all(|value| value.is_finite()).then_some(values)
    }

    /// λ: never 0, so that a row whose levels do not move with θ has no correction.
    fn ridge_of(&self, trace: f64) -> f64 {
        self.ridge * (trace / self.n_theta() as f64).max(1e-12)
    }
}

/// Where a row stands under an arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// θ_0 + Σ_j θ_j·t_j.
    pub(super) index: f64,
    /// θ_{m+1}; not used by the linear link.
    pub(super) top: f64,
}

impl Point {
    /// G.
    pub(super) fn level(self, link: DedlLink) -> f64 {
        match link {
            DedlLink::Linear => self.index,
            DedlLink::Sigmoid => self.top * self.share(),
        }
    }

    fn share(self) -> f64 {
        1.0 / (1.0 + (-self.index).exp())
    }

    /// ∂G by the index, and by θ_{m+1} where there is one.
    fn slopes(self, link: DedlLink) -> (f64, Option<f64>) {
        match link {
            DedlLink::Linear => (1.0, None),
            DedlLink::Sigmoid => {
                let share = self.share();
                (self.top * share * (1.0 - share), Some(share))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THETA: [f64; 4] = [0.3, -0.8, 0.6, 1.7];

    fn point(theta: &[f64], factors: &[f64]) -> Point {
        Point { index: theta[0] + dot(&theta[1..3], factors), top: theta[3] }
    }

    fn factors() -> Vec<Vec<f64>> {
        vec![vec![0.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 1.0], vec![0.5, 0.25]]
    }

    #[test]
    fn gradients_of_levels_are_those_of_finite_differences() {
        let factors = factors();
        for link in [DedlLink::Sigmoid, DedlLink::Linear] {
            let arms = Arms::new(link, &factors, 1e-3);
            for (arm, own) in factors.iter().enumerate() {
                let gradient = arms.gradient(arm, point(&THETA, own));
                for (place, slope) in gradient.iter().enumerate() {
                    let at = |step: f64| {
                        let mut theta = THETA;
                        theta[place] += step;
                        point(&theta, own).level(link)
                    };
                    let found = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((found - slope).abs() < 1e-8, "{link:?} {arm} {place}: {found} {slope}");
                }
            }
        }
    }

    #[test]
    fn both_systems_give_the_same() {
        for (link, n_arms) in [(DedlLink::Sigmoid, 4), (DedlLink::Sigmoid, 3), (DedlLink::Linear, 3)] {
            let factors = factors()[..n_arms].to_vec();
            let by_arms = Arms::new(link, &factors, 1e-3);
            assert!(!by_arms.gram.is_empty());
            let by_theta = Arms { gram: Vec::new(), ..Arms::new(link, &factors, 1e-3) };
            let points: Vec<Point> = factors.iter().map(|own| point(&THETA, own)).collect();
            let shares = &[0.4, 0.3, 0.2, 0.1][..n_arms];
            let residual = &[0.0, 1.5, 0.0, -0.5][..n_arms];
            let one = by_arms.corrections(&points, shares, residual).unwrap();
            let other = by_theta.corrections(&points, shares, residual).unwrap();
            assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-8), "{one:?} {other:?}");
        }
    }

    #[test]
    fn with_as_many_arms_as_numbers_a_residual_counts_for_its_own_arm_alone() {
        // Then every level is free, and what is left is the doubly robust score: r / π for the own arm.
        let factors = factors()[..4].to_vec();
        let arms = Arms::new(DedlLink::Sigmoid, &factors, 1e-12);
        let points: Vec<Point> = factors.iter().map(|own| point(&THETA, own)).collect();
        let found = arms.corrections(&points, &[0.4, 0.3, 0.2, 0.1], &[0.0, 0.0, 0.6, 0.0]).unwrap();
        for (found, expected) in found.iter().zip([0.0, 0.0, 3.0, 0.0]) {
            assert!((found - expected).abs() < 1e-3, "{found} {expected}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(check_size(10_000, 30, false).is_ok());
        assert!(check_size(20, 30_000, false).is_ok());
        let error = check_size(300, 400, false).unwrap_err();
        assert!(error.hint_text().is_some_and(|hint| hint.contains("linear")));
        assert!(check_size(300, 400, true).is_ok());
        assert!(check_size(5000, 5000, true).is_err());
    }
}
