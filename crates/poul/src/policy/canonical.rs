//! From entries in any order to the one canonical set: checks, normalises, sorts.
//!
//! Sums run over sorted names, so that not even a rounding error depends on the order of a file.

use std::collections::BTreeMap;

use super::builder::{EVERY_OTHER, PolicySetBuilder, Row};
use super::contexts::{contexts_and_weights, rank_contexts, scale_to_one};
use super::set::{Atom, PolicySet};
use crate::{Error, Result};

/// How far from 1 the probabilities of a context may sum before they are normalised.
const SUM_TOLERANCE: f64 = 1e-6;

/// Stands for `*`; sorts after every context.
pub(super) const REST: u32 = u32::MAX;

pub(super) fn build(mut builder: PolicySetBuilder) -> Result<PolicySet> {
    let (names, policy_rank) = sort(builder.policies.as_slice());
    if names.is_empty() {
        let error = Error::input("there are no policies").hint("define at least one policy");
        return Err(builder.source.place(error, 0));
    }
    let (contexts, weights) = contexts_and_weights(&builder)?;
    let context_rank = rank_contexts(&builder, &contexts)?;
    let (actions, action_rank) = sort(builder.actions.as_slice());

    let mut rows = std::mem::take(&mut builder.rows);
    for row in &mut rows {
        row.policy = policy_rank[row.policy as usize];
        row.context = context_rank[row.context as usize];
        row.action = action_rank[row.action as usize];
    }
    let (rows, starts) = sort_rows(rows, names.len());

    let known = Known { builder: &builder, names: &names, contexts: &contexts, actions: &actions };
    known.refuse_duplicates(&rows)?;
    let mut place_of = vec![0; names.len()];
    for (number, rank) in policy_rank.iter().enumerate() {
        place_of[*rank as usize] = builder.policy_places[number];
    }

    let mut entries = Entries::default();
    let mut rest = BTreeMap::new();
    for (policy_idx, place) in place_of.into_iter().enumerate() {
        let own = &rows[starts[policy_idx]..starts[policy_idx + 1]];
        let every_other = known.policy(policy_idx, place, own, &mut entries)?;
        if !every_other.is_empty() {
            let named = every_other.into_iter().map(|(action, p)| (actions[action as usize].clone(), p));
            rest.insert(policy_idx as u32, named.collect());
        }
        entries.offsets.push(entries.keys.len());
    }

    let (actions, atoms, entry_atoms) = number_atoms(&entries.keys, contexts.len(), actions);
    let entry_mass = entry_atoms
        .iter()
        .zip(&entries.conditional)
        .map(|(atom, probability)| weights[atoms[*atom as usize].context as usize] * probability)
        .collect();
    Ok(PolicySet {
        contexts,
        weights,
        weights_declared: builder.weights.is_some(),
        actions,
        atoms,
        names,
        offsets: std::iter::once(0).chain(entries.offsets).collect(),
        entry_atoms,
        entry_mass,
        entry_conditional: entries.conditional,
        rest,
        attributes: builder.attributes,
        exposure: builder.exposure,
    })
}

/// The sparse rows under construction; a key is a context and an action before atoms have numbers.
#[derive(Default)]
struct Entries {
    offsets: Vec<usize>,
    keys: Vec<(u32, u32)>,
    conditional: Vec<f64>,
}

/// Names by rank, for messages.
struct Known<'a> {
    builder: &'a PolicySetBuilder,
    names: &'a [String],
    contexts: &'a [String],
    actions: &'a [String],
}

