//! Average effects of any policies and their errors, in closed form.
//!
//! In the axes of the landmarks f(t) = φ(t)ᵀv + r(t), φ(t) = R⁻¹k_Z(t), RRᵀ = K_ZZ, v ~ N(0, I), where r is what landmarks
//! do not tell. With the trend in front the coefficients θ = (μ, β, v) have the precision M = ΦᵀD⁻¹Φ + Λ, Λ being 1 for v
//! and 0 for the trend, and the mean M⁻¹ΦᵀD⁻¹ȳ. The error of the mean has two parts: noise, M⁻¹JM⁻¹, where J is the
//! covariance of ΦᵀD⁻¹e by the sums of clusters, and what the prior leaves open, M⁻¹ΛM⁻¹ and the variance of r.
//! How much policies differ is itself known from a few of them: the second part counts as many degrees of freedom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::described::{AttributeScales, Described, attribute_scales};
use super::evidence::{Arms, ResidualRows};
use super::kernel::{Kernel, Likeness};
use super::landmarks::landmarks;
use super::likelihood::{MANY, add_jitter, fit_kernel, median_distance, units};
use crate::effect::{AverageEstimate, Averages, Tensor, Tensors};
use crate::policy::PolicySet;
use crate::stats::{Cholesky, dot};
use crate::stored::damaged;
use crate::{Error, Result};

/// Landmarks where there are more policies than [`MANY`]; half as many where there are very many.
pub(super) const LANDMARKS: usize = 256;
const VERY_MANY: usize = 4096;

/// What is known of the averages of one outcome, in standard units.
#[derive(Clone, Debug)]
pub(crate) struct Posterior {
    manifest: PosteriorManifest,
    /// F with F·Fᵀ the covariance of θ by noise, without μ.
    noise: Vec<f32>,
    /// M⁻¹ without μ.
    inverse: Vec<f32>,
}

/// What the model file keeps besides the matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PosteriorManifest {
    /// The landmarks by name.
    landmarks: Vec<String>,
    /// The policy that doses are counted from; none without a trend.
    dose_from: Option<String>,
    kernel: Kernel,
    /// β, if there is one, then v.
    mean: Vec<f64>,
    /// What attributes of actions are measured in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: AttributeScales,
    /// Policies that were run.
    n_run: usize,
    /// Clusters; none where rows are independent.
    n_clusters: Option<usize>,
    /// The variance of one row around the mean of its arm, as it counts in averages; none in older models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    row_variance: Option<f64>,
}

impl Posterior {
    /// Learns the averages of one outcome from the residuals of all rows; none where fewer than two policies were run.
    pub(crate) fn fit(
        rows: &ResidualRows<'_>,
        outcome: usize,
        policies: &PolicySet,
        control: Option<usize>,
    ) -> Option<Self> {
        Self::fit_by(rows, outcome, policies, control, LANDMARKS)
    }

    /// As [`fit`](Self::fit), by so many landmarks where there are many policies.
    pub(super) fn fit_by(
        rows: &ResidualRows<'_>,
        outcome: usize,
        policies: &PolicySet,
        control: Option<usize>,
        most_landmarks: usize,
    ) -> Option<Self> {
        let scales = attribute_scales(policies);
        let policies = &Described::new(policies, &scales);
        let arms = rows.arms(outcome);
        let n_arms = arms.policy.len();
        if n_arms < 2 || arms.variance.iter().any(|variance| !(*variance > 0.0 && variance.is_finite())) {
            return None;
        }
        let dose = control.map(|control| doses(policies, &arms.policy, control));
        let dose = dose.filter(|dose| has_spread(dose));
        let trend: Vec<Vec<f64>> = std::iter::once(vec![1.0; n_arms]).chain(dose.clone()).collect();
        let chosen = choose_landmarks(policies, &arms, most_landmarks);
        let kernel = fit_kernel(policies, &arms, &trend, &chosen);
        let axes = Axes::new(policies, &chosen, kernel)?;
        let basis = axes.basis(policies, &arms.policy, &trend);
        let n_trend = trend.len();
        let n = n_trend + chosen.len();

        // M, and its right-hand side.
        let mut precision = vec![0.0; n * n];
        let mut pull = vec![0.0; n];
        for ((row, mean), variance) in basis.chunks_exact(n).zip(&arms.mean).zip(&arms.variance) {
            for (i, a) in row.iter().enumerate() {
                let scaled = a / variance;
                pull[i] += scaled * mean;
                precision[i * n..][..=i].iter_mut().zip(row).for_each(|(sum, b)| *sum += scaled * b);
            }
        }
        (n_trend..n).for_each(|k| precision[k * n + k] += 1.0);
        let factor = Cholesky::new(precision, n)?;
        factor.solve(&mut pull);
        let inverse = inverse(&factor, n);
        let noise = match rows.cluster {
            None => by_rows(&inverse, n, n_trend),
            Some(_) => by_clusters(rows, outcome, &arms, &basis, &pull, &inverse),
        };
        let m = n - 1;
        let without_first = |matrix: &[f64]| -> Vec<f64> {
            (0..m * m).map(|k| matrix[(k / m + 1) * n + k % m + 1]).collect()
        };
        let noise = root(without_first(&noise), m)?;
        let as_stored =
            |values: Vec<f64>| -> Vec<f32> { values.into_iter().map(|value| value as f32).collect() };
        let name = |policy: usize| policies.name(policy).to_owned();
        Some(Self {
            manifest: PosteriorManifest {
                landmarks: chosen.iter().map(|policy| name(*policy)).collect(),
                dose_from: control.filter(|_| dose.is_some()).map(name),
                kernel,
                mean: pull[1..].to_vec(),
                attributes: scales,
                n_run: n_arms,
                n_clusters: rows.cluster.map(|_| arms.n_units),
                row_variance: Some(arms.row_variance()),
            },
            noise: as_stored(noise),
            inverse: as_stored(without_first(&inverse)),
        })
    }

