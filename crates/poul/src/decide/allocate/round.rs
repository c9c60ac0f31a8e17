//! One option for each user, from an allocation that divides some: limits are kept, always.

use super::relax::{Relaxed, closest};
use super::repair::{fill, repair};
use super::search::search;
use super::table::Table;
use crate::{Error, Result};

/// Users who are decided on together with those who are divided.
const SEARCHED: usize = 20;
/// How far a sum may exceed its amount by rounding, in units of the amount and of what one user adds.
const ROUNDING: f64 = 1e-12;

/// The best choice found that divides nobody and keeps to every limit.
pub(super) fn round(table: &Table, relaxed: &Relaxed) -> Result<Vec<u32>> {
    let mut choice = relaxed.choice.clone();
    let mut users = closest(table, &relaxed.prices, SEARCHED);
    users.extend(&relaxed.divided);
    users.sort_unstable();
    users.dedup();
    let mut sums = table.add_up(&choice);
    for user in &users {
        table.count(&mut sums, *user, choice[*user] as usize, -1.0);
    }
    let used = table.used(&sums);
    let left: Vec<f64> =
        table.problem.limits.iter().zip(used).map(|(limit, used)| limit.at_most - used).collect();
    let found = search(table, &users, &choice, &relaxed.prices, &left);
    let is_last_word = found.is_exact && users.len() == table.options.n_users();
    match found.options {
        Some(options) => users.iter().zip(options).for_each(|(user, option)| choice[*user] = option),
        None if !is_last_word && repair(table, &relaxed.prices, &mut choice) => {}
        None => return Err(divided_only(is_last_word)),
    }
    if !is_last_word {
        fill(table, &mut choice);
    }
    Ok(choice)
}

/// How far the sum of each limit may exceed its amount by rounding.
pub(super) fn tolerance(table: &Table) -> Vec<f64> {
    let limits = table.problem.limits.iter().zip(table.scales());
    limits.map(|(limit, scale)| ROUNDING * (limit.at_most.abs() + scale)).collect()
}

fn divided_only(is_certain: bool) -> Error {
    let what = if is_certain {
        "the limits can be kept only if users are divided between policies"
    } else {
        "no allocation of one policy to each user was found that keeps to all limits, though one that divides users does"
    };
    Error::usage(what).hint("loosen the tightest of the limits a little")
}