impl Known<'_> {
    /// Appends one policy's entries and returns what `*` stands for in it.
    fn policy(
        &self,
        policy_idx: usize,
        place: u32,
        rows: &[Row],
        out: &mut Entries,
    ) -> Result<Vec<(u32, f64)>> {
        let (mut named, every_other) = rows.split_at(rows.partition_point(|row| row.context != REST));
        let every_other = self.distribution(every_other)?;
        let mut left_out = Vec::new();
        for context in 0..self.contexts.len() as u32 {
            let (here, later) = named.split_at(named.partition_point(|row| row.context <= context));
            named = later;
            let own = self.distribution(here)?;
            let chosen = if own.is_empty() { &every_other } else { &own };
            if chosen.is_empty() {
                left_out.push(context);
            }
            for (action, probability) in chosen {
                out.keys.push((context, *action));
                out.conditional.push(*probability);
            }
        }
        let Some(first) = left_out.first() else {
            return Ok(every_other);
        };
        let context = &self.contexts[*first as usize];
        let more = match left_out.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let error = Error::input(format!("the policy leaves out context `{context}`{more}"));
        let hint = format!(
            "say what it does in `{context}`, or use the context `*` for every context it does not name"
        );
        let policy = &self.names[policy_idx];
        Err(self.builder.source.place(error, place).at(format!("policy `{policy}`")).hint(hint))
    }

    /// The actions of one context with their probabilities, summing to 1; empty without rows.
    fn distribution(&self, rows: &[Row]) -> Result<Vec<(u32, f64)>> {
        let mut actions: Vec<(u32, f64)> = Vec::with_capacity(rows.len());
        actions
            .extend(rows.iter().filter(|row| row.probability > 0.0).map(|row| (row.action, row.probability)));
        // An empty sum is -0, which would show in a message.
        let sum = actions.iter().map(|(_, probability)| probability).sum::<f64>() + 0.0;
        match rows.first() {
            Some(row) if (sum - 1.0).abs() > SUM_TOLERANCE => {
                let first_place = rows.iter().map(|row| row.place).min().unwrap_or(0);
                let error =
                    Error::input(format!("the probabilities sum to {}, not 1", (sum * 1e9).round() / 1e9));
                let error = self.builder.source.place(error, first_place);
                Err(self.name(error, row).hint("make the probabilities of the context's actions sum to 1"))
            }
            _ => {
                if let Some(scale) = scale_to_one(sum, actions.len()) {
                    actions.iter_mut().for_each(|(_, probability)| *probability /= scale);
                }
                Ok(actions)
            }
        }
    }

    fn refuse_duplicates(&self, rows: &[Row]) -> Result<()> {
        let duplicate = rows
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .filter(|(a, b)| (a.policy, a.context, a.action) == (b.policy, b.context, b.action))
            .min_by_key(|(_, second)| second.place);
        let Some((first, second)) = duplicate else {
            return Ok(());
        };
        let before = match self.builder.source.describe(first.place) {
            Some(place) => format!(" (first on {place})"),
            None => String::new(),
        };
        let action = &self.actions[second.action as usize];
        let error = Error::input(format!("action `{action}` is given twice{before}"));
        let error = self.builder.source.place(error, second.place);
        Err(self.name(error, &second).hint("keep one of the two, with the whole probability"))
    }

    fn name(&self, error: Error, row: &Row) -> Error {
        let context = self.contexts.get(row.context as usize).map_or(EVERY_OTHER, String::as_str);
        error.at(format!("policy `{}`", self.names[row.policy as usize])).at(format!("context `{context}`"))
    }
}

/// Sorted names, and the rank of each by its number.
pub(super) fn sort(names: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_unstable_by(|a, b| names[*a as usize].cmp(&names[*b as usize]));
    let mut ranks = vec![0; names.len()];
    for (rank, number) in order.iter().enumerate() {
        ranks[*number as usize] = rank as u32;
    }
    (order.into_iter().map(|number| names[number as usize].clone()).collect(), ranks)
}

/// The rows by policy, context and action, with the place of each policy's first row in the result.
fn sort_rows(mut rows: Vec<Row>, n_policies: usize) -> (Vec<Row>, Vec<usize>) {
    // First by policy alone, in linear time: what is left to sort is short and stays in cache.
    let mut starts = vec![0; n_policies + 1];
    rows.iter().for_each(|row| starts[row.policy as usize + 1] += 1);
    for policy in 0..n_policies {
        starts[policy + 1] += starts[policy];
    }
    if !rows.is_sorted_by_key(|row| row.policy) {
        let mut next = starts.clone();
        let unsorted = rows.clone();
        for row in unsorted {
            let slot = &mut next[row.policy as usize];
            rows[*slot] = row;
            *slot += 1;
        }
    }
    for pair in starts.windows(2) {
        rows[pair[0]..pair[1]].sort_unstable_by_key(|row| (row.context, row.action, row.place));
    }
    (rows, starts)
}

/// The actions in use, the sorted atoms, and the atom of each key.
fn number_atoms(
    keys: &[(u32, u32)],
    n_contexts: usize,
    actions: Vec<String>,
) -> (Vec<String>, Vec<Atom>, Vec<u32>) {
    // The sorted actions of each context: few, where keys are many.
    let mut taken: Vec<Vec<u32>> = vec![Vec::new(); n_contexts];
    for (context, action) in keys {
        let taken = &mut taken[*context as usize];
        if let Err(insertion) = taken.binary_search(action) {
            taken.insert(insertion, *action);
        }
    }
    let mut first_atom = Vec::with_capacity(n_contexts);
    let mut n_atoms = 0;
    for taken in &taken {
        first_atom.push(n_atoms as u32);
        n_atoms += taken.len();
    }
    let entry_atoms = keys
        .iter()
        .map(|(context, action)| {
            let below = taken[*context as usize].partition_point(|candidate| candidate < action);
            first_atom[*context as usize] + below as u32
        })
        .collect();
    let mut used: Vec<u32> = taken.iter().flatten().copied().collect();
    used.sort_unstable();
    used.dedup();
    let mut atoms = Vec::with_capacity(n_atoms);
    for (context, taken) in taken.iter().enumerate() {
        atoms.extend(taken.iter().map(|action| Atom {
            context: context as u32,
            action: used.partition_point(|candidate| candidate < action) as u32,
        }));
    }
    (used.into_iter().map(|action| actions[action as usize].clone()).collect(), atoms, entry_atoms)
}