    /// The averages of some policies against one, all of a set that holds the training policies by name.
    pub(crate) fn averages(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        joint: bool,
    ) -> Result<Averages> {
        let policies = &Described::new(policies, &self.manifest.attributes);
        let contrasts = self.contrasts(policies, targets, against)?;
        let (n_theta, n_trend) = (self.manifest.mean.len(), self.n_trend());
        let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|value| f64::from(*value)).collect() };
        let (noise, inverse) = (wide(&self.noise), wide(&self.inverse));
        // Side by side Fᵀδ and M⁻¹δ: products of these are covariances.
        let parts: Vec<(Vec<f64>, Vec<f64>)> = contrasts
            .theta
            .iter()
            .map(|delta| {
                let mut by_noise = vec![0.0; n_theta];
                for (row, d) in noise.chunks_exact(n_theta).zip(delta) {
                    by_noise.iter_mut().zip(row).for_each(|(sum, value)| *sum += d * value);
                }
                let open = inverse.chunks_exact(n_theta).skip(n_trend).map(|row| dot(row, delta)).collect();
                (by_noise, open)
            })
            .collect();
        let n_policies = (self.manifest.n_run as f64 - 1.0 - n_trend as f64).max(1.0);
        let n_units = self.manifest.n_clusters.map_or(f64::INFINITY, |n| (n as f64 - 1.0).max(1.0));
        let estimate = |target: usize| {
            let (by_noise, open) = &parts[target];
            let (noise, open) = (dot(by_noise, by_noise), dot(open, open) + contrasts.rest[target]);
            let variance = noise + open;
            let freedom = variance.powi(2) / (noise.powi(2) / n_units + open.powi(2) / n_policies);
            let effect = dot(&contrasts.theta[target], &self.manifest.mean);
            // A policy against itself has no error, and nothing to divide by.
            let freedom = if freedom.is_nan() { f64::INFINITY } else { freedom.max(1.0) };
            AverageEstimate { effect, se: variance.sqrt(), freedom }
        };
        let estimates = (0..targets.len()).map(estimate).collect();
        let covariance = joint.then(|| {
            let n = targets.len();
            let entry = |k: usize| {
                let ((a, b), (c, d)) = (&parts[k / n], &parts[k % n]);
                dot(a, c) + dot(b, d)
            };
            let mut covariance: Vec<f64> = (0..n * n).map(entry).collect();
            covariance
                .iter_mut()
                .zip(self.rest(policies, targets, against, &contrasts))
                .for_each(|(c, r)| *c += r);
            covariance
        });
        Ok(Averages { estimates, covariance })
    }

    /// The standard deviation of one row around its expected outcome, as it counts in averages; none in older models.
    pub(crate) fn row_deviation(&self) -> Option<f64> {
        self.manifest.row_variance.filter(|variance| *variance > 0.0).map(f64::sqrt)
    }

    pub(crate) fn manifest(&self) -> &PosteriorManifest {
        &self.manifest
    }

    /// The matrices under names that begin with `prefix`.
    pub(crate) fn tensors(&self, prefix: &str) -> [Tensor<'_>; 2] {
        let n = self.manifest.mean.len();
        [
            Tensor::new(format!("{prefix}.noise"), &[n, n], self.noise.as_slice()),
            Tensor::new(format!("{prefix}.inverse"), &[n, n], self.inverse.as_slice()),
        ]
    }

    /// From the parts of a model file.
    pub(crate) fn from_parts(
        manifest: PosteriorManifest,
        tensors: &mut Tensors,
        prefix: &str,
    ) -> Result<Self> {
        let n = manifest.mean.len();
        let n_trend = usize::from(manifest.dose_from.is_some());
        let is_sound = manifest.mean.iter().chain(&manifest.kernel.scales).all(|value| value.is_finite())
            && manifest.kernel.length.is_finite()
            && manifest.kernel.length > 0.0
            && n == n_trend + manifest.landmarks.len()
            && !manifest.landmarks.is_empty();
        if !is_sound {
            return Err(damaged("the averages of the model contradict each other"));
        }
        let noise = tensors.take(&format!("{prefix}.noise"), &[n, n])?;
        let inverse = tensors.take(&format!("{prefix}.inverse"), &[n, n])?;
        Ok(Self { manifest, noise, inverse })
    }

    /// Whether there is a β.
    fn n_trend(&self) -> usize {
        usize::from(self.manifest.dose_from.is_some())
    }

    fn contrasts(&self, policies: &Described<'_>, targets: &[usize], against: usize) -> Result<Contrasts> {
        let place = |name: &String| policies.require(name);
        let chosen = self.manifest.landmarks.iter().map(place).collect::<Result<Vec<_>>>()?;
        let axes = Axes::new(policies, &chosen, self.manifest.kernel).ok_or_else(|| {
            Error::input("the policies of the model are not those of its averages").hint("fit it again")
        })?;
        let all: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let trend: Vec<Vec<f64>> = match &self.manifest.dose_from {
            Some(name) => vec![doses(policies, &all, policies.require(name)?)],
            None => Vec::new(),
        };
        let n = self.manifest.mean.len();
        let basis = axes.basis(policies, &all, &trend);
        let (own, base) = basis.split_at(targets.len() * n);
        let less = |row: &[f64]| -> Vec<f64> { row.iter().zip(base).map(|(a, b)| a - b).collect() };
        let theta: Vec<Vec<f64>> = own.chunks_exact(n).map(less).collect();
        let kernel = &self.manifest.kernel;
        let own = Likeness::own(policies, &all).kernel(kernel);
        let with_base = Likeness::new(policies, &[against], targets).kernel(kernel);
        let n_trend = self.n_trend();
        let rest = theta.iter().enumerate().map(|(target, delta)| {
            let prior = own[target] - 2.0 * with_base[target] + own[targets.len()];
            let left = prior - dot(&delta[n_trend..], &delta[n_trend..]);
            // What landmarks tell whole leaves rounding behind.
            if left > 1e-7 * prior.abs() { left } else { 0.0 }
        });
        let rest = rest.collect();
        Ok(Contrasts { theta, rest })
    }

    /// The covariance of what landmarks do not tell.
    fn rest(
        &self,
        policies: &Described<'_>,
        targets: &[usize],
        against: usize,
        contrasts: &Contrasts,
    ) -> Vec<f64> {
        let (n, n_trend, kernel) = (targets.len(), self.n_trend(), &self.manifest.kernel);
        let between = Likeness::new(policies, targets, targets).kernel(kernel);
        let with_base = Likeness::new(policies, &[against], targets).kernel(kernel);
        let base = Likeness::own(policies, &[against]).kernel(kernel)[0];
        let entry = |k: usize| {
            let (i, j) = (k / n, k % n);
            if i == j {
                return contrasts.rest[i];
            }
            if contrasts.rest[i] == 0.0 || contrasts.rest[j] == 0.0 {
                return 0.0;
            }
            let prior = between[k] - with_base[i] - with_base[j] + base;
            prior - dot(&contrasts.theta[i][n_trend..], &contrasts.theta[j][n_trend..])
        };
        (0..n * n).map(entry).collect()
    }
}

