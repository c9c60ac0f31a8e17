//! Other ways to choose what to run next: edits at random, and the best by additive effects of atoms.

use std::collections::BTreeMap;

use poul::effect::Support;
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Error, Result, Seed};
use rand::RngExt;
use rand::seq::index::sample;

use crate::world::{World, owned};

/// Rows that an action must have had in its context, as for proposals.
const MIN_ROWS: u64 = 50;
/// Weight of no effect at all in the regression, in rows.
const RIDGE: f64 = 50.0;

/// `n` policies, each the base with some contexts changed to actions that were seen there, as near as proposals.
pub(super) fn random_edits(
    model: &Model,
    base: &str,
    n: usize,
    edits: usize,
    within: f64,
    seed: Seed,
) -> Result<PolicySet> {
    let policies = &model.manifest().policies;
    let choices = choices(model);
    let place = policies.require(base)?;
    let mut rng = seed.rng();
    let mut found: Option<PolicySet> = None;
    for attempt in 0..1000 * n {
        let mut does = owned(policies, place);
        for context in sample(&mut rng, does.len(), edits.min(does.len())) {
            if let Some(action) = choices[context].get(rng.random_range(0..choices[context].len().max(1))) {
                does[context] = vec![(action.clone(), 1.0)];
            }
        }
        let one = as_policy(policies, &format!("edit {attempt:06}"), &does)?;
        let all = policies.union(&one)?;
        let distance = all.distance(all.require(base)?, all.require(one.name(0))?);
        if distance > 1e-9 && distance <= within {
            found = Some(found.map_or(Ok(one.clone()), |found| found.union(&one))?);
        }
        if found.as_ref().is_some_and(|found| found.len() == n) {
            break;
        }
    }
    found.ok_or_else(|| Error::other("no edit is near enough"))
}

/// The base with the contexts changed that gain most by a ridge regression of arm means on mixtures.
pub(super) fn additive(
    model: &Model,
    world: &World<'_>,
    base: &str,
    edits: usize,
    within: f64,
) -> Result<PolicySet> {
    let policies = &model.manifest().policies;
    let effects = atom_effects(policies, &world.means()?)?;
    let choices = choices(model);
    let mut does = owned(policies, policies.require(base)?);
    let worth = |context: usize, action: &str| {
        policies.atom_index(&policies.contexts()[context], action).map_or(0.0, |atom| effects[atom])
    };
    let mut gains: Vec<(f64, usize, String, f64)> = Vec::new();
    for (context, own) in does.iter().enumerate() {
        let now: f64 = own.iter().map(|(action, p)| p * worth(context, action)).sum();
        for action in &choices[context] {
            let kept: f64 = own.iter().filter(|(other, _)| other == action).map(|(_, p)| p).sum();
            let weight = policies.weights()[context];
            gains.push((
                weight * (worth(context, action) - now),
                context,
                action.clone(),
                2.0 * weight * (1.0 - kept),
            ));
        }
    }
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut moved, mut changed) = (0.0, Vec::new());
    for (gain, context, action, distance) in gains {
        let is_open = gain > 0.0 && changed.len() < edits && !changed.contains(&context) && distance > 1e-9;
        if is_open && moved + distance <= within {
            does[context] = vec![(action, 1.0)];
            moved += distance;
            changed.push(context);
        }
    }
    as_policy(policies, "additive", &does)
}

/// The actions that were seen often enough in each context.
fn choices(model: &Model) -> Vec<Vec<String>> {
    let manifest = model.manifest();
    let support = Support::new(&manifest.policies, &manifest.policy_rows);
    let of = |context: &String| {
        let seen = |action: &&String| support.atom_rows(context, action) >= MIN_ROWS;
        manifest.policies.actions().iter().filter(seen).cloned().collect()
    };
    manifest.policies.contexts().iter().map(of).collect()
}

fn as_policy(policies: &PolicySet, name: &str, does: &[Vec<(String, f64)>]) -> Result<PolicySet> {
    let mut builder = PolicySet::builder();
    for ((context, weight), actions) in policies.contexts().iter().zip(policies.weights()).zip(does) {
        builder.weight(context, *weight);
        for (action, probability) in actions {
            builder.add(name, context, action, *probability);
        }
    }
    builder.build()
}

/// What each atom adds by itself.
fn atom_effects(policies: &PolicySet, means: &BTreeMap<String, (f64, f64)>) -> Result<Vec<f64>> {
    let n = policies.atoms().len();
    let total: f64 = means.values().map(|(_, rows)| rows).sum();
    let grand = means.values().map(|(mean, rows)| mean * rows).sum::<f64>() / total;
    let mut left = vec![0.0; n * n];
    let mut right = vec![0.0; n];
    for (name, (mean, rows)) in means {
        let mixture = policies.mixture(policies.require(name)?);
        for (a, x) in mixture.atoms.iter().zip(mixture.mass) {
            right[*a as usize] += rows * x * (mean - grand);
            for (b, z) in mixture.atoms.iter().zip(mixture.mass) {
                left[*a as usize * n + *b as usize] += rows * x * z;
            }
        }
    }
    // Masses are shares of a mixture: their squares are small.
    let unit = policies.weights().iter().map(|weight| weight * weight).sum::<f64>();
    (0..n).for_each(|own| left[own * n + own] += RIDGE * unit);
    Ok(solved(left, right, n))
}

/// Elimination without pivots: the matrix is positive definite.
fn solved(mut left: Vec<f64>, mut right: Vec<f64>, n: usize) -> Vec<f64> {
    for pivot in 0..n {
        for row in pivot + 1..n {
            let factor = left[row * n + pivot] / left[pivot * n + pivot];
            for column in pivot..n {
                left[row * n + column] -= factor * left[pivot * n + column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| left[row * n + column] * right[column]).sum();
        right[row] = (right[row] - known) / left[row * n + row];
    }
    right
}
