//! What sums give: an evaluation in which the numbers that need all rows at once are absent, and bounds beside those that were
//! read off buckets.

use serde::Serialize;

use super::averages::averages;
use super::metrics::metrics;
use super::part::Shape;
use super::plan::Plan;
use super::sums::Sums;
use crate::evaluate::reasons::AverageEffect;
use crate::evaluate::result::PolicyResult;

/// An evaluation from sums. Its JSON has the names of an [`Evaluation`](crate::evaluate::Evaluation).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummedEvaluation {
    /// Rows of the table.
    pub rows: u64,
    /// Level of intervals.
    pub level: f64,
    /// One entry for each outcome and policy, outcomes first.
    pub results: Vec<SummedResult>,
    /// Average effects over all rows, where assignment was random.
    pub averages: Vec<AverageEffect>,
    /// Nothing: policies are not pooled.
    pub pooled: [(); 0],
    /// Whether most rows have a policy with too few rows to be compared on its own.
    pub thin_arms: bool,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

/// Metrics of one policy against another on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummedResult {
    /// The numbers.
    #[serde(flatten)]
    pub result: PolicyResult,
    /// How far numbers about the ranking may be from those of the rows one by one.
    pub bounds: RankingBounds,
}

/// Bounds on the difference between a ranking of buckets and a ranking of rows; 0 where every different effect has a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankingBounds {
    /// Of `auuc`.
    pub auuc: Option<f64>,
    /// Of `qini`.
    pub qini: Option<f64>,
    /// Of `rate_autoc`.
    pub rate_autoc: Option<f64>,
    /// Of `rate_qini`.
    pub rate_qini: Option<f64>,
}

/// Whether assignment and rows are such that averages and errors are known from sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Everybody had the same chances.
    pub(crate) is_randomized: bool,
    pub(crate) has_clusters: bool,
    pub(crate) level: f64,
}

/// Reads everything off the sums of all rows.
pub(crate) fn evaluation(
    sums: &Sums,
    shape: &Shape<'_>,
    plan: &Plan,
    known: Known,
    thin_arms: bool,
    mut notes: Vec<String>,
) -> SummedEvaluation {
    let Known { is_randomized, has_clusters, level } = known;
    if !is_randomized {
        notes.push(
            "no average effects: their chances differ between rows, and must be learned from all of them"
                .to_owned(),
        );
    }
    SummedEvaluation {
        rows: plan.outline.n_rows(),
        level,
        results: metrics(sums, shape, plan, has_clusters),
        averages: match is_randomized {
            true => averages(sums, shape, plan, level, has_clusters),
            false => Vec::new(),
        },
        pooled: [],
        thin_arms,
        notes,
    }
}
