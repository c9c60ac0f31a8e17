//! What each row's own policy does beyond what was assigned on average: τ(x; T) − Σ_t π(t|x) τ(x; t).
//!
//! It does not depend on the policy that effects are taken against. With up to 512 policies the average is exact. With more
//! it is over 512 policies drawn by their shares, the same for all rows, each with weight π(t|x) over the share that it was
//! drawn by. What such a draw misses is nearly the same in every row, and metrics around the mean do not see it; what is left
//! is a 512th of the variance between policies of what sets rows apart.

use rand::RngExt;

use super::{EffectModel, Scorer};
use crate::net::RowSource;
use crate::nuisance::{Propensity, SomeRows};
use crate::policy::PolicySet;
use crate::{Error, Progress, Result, Seed};

/// Policies that an average is over, at most.
const MOST_POLICIES: usize = 512;
/// Policies scored together where each row needs its own only: rows are in the order of their policies.
const OWN_POLICIES: usize = 64;
/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

/// Rows with the policy that each was given.
#[derive(Clone, Copy)]
pub struct AssignedTable<'a> {
    /// The policies.
    pub policies: &'a PolicySet,
    /// The policy of each row.
    pub policy: &'a [u32],
    /// π(t|x) over the policies.
    pub propensity: &'a Propensity,
    /// Whether each policy can be scored. Rows of others get no contrast, and averages leave these policies out.
    pub is_scored: &'a [bool],
    /// The policy that effects are taken against.
    pub against: usize,
    /// The root of the draws of policies.
    pub seed: Seed,
}

/// The effects of a policy in every row.
#[derive(Clone, Copy, Debug)]
pub struct PolicyColumn<'a> {
    /// The policy.
    pub policy: usize,
    /// Its effects.
    pub effects: &'a [f64],
}

