//! The solver of allocations on plain numbers, for tests alone: they compare it with another solver.

use poul::decide::allocate::{Adds, Keep, Limit, Options, Path, Problem, solve};
use poul::{Error, Result, Silent};
use pyo3::prelude::*;

use crate::failure::guarded;

/// A limit: what it adds up ("load", "users", "minus users"), of which load or policy, the group, the amount.
type PlainLimit = (String, usize, Option<u32>, f64);
/// The policy of each user, users with a share of a second policy, value, bound, and used, slack and price of each limit.
type PlainSolution = (Vec<u16>, Vec<(usize, u16, f64)>, f64, f64, Vec<(f64, f64, f64)>);

/// Allocates users given by rows of values and loads.
#[pyfunction]
#[pyo3(name = "_solve_allocation", signature = (n_policies, n_loads, values, loads, limits, groups=None, eligible=None))]
#[expect(clippy::too_many_arguments, reason = "plain numbers, as a test has them")]
pub(crate) fn solve_allocation(
    py: Python<'_>,
    n_policies: usize,
    n_loads: usize,
    values: Vec<f32>,
    loads: Vec<f32>,
    limits: Vec<PlainLimit>,
    groups: Option<Vec<u32>>,
    eligible: Option<Vec<bool>>,
) -> PyResult<PlainSolution> {
    guarded(py, || {
        let limits = limits.into_iter().map(limit).collect::<Result<Vec<_>>>()?;
        let keep = Keep::for_limits(&limits, n_loads);
        let options = Options::dense(n_policies, n_loads, &values, &loads, eligible.as_deref(), &keep)?;
        let found = solve(&options, &Problem { limits, group: groups }, &Silent)?;
        let policy = |option: u32| options.policy(option as usize);
        let divided = found.fractional.iter().map(|own| (own.user, policy(own.option), own.share));
        let kept = found.limits.iter().map(|kept| (kept.used, kept.slack, kept.price));
        let policies = found.choice.iter().map(|option| policy(*option)).collect();
        Ok((policies, divided.collect(), found.value, found.bound, kept.collect()))
    })
}

/// Load, value and price at each budget of one load.
#[pyfunction]
#[pyo3(name = "_budget_path")]
pub(crate) fn budget_path(
    py: Python<'_>,
    n_policies: usize,
    values: Vec<f32>,
    loads: Vec<f32>,
    budgets: Vec<f64>,
) -> PyResult<Vec<Option<(f64, f64, f64)>>> {
    guarded(py, || {
        let options = Options::dense(n_policies, 1, &values, &loads, None, &Keep::Hull)?;
        let path = Path::new(&options)?;
        let points = budgets.into_iter().map(|budget| path.at(budget));
        Ok(points.map(|point| point.map(|point| (point.load, point.value, point.price))).collect())
    })
}

fn limit((adds, index, group, at_most): PlainLimit) -> Result<Limit> {
    let policy = || u16::try_from(index).map_err(|_| Error::usage("there are not so many policies"));
    let what = match adds.as_str() {
        "load" => Adds::Load(index),
        "users" => Adds::Users(policy()?),
        "minus users" => Adds::MinusUsers(policy()?),
        other => return Err(Error::usage(format!("limits do not add up `{other}`"))),
    };
    Ok(Limit { name: format!("{adds} {index}"), adds: what, group, at_most })
}