/// Policies less the one they are compared with.
struct Contrasts {
    /// In the axes of θ without μ.
    theta: Vec<Vec<f64>>,
    /// Variance of r.
    rest: Vec<f64>,
}

/// The axes of the landmarks.
struct Axes<'a> {
    landmarks: &'a [usize],
    kernel: Kernel,
    factor: Cholesky,
}

impl<'a> Axes<'a> {
    fn new(policies: &Described<'_>, landmarks: &'a [usize], kernel: Kernel) -> Option<Self> {
        let mut between = Likeness::new(policies, landmarks, landmarks).kernel(&kernel);
        add_jitter(&mut between, landmarks.len());
        Some(Self { landmarks, kernel, factor: Cholesky::new(between, landmarks.len())? })
    }

    /// The trend, then φ, of each policy, row after row.
    fn basis(&self, policies: &Described<'_>, of: &[usize], trend: &[Vec<f64>]) -> Vec<f64> {
        let n = self.landmarks.len();
        let values = Likeness::new(policies, of, self.landmarks).kernel(&self.kernel);
        let mut basis = Vec::with_capacity(of.len() * (n + trend.len()));
        for (place, row) in values.chunks_exact(n).enumerate() {
            basis.extend(trend.iter().map(|column| column[place]));
            let start = basis.len();
            basis.extend_from_slice(row);
            self.factor.forward(&mut basis[start..]);
        }
        basis
    }
}

