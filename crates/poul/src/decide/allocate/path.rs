//! One budget: the best allocation for every amount of it at once.
//!
//! Every user starts at the least load. Then the steps along the users' hulls are taken, the steepest first: after each of them
//! the allocation is the best for what it spends, and between two of them the best divides one user.

use rayon::prelude::*;

use super::infeasible::rounded_up;
use super::keep::Keep;
use super::options::Options;
use super::order::{slope_to, steps_by_slope};
use super::solution::Fractional;
use crate::{Error, Result};

/// Steps between two sums that are kept.
const STRIDE: usize = 1024;
/// Users that one task looks at. Part of the result, since sums go by blocks.
const BLOCK: usize = 8192;

/// The best value as a function of the budget for a single load: piecewise linear, concave, exact.
pub struct Path<'a> {
    options: &'a Options,
    /// Users on the path; all where there are none.
    group: Option<(&'a [u32], u32)>,
    /// The option that each step leads to.
    steps: Vec<u32>,
    /// What is spent and gained before every `STRIDE`th step, and at the end.
    sums: Vec<[f64; 2]>,
}

/// A place on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// What is spent.
    pub load: f64,
    /// The best value for it.
    pub value: f64,
    /// What the next unit would add; 0 at the end.
    pub price: f64,
}

/// Who gets what at a place on a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The option of each user. Users who are not on the path have their first.
    pub choice: Vec<u32>,
    /// The user whose step the budget pays in part.
    pub fractional: Option<Fractional>,
    /// Where it is.
    pub point: Point,
}

impl<'a> Path<'a> {
    /// The path of all users. Options must be [hulls](Keep::Hull).
    pub fn new(options: &'a Options) -> Result<Self> {
        Self::build(options, None)
    }

    /// The path of the users of one group.
    pub(super) fn of_group(options: &'a Options, groups: &'a [u32], group: u32) -> Result<Self> {
        Self::build(options, Some((groups, group)))
    }

