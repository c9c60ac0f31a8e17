//! Random policies as a platform accumulates them: originals, near-copies of them, Zipf exposure, some never run.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::policies::{PolicyTable, Rules};
use crate::{Error, Result, Rng, Seed};

/// Policies with their shares of the experiment; a share of 0 is a policy held out.
pub(super) struct Recombined {
    /// All policies, control first.
    pub(super) table: PolicyTable,
    /// Shares, Zipf over a random order of the policies that are run, control the largest.
    pub(super) shares: Vec<f64>,
}

/// Draws `n_policies` distinct policies, of which half are near-copies and a fifth (all of them copies) is held out.
pub(super) fn recombined(
    n_policies: usize,
    n_contexts: usize,
    n_actions: usize,
    seed: Seed,
) -> Result<Recombined> {
    let mut rng = seed.rng();
    let mut table = empty_table(n_contexts, n_actions, &mut rng);
    let control = certain(n_contexts, n_actions);
    let n_copies = (n_policies - 1) / 2;
    let n_held_out = n_policies / 5;

    let mut known = BTreeSet::from([control.clone()]);
    let mut drawn = vec![control];
    while drawn.len() < n_policies {
        let is_copy = drawn.len() >= n_policies - n_copies;
        let distinct = (0..1_000).find_map(|_| {
            let rules = if is_copy {
                let parent = &drawn[rng.random_range(0..drawn.len())];
                near_copy(parent, n_contexts, n_actions, &mut rng)
            } else {
                original(n_contexts, n_actions, &mut rng)
            };
            known.insert(rules.clone()).then_some(rules)
        });
        let Some(rules) = distinct else {
            let what = format!(
                "{n_policies} different policies do not fit {n_contexts} contexts × {n_actions} actions"
            );
            return Err(Error::usage(what).hint("ask for fewer policies, or more contexts or actions"));
        };
        drawn.push(rules);
    }

    // Names must not tell originals from copies, so the order is random.
    let mut order: Vec<usize> = (1..n_policies).collect();
    order.shuffle(&mut rng);
    order.insert(0, 0);
    let width = (n_policies - 1).to_string().len().max(3);
    table.names = (0..n_policies).map(|idx| format!("p{idx:0width$}")).collect();
    table.names[0] = "control".to_string();
    table.rules = order.iter().map(|&idx| drawn[idx].clone()).collect();

    let copies = (0..n_policies).filter(|&idx| order[idx] >= n_policies - n_copies);
    let mut held_out: Vec<usize> = copies.collect();
    held_out.shuffle(&mut rng);
    held_out.truncate(n_held_out);
    Ok(Recombined { table, shares: zipf_shares(n_policies, &held_out, &mut rng) })
}

/// The rules of a policy unrelated to any other; what calibration averages over.
pub(super) fn original(n_contexts: usize, n_actions: usize, rng: &mut Rng) -> Rules {
    // A team thinks in a few actions at a time: up to three favourites, and none.
    let mut favourites: Vec<usize> = (1..n_actions).collect();
    favourites.shuffle(rng);
    favourites.truncate(rng.random_range(1..=3));
    favourites.push(0);
    (0..n_contexts).flat_map(|_| cell(&favourites, n_actions, rng)).collect()
}

/// `parent` with one to three contexts changed to anything else.
fn near_copy(parent: &Rules, n_contexts: usize, n_actions: usize, rng: &mut Rng) -> Rules {
    let all: Vec<usize> = (0..n_actions).collect();
    let mut rules = parent.clone();
    for _ in 0..rng.random_range(1..=3) {
        let context_idx = rng.random_range(0..n_contexts);
        let changed = cell(&all, n_actions, rng);
        rules[context_idx * n_actions..(context_idx + 1) * n_actions].copy_from_slice(&changed);
    }
    rules
}

/// One context: certain four times in five, else two actions mixed in steps of 5 %.
fn cell(actions: &[usize], n_actions: usize, rng: &mut Rng) -> Vec<u8> {
    let mut percent = vec![0; n_actions];
    let first = actions[rng.random_range(0..actions.len())];
    let second = actions[rng.random_range(0..actions.len())];
    let share = if rng.random_bool(0.2) { 5 * rng.random_range(1..20_u8) } else { 0 };
    percent[first] += 100 - share;
    percent[second] += share;
    percent
}

fn certain(n_contexts: usize, n_actions: usize) -> Rules {
    (0..n_contexts * n_actions).map(|atom| if atom % n_actions == 0 { 100 } else { 0 }).collect()
}

fn empty_table(n_contexts: usize, n_actions: usize, rng: &mut Rng) -> PolicyTable {
    let width = n_contexts.to_string().len().max(2);
    let action = |idx| if idx == 0 { "none".to_string() } else { format!("action_{idx}") };
    PolicyTable {
        contexts: (1..=n_contexts).map(|idx| format!("context_{idx:0width$}")).collect(),
        weights: (0..n_contexts).map(|_| rng.random_range(1..=10)).collect(),
        actions: (0..n_actions).map(action).collect(),
        ..PolicyTable::default()
    }
}

fn zipf_shares(n_policies: usize, held_out: &[usize], rng: &mut Rng) -> Vec<f64> {
    let mut seen: Vec<usize> = (1..n_policies).filter(|idx| !held_out.contains(idx)).collect();
    seen.shuffle(rng);
    seen.insert(0, 0);
    let total: f64 = (1..=seen.len()).map(|rank| 1.0 / rank as f64).sum();
    let mut shares = vec![0.0; n_policies];
    for (rank, policy_idx) in seen.into_iter().enumerate() {
        shares[policy_idx] = 1.0 / (rank + 1) as f64 / total;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_distinct_distributions_and_a_fifth_is_held_out() {
        let Recombined { table, shares } = recombined(60, 12, 5, Seed::new(1)).unwrap();
        assert_eq!(table.rules.iter().collect::<BTreeSet<_>>().len(), 60);
        for rules in &table.rules {
            assert!(rules.chunks(5).all(|cell| cell.iter().map(|&p| u32::from(p)).sum::<u32>() == 100));
        }
        assert_eq!(shares.iter().filter(|&&share| share == 0.0).count(), 12);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(shares.iter().all(|&share| share <= shares[0]));
        assert_eq!(table.names[0], "control");
        assert!(table.rules[0].chunks(5).all(|cell| cell[0] == 100));
    }

    #[test]
    fn held_out_policies_are_near_others() {
        let Recombined { table, shares } = recombined(60, 12, 5, Seed::new(2)).unwrap();
        let differing = |a: &Rules, b: &Rules| a.chunks(5).zip(b.chunks(5)).filter(|(a, b)| a != b).count();
        for idx in (0..60).filter(|&idx| shares[idx] == 0.0) {
            let nearest = (0..60).filter(|&other| other != idx);
            let nearest =
                nearest.map(|other| differing(&table.rules[idx], &table.rules[other])).min().unwrap();
            assert!((1..=3).contains(&nearest), "{nearest}");
        }
    }

    #[test]
    fn two_policies_are_control_and_one_other() {
        let Recombined { table, shares } = recombined(2, 1, 2, Seed::new(3)).unwrap();
        assert_eq!(table.names, ["control", "p001"]);
        assert!(shares.iter().all(|&share| share > 0.0));
    }

    #[test]
    fn too_many_for_the_atoms_is_said() {
        let error = recombined(500, 1, 2, Seed::new(4)).err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Usage);
    }
}
