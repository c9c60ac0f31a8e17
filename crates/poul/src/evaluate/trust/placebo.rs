//! A placebo: the learner, with its own settings and one member, on rows whose treatment was permuted. What it finds
//! then is noise, and effects as fitted should be larger.

use rand::seq::SliceRandom;

use super::{Trial, check_result, short};
use crate::data::Design;
use crate::effect::{EffectModel, TrainingData, ValidTrainingData};
use crate::evaluate::{CheckResult, Placebo, Verdict};
use crate::model::learner;
use crate::nuisance::SomeRows;
use crate::{Result, Run, Seed};

/// Policies and rows whose effects are measured.
const MOST_POLICIES: usize = 64;
const MOST_ROWS: usize = 2048;
/// Shares of the size of effects that a permutation may reach: any of them, and all of them on average.
const ANY: f64 = 0.5;
const AVERAGE: f64 = 0.9;

pub(super) fn placebo(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
    n_permutations: usize,
    run: Run<'_>,
) -> Result<Vec<Placebo>> {
    let manifest = trial.model.manifest();
    let learner = learner(&manifest.learner)?;
    let mut settings = manifest.settings.clone();
    // One member is enough to see how large effects are.
    if let Some(members) = settings.model.get_mut("members") {
        *members = 1.into();
    }
    let settings = (learner.settle)(&settings)?;
    let fit = |data: &ValidTrainingData<'_>, run: Run<'_>| {
        let trained = (learner.train)(data, &settings, run)?;
        sizes(trial, data, trained.effects.as_ref())
    };
    let spread = fit(data, run.child("placebo"))?;
    let mut found: Vec<Placebo> = data
        .outcomes
        .iter()
        .zip(spread)
        .map(|(outcome, spread)| Placebo { outcome: outcome.name.to_owned(), spread, permuted: Vec::new() })
        .collect();
    for number in 0..n_permutations as u64 {
        let run = run.child("permutation").index(number);
        let policy = permuted(data, run.seed);
        let mut changed = TrainingData { policy: &policy, ..TrainingData::clone(data) };
        // Permuted rows had their policy at random, whatever the design of the others: within strata, or at all.
        changed.propensity.clear();
        changed.stratum_table = None;
        if changed.design == Design::Observational || changed.stratum.is_none() {
            changed.design = Design::Randomized;
        }
        let sizes = fit(&changed.check()?, run)?;
        found.iter_mut().zip(sizes).for_each(|(own, size)| own.permuted.push(size));
    }
    Ok(found)
}

pub(super) fn check(placebo: &Placebo) -> CheckResult {
    let Placebo { outcome, spread, permuted } = placebo;
    let (low, high) =
        permuted.iter().fold((f64::MAX, 0.0_f64), |(low, high), own| (low.min(*own), high.max(*own)));
    let mean = permuted.iter().sum::<f64>() / permuted.len().max(1) as f64;
    let verdict = match (mean >= AVERAGE * spread, high >= ANY * spread) {
        (true, _) => Verdict::Fail,
        (_, true) => Verdict::Doubt,
        _ => Verdict::Pass,
    };
    let range = if permuted.len() == 1 { short(low) } else { format!("{} to {}", short(low), short(high)) };
    let text = format!(
        "effects on `{outcome}` have size {} as fitted and {range} with the treatment permuted",
        short(*spread)
    );
    check_result("placebo", verdict, text)
}

/// The root mean square of predicted effects over rows and policies, by outcome.
fn sizes(trial: &Trial<'_>, data: &ValidTrainingData<'_>, effects: &dyn EffectModel) -> Result<Vec<f64>> {
    let rows_of = data.policy_rows();
    let mut targets: Vec<usize> =
        (0..rows_of.len()).filter(|policy| rows_of[*policy] > 0 && *policy != trial.against).collect();
    targets.sort_by_key(|policy| std::cmp::Reverse(rows_of[*policy]));
    targets.truncate(MOST_POLICIES);
    let n_rows = data.n_rows();
    let n_measured = n_rows.min(MOST_ROWS);
    let rows: Vec<u32> = (0..n_measured).map(|i| (i * n_rows / n_measured) as u32).collect();
    let scorer = effects.prepare(data.policies, &targets, trial.against)?;
    let scores = scorer.score(&SomeRows { x: data.x, rows: &rows }, false)?;
    let size = |values: &Vec<f32>| {
        let sum: f64 = values.iter().map(|effect| f64::from(*effect).powi(2)).sum();
        (sum / values.len().max(1) as f64).sqrt()
    };
    Ok(scores.mean.iter().map(size).collect())
}

