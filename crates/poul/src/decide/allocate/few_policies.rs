//! Which policies to use where only few may be.

use rayon::prelude::*;

use super::keep::Keep;
use super::options::Options;
use super::problem::{Adds, Problem};
use super::relax::Failure;
use super::solve::bound;
use crate::{Error, Progress, Result};

/// Sets of policies that are all tried.
const SETS: usize = 5_000;
/// Options of users in all sets together up to which all sets are tried.
const LOOKED_AT: usize = 400_000_000;
/// Rounds in which a policy of the set may be exchanged for another.
const ROUNDS: usize = 10;

/// A choice of policies.
#[derive(Clone, Debug, PartialEq)]
pub struct FewPolicies {
    /// The chosen ones in order, with those that count for nothing.
    pub policies: Vec<u16>,
    /// The best value with these policies where users may be divided.
    pub value: f64,
    /// The best value with any number of policies: no set can have more.
    pub bound: f64,
    /// Whether every set was tried, so that none is better.
    pub is_exact: bool,
}

/// Chooses at most `at_most` policies beside those in `free`, the control, so that the best allocation with them alone has the greatest
/// value. Policies that limits ask users for are always among them.
///
/// Options must be [all](Keep::All) that users have, since what beats an option may not be among the chosen. A sample of the users
/// is enough, with amounts by its share. Where there are few sets all are tried; otherwise policies are added one by one, the one that
/// gains most first, and then exchanged as long as that gains.
pub fn choose_policies(
    options: &Options,
    problem: &Problem,
    free: &[u16],
    at_most: usize,
    progress: &dyn Progress,
) -> Result<FewPolicies> {
    problem.check(options)?;
    if options.keep != Keep::All {
        return Err(Error::other("few policies are chosen from all options, and these are fewer"));
    }
    let mut always: Vec<u16> = problem
        .limits
        .iter()
        .filter(|limit| limit.at_most < 0.0)
        .filter_map(|limit| if let Adds::MinusUsers(policy) = limit.adds { Some(policy) } else { None })
        .filter(|policy| !free.contains(policy))
        .collect();
    always.sort_unstable();
    always.dedup();
    if always.len() > at_most {
        let what = format!("{} policies have floors, and at most {at_most} may be used", always.len());
        return Err(Error::usage(what).hint("allow more policies: ‹at_most_policies=K›"));
    }
    let mut others: Vec<u16> = options.policy.clone();
    others.par_sort_unstable();
    others.dedup();
    others.retain(|policy| !free.contains(policy) && !always.contains(policy));
    let chooser = Chooser { options, problem, free, always: &always, progress };
    let n_more = (at_most - always.len()).min(others.len());
    let bound = chooser.value(&others)?;
    let n_sets = sets(others.len(), n_more);
    let is_exact = n_sets <= SETS && n_sets.saturating_mul(options.n_options()) <= LOOKED_AT;
    progress.start("choosing policies", "sets", is_exact.then_some(n_sets as u64));
    let chosen = if is_exact { chooser.exhaustive(&others, n_more) } else { chooser.greedy(&others, n_more) };
    progress.finish();
    let Some((value, chosen)) = chosen? else {
        return Err(Error::usage(format!(
            "no {at_most} policies were found with which all limits can be kept"
        ))
        .hint("allow more policies: ‹at_most_policies=K›"));
    };
    let mut policies: Vec<u16> = free.iter().chain(&always).copied().chain(chosen).collect();
    policies.sort_unstable();
    policies.dedup();
    Ok(FewPolicies { policies, value, bound: bound.unwrap_or(value).max(value), is_exact })
}

struct Chooser<'a> {
    options: &'a Options,
    problem: &'a Problem,
    free: &'a [u16],
    always: &'a [u16],
    progress: &'a dyn Progress,
}

type Best = Option<(f64, Vec<u16>)>;

