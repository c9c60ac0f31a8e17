//! From entries in any order to the one canonical set: checks, normalises, sorts.
//!
//! Sums run over sorted names, so that not even a rounding error depends on the order of a file.

use std::collections::BTreeMap;

use super::builder::{EVERY_OTHER, PolicySetBuilder, Row};
use super::set::{Atom, PolicySet};
use crate::{Error, Kind, Result};

/// How far from 1 the probabilities of a context may sum before they are normalised.
const SUM_TOLERANCE: f64 = 1e-6;

/// Stands for `*`; sorts after every context.
const REST: u32 = u32::MAX;

pub(super) fn build(builder: &PolicySetBuilder) -> Result<PolicySet> {
    let (names, policy_rank) = sort(builder.policies.as_slice());
    if names.is_empty() {
        let error = Error::input("there are no policies").hint("define at least one policy");
        return Err(builder.source.place(error, 0));
    }
    let (contexts, weights) = contexts_and_weights(builder)?;
    let context_rank = rank_contexts(builder, &contexts)?;
    let (actions, action_rank) = sort(builder.actions.as_slice());

    let mut rows = builder.rows.clone();
    for row in &mut rows {
        row.policy = policy_rank[row.policy as usize];
        row.context = context_rank[row.context as usize];
        row.action = action_rank[row.action as usize];
    }
    rows.sort_unstable_by_key(|row| (row.policy, row.context, row.action, row.place));

    let known = Known { builder, names: &names, contexts: &contexts, actions: &actions };
    known.refuse_duplicates(&rows)?;
    let mut place_of = vec![0; names.len()];
    for (number, rank) in policy_rank.iter().enumerate() {
        place_of[*rank as usize] = builder.policy_places[number];
    }

    let mut entries = Entries::default();
    let mut rest = BTreeMap::new();
    let mut rows = rows.as_slice();
    for (policy_idx, place) in place_of.into_iter().enumerate() {
        let (own, others) = rows.split_at(rows.partition_point(|row| row.policy as usize <= policy_idx));
        rows = others;
        let every_other = known.policy(policy_idx, place, own, &mut entries)?;
        if !every_other.is_empty() {
            let named = every_other.into_iter().map(|(action, p)| (actions[action as usize].clone(), p));
            rest.insert(policy_idx as u32, named.collect());
        }
        entries.offsets.push(entries.keys.len());
    }

    let (actions, atoms, entry_atoms) = number_atoms(&entries.keys, actions);
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
        attributes: builder.attributes.clone(),
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
                let error = Error::input(format!("the probabilities sum to {sum}, not 1"));
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

/// Sorted contexts with weights that sum to 1: those that were given one, or else all that were named.
fn contexts_and_weights(builder: &PolicySetBuilder) -> Result<(Vec<String>, Vec<f64>)> {
    let Some(given) = &builder.weights else {
        let (mut contexts, _) = sort(builder.contexts.as_slice());
        contexts.retain(|context| context != EVERY_OTHER);
        if contexts.is_empty() {
            let error = Error::input("no context is named");
            let hint = "name the contexts that `*` stands for, with their weights";
            return Err(builder.source.place(error, 0).hint(hint));
        }
        let weights = vec![1.0 / contexts.len() as f64; contexts.len()];
        return Ok((contexts, weights));
    };
    let source = &builder.weight_source;
    let mut given: Vec<_> = given.iter().collect();
    given.sort_by(|a, b| (&a.context, a.place).cmp(&(&b.context, b.place)));
    if let Some(pair) = given.windows(2).find(|pair| pair[0].context == pair[1].context) {
        let error = Error::input(format!("context `{}` has two weights", pair[1].context));
        return Err(source.place(error, pair[1].place).hint("keep one of them"));
    }
    if builder.weights_apart && !builder.contexts.contains(EVERY_OTHER) {
        if let Some(extra) = given.iter().find(|entry| !builder.contexts.contains(&entry.context)) {
            let named = builder.contexts.as_slice().iter().map(String::as_str);
            let error =
                Error::unknown(Kind::Input, "context", &extra.context, "contexts of the policies", named);
            return Err(source.place(error, extra.place));
        }
    }
    let mut weights: Vec<f64> = given.iter().map(|entry| entry.weight).collect();
    let mut sum: f64 = weights.iter().sum();
    if sum.is_infinite() {
        weights.iter_mut().for_each(|weight| *weight /= f64::MAX);
        sum = weights.iter().sum();
    }
    if weights.is_empty() || sum == 0.0 {
        let what = if weights.is_empty() { "no context has a weight" } else { "every context has weight 0" };
        let hint = "give at least one context a positive weight, or leave the weights out";
        return Err(source.place(Error::input(what), 0).hint(hint));
    }
    if let Some(scale) = scale_to_one(sum, weights.len()) {
        weights.iter_mut().for_each(|weight| *weight /= scale);
    }
    Ok((given.into_iter().map(|entry| entry.context.clone()).collect(), weights))
}

/// The index of each of the builder's contexts among `contexts`.
fn rank_contexts(builder: &PolicySetBuilder, contexts: &[String]) -> Result<Vec<u32>> {
    let mut unknown = None;
    let mut ranks = Vec::with_capacity(builder.contexts.as_slice().len());
    for (number, name) in builder.contexts.as_slice().iter().enumerate() {
        ranks.push(match contexts.binary_search(name) {
            Ok(rank) => rank as u32,
            Err(_) if name == EVERY_OTHER => REST,
            Err(_) => {
                unknown.get_or_insert(number as u32);
                REST
            }
        });
    }
    // Contexts are numbered as they appear, so this is the first row that names an unknown one.
    let Some(row) = unknown.and_then(|number| builder.rows.iter().find(|row| row.context == number)) else {
        return Ok(ranks);
    };
    let name = &builder.contexts.as_slice()[row.context as usize];
    let policy = &builder.policies.as_slice()[row.policy as usize];
    let listed = contexts.iter().map(String::as_str);
    let error = Error::unknown(Kind::Input, "context", name, "contexts with a weight", listed);
    let nearest = error.hint_text().unwrap_or_default();
    let hint = match (&builder.weight_source.file, builder.weights_apart) {
        (Some(file), true) => format!("{nearest}; otherwise give `{name}` a weight in {}", file.display()),
        _ => format!("{nearest}; otherwise give `{name}` a weight"),
    };
    let error =
        if builder.weights_apart { Error::input(format!("context `{name}` has no weight")) } else { error };
    Err(builder.source.place(error, row.place).at(format!("policy `{policy}`")).hint(hint))
}

/// Sorted names, and the rank of each by its number.
fn sort(names: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_unstable_by(|a, b| names[*a as usize].cmp(&names[*b as usize]));
    let mut ranks = vec![0; names.len()];
    for (rank, number) in order.iter().enumerate() {
        ranks[*number as usize] = rank as u32;
    }
    (order.into_iter().map(|number| names[number as usize].clone()).collect(), ranks)
}

/// What to divide by, unless the sum is 1 up to rounding: then a set written out and read again keeps its bytes.
///
/// Quotients are each off by at most half an ulp and so is each partial sum: n·ε bounds both together.
fn scale_to_one(sum: f64, n_terms: usize) -> Option<f64> {
    ((sum - 1.0).abs() > n_terms as f64 * f64::EPSILON).then_some(sum)
}

/// The actions in use, the sorted atoms, and the atom of each key.
fn number_atoms(keys: &[(u32, u32)], actions: Vec<String>) -> (Vec<String>, Vec<Atom>, Vec<u32>) {
    let mut distinct = keys.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let entry_atoms = keys
        .iter()
        .map(|key| distinct.binary_search(key).unwrap_or_else(|insertion| insertion) as u32)
        .collect();
    let mut new_rank = vec![None; actions.len()];
    distinct.iter().for_each(|(_, action)| new_rank[*action as usize] = Some(0));
    let mut used = Vec::new();
    for (action, rank) in actions.into_iter().zip(&mut new_rank) {
        if rank.is_some() {
            *rank = Some(used.len() as u32);
            used.push(action);
        }
    }
    let atoms = distinct
        .into_iter()
        .map(|(context, action)| Atom { context, action: new_rank[action as usize].unwrap_or_default() })
        .collect();
    (used, atoms, entry_atoms)
}