/// The policies dealt out anew: among the clusters, where each has one policy and one stratum, otherwise among the rows;
/// within strata.
fn permuted(data: &ValidTrainingData<'_>, seed: Seed) -> Vec<u32> {
    let n_rows = data.n_rows();
    let stratum = |row: usize| match (data.design, data.stratum) {
        (Design::Stratified, Some(stratum)) => stratum[row],
        _ => 0,
    };
    let by_row: Vec<u32> = (0..n_rows as u32).collect();
    let unit_of = match data.cluster {
        Some(cluster) if is_whole(data.policy, cluster, &stratum) => cluster,
        _ => &by_row,
    };
    let n_units = unit_of.iter().max().map_or(0, |last| *last as usize + 1);
    let mut first = vec![None; n_units];
    unit_of.iter().enumerate().rev().for_each(|(row, unit)| first[*unit as usize] = Some(row));
    let n_strata = (0..n_rows).map(|row| stratum(row) as usize + 1).max().unwrap_or(0);
    let mut by_stratum = vec![Vec::new(); n_strata];
    for (unit, first) in first.iter().enumerate() {
        if let Some(row) = first {
            by_stratum[stratum(*row) as usize].push((unit, data.policy[*row]));
        }
    }
    let mut of_unit = vec![0; n_units];
    for (number, units) in by_stratum.iter().enumerate() {
        let mut policies: Vec<u32> = units.iter().map(|(_, policy)| *policy).collect();
        policies.shuffle(&mut seed.child("shuffle").index(number as u64).rng());
        units.iter().zip(policies).for_each(|((unit, _), policy)| of_unit[*unit] = policy);
    }
    unit_of.iter().map(|unit| of_unit[*unit as usize]).collect()
}

/// Whether every cluster has one policy and one stratum.
fn is_whole(policy: &[u32], cluster: &[u32], stratum: &dyn Fn(usize) -> u32) -> bool {
    let n_clusters = cluster.iter().max().map_or(0, |last| *last as usize + 1);
    let mut first = vec![None; n_clusters];
    cluster.iter().enumerate().all(|(row, cluster)| {
        let own = (policy[row], stratum(row));
        *first[*cluster as usize].get_or_insert(own) == own
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::OutcomeColumn;
    use crate::net::DenseRows;
    use crate::policy::PolicySet;

    #[test]
    fn policies_are_dealt_within_strata_and_by_cluster() {
        let mut builder = PolicySet::builder();
        ["a", "b", "c"].iter().for_each(|name| {
            builder.add(name, "s", name, 1.0);
        });
        let policies = builder.build().unwrap();
        let n = 120;
        let stratum: Vec<u32> = (0..n).map(|row| row / 60).collect();
        let cluster: Vec<u32> = (0..n).map(|row| row / 2).collect();
        let policy: Vec<u32> = (0..n).map(|row| (row / 2) % (2 + row / 60)).collect();
        let values: Vec<f64> = (0..n).map(f64::from).collect();
        let x = vec![0.0; n as usize];
        let x = DenseRows::new(&x, 1).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &values, prediction: None }];
        let mut data = TrainingData::new(&x, &policies, &policy, outcomes);
        (data.design, data.stratum, data.cluster) =
            (Design::Stratified, Some(stratum.as_slice()), Some(cluster.as_slice()));
        let data = data.check().unwrap();
        let found = permuted(&data, Seed::new(1));
        let counts = |policy: &[u32]| {
            let mut counts = [[0; 3]; 2];
            policy.iter().zip(&stratum).for_each(|(t, s)| counts[*s as usize][*t as usize] += 1);
            counts
        };
        assert_eq!(counts(&found), counts(&policy));
        assert!(found.chunks(2).all(|pair| pair[0] == pair[1]));
        assert_ne!(found, policy);
        assert_eq!(found, permuted(&data, Seed::new(1)));
    }

    #[test]
    fn effects_no_larger_than_noise_fail() {
        let verdict = |permuted: &[f64]| {
            let placebo = Placebo { outcome: "y".into(), spread: 1.0, permuted: permuted.to_vec() };
            check(&placebo).verdict
        };
        assert_eq!(verdict(&[0.1, 0.3]), Verdict::Pass);
        assert_eq!(verdict(&[0.1, 0.6]), Verdict::Doubt);
        assert_eq!(verdict(&[1.1, 0.8]), Verdict::Fail);
    }
}
