//! Units of assignment: clusters where there are any, rows otherwise; and strata × policies.

use std::sync::Arc;

use crate::policy::PolicySet;

/// Counts units by policy and finds clusters whose rows have different policies.
pub(super) struct Units {
    /// Rows of each policy.
    pub(super) rows: Vec<u64>,
    /// Clusters of each policy, a cluster counting where its first row stands.
    clusters: Vec<u64>,
    /// Clusters whose rows do not all have the same policy.
    pub(super) split_clusters: u64,
    /// Clusters seen.
    pub(super) n_clusters: u64,
    /// Policy of each cluster code; codes are dense.
    cluster: Vec<ClusterPolicy>,
    /// Rows by stratum and policy.
    strata: Option<Vec<Vec<u64>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum ClusterPolicy {
    Unseen,
    One(u32),
    Several,
}

impl Units {
    pub(super) fn new(n_policies: usize, stratified: bool) -> Self {
        Self {
            rows: vec![0; n_policies],
            clusters: vec![0; n_policies],
            split_clusters: 0,
            n_clusters: 0,
            cluster: Vec::new(),
            strata: stratified.then(Vec::new),
        }
    }

    pub(super) fn add(&mut self, policy: u32, cluster: Option<u32>, stratum: u32) {
        if let Some(strata) = &mut self.strata {
            let stratum = stratum as usize;
            if strata.len() <= stratum {
                strata.resize(stratum + 1, vec![0; self.rows.len()]);
            }
            strata[stratum][policy as usize] += 1;
        }
        self.rows[policy as usize] += 1;
        let Some(cluster) = cluster else {
            return;
        };
        let cluster = cluster as usize;
        if self.cluster.len() <= cluster {
            self.cluster.resize(cluster + 1, ClusterPolicy::Unseen);
        }
        match self.cluster[cluster] {
            ClusterPolicy::Unseen => {
                self.clusters[policy as usize] += 1;
                self.n_clusters += 1;
                self.cluster[cluster] = ClusterPolicy::One(policy);
            }
            ClusterPolicy::One(first) if first != policy => {
                self.split_clusters += 1;
                self.cluster[cluster] = ClusterPolicy::Several;
            }
            _ => {}
        }
    }

    /// Whether policies were assigned to whole clusters; a few split ones are data errors, many are a design.
    pub(super) fn assigned_by_cluster(&self) -> bool {
        self.n_clusters > 0 && self.split_clusters * 50 <= self.n_clusters
    }

    /// Units of assignment of each policy.
    pub(super) fn by_policy(&self) -> &[u64] {
        if self.assigned_by_cluster() { &self.clusters } else { &self.rows }
    }

    /// (stratum, policy) pairs without a row, among policies that have rows somewhere.
    pub(super) fn empty_cells(&self, policies: &PolicySet, strata: &[Arc<str>]) -> Vec<(String, String)> {
        let mut empty = Vec::new();
        for (stratum, by_policy) in self.strata.iter().flatten().enumerate() {
            let missing = |policy: &usize| self.rows[*policy] > 0 && by_policy[*policy] == 0;
            for policy in (0..self.rows.len()).filter(missing) {
                let name = strata.get(stratum).map(ToString::to_string).unwrap_or_default();
                empty.push((name, policies.name(policy).to_string()));
            }
        }
        empty.sort();
        empty
    }
}
