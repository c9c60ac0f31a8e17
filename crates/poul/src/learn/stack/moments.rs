//! Losses of a combination as quadratic functions of its weights, L(β) = c − 2·bᵀβ + βᵀAβ, from sums over rows.
//!
//! The R-loss has v = (r, p_1, …, p_L) for each row, r = Y − m̂(X) and p_l = τ_l(X; T) − Σ_t π̂(t|X)·τ_l(X; t), and A, b, c are
//! entries of Σ w·vvᵀ. The doubly robust loss is Σ w·(Γ_t − Σ_l β_l·τ_l(X; t))² over rows and policies t, with the score
//! Γ_t = τ̄_t + k_t·(r − p̄), k_t = 1{T = t}/π̂_t − 1{T = 0}/π̂_0, τ̄ and p̄ being those of a first combination β̄: then μ̂_T is
//! m̂ + p̄, the decomposition of the paper. Γ is linear in β̄, so sums of (k·r, k·p, τ) are enough for any β̄.

use crate::stats::{dot, least_on_simplex};

/// ν of the Q-aggregation: how much single members count beside their combination.
const NU: f64 = 0.5;
/// A weight below this is none.
const LEAST_WEIGHT: f64 = 0.01;

/// Σ w·vvᵀ.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    n: usize,
    sums: Vec<f64>,
    pub(super) mass: f64,
}

impl Moments {
    pub(super) fn new(n: usize) -> Self {
        Self { n, sums: vec![0.0; n * n], mass: 0.0 }
    }

    pub(super) fn add(&mut self, weight: f64, v: &[f64]) {
        self.mass += weight;
        for (row, value) in v.iter().enumerate() {
            let scaled = weight * value;
            let sums = &mut self.sums[row * self.n..][..self.n];
            sums.iter_mut().zip(v).for_each(|(sum, other)| *sum += scaled * other);
        }
    }

    fn entry(&self, a: usize, b: usize) -> f64 {
        self.sums[a * self.n + b] / self.mass
    }

    /// The R-loss of `v` = (r, p).
    pub(super) fn r_loss(&self) -> Quadratic {
        let n = self.n - 1;
        Quadratic {
            c: self.entry(0, 0),
            b: (0..n).map(|l| self.entry(0, 1 + l)).collect(),
            a: (0..n * n).map(|pair| self.entry(1 + pair / n, 1 + pair % n)).collect(),
        }
    }

    /// The doubly robust loss of `v` = (k·r, k·p, τ), from a first combination.
    pub(super) fn doubly_robust_loss(&self, first: &[f64]) -> Quadratic {
        let n = first.len();
        let a: Vec<f64> = (0..n * n).map(|pair| self.entry(1 + n + pair / n, 1 + n + pair % n)).collect();
        // u = k·(r − β̄ᵀp), and Γ = u + β̄ᵀτ.
        let combine = |of: &dyn Fn(usize) -> f64| (0..n).map(|l| first[l] * of(l)).sum::<f64>();
        let u_square = self.entry(0, 0) - 2.0 * combine(&|l| self.entry(0, 1 + l))
            + combine(&|l| combine(&|other| self.entry(1 + l, 1 + other)));
        let u_tau = |l: usize| {
            let tau = 1 + n + l;
            self.entry(0, tau) - combine(&|other| self.entry(1 + other, tau))
        };
        let a_first: Vec<f64> = (0..n).map(|l| dot(&a[l * n..][..n], first)).collect();
        let b: Vec<f64> = (0..n).map(|l| u_tau(l) + a_first[l]).collect();
        let c = u_square + 2.0 * combine(&u_tau) + dot(first, &a_first);
        Quadratic { c, b, a }
    }
}

/// L(β) = c − 2·bᵀβ + βᵀAβ.
#[derive(Clone, Debug)]
pub(super) struct Quadratic {
    c: f64,
    b: Vec<f64>,
    a: Vec<f64>,
}

impl Quadratic {
    /// L of a combination.
    pub(super) fn at(&self, weights: &[f64]) -> f64 {
        let n = weights.len();
        let square: f64 = (0..n).map(|l| weights[l] * dot(&self.a[l * n..][..n], weights)).sum();
        self.c - 2.0 * dot(&self.b, weights) + square
    }

    /// L of a member by itself.
    pub(super) fn of_member(&self, member: usize) -> f64 {
        let n = self.b.len();
        self.c - 2.0 * self.b[member] + self.a[member * n + member]
    }

    /// β of the least ν·Σ_l β_l·L_l + (1 − ν)·L(β) on the simplex, without weights that are too small to matter.
    pub(super) fn aggregate(&self) -> Vec<f64> {
        let n = self.b.len();
        let hessian: Vec<f64> = self.a.iter().map(|a| 2.0 * (1.0 - NU) * a).collect();
        let linear: Vec<f64> = (0..n).map(|l| NU * self.a[l * n + l] - 2.0 * self.b[l]).collect();
        let mut weights = least_on_simplex(&hessian, &linear);
        weights.iter_mut().filter(|own| **own < LEAST_WEIGHT).for_each(|own| *own = 0.0);
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|own| *own /= total);
        weights
    }

    pub(super) fn is_finite(&self) -> bool {
        self.c.is_finite() && self.a.iter().chain(&self.b).all(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    #[test]
    fn losses_are_those_of_their_definitions() {
        let mut rng = Seed::new(4).rng();
        let mut draw = || rng.random_range(-1.0..1.0);
        let (mut r_moments, mut dr_moments) = (Moments::new(3), Moments::new(5));
        let (first, weights) = ([0.3, 0.7], [0.6, 0.4]);
        let (mut r_loss, mut dr_loss, mut mass) = (0.0, 0.0, 0.0);
        for _ in 0..40 {
            let (r, p, tau, k): (f64, [f64; 2], [f64; 2], f64) =
                (draw(), [draw(), draw()], [draw(), draw()], 3.0 * draw());
            let w = draw() + 1.5;
            r_moments.add(w, &[r, p[0], p[1]]);
            dr_moments.add(w, &[k * r, k * p[0], k * p[1], tau[0], tau[1]]);
            r_loss += w * (r - dot(&weights, &p)).powi(2);
            let score = dot(&first, &tau) + k * (r - dot(&first, &p));
            dr_loss += w * (score - dot(&weights, &tau)).powi(2);
            mass += w;
        }
        let (r, dr) = (r_moments.r_loss(), dr_moments.doubly_robust_loss(&first));
        assert!((r.at(&weights) - r_loss / mass).abs() < 1e-12);
        assert!((dr.at(&weights) - dr_loss / mass).abs() < 1e-12);
        assert!((r.of_member(1) - r.at(&[0.0, 1.0])).abs() < 1e-12);
    }

    #[test]
    fn a_member_that_is_the_best_alone_is_not_diluted_by_its_like() {
        // p_1 is the truth, p_2 the truth with as much noise again: by loss alone some of p_2 would not hurt much.
        let mut rng = Seed::new(5).rng();
        let mut moments = Moments::new(3);
        for _ in 0..4000 {
            let truth: f64 = rng.random_range(-1.0..1.0);
            let noisy = truth + rng.random_range(-1.0..1.0);
            moments.add(1.0, &[truth + rng.random_range(-2.0..2.0), truth, noisy]);
        }
        let weights = moments.r_loss().aggregate();
        assert!(weights[0] > 0.9, "{weights:?}");
    }
}
