//! Steps of the simplex method until none is better.

use super::basis::{Basis, Head};
use super::columns::Columns;
use super::ratio::{Leaving, Ratio};

/// Steps after which the inverse and the values are computed anew, at least; with many users, one for so many of them.
const FRESH: usize = 100;
const USERS_FOR_A_STEP: usize = 64;
/// Options that are looked at before the best of them is taken.
const LOOKED_AT: usize = 128;
/// A gain below this share of what it is the difference of is rounding.
const ROUNDING: f64 = 1e-13;
/// How far below zero a slack may be, in units of its amount and of an entry.
const SHORT: f64 = 1e-12;
/// Steps without length after which they are chosen carefully.
const STALLED: usize = 40;

/// Where no step is better.
pub(in super::super) struct Optimum {
    /// Of the limits; where they cannot be kept, weights with which they contradict each other.
    pub(in super::super) prices: Vec<f64>,
    /// The option of each user that has what others leave.
    pub(in super::super) keys: Vec<u32>,
    /// Options beside the keys, with their shares.
    pub(in super::super) shares: Vec<(u32, f64)>,
    /// By how much limits are exceeded where they cannot be kept; 0 elsewhere.
    pub(in super::super) excess: Vec<f64>,
}

/// Solves a program, from the given option of each user on. Where limits cannot be kept, `is_elastic` raises their amounts by what is
/// missing and goes on. None where rounding has made an end of it.
pub(in super::super) fn maximise(columns: &Columns, keys: Vec<u32>, is_elastic: bool) -> Option<Optimum> {
    let mut simplex = Simplex::new(columns, keys);
    let mut excess = vec![0.0; simplex.amounts.len()];
    let mut prices = simplex.run()?;
    let missing = simplex.missing();
    if missing.iter().any(|missing| *missing > 0.0) {
        excess = missing;
        if is_elastic {
            for (amount, excess) in simplex.amounts.iter_mut().zip(&excess) {
                *amount += excess;
            }
            simplex.refresh();
            prices = simplex.run()?;
        }
    }
    let shares = simplex.basis.heads.iter().zip(&simplex.basis.values);
    let shares = shares.filter_map(|(head, value)| match head {
        Head::Option(option) => Some((*option as u32, value.clamp(0.0, 1.0))),
        Head::Slack(_) => None,
    });
    Some(Optimum { prices, shares: shares.collect(), keys: simplex.keys, excess })
}

struct Simplex<'a> {
    columns: &'a Columns,
    amounts: Vec<f64>,
    tolerance: Vec<f64>,
    keys: Vec<u32>,
    basis: Basis,
    is_basic: Vec<bool>,
    is_basic_slack: Vec<bool>,
    ratio: Ratio,
    /// The user at whom the search for a better option goes on.
    next: usize,
    n_steps: usize,
    n_stalled: usize,
}

/// What enters the basis.
#[derive(Clone, Copy)]
enum Entering {
    Slack(usize),
    Option(usize),
}

impl<'a> Simplex<'a> {
    fn new(columns: &'a Columns, keys: Vec<u32>) -> Self {
        let amounts = columns.amounts().to_vec();
        let tolerance = amounts.iter().map(|amount| SHORT * (1.0 + amount.abs())).collect();
        Self {
            basis: Basis::new(columns, &amounts, &keys),
            is_basic: vec![false; columns.n_options()],
            is_basic_slack: vec![true; amounts.len()],
            ratio: Ratio::new(columns.n_users()),
            columns,
            amounts,
            tolerance,
            keys,
            next: 0,
            n_steps: 0,
            n_stalled: 0,
        }
    }

    /// Steps until none is better; the prices there. First limits are kept, then values count.
    fn run(&mut self) -> Option<Vec<f64>> {
        let most = self.n_steps + 10_000 + 200 * (self.columns.n_options() + self.amounts.len());
        let fresh = FRESH.max(self.columns.n_users() / USERS_FOR_A_STEP);
        let mut is_fresh = false;
        loop {
            let is_short = self.is_short();
            let prices = self.prices(is_short);
            let Some(entering) = self.entering(&prices, is_short) else {
                if is_fresh {
                    return Some(prices);
                }
                self.refresh();
                is_fresh = true;
                continue;
            };
            self.step(entering)?;
            self.n_steps += 1;
            is_fresh = false;
            if self.n_steps.is_multiple_of(fresh) {
                self.refresh();
            }
            if self.n_steps > most {
                return None;
            }
        }
    }

    /// By how much each limit is exceeded.
    fn missing(&self) -> Vec<f64> {
        let mut missing = vec![0.0; self.amounts.len()];
        for (head, value) in self.basis.heads.iter().zip(&self.basis.values) {
            if let Head::Slack(limit) = *head
                && *value < -self.tolerance[limit]
            {
                missing[limit] = -value;
            }
        }
        missing
    }

    fn is_short(&self) -> bool {
        self.missing().iter().any(|missing| *missing > 0.0)
    }

    fn prices(&self, is_short: bool) -> Vec<f64> {
        self.basis.prices(|place| match self.basis.heads[place] {
            // A missing unit costs 1, which is all that counts while some are missing.
            Head::Slack(limit) => {
                f64::from(u8::from(is_short && self.basis.values[place] < -self.tolerance[limit]))
            }
            Head::Option(_) if is_short => 0.0,
            Head::Option(option) => {
                let key = self.keys[self.columns.user(option)] as usize;
                self.columns.value(option) - self.columns.value(key)
            }
        })
    }

