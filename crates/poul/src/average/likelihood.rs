//! How much averages of policies differ, and along what: the kernel of largest restricted likelihood, under weak priors.
//!
//! ȳ = Xβ + f + e with f ~ N(0, K), e ~ N(0, D) and β flat has the restricted log-likelihood
//! −½(log|Σ| + log|XᵀΣ⁻¹X| + ȳᵀPȳ), Σ = K + D (Patterson and Thompson 1971). Each part of K is in units of the variance
//! between policies that it makes, and the logarithm of its variance has a normal prior around a third of what
//! policies differ by beyond their noise (DerSimonian and Laird 1986). Without priors a handful of policies
//! decides nothing, and the variances run off to zero or beyond all bounds.

use rayon::prelude::*;

use super::described::Described;
use super::evidence::Arms;
use super::kernel::{Kernel, Likeness, N_PARTS};
use crate::stats::{Cholesky, dot, minimise};

/// Standard deviation of the prior of a variance's logarithm.
const PRIOR_SD: f64 = 1.5;
/// Lengths that are tried, in units of the median distance between policies.
const LENGTHS: [f64; 3] = [0.5, 1.0, 2.0];
/// Steps of the search for each length.
const SEARCH_STEPS: usize = 60;
/// The smooth part is at least this share of all: with products alone the kernel of many policies would be singular.
pub(super) const LEAST_SMOOTH: f64 = 1e-3;
/// Arms by which the likelihood is computed as it stands, those with the most rows.
const MOST_EXACT: usize = 256;
/// Policies beyond which landmarks stand for the others.
pub(super) const MANY: usize = 512;

/// The kernel that explains the means of arms best. `trend` are the columns of X for each arm.
pub(super) fn fit_kernel(
    policies: &Described<'_>,
    arms: &Arms,
    trend: &[Vec<f64>],
    landmarks: &[usize],
) -> Kernel {
    let between = Likeness::new(policies, landmarks, landmarks);
    let median = median_distance(&between);
    let reference = reference_variance(arms);
    let problem = match arms.policy.len() > MANY {
        true => Problem::through(policies, arms, trend, landmarks, median),
        false => Problem::exact(policies, arms, trend),
    };
    let mut best: Option<(Kernel, f64)> = None;
    for length in LENGTHS.map(|share| share * median) {
        let units = units(&between, landmarks.len(), length);
        let kernel = |logs: &[f64]| {
            let mut variances = [0.0; N_PARTS];
            let is_there = |part: &usize| units[*part] > 0.0;
            (0..N_PARTS).filter(is_there).zip(logs).for_each(|(part, log)| variances[part] = log.exp());
            if units[2] > 0.0 {
                variances[2] = variances[2].max(LEAST_SMOOTH * (variances[0] + variances[1]));
            }
            let scale = |part: usize| if units[part] > 0.0 { variances[part] / units[part] } else { 0.0 };
            Kernel { scales: [scale(0), scale(1), scale(2)], length }
        };
        let n_there = units.iter().filter(|unit| **unit > 0.0).count();
        let centre = (reference / n_there.max(1) as f64).ln();
        let prior =
            |logs: &[f64]| logs.iter().map(|log| 0.5 * ((log - centre) / PRIOR_SD).powi(2)).sum::<f64>();
        let start = vec![centre; n_there];
        let (at, value) =
            minimise(&start, 1.0, SEARCH_STEPS, |logs| match problem.likelihood(&kernel(logs)) {
                Some(likelihood) => prior(logs) - likelihood,
                None => f64::NAN,
            });
        if best.as_ref().is_none_or(|(_, least)| value < *least) {
            best = Some((kernel(&at), value));
        }
    }
    best.map_or(Kernel { scales: [0.0, 0.0, reference], length: median }, |(kernel, _)| kernel)
}

/// The mean variance of a kernel's part around its mean over the policies; 0 where they do not differ in it.
pub(super) fn units(between: &Likeness, n: usize, length: f64) -> [f64; N_PARTS] {
    std::array::from_fn(|part| {
        let values = between.part(part, length);
        let diagonal: f64 = (0..n).map(|k| values[k * n + k]).sum::<f64>() / n.max(1) as f64;
        let mean = values.iter().sum::<f64>() / (n * n).max(1) as f64;
        let unit = diagonal - mean;
        if unit > 1e-9 * diagonal { unit } else { 0.0 }
    })
}

