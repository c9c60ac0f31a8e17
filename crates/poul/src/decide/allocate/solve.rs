//! The best allocation under limits.

use super::one_budget;
use super::options::Options;
use super::problem::Problem;
use super::solution::Solution;
use crate::{Error, Progress, Result};

/// Gives every user one option so that the sum of values is the greatest that the limits allow.
pub fn solve(options: &Options, problem: &Problem, progress: &dyn Progress) -> Result<Solution> {
    problem.check(options)?;
    let _ = progress;
    if one_budget::applies(options, problem) {
        return one_budget::solve(options, problem);
    }
    Err(Error::other("several limits are not solved yet"))
}