    /// What gains most of those looked at: slacks, and options of some users. Carefully: the first that gains.
    fn entering(&mut self, prices: &[f64], is_short: bool) -> Option<Entering> {
        let is_careful = self.is_careful();
        let mut best: Option<(f64, Entering)> = None;
        let scale = prices.iter().fold(0.0, |most: f64, price| most.max(price.abs()));
        for (limit, price) in prices.iter().enumerate() {
            let gain = -price;
            if !self.is_basic_slack[limit]
                && gain > ROUNDING * scale.max(1.0)
                && best.is_none_or(|(most, _)| gain > most)
            {
                best = Some((gain, Entering::Slack(limit)));
                if is_careful {
                    return best.map(|(_, entering)| entering);
                }
            }
        }
        let n_users = self.columns.n_users();
        let first = if is_careful { 0 } else { self.next };
        let mut looked_at = 0;
        for user in (first..n_users).chain(0..first) {
            let key = self.keys[user] as usize;
            let of_key = self.net(key, prices, is_short);
            for option in self.columns.of(user) {
                if option == key || self.is_basic[option] {
                    continue;
                }
                let gain = self.net(option, prices, is_short) - of_key;
                if best.is_none_or(|(most, _)| gain > most)
                    && gain > ROUNDING * self.size(option, key, prices, is_short)
                {
                    best = Some((gain, Entering::Option(option)));
                    if is_careful {
                        return best.map(|(_, entering)| entering);
                    }
                }
            }
            looked_at += self.columns.of(user).len();
            if looked_at >= LOOKED_AT && best.is_some() {
                self.next = (user + 1) % n_users;
                break;
            }
        }
        best.map(|(_, entering)| entering)
    }

    fn net(&self, option: usize, prices: &[f64], is_short: bool) -> f64 {
        let value = if is_short { 0.0 } else { self.columns.value(option) };
        value - self.columns.paid(option, prices)
    }

    /// The size of what a gain is the difference of.
    fn size(&self, option: usize, key: usize, prices: &[f64], is_short: bool) -> f64 {
        let own = |option: usize| {
            let value = if is_short { 0.0 } else { self.columns.value(option).abs() };
            let entries = self.columns.entries(option).iter();
            value + entries.map(|(limit, entry)| (prices[*limit as usize] * entry).abs()).sum::<f64>()
        };
        (own(option) + own(key)).max(ROUNDING)
    }

    fn step(&mut self, entering: Entering) -> Option<()> {
        let (column, user) = match entering {
            Entering::Slack(limit) => (vec![(limit as u32, 1.0)], None),
            Entering::Option(option) => {
                let user = self.columns.user(option);
                let key = self.columns.entries(self.keys[user] as usize).iter();
                let less = key.map(|(limit, entry)| (*limit, -entry));
                (self.columns.entries(option).iter().copied().chain(less).collect(), Some(user))
            }
        };
        let mut direction = self.basis.direction(&column);
        let how = (self.tolerance.as_slice(), self.is_careful());
        let (leaving, length) =
            self.ratio.end(self.columns, (&self.basis, &self.keys), &direction, user, how)?;
        self.n_stalled = if length > SHORT { 0 } else { self.n_stalled + 1 };
        for (value, speed) in self.basis.values.iter_mut().zip(&direction) {
            *value -= length * speed;
        }
        let place = match leaving {
            Leaving::Place(place) => place,
            Leaving::Key(of) => {
                let places: Vec<usize> = self.places_of(of);
                // The option that has most stays for certain.
                let Some(place) = places.iter().copied().reduce(|best, place| {
                    if self.basis.values[place] > self.basis.values[best] { place } else { best }
                }) else {
                    // Nothing beside the key: the user goes over to the other option as a whole.
                    if let Entering::Option(option) = entering {
                        self.keys[of] = option as u32;
                    }
                    return Some(());
                };
                let others: Vec<usize> = places.into_iter().filter(|other| *other != place).collect();
                if user == Some(of) {
                    direction[place] -= 1.0;
                }
                direction[place] =
                    -(direction[place] + others.iter().map(|other| direction[*other]).sum::<f64>());
                self.basis.exchange_key(place, &others);
                if let Head::Option(option) = self.basis.heads[place] {
                    self.is_basic[option] = false;
                    self.basis.heads[place] = Head::Option(self.keys[of] as usize);
                    self.keys[of] = option as u32;
                }
                place
            }
        };
        let head = match entering {
            Entering::Slack(limit) => Head::Slack(limit),
            Entering::Option(option) => Head::Option(option),
        };
        self.mark(self.basis.heads[place], false);
        self.mark(head, true);
        self.basis.replace(place, head, &direction);
        self.basis.values[place] = length;
        Some(())
    }

    fn places_of(&self, user: usize) -> Vec<usize> {
        let heads = self.basis.heads.iter().enumerate();
        let own = heads
            .filter(|(_, head)| matches!(head, Head::Option(option) if self.columns.user(*option) == user));
        own.map(|(place, _)| place).collect()
    }

    fn mark(&mut self, head: Head, is_basic: bool) {
        match head {
            Head::Slack(limit) => self.is_basic_slack[limit] = is_basic,
            Head::Option(option) => self.is_basic[option] = is_basic,
        }
    }

    fn is_careful(&self) -> bool {
        self.n_stalled > STALLED
    }

    /// The inverse and the values anew; from slacks on where the basis has become singular.
    fn refresh(&mut self) {
        if self.basis.refactor(self.columns, &self.keys) {
            self.basis.evaluate(self.columns, &self.amounts, &self.keys);
        } else {
            self.basis = Basis::new(self.columns, &self.amounts, &self.keys);
            self.is_basic.fill(false);
            self.is_basic_slack.fill(true);
        }
    }
}
