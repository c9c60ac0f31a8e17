//! Policies as the classes of a softmax: the rare and the too many share one class.

use serde::{Deserialize, Serialize};

/// The class of a policy that no row has.
pub(super) const NEVER_RUN: u32 = u32::MAX;

/// How policies map to classes.
///
/// Policies with fewer than `min_rows` rows, and all beyond the `max_classes − 1` most frequent, form one class, the
/// last; within it policies keep their shares. From a handful of rows nothing can be learned on whom a policy was
/// given to, and the cost of a softmax grows with its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PolicyClasses {
    /// Class of each policy; [`NEVER_RUN`] for a policy without rows.
    pub(super) class_of: Vec<u32>,
    /// Share of each policy within its class: 1 for a class of its own.
    pub(super) within: Vec<f32>,
    /// Weighted share of each class among all rows.
    pub(super) shares: Vec<f64>,
    /// Policies in the shared class.
    pub(super) n_pooled: usize,
}

impl PolicyClasses {
    pub(super) fn new(
        policy: &[u32],
        weight: Option<&[f32]>,
        n_policies: usize,
        min_rows: usize,
        max_classes: usize,
    ) -> Self {
        let mut n_rows = vec![0_usize; n_policies];
        policy.iter().for_each(|policy| n_rows[*policy as usize] += 1);
        let mass = masses(policy, weight, n_policies);
        let total: f64 = mass.iter().sum();

        let mut seen: Vec<usize> = (0..n_policies).filter(|policy| n_rows[*policy] > 0).collect();
        // Ties go to the first by name, the order of a policy set.
        seen.sort_by_key(|policy| std::cmp::Reverse(n_rows[*policy]));
        let n_frequent = seen.iter().take_while(|policy| n_rows[**policy] >= min_rows).count();
        let n_own = match seen.len() {
            n_seen if n_frequent == n_seen && n_seen <= max_classes.max(1) => n_seen,
            _ => n_frequent.min(max_classes.saturating_sub(1)),
        };
        let (own, pooled) = seen.split_at(n_own);
        let mut own = own.to_vec();
        own.sort_unstable();

        let mut class_of = vec![NEVER_RUN; n_policies];
        let mut within = vec![0.0; n_policies];
        for (class, policy) in own.iter().enumerate() {
            class_of[*policy] = class as u32;
            within[*policy] = 1.0;
        }
        let pooled_mass: f64 = pooled.iter().map(|policy| mass[*policy]).sum();
        for policy in pooled {
            class_of[*policy] = own.len() as u32;
            within[*policy] = match pooled_mass > 0.0 {
                true => (mass[*policy] / pooled_mass) as f32,
                false => 1.0 / pooled.len() as f32,
            };
        }
        let mut shares: Vec<f64> = own.iter().map(|policy| mass[*policy] / total).collect();
        if !pooled.is_empty() {
            shares.push(pooled_mass / total);
        }
        Self { class_of, within, shares, n_pooled: pooled.len() }
    }

    pub(super) fn len(&self) -> usize {
        self.shares.len()
    }

    /// Class of each row.
    pub(super) fn of_rows(&self, policy: &[u32]) -> Vec<u32> {
        policy.iter().map(|policy| self.class_of[*policy as usize]).collect()
    }

    /// Probabilities of policies from those of classes.
    pub(super) fn expand(&self, classes: &[f32], policies: &mut [f32]) {
        for (policy, probability) in policies.iter_mut().enumerate() {
            *probability = match self.class_of[policy] {
                NEVER_RUN => 0.0,
                class => classes[class as usize] * self.within[policy],
            };
        }
    }
}

/// The weight of each policy's rows.
pub(super) fn masses(policy: &[u32], weight: Option<&[f32]>, n_policies: usize) -> Vec<f64> {
    let mut mass = vec![0.0; n_policies];
    for (row, policy) in policy.iter().enumerate() {
        mass[*policy as usize] += weight.map_or(1.0, |weight| f64::from(weight[row]));
    }
    mass
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy k has `counts[k]` rows.
    fn rows(counts: &[usize]) -> Vec<u32> {
        counts.iter().enumerate().flat_map(|(policy, n)| vec![policy as u32; *n]).collect()
    }

    #[test]
    fn rare_policies_share_a_class_by_their_shares() {
        let classes = PolicyClasses::new(&rows(&[30, 0, 1, 66, 3]), None, 5, 10, 512);
        assert_eq!(classes.class_of, [0, NEVER_RUN, 2, 1, 2]);
        assert_eq!(classes.within, [1.0, 0.0, 0.25, 1.0, 0.75]);
        assert_eq!((classes.shares.as_slice(), classes.n_pooled), ([0.3, 0.66, 0.04].as_slice(), 2));
        let mut policies = [9.0; 5];
        classes.expand(&[0.5, 0.1, 0.4], &mut policies);
        assert_eq!(policies, [0.5, 0.0, 0.1, 0.1, 0.3]);
    }

    #[test]
    fn beyond_the_limit_the_most_frequent_stay() {
        let counts = [50, 40, 70, 60];
        let classes = PolicyClasses::new(&rows(&counts), None, 4, 1, 3);
        assert_eq!((classes.class_of.as_slice(), classes.n_pooled), ([2, 2, 0, 1].as_slice(), 2));
        assert_eq!(PolicyClasses::new(&rows(&counts), None, 4, 1, 4).class_of, [0, 1, 2, 3]);
    }

    #[test]
    fn weights_are_duplicated_rows() {
        let policy = [0, 0, 1, 2, 2, 2];
        let weight = [1.0, 3.0, 2.0, 1.0, 0.0, 2.0];
        let weighted = PolicyClasses::new(&policy, Some(&weight), 3, 1, 2);
        let repeated: Vec<u32> =
            policy.iter().zip(weight).flat_map(|(policy, n)| vec![*policy; n as usize]).collect();
        assert_eq!(masses(&policy, Some(&weight), 3), masses(&repeated, None, 3));
        assert_eq!(weighted.shares.iter().sum::<f64>(), 1.0);
    }
}
