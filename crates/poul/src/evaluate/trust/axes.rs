//! Policies along a few axes: those of h where the learner has a treatment net, otherwise the principal axes of the
//! mixtures α_t under the shares p(t) of training.

use crate::Result;
use crate::model::Model;
use crate::policy::{Mixture, PolicySet};

/// Axes that carry less of the variance are left out.
const LEAST_SHARE: f64 = 0.01;
/// Most axes of h.
const MOST_AXES: usize = 8;
/// Axes of mixtures.
const MIXTURE_AXES: usize = 4;
/// Steps of the iteration; neighbouring axes of nearly equal variance may stay mixed, which does no harm.
const STEPS: usize = 60;

/// Policies × axes.
pub(super) struct TreatmentAxes {
    pub(super) n_axes: usize,
    /// Row after row.
    pub(super) values: Vec<f64>,
}

impl TreatmentAxes {
    /// Of every policy of a set that holds the model's own.
    pub(super) fn of_policies(model: &Model, policies: &PolicySet) -> Result<Self> {
        let all: Vec<usize> = (0..policies.len()).collect();
        let Some(net) = model.effects().policy_embedding() else {
            return Ok(Self::of_mixtures(model, policies, &all, MIXTURE_AXES));
        };
        let mut parts: Vec<(usize, Vec<f64>)> = Vec::new();
        for outcome in 0..model.effects().outcomes().len() {
            let h = net.embeddings(policies, &all, outcome)?.into_iter().next().unwrap_or_default();
            let d = h.len() / all.len().max(1);
            let counts = net.axes(outcome).iter().take_while(|share| **share >= LEAST_SHARE).count();
            let n_axes = if net.axes(outcome).is_empty() { d } else { counts.max(1) }.min(MOST_AXES).min(d);
            let values: Vec<f64> = h
                .chunks_exact(d.max(1))
                .flat_map(|h| h[..n_axes].iter().map(|h| f64::from(*h)).collect::<Vec<_>>())
                .collect();
            // Outcomes that share a treatment net have the same axes.
            if parts.last().is_none_or(|(_, last)| *last != values) {
                parts.push((n_axes, values));
            }
        }
        let n_axes = parts.iter().map(|(n, _)| n).sum();
        let row = |policy: usize| parts.iter().flat_map(move |(n, values)| &values[policy * n..][..*n]);
        let values = all.iter().flat_map(|policy| row(*policy).copied().collect::<Vec<_>>()).collect();
        Ok(Self { n_axes, values })
    }

    /// Where some policies lie on a map: the first two axes of the first outcome.
    pub(super) fn map(model: &Model, policies: &PolicySet, chosen: &[usize]) -> Result<Vec<[f64; 2]>> {
        let values = match model.effects().policy_embedding() {
            Some(net) => {
                let h = net.embeddings(policies, chosen, 0)?.into_iter().next().unwrap_or_default();
                let n_axes = h.len() / chosen.len().max(1);
                Self { n_axes, values: h.iter().map(|h| f64::from(*h)).collect() }
            }
            None => Self::of_mixtures(model, policies, chosen, 2),
        };
        let at = |row: usize| {
            let own = values.of(row);
            [own.first().copied().unwrap_or(0.0), own.get(1).copied().unwrap_or(0.0)]
        };
        Ok((0..chosen.len()).map(at).collect())
    }

    /// The values of one policy.
    pub(super) fn of(&self, policy: usize) -> &[f64] {
        &self.values[policy * self.n_axes..][..self.n_axes]
    }

    /// (α_t − ᾱ) along the leading eigenvectors of its covariance, by orthogonal iteration (Golub & Van Loan, sec. 8.2).
    fn of_mixtures(model: &Model, policies: &PolicySet, chosen: &[usize], n_most: usize) -> Self {
        let manifest = model.manifest();
        let total: u64 = manifest.policy_rows.iter().sum();
        let trained = manifest.policies.names().iter().zip(&manifest.policy_rows);
        let run: Vec<(Mixture<'_>, f64)> = trained
            .filter(|(_, rows)| **rows > 0)
            .filter_map(|(name, rows)| {
                let share = *rows as f64 / total as f64;
                policies.index(name).map(|policy| (policies.mixture(policy), share))
            })
            .collect();
        let n_atoms = policies.atoms().len();
        let mut mean = vec![0.0; n_atoms];
        run.iter().for_each(|(mixture, share)| add(&mut mean, *mixture, *share));
        let n_axes = n_most.min(n_atoms).min(run.len().saturating_sub(1)).max(1);
        // Fixed directions that no symmetry of the atoms is likely to leave out.
        let entry = |axis: usize, atom: usize| {
            let seed = crate::Seed::new(axis as u64).child("axis").index(atom as u64);
            (seed.value() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let mut axes: Vec<Vec<f64>> =
            (0..n_axes).map(|axis| (0..n_atoms).map(|atom| entry(axis, atom)).collect()).collect();
        for _ in 0..STEPS {
            for axis in &mut axes {
                let offset: f64 = mean.iter().zip(&*axis).map(|(m, v)| m * v).sum();
                let mut next = vec![0.0; n_atoms];
                let mut total = 0.0;
                for (mixture, share) in &run {
                    let along = share * (dot(axis, *mixture) - offset);
                    total += along;
                    add(&mut next, *mixture, along);
                }
                next.iter_mut().zip(&mean).for_each(|(next, mean)| *next -= total * mean);
                *axis = next;
            }
            orthogonalise(&mut axes);
        }
        for axis in &mut axes {
            let largest = axis.iter().fold(0.0_f64, |most, v| if v.abs() > most.abs() { *v } else { most });
            if largest < 0.0 {
                axis.iter_mut().for_each(|v| *v = -*v);
            }
        }
        let offsets: Vec<f64> =
            axes.iter().map(|axis| mean.iter().zip(axis).map(|(m, v)| m * v).sum()).collect();
        let values = chosen.iter().flat_map(|policy| {
            let mixture = policies.mixture(*policy);
            axes.iter().zip(&offsets).map(move |(axis, offset)| dot(axis, mixture) - offset)
        });
        Self { n_axes, values: values.collect() }
    }
}

fn add(sum: &mut [f64], mixture: Mixture<'_>, factor: f64) {
    for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
        sum[*atom as usize] += factor * mass;
    }
}

fn dot(axis: &[f64], mixture: Mixture<'_>) -> f64 {
    mixture.atoms.iter().zip(mixture.mass).map(|(atom, mass)| axis[*atom as usize] * mass).sum()
}

/// Makes axes orthonormal, each against those before it; one without a direction of its own becomes zero.
fn orthogonalise(axes: &mut [Vec<f64>]) {
    for k in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(k);
        let axis = &mut rest[0];
        let start: f64 = axis.iter().map(|v| v * v).sum::<f64>().sqrt();
        for other in &*before {
            let along: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
            axis.iter_mut().zip(other).for_each(|(v, other)| *v -= along * other);
        }
        let length: f64 = axis.iter().map(|v| v * v).sum::<f64>().sqrt();
        let is_own = length > 1e-12 * start && length > 0.0;
        axis.iter_mut().for_each(|v| *v = if is_own { *v / length } else { 0.0 });
    }
}
