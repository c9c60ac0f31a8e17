//! Bilinear ridge: residual outcome on x ⊗ (α_t − ᾱ), the linear special case of the method.
//!
//! Solved by conjugate gradients on the normal equations, which need only products with X; the penalty is chosen on
//! held-out rows.

use crate::nuisance::Folds;
use crate::policy::PolicySet;
use crate::{Result, Seed};

/// A fitted bilinear ridge.
pub struct Ridge {
    /// Coefficients, (features + 1) × atoms.
    coefficients: Vec<f64>,
    n_cols: usize,
    n_atoms: usize,
    /// The penalty that was chosen.
    pub penalty: f64,
}

/// Fits with the penalty that does best on an eighth of the rows.
pub fn fit_ridge(x: &[f32], n_cols: usize, policies: &PolicySet, policy: &[u32], residual: &[f32], seed: Seed) -> Result<Ridge> {
    let n_rows = policy.len();
    let alpha = centred(policies, policy);
    let n_atoms = policies.atoms().len();
    let held = Folds::deal(n_rows, None, 8, seed.child("ridge"));
    let (validation, rows) = (held.rows(0), held.rest(0));
    let system = System { x, n_cols, alpha: &alpha, n_atoms, policy, residual };
    let mut best: Option<(f64, f64, Vec<f64>)> = None;
    let mut start = vec![0.0; (n_cols + 1) * n_atoms];
    for penalty in [3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5] {
        start = system.solve(&rows, penalty, start);
        let loss = system.loss(&validation, &start);
        if best.as_ref().is_none_or(|best| loss < best.0) {
            best = Some((loss, penalty, start.clone()));
        }
    }
    let (_, penalty, coefficients) = best.unwrap_or((0.0, 0.0, start));
    Ok(Ridge { coefficients, n_cols, n_atoms, penalty })
}

impl Ridge {
    /// Effects of every row and policy against `control`.
    pub fn effects(&self, x: &[f32], policies: &PolicySet, control: usize) -> Vec<f32> {
        let alpha: Vec<Vec<f64>> = (0..policies.len()).map(|policy| dense(policies, policy)).collect();
        let mut effects = Vec::new();
        for x in x.chunks(self.n_cols) {
            let s = project(&self.coefficients, x, self.n_atoms);
            let value = |policy: usize| s.iter().zip(&alpha[policy]).map(|(s, a)| s * a).sum::<f64>();
            let base = value(control);
            effects.extend((0..policies.len()).map(|policy| (value(policy) - base) as f32));
        }
        effects
    }
}

fn dense(policies: &PolicySet, policy: usize) -> Vec<f64> {
    let mut row = vec![0.0; policies.atoms().len()];
    let mixture = policies.mixture(policy);
    for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
        row[*atom as usize] = *mass;
    }
    row
}

fn centred(policies: &PolicySet, policy: &[u32]) -> Vec<Vec<f64>> {
    let mut alpha: Vec<Vec<f64>> = (0..policies.len()).map(|policy| dense(policies, policy)).collect();
    let mut mean = vec![0.0; policies.atoms().len()];
    for policy in policy {
        mean.iter_mut().zip(&alpha[*policy as usize]).for_each(|(mean, a)| *mean += a);
    }
    let n = policy.len() as f64;
    for row in &mut alpha {
        row.iter_mut().zip(&mean).for_each(|(a, mean)| *a -= mean / n);
    }
    alpha
}


struct System<'a> {
    x: &'a [f32],
    n_cols: usize,
    alpha: &'a [Vec<f64>],
    n_atoms: usize,
    policy: &'a [u32],
    residual: &'a [f32],
}

/// xᵀB for one row, with a constant feature first.
fn project(coefficients: &[f64], x: &[f32], n_atoms: usize) -> Vec<f64> {
    let mut s = coefficients[..n_atoms].to_vec();
    for (x, row) in x.iter().zip(coefficients[n_atoms..].chunks(n_atoms)) {
        let x = f64::from(*x);
        s.iter_mut().zip(row).for_each(|(s, b)| *s += x * b);
    }
    s
}

