//! How far apart policies are: d_Π(t,t′) = Σ_s w(s)‖Π_t(·|s) − Π_t′(·|s)‖₁ = ‖α_t − α_t′‖₁ (Eq. policy_distance).

use std::cmp::Ordering;

use super::set::{Mixture, PolicySet};
use crate::Seed;

/// Mixtures nearer than this differ only by rounding.
pub(super) const SAME_MIXTURE: f64 = 1e-12;

impl PolicySet {
    /// d_Π between two policies: 0 for equal mixtures, 2 for disjoint ones.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        l1(self.mixture(a), self.mixture(b))
    }

    /// d_Π from one policy to each policy of the set.
    pub fn distances(&self, policy_idx: usize) -> Vec<f64> {
        (0..self.len()).map(|other| self.distance(policy_idx, other)).collect()
    }

    /// The `k` other policies nearest to one, nearest first, equals by name.
    pub fn nearest(&self, policy_idx: usize, k: usize) -> Vec<(usize, f64)> {
        self.nearest_among(policy_idx, (0..self.len()).filter(|other| *other != policy_idx), k)
    }

    /// As [`nearest`](Self::nearest), among `candidates` only (such as the policies that were run).
    pub fn nearest_among(
        &self,
        policy_idx: usize,
        candidates: impl IntoIterator<Item = usize>,
        k: usize,
    ) -> Vec<(usize, f64)> {
        let mut found: Vec<(usize, f64)> =
            candidates.into_iter().map(|other| (other, self.distance(policy_idx, other))).collect();
        // Indices are in the order of names.
        let order = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        if k < found.len() && k > 0 {
            found.select_nth_unstable_by(k - 1, order);
        }
        found.truncate(k);
        found.sort_unstable_by(order);
        found
    }

    /// Groups of two or more policies that induce the same mixture, each group and the groups in order of names.
    pub fn aliases(&self) -> Vec<Vec<usize>> {
        let mut sketches: Vec<(f64, usize)> = (0..self.len()).map(|idx| (self.sketch(idx), idx)).collect();
        sketches.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
        let mut window_start = 0;
        for (sketch, policy_idx) in sketches {
            while window_start < groups.len() && sketch - groups[window_start].0 > 2.0 * SAME_MIXTURE {
                window_start += 1;
            }
            let near = &mut groups[window_start..];
            match near.iter_mut().find(|(_, group)| self.distance(group[0], policy_idx) < SAME_MIXTURE) {
                Some((_, group)) => group.push(policy_idx),
                None => groups.push((sketch, vec![policy_idx])),
            }
        }
        let mut aliases: Vec<Vec<usize>> =
            groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect();
        aliases.iter_mut().for_each(|group| group.sort_unstable());
        aliases.sort_unstable();
        aliases
    }

    /// One number per policy that moves no more than the mixture does: |sketch − sketch′| ≤ d_Π.
    ///
    /// Policies with equal mixtures have equal sketches, others hardly ever: sorting by it finds aliases
    /// without comparing all pairs.
    fn sketch(&self, policy_idx: usize) -> f64 {
        let seed = Seed::new(0).child("alias");
        let mixture = self.mixture(policy_idx);
        let terms = mixture.atoms.iter().zip(mixture.mass).map(|(atom, mass)| {
            let coefficient = seed.index(u64::from(*atom)).value() >> 11;
            mass * (coefficient as f64 / (1_u64 << 53) as f64)
        });
        terms.sum()
    }
}

/// ‖a − b‖₁ of two sparse rows by one merge.
fn l1(a: Mixture<'_>, b: Mixture<'_>) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < a.atoms.len() && j < b.atoms.len() {
        match a.atoms[i].cmp(&b.atoms[j]) {
            Ordering::Less => {
                sum += a.mass[i];
                i += 1;
            }
            Ordering::Greater => {
                sum += b.mass[j];
                j += 1;
            }
            Ordering::Equal => {
                sum += (a.mass[i] - b.mass[j]).abs();
                i += 1;
                j += 1;
            }
        }
    }
    sum + a.mass[i..].iter().chain(&b.mass[j..]).sum::<f64>()
}
