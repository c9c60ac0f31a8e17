//! The best allocation in which users may be divided, and its prices: exact, for any number of users.
//!
//! Few users matter at the end: at good prices most have one option that is clearly best. Prices are guessed from a part of the
//! users; the program is then solved for those whose best options are close, while all others keep theirs; and users for whom
//! another option is better at the new prices join, until there are none.

use super::linear::{Columns, Optimum, maximise};
use super::sample;
use super::table::Table;
use crate::{Error, Progress, Result};

/// Users who are all looked at from the beginning.
const FEW: usize = 4096;
/// A gain below this share of what it is the difference of is rounding.
const ROUNDING: f64 = 1e-12;
/// Options this close, in units of the greatest value, are as good as each other.
const TIED: f64 = 1e-9;

/// The best allocation that may divide users.
pub(super) struct Relaxed {
    /// Of limits, not negative.
    pub(super) prices: Vec<f64>,
    /// The option of each user, the greatest part of those who are divided.
    pub(super) choice: Vec<u32>,
    /// Users who are divided, in order.
    pub(super) divided: Vec<usize>,
}

/// Why there is none.
pub(super) enum Failure {
    /// Limits with these weights contradict each other.
    Infeasible(Vec<f64>),
    Error(Error),
}

/// Solves the program. `is_elastic` raises amounts that are too low instead of failing.
pub(super) fn relax(table: &Table, is_elastic: bool, progress: &dyn Progress) -> Result<Relaxed, Failure> {
    relax_from(table, is_elastic, false, progress)
}

/// `is_apart` says that users were told apart already.
fn relax_from(
    table: &Table,
    is_elastic: bool,
    is_apart: bool,
    progress: &dyn Progress,
) -> Result<Relaxed, Failure> {
    let n_users = table.options.n_users();
    let scale = Scale::new(table);
    let mut prices = vec![0.0; table.problem.limits.len()];
    let mut n_joining = n_users;
    if n_users > FEW {
        let (options, problem) = sample::drawn(table);
        let part = relax_from(&Table::new(&options, &problem), true, is_apart, progress)?;
        prices = part.prices;
        n_joining = FEW.max(4 * n_users / options.n_users().max(1).isqrt());
    }
    let mut choice = table.best_of_all(&prices).0;
    let mut is_working = vec![false; n_users];
    let mut working = closest(table, &prices, n_joining);
    if n_users > FEW && !is_apart && are_tied(table, &prices, &working, scale.value) {
        // Prices alone cannot say which of many users who are alike get what. With small differences between them they can, and what
        // comes out is close to the best without.
        let options = sample::told_apart(table.options, scale.value);
        let apart = relax_from(&Table::new(&options, table.problem), true, true, progress)?;
        choice = apart.choice;
        working = closest(table, &apart.prices, n_joining);
        working.extend(apart.divided);
        working.sort_unstable();
        working.dedup();
    }
    loop {
        if progress.cancelled() {
            return Err(Failure::Error(Error::cancelled()));
        }
        working.iter().for_each(|user| is_working[*user] = true);
        let (columns, keys) = scale.columns(table, &working, &choice);
        let Some(optimum) = maximise(&columns, keys, is_elastic) else {
            let what = "the linear program of the allocation could not be solved in double precision";
            return Err(Failure::Error(Error::other(what)));
        };
        let divided = take(table, &columns, &working, &optimum, &mut choice);
        let is_short = optimum.excess.iter().any(|excess| *excess > 0.0) && !is_elastic;
        // Rounding may leave a price just below zero.
        prices = scale.prices(&optimum.prices, is_short).into_iter().map(|price| price.max(0.0)).collect();
        let joining = improving(table, &prices, is_short, (&choice, &is_working), n_joining);
        if joining.is_empty() {
            return if is_short {
                Err(Failure::Infeasible(prices))
            } else {
                Ok(Relaxed { prices, choice, divided })
            };
        }
        working.extend(joining);
        working.sort_unstable();
        n_joining *= 2;
    }
}

/// Units in which values and what limits add up are at most 1.
struct Scale {
    value: f64,
    limits: Vec<f64>,
}

impl Scale {
    fn new(table: &Table) -> Self {
        let value = table.options.value.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        Self { value: if value > 0.0 { f64::from(value) } else { 1.0 }, limits: table.scales() }
    }