impl System<'_> {
    fn predict(&self, row: usize, coefficients: &[f64]) -> f64 {
        let x = &self.x[row * self.n_cols..][..self.n_cols];
        let s = project(coefficients, x, self.n_atoms);
        s.iter().zip(&self.alpha[self.policy[row] as usize]).map(|(s, a)| s * a).sum()
    }

    fn loss(&self, rows: &[u32], coefficients: &[f64]) -> f64 {
        let total: f64 =
            rows.iter().map(|row| (self.predict(*row as usize, coefficients) - f64::from(self.residual[*row as usize])).powi(2)).sum();
        total / rows.len() as f64
    }

    /// Σ_rows value(row) · x ⊗ α, in fixed chunks added in order.
    fn adjoint(&self, rows: &[u32], value: &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64> {
        use rayon::prelude::*;
        let parts: Vec<Vec<f64>> = rows
            .par_chunks(4096)
            .map(|rows| {
                // By policy first: Σ value · x, then one outer product with α of each policy.
                let width = self.n_cols + 1;
                let mut sums = vec![0.0; self.alpha.len() * width];
                for row in rows {
                    let row = *row as usize;
                    let value = value(row);
                    let sums = &mut sums[self.policy[row] as usize * width..][..width];
                    sums[0] += value;
                    let x = &self.x[row * self.n_cols..][..self.n_cols];
                    sums[1..].iter_mut().zip(x).for_each(|(sum, x)| *sum += value * f64::from(*x));
                }
                sums
            })
            .collect();
        let width = self.n_cols + 1;
        let mut total = vec![0.0; self.alpha.len() * width];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        let mut out = vec![0.0; width * self.n_atoms];
        for (sums, alpha) in total.chunks(width).zip(self.alpha) {
            for (sum, out) in sums.iter().zip(out.chunks_mut(self.n_atoms)) {
                out.iter_mut().zip(alpha).for_each(|(out, a)| *out += sum * a);
            }
        }
        out
    }

    fn solve(&self, rows: &[u32], penalty: f64, start: Vec<f64>) -> Vec<f64> {
        use rayon::prelude::*;
        let n = rows.len() as f64;
        let apply = |b: &[f64]| {
            // By policy: x·(B α_t).
            let width = self.n_cols + 1;
            let directions: Vec<Vec<f64>> = self
                .alpha
                .iter()
                .map(|alpha| b.chunks(self.n_atoms).map(|row| row.iter().zip(alpha).map(|(b, a)| b * a).sum()).collect())
                .collect();
            let mut fitted = vec![0.0; self.policy.len()];
            fitted.par_chunks_mut(4096).enumerate().for_each(|(block, fitted)| {
                for (i, fitted) in fitted.iter_mut().enumerate() {
                    let row = block * 4096 + i;
                    let d: &Vec<f64> = &directions[self.policy[row] as usize];
                    let x = &self.x[row * self.n_cols..][..self.n_cols];
                    *fitted = d[0] + d[1..width].iter().zip(x).map(|(d, x)| d * f64::from(*x)).sum::<f64>();
                }
            });
            let mut out = self.adjoint(rows, &|row| fitted[row]);
            out.iter_mut().zip(b).for_each(|(out, b)| *out = *out / n + penalty * b);
            out
        };
        let mut b = start;
        let mut r = self.adjoint(rows, &|row| f64::from(self.residual[row]));
        let ab = apply(&b);
        r.iter_mut().zip(&ab).for_each(|(r, ab)| *r = *r / n - ab);
        let mut p = r.clone();
        let mut rr: f64 = r.iter().map(|r| r * r).sum();
        let first = rr;
        for _ in 0..100 {
            if rr <= 1e-10 * first || rr < 1e-24 {
                break;
            }
            let ap = apply(&p);
            let step = rr / p.iter().zip(&ap).map(|(p, ap)| p * ap).sum::<f64>();
            b.iter_mut().zip(&p).for_each(|(b, p)| *b += step * p);
            r.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= step * ap);
            let next: f64 = r.iter().map(|r| r * r).sum();
            let ratio = next / rr;
            rr = next;
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + ratio * *p);
        }
        b
    }
}
