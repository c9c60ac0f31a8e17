//! What budgets bring: the best total for each, by the exact path of one budget or by solving for each anew.

use std::path::Path as FilePath;
use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::limits::AskedLimit;
use super::result::CurvePoint;
use super::terms::Terms;
use crate::data::TableWriter;
use crate::decide::allocate::{Keep, Options, Path, Problem, Solution, solve};
use crate::{Error, Kind, Progress, Result};

/// The best allocation for a budget.
pub(super) struct AtBudget {
    budget: f64,
    value: f64,
    /// What every user gets, a divided one what it gets first; empty where it is not needed.
    pub(super) policies: Vec<u16>,
}

/// How the curve is found.
#[derive(Clone, Copy)]
pub(super) struct CurvePlan {
    pub(super) points: usize,
    /// Whether what users get is needed.
    pub(super) with_policies: bool,
}

impl AtBudget {
    pub(super) fn point(&self) -> CurvePoint {
        let Self { budget, value, .. } = *self;
        CurvePoint { budget, value, lower: None, upper: None, predicted: value }
    }
}

/// The best allocations for budgets from the least to where more brings nothing; with further limits, for parts of the budget
/// that was given, up to twice of it.
pub(super) fn at_budgets(
    options: &Options,
    problem: &Problem,
    terms: &Terms,
    solution: &Solution,
    plan: CurvePlan,
    progress: &dyn Progress,
) -> Result<Vec<AtBudget>> {
    let is_budget = |asked: &AskedLimit| matches!(asked, AskedLimit::Budget { .. });
    let place = terms.limits.iter().position(|limit| is_budget(&limit.asked) && limit.group.is_none());
    let Some(place) = place else {
        return Err(Error::usage("a curve shows what budgets bring, and there is none for all users")
            .hint("give one, ‹budget=cost=AMOUNT›, or leave ‹curve› out"));
    };
    let policies = |choice: &[u32]| -> Vec<u16> {
        let choice = if plan.with_policies { choice } else { &[] };
        choice.iter().map(|option| options.policy(*option as usize)).collect()
    };
    if Keep::for_limits(&problem.limits, options.n_loads()) == Keep::Hull && problem.limits.len() == 1 {
        let path = Path::new(options)?;
        let at = |budget: f64| -> Result<AtBudget> {
            let found = path.allocation(budget)?;
            Ok(AtBudget { budget, value: found.point.value, policies: policies(&found.choice) })
        };
        return path.curve(plan.points).into_iter().map(|point| at(point.load)).collect();
    }
    let given = problem.limits[place].at_most;
    progress.start("Curve", "budgets", Some(plan.points as u64));
    let mut found = Vec::with_capacity(plan.points);
    for step in 0..plan.points {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let budget = 2.0 * given * step as f64 / (plan.points - 1) as f64;
        let mut other = problem.clone();
        other.limits[place].at_most = budget;
        match budget == given {
            true => {
                found.push(AtBudget { budget, value: solution.value, policies: policies(&solution.choice) });
            }
            false => match solve(options, &other, &crate::Silent) {
                Ok(own) => found.push(AtBudget { budget, value: own.value, policies: policies(&own.choice) }),
                // A budget that the other limits do not allow is no place on the curve.
                Err(error) if error.kind() == Kind::Usage => {}
                Err(error) => return Err(error),
            },
        }
        progress.advance(1);
    }
    progress.finish();
    Ok(found)
}

/// Writes a curve to a `.parquet` or `.csv` file: `budget`, `value`, `lower`, `upper` and `predicted`.
pub fn write_curve(path: impl AsRef<FilePath>, points: &[CurvePoint]) -> Result<u64> {
    let field = |name: &str, nullable| Field::new(name, DataType::Float64, nullable);
    let fields = vec![
        field("budget", false),
        field("value", false),
        field("lower", true),
        field("upper", true),
        field("predicted", false),
    ];
    let schema = Arc::new(Schema::new(fields));
    let column = |of: &dyn Fn(&CurvePoint) -> Option<f64>| -> arrow_array::ArrayRef {
        Arc::new(points.iter().map(of).collect::<Float64Array>())
    };
    let columns = vec![
        column(&|point| Some(point.budget)),
        column(&|point| Some(point.value)),
        column(&|point| point.lower),
        column(&|point| point.upper),
        column(&|point| Some(point.predicted)),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| Error::other(format!("cannot assemble the curve: {error}")))?;
    let mut writer = TableWriter::create(path, schema)?;
    writer.write(&batch)?;
    writer.finish()
}
