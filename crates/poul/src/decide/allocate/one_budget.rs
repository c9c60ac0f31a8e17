//! A budget for all users, or one for each of some groups, and nothing else: exact, by paths.

use super::keep::Keep;
use super::options::Options;
use super::path::{Allocation, Path};
use super::problem::{Adds, Problem};
use super::solution::{Fractional, Solution};
use super::table::Table;
use super::{infeasible, solution};
use crate::Result;

/// Whether no user is under two limits, and all limits are budgets of the one load.
pub(super) fn applies(options: &Options, problem: &Problem) -> bool {
    let mut groups: Vec<Option<u32>> = problem.limits.iter().map(|limit| limit.group).collect();
    groups.sort_unstable();
    let is_load = |adds| matches!(adds, Adds::Load(_));
    let are_budgets = problem.limits.iter().all(|limit| is_load(limit.adds) && limit.at_most.is_finite());
    let are_apart = groups.windows(2).all(|pair| pair[0] != pair[1] && pair[0].is_some());
    options.keep == Keep::Hull && are_budgets && are_apart
}

/// The best allocation.
pub(super) fn solve(options: &Options, problem: &Problem) -> Result<Solution> {
    let table = Table::new(options, problem);
    // Users under no budget have what is best for them.
    let (mut choice, _) = table.best_of_all(&vec![0.0; problem.limits.len()]);
    let mut fractional: Vec<Fractional> = Vec::new();
    let mut prices = Vec::new();
    for limit in &problem.limits {
        let path = match (&problem.group, limit.group) {
            (Some(groups), Some(group)) => Path::of_group(options, groups, group)?,
            _ => Path::new(options)?,
        };
        if limit.at_most < path.least() {
            return Err(infeasible::below_least(limit, path.least()));
        }
        let Allocation { choice: own, fractional: divided, point } = path.allocation(limit.at_most)?;
        if limit.group.is_none() {
            choice = own;
        } else {
            for (user, (choice, own)) in choice.iter_mut().zip(own).enumerate() {
                if problem.concerns(limit, user) {
                    *choice = own;
                }
            }
        }
        fractional.extend(divided);
        prices.push(point.price);
    }
    Ok(solution::assemble(&table, choice, fractional, prices))
}