/// The median of d_Π between different policies; 1 where there is one policy only.
pub(super) fn median_distance(between: &Likeness) -> f64 {
    let mut distances: Vec<f64> = between.distances().iter().copied().filter(|d| *d > 1e-9).collect();
    if distances.is_empty() {
        return 1.0;
    }
    let middle = distances.len() / 2;
    *distances.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// By how much averages differ beyond their noise, by moments; never less than what the noise could hide.
fn reference_variance(arms: &Arms) -> f64 {
    let precision: Vec<f64> = arms.variance.iter().map(|variance| 1.0 / variance.max(1e-300)).collect();
    let total: f64 = precision.iter().sum();
    let mean = dot(&precision, &arms.mean) / total;
    let spread: f64 = precision.iter().zip(&arms.mean).map(|(p, y)| p * (y - mean).powi(2)).sum();
    let freedom = (arms.mean.len() as f64 - 1.0).max(1.0);
    let per_arm = (total - precision.iter().map(|p| p * p).sum::<f64>() / total).max(f64::MIN_POSITIVE);
    let hidden = 0.5 * (2.0 / freedom).sqrt() * freedom / per_arm;
    ((spread - freedom) / per_arm).max(hidden)
}

/// What the likelihood needs of the data.
enum Problem {
    /// Σ as it stands.
    Exact { likeness: Likeness, variance: Vec<f64>, columns: Vec<Vec<f64>> },
    /// Σ = K_XZ·K_ZZ⁻¹·K_ZX + D, in products over all arms that are taken once for each length.
    Through {
        between: Likeness,
        log_noise: f64,
        /// SᵀD⁻¹S for the columns S of ȳ and X.
        squares: Vec<f64>,
        n_columns: usize,
        lengths: Vec<Products>,
    },
}

/// Products over arms for one length.
struct Products {
    length: f64,
    /// K_i·D⁻¹·K_jᵀ of parts i ≤ j, L × L each.
    pairs: Vec<Vec<f64>>,
    /// K_i·D⁻¹·S, L × columns each.
    columns: Vec<Vec<f64>>,
}

impl Problem {
    fn exact(policies: &Described<'_>, arms: &Arms, trend: &[Vec<f64>]) -> Self {
        let mut order: Vec<usize> = (0..arms.policy.len()).collect();
        order.sort_by_key(|arm| std::cmp::Reverse(arms.rows[*arm]));
        order.truncate(MOST_EXACT);
        order.sort_unstable();
        let of = |values: &[f64]| -> Vec<f64> { order.iter().map(|arm| values[*arm]).collect() };
        let chosen: Vec<usize> = order.iter().map(|arm| arms.policy[*arm]).collect();
        Self::Exact {
            likeness: Likeness::new(policies, &chosen, &chosen),
            variance: of(&arms.variance),
            columns: std::iter::once(of(&arms.mean)).chain(trend.iter().map(|column| of(column))).collect(),
        }
    }

    fn through(
        policies: &Described<'_>,
        arms: &Arms,
        trend: &[Vec<f64>],
        landmarks: &[usize],
        median: f64,
    ) -> Self {
        let (n, n_arms) = (landmarks.len(), arms.policy.len());
        let likeness = Likeness::new(policies, landmarks, &arms.policy);
        let roots: Vec<f64> = arms.variance.iter().map(|variance| 1.0 / variance.sqrt()).collect();
        let scaled =
            |column: &Vec<f64>| -> Vec<f64> { column.iter().zip(&roots).map(|(v, r)| v * r).collect() };
        let columns: Vec<Vec<f64>> = std::iter::once(&arms.mean).chain(trend).map(scaled).collect();
        let n_columns = columns.len();
        let squares =
            (0..n_columns * n_columns).map(|k| dot(&columns[k / n_columns], &columns[k % n_columns]));
        let of_length = |share: f64| {
            let length = share * median;
            let parts: Vec<Vec<f64>> = (0..N_PARTS)
                .map(|part| {
                    let mut values = likeness.part(part, length);
                    for row in values.chunks_exact_mut(n_arms) {
                        row.iter_mut().zip(&roots).for_each(|(value, root)| *value *= root);
                    }
                    values
                })
                .collect();
            let row = |part: usize, k: usize| &parts[part][k * n_arms..][..n_arms];
            let pairs = (0..N_PARTS).flat_map(|i| (i..N_PARTS).map(move |j| (i, j)));
            let pairs = pairs
                .map(|(i, j)| {
                    let entry = |k: usize| dot(row(i, k / n), row(j, k % n));
                    (0..n * n).into_par_iter().map(entry).collect()
                })
                .collect();
            let with_columns = |part: usize| {
                let entry = |k: usize| dot(row(part, k / n_columns), &columns[k % n_columns]);
                (0..n * n_columns).map(entry).collect()
            };
            Products { length, pairs, columns: (0..N_PARTS).map(with_columns).collect() }
        };
        Self::Through {
            between: Likeness::new(policies, landmarks, landmarks),
            log_noise: arms.variance.iter().map(|variance| variance.ln()).sum(),
            squares: squares.collect(),
            n_columns,
            lengths: LENGTHS.map(of_length).into_iter().collect(),
        }
    }

    /// The restricted log-likelihood, but for a constant; none where Σ cannot be factored.
    fn likelihood(&self, kernel: &Kernel) -> Option<f64> {
        match self {
            Self::Exact { likeness, variance, columns } => {
                let n = variance.len();
                let mut sigma = likeness.kernel(kernel);
                variance.iter().enumerate().for_each(|(k, variance)| sigma[k * n + k] += variance);
                let factor = Cholesky::new(sigma, n)?;
                let mut solved = columns.clone();
                solved.iter_mut().for_each(|column| factor.forward(column));
                let m = solved.len();
                let squares: Vec<f64> = (0..m * m).map(|k| dot(&solved[k / m], &solved[k % m])).collect();
                restricted(factor.log_determinant(), &squares, m)
            }
            Self::Through { between, log_noise, squares, n_columns, lengths } => {
                let products = lengths.iter().find(|own| own.length == kernel.length)?;
                let n = between.n_cols;
                let mut prior = between.kernel(kernel);
                add_jitter(&mut prior, n);
                let mut precision = prior.clone();
                let pairs = (0..N_PARTS).flat_map(|i| (i..N_PARTS).map(move |j| (i, j)));
                for ((i, j), values) in pairs.zip(&products.pairs) {
                    let scale = kernel.scales[i] * kernel.scales[j];
                    for row in 0..n {
                        for column in 0..n {
                            // K_i·D⁻¹·K_jᵀ and its transpose.
                            let both = match i == j {
                                true => values[row * n + column],
                                false => values[row * n + column] + values[column * n + row],
                            };
                            precision[row * n + column] += scale * both;
                        }
                    }
                }
                let (prior, posterior) = (Cholesky::new(prior, n)?, Cholesky::new(precision, n)?);
                let m = *n_columns;
                let mut crossed = vec![vec![0.0; n]; m];
                for (scale, values) in kernel.scales.iter().zip(&products.columns) {
                    for (column, crossed) in crossed.iter_mut().enumerate() {
                        let own = values.iter().skip(column).step_by(m);
                        crossed.iter_mut().zip(own).for_each(|(sum, value)| *sum += scale * value);
                    }
                }
                crossed.iter_mut().for_each(|column| posterior.forward(column));
                let left = |k: usize| squares[k] - dot(&crossed[k / m], &crossed[k % m]);
                let squares: Vec<f64> = (0..m * m).map(left).collect();
                let log_sigma = log_noise + posterior.log_determinant() - prior.log_determinant();
                restricted(log_sigma, &squares, m)
            }
        }
    }
}

/// Rounding must not make a kernel indefinite.
pub(super) fn add_jitter(kernel: &mut [f64], n: usize) {
    let mean = (0..n).map(|k| kernel[k * n + k]).sum::<f64>() / n.max(1) as f64;
    (0..n).for_each(|k| kernel[k * n + k] += 1e-9 * mean + 1e-300);
}

/// −½(log|Σ| + log|XᵀΣ⁻¹X| + ȳᵀPȳ) from SᵀΣ⁻¹S, ȳ being the first column of S.
fn restricted(log_sigma: f64, squares: &[f64], m: usize) -> Option<f64> {
    let n = m - 1;
    let design: Vec<f64> = (0..n * n).map(|k| squares[(k / n + 1) * m + k % n + 1]).collect();
    let factor = Cholesky::new(design, n)?;
    let mut explained: Vec<f64> = squares[1..m].to_vec();
    factor.forward(&mut explained);
    let left = squares[0] - dot(&explained, &explained);
    Some(-0.5 * (log_sigma + factor.log_determinant() + left))
}