/// The share of its mixture that each policy moves away from `from`.
fn doses(policies: &Described<'_>, of: &[usize], from: usize) -> Vec<f64> {
    of.iter().map(|policy| 0.5 * policies.distance(*policy, from)).collect()
}

fn has_spread(values: &[f64]) -> bool {
    let (least, most) =
        values.iter().fold((f64::MAX, f64::MIN), |(a, b), value| (a.min(*value), b.max(*value)));
    most - least > 1e-6
}

fn choose_landmarks(policies: &Described<'_>, arms: &Arms, most: usize) -> Vec<usize> {
    let most = match arms.policy.len() {
        n if n <= MANY => n,
        n if n <= VERY_MANY => most,
        _ => most / 2,
    };
    // A kernel in which every part counts alike.
    let step = arms.policy.len().div_ceil(LANDMARKS).max(1);
    let sample: Vec<usize> = arms.policy.iter().copied().step_by(step).collect();
    let between = Likeness::new(policies, &sample, &sample);
    let length = median_distance(&between);
    let scales = units(&between, sample.len(), length).map(|unit| if unit > 0.0 { 1.0 / unit } else { 0.0 });
    landmarks(policies, &arms.policy, &arms.rows, &Kernel { scales, length }, most)
}

fn inverse(factor: &Cholesky, n: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; n * n];
    for (k, column) in inverse.chunks_exact_mut(n).enumerate() {
        column[k] = 1.0;
        factor.solve(column);
    }
    inverse
}

/// M⁻¹(M − Λ)M⁻¹: J for independent rows.
fn by_rows(inverse: &[f64], n: usize, n_trend: usize) -> Vec<f64> {
    let row = |k: usize| &inverse[k * n..][..n];
    (0..n * n).map(|k| inverse[k] - dot(&row(k / n)[n_trend..], &row(k % n)[n_trend..])).collect()
}

/// M⁻¹JM⁻¹ by the sums of clusters.
fn by_clusters(
    rows: &ResidualRows<'_>,
    outcome: usize,
    arms: &Arms,
    basis: &[f64],
    theta: &[f64],
    inverse: &[f64],
) -> Vec<f64> {
    let n = theta.len();
    // Around what was fitted: a single row is all there is of its own mean.
    let fitted: Vec<f64> = basis.chunks_exact(n).map(|row| dot(row, theta)).collect();
    let mut covariance = vec![0.0; n * n];
    let (mut score, mut influence) = (vec![0.0; n], vec![0.0; n]);
    let n_units = rows.each_unit(arms, outcome, &fitted, |sums| {
        score.fill(0.0);
        for (arm, value) in sums {
            let scaled = value / arms.variance[*arm];
            score.iter_mut().zip(&basis[arm * n..][..n]).for_each(|(sum, b)| *sum += scaled * b);
        }
        influence.iter_mut().zip(inverse.chunks_exact(n)).for_each(|(own, row)| *own = dot(row, &score));
        for (own, row) in influence.iter().zip(covariance.chunks_exact_mut(n)) {
            row.iter_mut().zip(&influence).for_each(|(sum, other)| *sum += own * other);
        }
    }) as f64;
    let correction = n_units / (n_units - 1.0).max(1.0);
    covariance.iter_mut().for_each(|value| *value *= correction);
    covariance
}

/// F with F·Fᵀ = `matrix`, which rounding may have left short of positive definite.
fn root(matrix: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    let largest = (0..n).map(|k| matrix[k * n + k]).fold(0.0, f64::max);
    for jitter in [1e-12, 1e-10, 1e-8, 1e-6] {
        let mut lifted = matrix.clone();
        (0..n).for_each(|k| lifted[k * n + k] += jitter * largest + f64::MIN_POSITIVE);
        if let Some(factor) = Cholesky::new(lifted, n) {
            return Some(factor.into_factor());
        }
    }
    None
}