    /// The program of some users, with what all others leave of the amounts; and the users' options in it.
    fn columns(&self, table: &Table, working: &[usize], choice: &[u32]) -> (Columns, Vec<u32>) {
        let mut sums = table.add_up(choice);
        for user in working {
            table.count(&mut sums, *user, choice[*user] as usize, -1.0);
        }
        let used = table.used(&sums);
        let amounts = table.problem.limits.iter().zip(used).zip(&self.limits);
        let mut columns =
            Columns::new(amounts.map(|((limit, used), scale)| (limit.at_most - used) / scale).collect());
        let mut keys = Vec::with_capacity(working.len());
        let mut n_options = 0;
        for user in working {
            let own = table.options.of(*user);
            keys.push((n_options + choice[*user] as usize - own.start) as u32);
            n_options += own.len();
            for option in own {
                let entries = table.entries(*user, option);
                let entries = entries.map(|(limit, entry)| (limit, entry / self.limits[limit as usize]));
                columns.option(table.options.value(option) / self.value, entries);
            }
            columns.end_user();
        }
        (columns, keys)
    }

    /// Prices in the units of the limits.
    fn prices(&self, prices: &[f64], is_short: bool) -> Vec<f64> {
        let value = if is_short { 1.0 } else { self.value };
        prices.iter().zip(&self.limits).map(|(price, scale)| price * value / scale).collect()
    }
}

/// Writes what the program gives its users into the choice of all; those who are divided.
fn take(
    table: &Table,
    columns: &Columns,
    working: &[usize],
    optimum: &Optimum,
    choice: &mut [u32],
) -> Vec<usize> {
    let place = |user: usize, option: usize| {
        (table.options.of(working[user]).start + option - columns.of(user).start) as u32
    };
    for (user, key) in optimum.keys.iter().enumerate() {
        choice[working[user]] = place(user, *key as usize);
    }
    let mut shares: Vec<(usize, f64, usize)> = optimum
        .shares
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(option, share)| (columns.user(*option as usize), *share, *option as usize))
        .collect();
    shares.sort_by_key(|(user, _, option)| (*user, *option));
    let mut divided = Vec::new();
    for own in shares.chunk_by(|a, b| a.0 == b.0) {
        let user = own[0].0;
        divided.push(working[user]);
        let rest = 1.0 - own.iter().map(|(_, share, _)| share).sum::<f64>();
        let most =
            own.iter().fold(
                (rest, None),
                |most, (_, share, option)| {
                    if *share > most.0 { (*share, Some(*option)) } else { most }
                },
            );
        if let Some(option) = most.1 {
            choice[working[user]] = place(user, option);
        }
    }
    divided
}

/// The users whose two best options are closest to each other at prices, in order.
pub(super) fn closest(table: &Table, prices: &[f64], n: usize) -> Vec<usize> {
    if n >= table.options.n_users() {
        return (0..table.options.n_users()).collect();
    }
    let cells = table.prices(prices);
    let gaps = table.by_block(|users| {
        let gaps = users.map(|user| (gap(table, &cells, user), user));
        gaps.filter(|(gap, _)| gap.is_finite()).collect::<Vec<_>>()
    });
    smallest(gaps.concat(), n)
}

/// What a user loses by its second best option.
fn gap(table: &Table, cells: &[f64], user: usize) -> f64 {
    let prices = table.prices_of(cells, user);
    let (best, net) = table.best(prices, user);
    let others = table.options.of(user).filter(|option| *option != best);
    others.map(|option| net - table.net(prices, option)).fold(f64::INFINITY, f64::min)
}

/// Whether all these users lose nothing by their second best option.
fn are_tied(table: &Table, prices: &[f64], users: &[usize], size: f64) -> bool {
    let cells = table.prices(prices);
    users.iter().all(|user| gap(table, &cells, *user) <= TIED * size)
}

/// Users who do not have their best option at prices and are not at work yet, those who gain most by it first, up to `n`; in order.
/// Where limits are not kept, options count by what they pay alone.
fn improving(
    table: &Table,
    prices: &[f64],
    is_short: bool,
    (choice, is_working): (&[u32], &[bool]),
    n: usize,
) -> Vec<usize> {
    let cells = table.prices(prices);
    let net = |prices: &[f64], option: usize| {
        table.net(prices, option) - if is_short { table.options.value(option) } else { 0.0 }
    };
    let losses = table.by_block(|users| {
        let mut losses: Vec<(f64, usize)> = Vec::new();
        for user in users.filter(|user| !is_working[*user]) {
            let prices = table.prices_of(&cells, user);
            let own = choice[user] as usize;
            let of_own = net(prices, own);
            let best = table.options.of(user).map(|option| net(prices, option)).fold(of_own, f64::max);
            let size = table.options.value(own).abs() + of_own.abs() + best.abs();
            if best - of_own > ROUNDING * size {
                losses.push((of_own - best, user));
            }
        }
        losses
    });
    smallest(losses.concat(), n)
}

/// The users with the smallest numbers, in their order.
fn smallest(mut users: Vec<(f64, usize)>, n: usize) -> Vec<usize> {
    if n < users.len() {
        users.select_nth_unstable_by(n, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        users.truncate(n);
    }
    let mut users: Vec<usize> = users.into_iter().map(|(_, user)| user).collect();
    users.sort_unstable();
    users
}