impl AssignedTable<'_> {
    /// The contrasts by effects at hand; none where a policy that was assigned has no column. NaN where a row's own policy
    /// cannot be scored.
    pub(crate) fn by_columns(&self, columns: &[PolicyColumn<'_>]) -> Option<Vec<f64>> {
        let mut of_policy = vec![None; self.policies.len()];
        columns.iter().for_each(|column| of_policy[column.policy] = Some(column.effects));
        let average = self.average();
        if average.is_drawn || average.targets.iter().any(|policy| of_policy[*policy].is_none()) {
            return None;
        }
        let effect = |policy: usize, row: usize| match of_policy[policy] {
            _ if policy == self.against => Some(0.0),
            Some(effects) => effects.get(row).copied(),
            None => None,
        };
        let contrast = |row: usize| {
            let own = effect(self.policy[row] as usize, row).filter(|_| self.has_own(row))?;
            let effects = average.targets.iter().map(|policy| effect(*policy, row).unwrap_or(f64::NAN));
            Some(own - average.of_row(row, self.propensity, effects))
        };
        Some((0..self.policy.len()).map(|row| contrast(row).unwrap_or(f64::NAN)).collect())
    }

    /// The contrasts by a model, for each of its outcomes; NaN where a row's own policy cannot be scored. `x` are the
    /// encoded features.
    pub(crate) fn by_model(
        &self,
        model: &dyn EffectModel,
        x: &dyn RowSource,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<f64>>> {
        let n_rows = self.policy.len();
        if x.n_rows() != n_rows || self.is_scored.len() != self.policies.len() {
            return Err(Error::other("features of other rows, or marks of other policies"));
        }
        let average = self.average();
        let mut contrasts = vec![vec![f64::NAN; n_rows]; model.outcomes().len()];
        if average.targets.is_empty() && average.against_share == 0.0 {
            return Ok(contrasts);
        }
        progress.start("Scoring each row's own policy", "rows", Some(n_rows as u64));
        self.own_effects(model, x, &mut contrasts, progress)?;
        if !average.targets.is_empty() {
            let scorer = model.prepare(self.policies, &average.targets, self.against)?;
            let rows: Vec<u32> = (0..n_rows as u32).collect();
            let n_targets = average.targets.len();
            for rows in rows.chunks((BLOCK_PAIRS / n_targets).max(64)) {
                let means = scored(scorer.as_ref(), x, rows, progress)?;
                for (means, contrasts) in means.iter().zip(&mut contrasts) {
                    for (row, effects) in rows.iter().zip(means.chunks_exact(n_targets)) {
                        let effects = effects.iter().map(|effect| f64::from(*effect));
                        contrasts[*row as usize] -= average.of_row(*row as usize, self.propensity, effects);
                    }
                }
            }
        }
        progress.finish();
        Ok(contrasts)
    }

    fn has_own(&self, row: usize) -> bool {
        self.is_scored[self.policy[row] as usize]
    }

    /// τ(x; T) of each row: rows in the order of their policies, so that few other policies are scored beside its own.
    fn own_effects(
        &self,
        model: &dyn EffectModel,
        x: &dyn RowSource,
        effects: &mut [Vec<f64>],
        progress: &dyn Progress,
    ) -> Result<()> {
        let mut rows: Vec<u32> =
            (0..self.policy.len() as u32).filter(|row| self.has_own(*row as usize)).collect();
        rows.sort_by_key(|row| self.policy[*row as usize]);
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let mut targets: Vec<usize> = Vec::new();
            let mut n_rows = 0;
            for row in rest {
                let own = self.policy[*row as usize];
                if own as usize != self.against && targets.last() != Some(&(own as usize)) {
                    if targets.len() == OWN_POLICIES {
                        break;
                    }
                    targets.push(own as usize);
                }
                n_rows += 1;
            }
            let (chunk, others) = rest.split_at(n_rows);
            rest = others;
            let is_against = |row: &&u32| self.policy[**row as usize] as usize == self.against;
            for row in chunk.iter().filter(is_against) {
                effects.iter_mut().for_each(|effects| effects[*row as usize] = 0.0);
            }
            if targets.is_empty() {
                continue;
            }
            let scorer = model.prepare(self.policies, &targets, self.against)?;
            for rows in chunk.chunks((BLOCK_PAIRS / targets.len()).max(64)) {
                let means = scored(scorer.as_ref(), x, rows, progress)?;
                for (place, row) in rows.iter().enumerate() {
                    let own = self.policy[*row as usize] as usize;
                    let Ok(target) = targets.binary_search(&own) else { continue };
                    for (means, effects) in means.iter().zip(effects.iter_mut()) {
                        effects[*row as usize] = f64::from(means[place * targets.len() + target]);
                    }
                }
                progress.advance(rows.len() as u64);
            }
        }
        Ok(())
    }

    /// The policies that averages are over.
    fn average(&self) -> Average {
        let n_policies = self.policies.len();
        let mut shares = match self.propensity {
            Propensity::Shares(shares) => shares.iter().map(|share| f64::from(*share)).collect(),
            _ => {
                let mut sums = vec![0.0; n_policies];
                for row in 0..self.policy.len() {
                    let own = self.propensity.of_row(row, n_policies);
                    sums.iter_mut().zip(own).for_each(|(sum, share)| *sum += f64::from(*share));
                }
                sums
            }
        };
        shares
            .iter_mut()
            .zip(self.is_scored)
            .for_each(|(share, scored)| *share *= f64::from(u8::from(*scored)));
        let total: f64 = shares.iter().sum();
        if total > 0.0 {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        let assigned: Vec<usize> = (0..n_policies).filter(|policy| shares[*policy] > 0.0).collect();
        let is_drawn = assigned.len() > MOST_POLICIES;
        // How much a policy's π(t|x) counts.
        let factor = match is_drawn {
            false => shares.iter().map(|share| f64::from(u8::from(*share > 0.0))).collect(),
            true => drawn(&shares, self.seed.child("assigned policies")),
        };
        let is_target = |policy: &usize| factor[*policy] > 0.0 && *policy != self.against;
        let targets: Vec<usize> = assigned.into_iter().filter(is_target).collect();
        let shared = match self.propensity {
            Propensity::Shares(shares) => Some(Weights::new(shares, &targets, &factor, self.against)),
            _ => None,
        };
        let against_share = factor[self.against] * shares[self.against];
        Average { targets, factor, against: self.against, shared, against_share, is_drawn, n_policies }
    }
}

/// An average over policies as they were assigned.
struct Average {
    /// Without the policy that effects are taken against, whose effect is 0.
    targets: Vec<usize>,
    /// By policy, what π(t|x) is multiplied with.
    factor: Vec<f64>,
    against: usize,
    /// Where all rows have the same.
    shared: Option<Weights>,
    against_share: f64,
    is_drawn: bool,
    n_policies: usize,
}

/// The weights of the targets, which sum to one with that of the policy that effects are taken against.
struct Weights(Vec<f64>);

impl Weights {
    fn new(shares: &[f32], targets: &[usize], factor: &[f64], against: usize) -> Self {
        let weight = |policy: usize| f64::from(shares[policy]) * factor[policy];
        let total: f64 = targets.iter().map(|policy| weight(*policy)).sum::<f64>() + weight(against);
        // A row none of whose own policies was drawn takes the average of all.
        let weight =
            |policy: &usize| if total > 0.0 { weight(*policy) / total } else { 1.0 / targets.len() as f64 };
        Self(targets.iter().map(weight).collect())
    }
}

impl Average {
    fn of_row(&self, row: usize, propensity: &Propensity, effects: impl Iterator<Item = f64>) -> f64 {
        let own = match &self.shared {
            Some(_) => None,
            None => {
                let shares = propensity.of_row(row, self.n_policies);
                Some(Weights::new(shares, &self.targets, &self.factor, self.against))
            }
        };
        let weights = self.shared.as_ref().or(own.as_ref()).map_or(&[][..], |weights| &weights.0);
        weights.iter().zip(effects).map(|(weight, effect)| weight * effect).sum()
    }
}

/// How often each policy was drawn, over its share: one draw in each of many equal parts of all shares.
fn drawn(shares: &[f64], seed: Seed) -> Vec<f64> {
    let mut rng = seed.rng();
    let mut factor = vec![0.0; shares.len()];
    let (mut policy, mut below) = (0, 0.0);
    for draw in 0..MOST_POLICIES {
        let place = (draw as f64 + rng.random_range(0.0..1.0)) / MOST_POLICIES as f64;
        while policy + 1 < shares.len() && (below + shares[policy] <= place || shares[policy] == 0.0) {
            below += shares[policy];
            policy += 1;
        }
        if shares[policy] > 0.0 {
            factor[policy] += 1.0 / shares[policy];
        }
    }
    factor
}

fn scored(
    scorer: &dyn Scorer,
    x: &dyn RowSource,
    rows: &[u32],
    progress: &dyn Progress,
) -> Result<Vec<Vec<f32>>> {
    if progress.cancelled() {
        return Err(Error::cancelled());
    }
    Ok(scorer.score(&SomeRows { x, rows }, false)?.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Scores, Tensor};
    use crate::net::DenseRows;
    use std::sync::Arc;

    /// The effect of a policy is its number times one plus the row's feature.
    struct ByNumber {
        outcomes: Vec<String>,
    }

    struct NumberScorer {
        steps: Vec<f32>,
    }

    impl Scorer for NumberScorer {
        fn score(&self, x: &dyn RowSource, _: bool) -> Result<Scores> {
            let rows: Vec<u32> = (0..x.n_rows() as u32).collect();
            let mut values = vec![0.0; rows.len()];
            x.copy_rows(&rows, &mut values);
            let mean =
                values.iter().flat_map(|x| self.steps.iter().map(move |step| step * (1.0 + x))).collect();
            Ok(Scores { mean: vec![mean], spread: Vec::new() })
        }

        fn has_spread(&self) -> bool {
            false
        }
    }

    impl EffectModel for ByNumber {
        fn outcomes(&self) -> &[String] {
            &self.outcomes
        }

        fn n_features(&self) -> usize {
            1
        }

        fn prepare<'m>(
            &'m self,
            _: &PolicySet,
            targets: &[usize],
            against: usize,
        ) -> Result<Box<dyn Scorer + 'm>> {
            let steps = targets.iter().map(|target| *target as f32 - against as f32).collect();
            Ok(Box::new(NumberScorer { steps }))
        }

        fn manifest(&self) -> Result<serde_json::Value> {
            Ok(serde_json::Value::Null)
        }

        fn tensors(&self) -> Vec<Tensor<'_>> {
            Vec::new()
        }
    }

    fn policies(n: usize) -> PolicySet {
        let names: Vec<String> = (0..n).map(|policy| format!("p{policy:05}")).collect();
        PolicySet::factorial(&["arm".to_owned()], names.iter().map(|name| [name.as_str()]), None).unwrap()
    }

    fn contrasts(table: &AssignedTable<'_>, x: &[f32]) -> Vec<f64> {
        let model = ByNumber { outcomes: vec!["y".to_owned()] };
        let x = DenseRows::new(x, 1).unwrap();
        table.by_model(&model, &x, &crate::Silent).unwrap().remove(0)
    }

    #[test]
    fn few_policies_are_averaged_exactly_whatever_they_are_against() {
        let (policies, x) = (policies(100), (0..300).map(|row| row as f32 / 300.0).collect::<Vec<f32>>());
        let policy: Vec<u32> = (0..300).map(|row| row * 7 % 100).collect();
        let strata = Propensity::Strata {
            table: Arc::new(
                (0..200)
                    .map(|cell| if cell < 100 { 0.01 } else { f32::from(u8::from(cell < 150)) * 0.02 })
                    .collect(),
            ),
            of_row: (0..300).map(|row| row % 2).collect(),
        };
        let seed = Seed::new(1);
        for propensity in [Propensity::shares(&policy, None, 100), strata] {
            for against in [0, 42] {
                let is_scored = vec![true; 100];
                let table = AssignedTable {
                    policies: &policies,
                    policy: &policy,
                    propensity: &propensity,
                    is_scored: &is_scored,
                    against,
                    seed,
                };
                let found = contrasts(&table, &x);
                let columns: Vec<Vec<f64>> = (0..100)
                    .map(|policy| {
                        x.iter().map(|x| (policy as f64 - against as f64) * f64::from(1.0 + x)).collect()
                    })
                    .collect();
                let columns: Vec<PolicyColumn<'_>> = columns
                    .iter()
                    .enumerate()
                    .map(|(policy, effects)| PolicyColumn { policy, effects })
                    .collect();
                let by_columns = table.by_columns(&columns).unwrap();
                for row in 0..300 {
                    let mean = if matches!(propensity, Propensity::Strata { .. }) && row % 2 == 1 {
                        24.5
                    } else {
                        49.5
                    };
                    let expected = (f64::from(policy[row]) - mean) * f64::from(1.0 + x[row]);
                    assert!((found[row] - expected).abs() < 1e-4, "{row}: {} {expected}", found[row]);
                    assert!((by_columns[row] - expected).abs() < 1e-4, "{row}");
                }
            }
        }
    }

    #[test]
    fn many_policies_are_drawn_and_rows_that_cannot_be_scored_have_none() {
        let n = 5000;
        let policies = policies(n);
        let policy: Vec<u32> = (0..n as u32).collect();
        let x = vec![0.0; n];
        let propensity = Propensity::shares(&policy, None, n);
        let is_scored: Vec<bool> = (0..n).map(|policy| policy % 10 != 3).collect();
        let table = AssignedTable {
            policies: &policies,
            policy: &policy,
            propensity: &propensity,
            is_scored: &is_scored,
            against: 7,
            seed: Seed::new(3),
        };
        let found = contrasts(&table, &x);
        assert!(found.iter().enumerate().all(|(row, contrast)| contrast.is_nan() == (row % 10 == 3)));
        // One draw in each part of the shares: the error is far below that of 512 independent draws, 64.
        let mean = found.iter().filter(|contrast| contrast.is_finite()).sum::<f64>() / 4500.0;
        assert!(mean.abs() < 10.0, "{mean}");
        assert!((found[11] - found[1] - 10.0).abs() < 1e-2);
        assert_eq!(table.by_columns(&[]), None);
    }
}
