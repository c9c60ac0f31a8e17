//! The best allocation under limits.

use super::options::Options;
use super::problem::Problem;
use super::relax::{Failure, relax};
use super::round::round;
use super::solution::{Kept, Solution, assemble};
use super::table::Table;
use super::{infeasible, one_budget};
use crate::{Progress, Result};

/// Gives every user one option so that the sum of values is the greatest that the limits allow.
///
/// With one budget, for all users or for each of some groups, the result is the best that dividing one user for each budget can
/// reach. With several limits nobody is divided: the linear program in which users may be gives prices and a bound, and
/// the choice is made from there so that every limit is kept. How far it can be from the best is the gap.
pub fn solve(options: &Options, problem: &Problem, progress: &dyn Progress) -> Result<Solution> {
    problem.check(options)?;
    progress.start("allocating users", "steps", None);
    let solution = solve_limits(options, problem, progress);
    progress.finish();
    solution
}

/// The greatest value that is possible where users may be divided: a bound that takes no rounding to find.
pub(super) fn bound(options: &Options, problem: &Problem, progress: &dyn Progress) -> Result<f64, Failure> {
    let table = Table::new(options, problem);
    let relaxed = relax(&table, false, progress)?;
    Ok(table.bound(&relaxed.prices))
}

fn solve_limits(options: &Options, problem: &Problem, progress: &dyn Progress) -> Result<Solution> {
    if problem.limits.iter().any(|limit| limit.at_most.is_infinite()) {
        return with_endless(options, problem, progress);
    }
    if one_budget::applies(options, problem) {
        return one_budget::solve(options, problem);
    }
    let table = Table::new(options, problem);
    let relaxed = match relax(&table, false, progress) {
        Ok(relaxed) => relaxed,
        Err(Failure::Infeasible(weights)) => return Err(infeasible::explain(&table, &weights, progress)),
        Err(Failure::Error(error)) => return Err(error),
    };
    let choice = round(&table, &relaxed)?;
    Ok(assemble(&table, choice, Vec::new(), relaxed.prices))
}

/// Amounts without end are no limits; what they add up to is told all the same.
fn with_endless(options: &Options, problem: &Problem, progress: &dyn Progress) -> Result<Solution> {
    let mut finite = problem.clone();
    finite.limits.retain(|limit| limit.at_most.is_finite());
    let found = solve_limits(options, &finite, progress)?;
    let mut prices = found.limits.iter().map(|kept: &Kept| kept.price);
    let all = problem.limits.iter();
    let all = all.map(|limit| if limit.at_most.is_finite() { prices.next().unwrap_or(0.0) } else { 0.0 });
    Ok(assemble(&Table::new(options, problem), found.choice, found.fractional, all.collect()))
}
