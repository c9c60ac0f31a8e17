//! A part of the users, from which the prices for all of them can be guessed.

use super::options::Options;
use super::problem::{Limit, Problem};
use super::table::Table;
use crate::Seed;

/// One user in so many is drawn.
const ONE_IN: u64 = 16;

/// Users drawn by their number, with amounts of limits by the share of those users who are drawn.
pub(super) fn drawn(table: &Table) -> (Options, Problem) {
    let (whole, of) = (table.options, table.problem);
    let seed = Seed::new(0).child("allocation");
    let users: Vec<usize> =
        (0..whole.n_users()).filter(|user| seed.index(*user as u64).value().is_multiple_of(ONE_IN)).collect();
    let mut options = Options {
        starts: vec![0],
        policy: Vec::new(),
        value: Vec::new(),
        loads: Vec::new(),
        n_loads: whole.n_loads(),
        keep: whole.keep.clone(),
    };
    for user in &users {
        let own = whole.of(*user);
        options.policy.extend_from_slice(&whole.policy[own.clone()]);
        options.value.extend_from_slice(&whole.value[own.clone()]);
        options.loads.extend_from_slice(&whole.loads[own.start * whole.n_loads..own.end * whole.n_loads]);
        options.starts.push(options.policy.len() as u32);
    }
    let group = of.group.as_ref().map(|group| users.iter().map(|user| group[*user]).collect());
    let mut problem = Problem { limits: of.limits.clone(), group };
    let n_drawn = Table::new(&options, &problem).users();
    for ((limit, drawn), all) in problem.limits.iter_mut().zip(n_drawn).zip(table.users()) {
        *limit = Limit { at_most: limit.at_most * (drawn as f64 / all.max(1) as f64), ..limit.clone() };
    }
    (options, problem)
}