impl Chooser<'_> {
    /// The best value with a set beside what is free or always there; none where limits cannot be kept.
    fn value(&self, set: &[u16]) -> Result<Option<f64>> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        let mut allowed = vec![false; 1 + usize::from(u16::MAX)];
        self.free
            .iter()
            .chain(self.always)
            .chain(set)
            .for_each(|policy| allowed[usize::from(*policy)] = true);
        let keep = Keep::for_limits(&self.problem.limits, self.options.n_loads());
        let options = match self.options.restricted(&allowed, &keep) {
            Ok(options) => options,
            // Somebody has nothing left.
            Err(error) if error.kind() == crate::Kind::Input => return Ok(None),
            Err(error) => return Err(error),
        };
        match bound(&options, self.problem, self.progress) {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Infeasible(_)) => Ok(None),
            Err(Failure::Error(error)) => Err(error),
        }
    }

    /// The best of some sets, the first of equals.
    fn best(&self, sets: Vec<Vec<u16>>) -> Result<Best> {
        let values = sets.par_iter().map(|set| {
            let value = self.value(set);
            self.progress.advance(1);
            value
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let known = sets.into_iter().zip(values).filter_map(|(set, value)| value.map(|value| (value, set)));
        Ok(known.reduce(|best, own| if own.0 > best.0 { own } else { best }))
    }

    fn exhaustive(&self, others: &[u16], n: usize) -> Result<Best> {
        // More policies are never worse: sets of the full size are enough.
        let mut all = Vec::new();
        combine(others, n, &mut Vec::new(), &mut all);
        self.best(all)
    }

    fn greedy(&self, others: &[u16], n: usize) -> Result<Best> {
        let mut best: Best = None;
        let mut set: Vec<u16> = Vec::new();
        for _ in 0..n {
            let sets = unused(others, &set).map(|policy| with(&set, policy)).collect();
            let Some(found) = self.best(sets)? else {
                return Err(Error::usage(
                    "few policies cannot be chosen one by one here: limits are not kept on the way",
                )
                .hint("allow more policies: ‹at_most_policies=K›"));
            };
            set.clone_from(&found.1);
            best = Some(found);
        }
        for _ in 0..ROUNDS {
            let exchanged = set.iter().flat_map(|gone| {
                let rest: Vec<u16> = set.iter().copied().filter(|policy| policy != gone).collect();
                unused(others, &set).map(move |policy| with(&rest, policy)).collect::<Vec<_>>()
            });
            match (self.best(exchanged.collect())?, &best) {
                (Some(found), Some(own)) if found.0 > own.0 => {
                    set.clone_from(&found.1);
                    best = Some(found);
                }
                _ => break,
            }
        }
        match best {
            None => Ok(self.value(&[])?.map(|value| (value, Vec::new()))),
            best => Ok(best),
        }
    }
}

fn unused<'a>(others: &'a [u16], set: &'a [u16]) -> impl Iterator<Item = u16> + 'a {
    others.iter().copied().filter(|policy| !set.contains(policy))
}

fn with(set: &[u16], policy: u16) -> Vec<u16> {
    let mut set = set.to_vec();
    set.push(policy);
    set.sort_unstable();
    set
}

/// How many sets of k there are of n.
fn sets(n: usize, k: usize) -> usize {
    let mut count: usize = 1;
    for step in 0..k.min(n - k.min(n)) {
        count = count.saturating_mul(n - step) / (step + 1);
    }
    count
}

/// All sets of `n` of the policies, in order.
fn combine(policies: &[u16], n: usize, set: &mut Vec<u16>, all: &mut Vec<Vec<u16>>) {
    if n == 0 {
        all.push(set.clone());
        return;
    }
    for (k, policy) in policies.iter().enumerate() {
        if policies.len() - k < n {
            return;
        }
        set.push(*policy);
        combine(&policies[k + 1..], n - 1, set, all);
        set.pop();
    }
}
