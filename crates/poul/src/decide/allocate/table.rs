//! Limits as a table: what a pass over all users multiplies loads with, and adds loads up in.
//!
//! A row for users who are in no limited group, then one for each group with limits; a column for each load, one for each
//! policy whose users are limited, and one, always zero, for all other policies.

use rayon::prelude::*;

use super::options::Options;
use super::problem::{Adds, Problem};

/// Tasks of a pass over users, at most: their sums are added in order, so that their number is part of the result.
const TASKS: usize = 64;
/// Users of a task, at least.
const BLOCK: usize = 4096;

/// The limits of a problem by group, load and policy.
pub(super) struct Table<'a> {
    pub(super) options: &'a Options,
    pub(super) problem: &'a Problem,
    /// Groups with limits, in order.
    groups: Vec<u32>,
    /// The column of every policy.
    column: Vec<usize>,
    width: usize,
    /// The limits that a cell counts for, with the sign by which they add it, cell after cell.
    limits: Vec<Vec<(u32, f64)>>,
}

/// What a pass over users adds up.
#[derive(Clone)]
pub(super) struct Sums {
    pub(super) value: f64,
    cells: Vec<f64>,
}

impl<'a> Table<'a> {
    pub(super) fn new(options: &'a Options, problem: &'a Problem) -> Self {
        let mut groups: Vec<u32> = problem.limits.iter().filter_map(|limit| limit.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut policies: Vec<u16> = problem.limits.iter().filter_map(|limit| limit.adds.policy()).collect();
        policies.sort_unstable();
        policies.dedup();
        let free = options.n_loads() + policies.len();
        let mut column =
            vec![free; options.n_policies().max(policies.last().map_or(0, |last| usize::from(*last) + 1))];
        for (k, policy) in policies.iter().enumerate() {
            column[usize::from(*policy)] = options.n_loads() + k;
        }
        let mut table = Self { options, problem, groups, column, width: free + 1, limits: Vec::new() };
        table.limits.resize(table.rows() * table.width, Vec::new());
        for (k, limit) in problem.limits.iter().enumerate() {
            let (column, sign) = table.place(limit.adds);
            for row in table.rows_of(limit.group) {
                table.limits[row * table.width + column].push((k as u32, sign));
            }
        }
        table
    }

    /// What an option of a user adds to which limits.
    pub(super) fn entries(&self, user: usize, option: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let first = self.row(user) * self.width;
        let loads = self.options.loads(option).iter().map(|load| f64::from(*load)).enumerate();
        let counted = self.column[usize::from(self.options.policy(option))];
        let cells = loads.chain(std::iter::once((counted, 1.0)));
        cells.flat_map(move |(column, amount)| {
            self.limits[first + column].iter().map(move |(limit, sign)| (*limit, sign * amount))
        })
    }

    /// How many users each limit is about.
    pub(super) fn users(&self) -> Vec<usize> {
        let mut users = vec![0; self.rows()];
        (0..self.options.n_users()).for_each(|user| users[self.row(user)] += 1);
        let limits = self.problem.limits.iter();
        limits.map(|limit| self.rows_of(limit.group).map(|row| users[row]).sum()).collect()
    }

    /// The greatest that an option adds to each limit, by size; 1 where none adds anything.
    pub(super) fn scales(&self) -> Vec<f64> {
        let n_loads = self.options.n_loads();
        let mut most = vec![0.0_f32; n_loads];
        for option in 0..self.options.n_options() {
            for (most, load) in most.iter_mut().zip(self.options.loads(option)) {
                *most = most.max(load.abs());
            }
        }
        let scale = |adds| match adds {
            Adds::Load(load) if most[load] > 0.0 => f64::from(most[load]),
            _ => 1.0,
        };
        self.problem.limits.iter().map(|limit| scale(limit.adds)).collect()
    }

    /// Passes over all users in blocks, in parallel; what blocks give comes in their order.
    pub(super) fn by_block<T: Send>(&self, of: impl Fn(std::ops::Range<usize>) -> T + Sync) -> Vec<T> {
        let (n_users, block) = (self.options.n_users(), self.block());
        let blocks = (0..n_users.div_ceil(block)).into_par_iter();
        blocks.map(|k| of(k * block..n_users.min((k + 1) * block))).collect()
    }

    /// The row of a user.
    pub(super) fn row(&self, user: usize) -> usize {
        let group = self.problem.group.as_ref().map(|group| group[user]);
        group.and_then(|group| self.groups.binary_search(&group).ok()).map_or(0, |row| row + 1)
    }

    fn rows(&self) -> usize {
        self.groups.len() + 1
    }

    /// Prices of limits as prices of what options have.
    pub(super) fn prices(&self, prices: &[f64]) -> Vec<f64> {
        let mut cells = vec![0.0; self.rows() * self.width];
        for (limit, price) in self.problem.limits.iter().zip(prices) {
            let (column, sign) = self.place(limit.adds);
            for row in self.rows_of(limit.group) {
                cells[row * self.width + column] += sign * price;
            }
        }
        cells
    }

    /// The value of an option less what it loads, at prices of a user's row.
    pub(super) fn net(&self, prices: &[f64], option: usize) -> f64 {
        let loads = self.options.loads(option).iter().zip(prices);
        let paid: f64 = loads.map(|(load, price)| f64::from(*load) * price).sum();
        self.options.value(option) - paid - prices[self.column[usize::from(self.options.policy(option))]]
    }

    /// The prices of a user's row.
    pub(super) fn prices_of<'p>(&self, prices: &'p [f64], user: usize) -> &'p [f64] {
        &prices[self.row(user) * self.width..][..self.width]
    }

    /// The best option of a user at prices of its row, and what it is worth. The first of equals counts.
    pub(super) fn best(&self, prices: &[f64], user: usize) -> (usize, f64) {
        let own = self.options.of(user);
        let mut best = (own.start, f64::NEG_INFINITY);
        for option in own {
            let net = self.net(prices, option);
            if net > best.1 {
                best = (option, net);
            }
        }
        best
    }

    /// The best options of all users at prices of the limits, and the sum of what they are worth.
    pub(super) fn best_of_all(&self, prices: &[f64]) -> (Vec<u32>, f64) {
        let cells = self.prices(prices);
        let mut choice = vec![0; self.options.n_users()];
        let sums: Vec<f64> = choice
            .par_chunks_mut(self.block())
            .enumerate()
            .map(|(block, choice)| {
                let mut sum = 0.0;
                for (k, own) in choice.iter_mut().enumerate() {
                    let user = block * self.block() + k;
                    let (option, net) = self.best(self.prices_of(&cells, user), user);
                    *own = option as u32;
                    sum += net;
                }
                sum
            })
            .collect();
        (choice, sums.iter().sum())
    }

    /// The dual at prices: no allocation within the limits has a greater value.
    pub(super) fn bound(&self, prices: &[f64]) -> f64 {
        let paid: f64 =
            self.problem.limits.iter().zip(prices).map(|(limit, price)| paid(limit.at_most, *price)).sum();
        self.best_of_all(prices).1 + paid
    }

    /// Values and loads of a choice, added up.
    pub(super) fn add_up(&self, choice: &[u32]) -> Sums {
        let empty = || Sums { value: 0.0, cells: vec![0.0; self.rows() * self.width] };
        let blocks: Vec<Sums> = choice
            .par_chunks(self.block())
            .enumerate()
            .map(|(block, choice)| {
                let mut sums = empty();
                for (k, option) in choice.iter().enumerate() {
                    self.count(&mut sums, block * self.block() + k, *option as usize, 1.0);
                }
                sums
            })
            .collect();
        blocks.into_iter().fold(empty(), |mut whole, block| {
            whole.value += block.value;
            whole.cells.iter_mut().zip(&block.cells).for_each(|(whole, own)| *whole += own);
            whole
        })
    }

    /// Adds a share of an option of a user.
    pub(super) fn count(&self, sums: &mut Sums, user: usize, option: usize, share: f64) {
        sums.value += share * self.options.value(option);
        let cells = &mut sums.cells[self.row(user) * self.width..][..self.width];
        for (cell, load) in cells.iter_mut().zip(self.options.loads(option)) {
            *cell += share * f64::from(*load);
        }
        let column = self.column[usize::from(self.options.policy(option))];
        if column + 1 < self.width {
            cells[column] += share;
        }
    }

    /// What each limit adds up to.
    pub(super) fn used(&self, sums: &Sums) -> Vec<f64> {
        let limits = self.problem.limits.iter().map(|limit| {
            let (column, sign) = self.place(limit.adds);
            // No negative zeros: they would be told.
            sign * self.rows_of(limit.group).map(|row| sums.cells[row * self.width + column]).sum::<f64>()
                + 0.0
        });
        limits.collect()
    }

    fn place(&self, adds: Adds) -> (usize, f64) {
        match adds {
            Adds::Load(load) => (load, 1.0),
            Adds::Users(policy) => (self.column[usize::from(policy)], 1.0),
            Adds::MinusUsers(policy) => (self.column[usize::from(policy)], -1.0),
        }
    }

    /// The rows of the users that a limit is about.
    fn rows_of(&self, group: Option<u32>) -> std::ops::Range<usize> {
        match group.map(|group| self.groups.binary_search(&group)) {
            Some(Ok(row)) => row + 1..row + 2,
            Some(Err(_)) => 0..0,
            None => 0..self.rows(),
        }
    }

    fn block(&self) -> usize {
        BLOCK.max(self.options.n_users().div_ceil(TASKS))
    }
}

/// Amounts without end cost nothing.
fn paid(at_most: f64, price: f64) -> f64 {
    if price == 0.0 { 0.0 } else { at_most * price }
}
