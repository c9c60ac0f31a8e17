//! Easier problems from which the prices for all users can be guessed: a part of the users, or users who are told apart.

use super::options::Options;
use super::problem::{Limit, Problem};
use super::table::Table;
use crate::Seed;

/// One user in so many is drawn.
const ONE_IN: u64 = 16;
/// By how much options are told apart, in units of the greatest value: beyond the digits of single precision, and little.
const APART: f64 = 1e-3;

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

/// The same options with small differences in value between users who are alike.
pub(super) fn told_apart(options: &Options, size: f64) -> Options {
    let seed = Seed::new(0).child("told apart");
    let share = |option: usize| (seed.index(option as u64).value() >> 11) as f64 / (1_u64 << 53) as f64;
    let values = options.value.iter().enumerate();
    let values = values.map(|(option, value)| (f64::from(*value) + APART * size * share(option)) as f32);
    Options { value: values.collect(), ..options.clone() }
}
