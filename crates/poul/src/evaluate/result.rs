//! What an evaluation returns: plain data that serialises to the metrics file.
//!
//! A number that could not be computed is null, and `notes` says why. Intervals are percentile bootstrap intervals.

use serde::{Deserialize, Serialize};

use super::metric::{CostPoint, Metrics};
use super::reasons::{AtomEffect, AverageEffect, PolicyPlace, Provenance, Validation, WhoGains};
use super::verdict::Verdicts;

/// Lower and upper end.
pub type Interval = [f64; 2];

/// Metrics of every outcome and policy, and what else a reader needs to trust them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Rows of the table.
    pub rows: usize,
    /// Share of the bootstrap draws inside an interval.
    pub level: f64,
    /// One entry for each outcome and policy, outcomes first.
    pub results: Vec<PolicyResult>,
    /// One entry for each outcome: all policies together.
    pub pooled: Vec<PooledResult>,
    /// Every row by its own policy against what was assigned on average: what is left to measure where arms are thin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assigned: Vec<AssignedResult>,
    /// Whether most rows have a policy with too few rows to be compared on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thin_arms: bool,
    /// Cost curves, where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost_curves: Vec<CostResult>,
    /// Average effects by the doubly robust score, over all rows and by group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub averages: Vec<AverageEffect>,
    /// How predicted effects differ between rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who_gains: Vec<WhoGains>,
    /// Checks of the design and of the orthogonal score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// The policies beside each other, and what stands behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyPlace>,
    /// What each action does in each context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub atoms: Vec<AtomEffect>,
    /// What it all amounts to: see [`verdicts`](super::verdicts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Verdicts>,
    /// Where the numbers come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// Metrics of one policy against another on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// The numbers.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// Metrics of several policies pooled: the rows of each policy and of the one compared with are stacked, each with its
/// own policy's predicted effect.
///
/// Rows compared with appear once for each policy, weighted so that the arms have the same ratio in every policy;
/// otherwise the mix of policies would differ between the arms along the ranking. Their copies are drawn together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PooledResult {
    /// Name of the outcome.
    pub outcome: String,
    /// Names of the policies pooled.
    pub policies: Vec<String>,
    /// Name of the policy they are compared with.
    pub against: String,
    /// The numbers.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The effect among the rows ranked highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopShare {
    /// The share.
    pub share: f64,
    /// Effect in the top share of all rows.
    pub overall: Option<f64>,
    /// Its interval.
    pub overall_interval: Option<Interval>,
    /// Difference between the top shares of each arm.
    pub by_group: Option<f64>,
    /// Its interval.
    pub by_group_interval: Option<Interval>,
}

/// A point of the gain curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Share of the rows.
    pub share: f64,
    /// Number of rows (sum of weights).
    pub k: f64,
    /// Difference of the arms' means among the top k; 0 at k = 0.
    pub lift: f64,
    /// k·Lift(k).
    pub gain: f64,
    /// Bootstrap band of the gain.
    pub gain_interval: Option<Interval>,
}

/// The cost curve of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostResult {
    /// Name of the policy.
    pub policy: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// Name of the outcome on the vertical axis.
    pub value: String,
    /// Name of the outcome on the horizontal axis.
    pub cost: String,
    /// Normalised area under the cost curve.
    pub aucc: Option<f64>,
    /// Its interval.
    pub aucc_interval: Option<Interval>,
    /// The area of a random ranking: 0.5 or −0.5.
    pub random_aucc: Option<f64>,
    /// The curve.
    pub curve: Vec<CostPoint>,
    /// Why numbers are missing.
    pub notes: Vec<String>,
}

/// Which rows, by what training knew of their policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignedPolicies {
    /// All.
    All,
    /// Policies that training rows had.
    Seen,
    /// Policies that no training row had.
    New,
}

/// Rows by their own policy against what was assigned on average, on one outcome; `assigned.rs` defines the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssignedResult {
    /// Name of the outcome.
    pub outcome: String,
    /// Which rows.
    pub policies: AssignedPolicies,
    /// How many.
    pub rows: usize,
    /// How many policies they have.
    pub n_policies: usize,
    /// How many clusters, where there are clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_clusters: Option<usize>,
    /// Variance of what the outcome model leaves: all that policies could explain, and noise.
    pub residual_variance: Option<f64>,
    /// Variance of the predicted contrasts.
    pub contrast_variance: Option<f64>,
    /// Share of `residual_variance` that the contrasts explain.
    pub r_score: Option<f64>,
    /// Its interval.
    pub r_score_interval: Option<Interval>,
    /// Calibration slope: 1 where sizes are right.
    pub slope: Option<f64>,
    /// Its standard error.
    pub slope_se: Option<f64>,
    /// Its interval.
    pub slope_interval: Option<Interval>,
    /// Of two rows, how much more outcome the one with the larger contrast has on average; 0 for a random ranking.
    pub rank_gain: Option<f64>,
    /// Its interval.
    pub rank_gain_interval: Option<Interval>,
    /// What it would be if every contrast were true.
    pub rank_gain_predicted: Option<f64>,
    /// Why numbers are missing or doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