    fn build(options: &'a Options, group: Option<(&'a [u32], u32)>) -> Result<Self> {
        if options.keep != Keep::Hull {
            return Err(Error::other("a path goes along hulls, and these options are more than that"));
        }
        let mut path = Self { options, group, steps: Vec::new(), sums: Vec::new() };
        path.steps = steps_by_slope(options, |user| path.has(user));
        let starts = (0..options.n_users().div_ceil(BLOCK)).into_par_iter().map(|block| {
            let mut sum = [0.0; 2];
            for user in block * BLOCK..options.n_users().min((block + 1) * BLOCK) {
                if path.has(user) {
                    let first = options.starts[user] as usize;
                    add(&mut sum, [options.load(first, 0), options.value(first)]);
                }
            }
            sum
        });
        let mut at = starts.collect::<Vec<_>>().into_iter().fold([0.0; 2], plus);
        let gains = path.steps.par_chunks(STRIDE).map(|steps| {
            steps.iter().fold([0.0; 2], |sum, step| plus(sum, step_of(options, *step as usize)))
        });
        let gains: Vec<[f64; 2]> = gains.collect();
        path.sums.push(at);
        path.sums.extend(gains.into_iter().map(|gain| {
            add(&mut at, gain);
            at
        }));
        Ok(path)
    }

    /// The least that can be spent.
    pub fn least(&self) -> f64 {
        self.sums[0][0]
    }

    /// What is spent where money does not matter: no budget beyond it gains anything.
    pub fn greatest(&self) -> f64 {
        self.sums[self.sums.len() - 1][0]
    }

    /// How many steps the path has.
    pub fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// The place that a budget reaches; none where it is below the least.
    pub fn at(&self, budget: f64) -> Option<Point> {
        self.find(budget).map(|(_, _, point)| point)
    }

    /// Places on the path at so many budgets, evenly spread from the least to the greatest.
    pub fn curve(&self, n_points: usize) -> Vec<Point> {
        let (least, greatest) = (self.least(), self.greatest());
        let share = |k: usize| k as f64 / n_points.saturating_sub(1).max(1) as f64;
        let budgets = (0..n_points).map(|k| least + (greatest - least) * share(k));
        // The last of a sum of parts may miss the end by rounding.
        budgets.filter_map(|budget| self.at(budget.clamp(least, greatest))).collect()
    }

    /// Every corner of the path, from the least budget to the greatest.
    pub fn corners(&self) -> impl Iterator<Item = Point> + '_ {
        let price =
            |step: usize| self.steps.get(step).map_or(0.0, |option| slope_to(self.options, *option as usize));
        let mut at = self.sums[0];
        let first = Point { load: at[0], value: at[1], price: price(0) };
        let rest = self.steps.iter().enumerate().map(move |(step, option)| {
            if step % STRIDE == 0 {
                at = self.sums[step / STRIDE];
            }
            add(&mut at, step_of(self.options, *option as usize));
            Point { load: at[0], value: at[1], price: price(step + 1) }
        });
        std::iter::once(first).chain(rest)
    }

    /// The best allocation for a budget.
    pub fn allocation(&self, budget: f64) -> Result<Allocation> {
        let Some((taken, share, point)) = self.find(budget) else {
            let what =
                format!("the budget is below the least that can be spent, {}", rounded_up(self.least()));
            return Err(Error::usage(what).hint("raise it to that, or let users choose among other policies"));
        };
        let options = self.options;
        let next = self.steps.get(taken).map(|option| *option as usize);
        // A step is taken if it comes before the next: no list of steps needs to be looked through.
        let limit = next.map(|next| (slope_to(options, next), next));
        let is_taken = |option: usize| match limit {
            Some((price, next)) => {
                let own = slope_to(options, option);
                own > price || (own == price && option < next)
            }
            None => true,
        };
        let choice = (0..options.n_users()).into_par_iter().with_min_len(BLOCK).map(|user| {
            let own = options.of(user);
            let steps = if self.has(user) { own.start + 1..own.end } else { 0..0 };
            (own.start + steps.take_while(|option| is_taken(*option)).count()) as u32
        });
        let choice = choice.collect();
        let fractional = next.filter(|_| share > 0.0).map(|next| Fractional {
            user: options.user(next),
            option: next as u32,
            share,
        });
        Ok(Allocation { choice, fractional, point })
    }

    /// How many steps a budget pays, the share of the next one, and where that is.
    fn find(&self, budget: f64) -> Option<(usize, f64, Point)> {
        if budget.is_nan() || budget < self.least() {
            return None;
        }
        let mark = self.sums.partition_point(|sum| sum[0] <= budget) - 1;
        let mut at = self.sums[mark];
        let first = (mark * STRIDE).min(self.steps.len());
        for (step, option) in self.steps.iter().enumerate().skip(first) {
            let own = step_of(self.options, *option as usize);
            let after = plus(at, own);
            if after[0] > budget {
                let share = ((budget - at[0]) / own[0]).clamp(0.0, 1.0);
                let price = slope_to(self.options, *option as usize);
                let load = if share > 0.0 { budget } else { at[0] };
                return Some((step, share, Point { load, value: at[1] + share * own[1], price }));
            }
            at = after;
        }
        Some((self.steps.len(), 0.0, Point { load: at[0], value: at[1], price: 0.0 }))
    }

    fn has(&self, user: usize) -> bool {
        self.group.is_none_or(|(groups, group)| groups[user] == group)
    }
}

/// What a step spends and gains.
fn step_of(options: &Options, option: usize) -> [f64; 2] {
    [options.load(option, 0) - options.load(option - 1, 0), options.value(option) - options.value(option - 1)]
}

fn add(sum: &mut [f64; 2], more: [f64; 2]) {
    *sum = plus(*sum, more);
}

fn plus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}
