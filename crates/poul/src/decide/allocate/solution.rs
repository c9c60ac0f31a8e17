//! An allocation, and what is known of it.

use serde::Serialize;

use super::table::Table;

/// Who gets what, and how far from the best it can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The option of each user.
    pub choice: Vec<u32>,
    /// Users who get a second option for a share of themselves: at most one for each budget, and only where every user is under
    /// one budget at most and nothing else.
    pub fractional: Vec<Fractional>,
    /// The sum of values.
    pub value: f64,
    /// No allocation that keeps to the limits has a greater value, not even one that divides users.
    pub bound: f64,
    /// The bound less the value.
    pub gap: f64,
    /// What came of each limit, in their order.
    pub limits: Vec<Kept>,
}

/// A user between two options.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fractional {
    /// The user.
    pub user: usize,
    /// The option that it gets beside its choice.
    pub option: u32,
    /// The share of that option; the rest is the choice's.
    pub share: f64,
}

/// A limit that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The sum over users.
    pub used: f64,
    /// The amount less the sum.
    pub slack: f64,
    /// What one more unit of the amount would add to the value.
    pub price: f64,
}

/// What is known of a choice at prices.
pub(super) fn assemble(
    table: &Table,
    choice: Vec<u32>,
    fractional: Vec<Fractional>,
    prices: Vec<f64>,
) -> Solution {
    let mut sums = table.add_up(&choice);
    for divided in &fractional {
        table.count(&mut sums, divided.user, choice[divided.user] as usize, -divided.share);
        table.count(&mut sums, divided.user, divided.option as usize, divided.share);
    }
    let value = sums.value;
    let bound = table.bound(&prices);
    let limits = table.problem.limits.iter().zip(table.used(&sums)).zip(prices);
    let limits =
        limits.map(|((limit, used), price)| Kept { used, slack: limit.at_most - used, price }).collect();
    // What rounding leaves of a gap of nothing is nothing.
    let bound = bound.max(value);
    Solution { choice, fractional, value, bound, gap: bound - value, limits }
}
