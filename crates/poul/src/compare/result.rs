//! What a comparison found, as it is written to JSON and set in tables.

use serde::{Deserialize, Serialize};

use super::Schedule;
use crate::effect::Settings;
use crate::evaluate::{AssignedPolicies, Interval, Metric};

/// Learners side by side on the same test rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The version of the library.
    pub poul: String,
    /// Rows trained on.
    pub train_rows: usize,
    /// Rows held out for the validation R-loss.
    pub validation_rows: usize,
    /// Rows tested on.
    pub test_rows: usize,
    /// The seeds that every learner was trained with.
    pub seeds: Vec<u64>,
    /// Bootstrap draws of the test rows.
    pub draws: usize,
    /// Share of the draws inside an interval.
    pub level: f64,
    /// The policy that others are compared with.
    pub against: String,
    /// The label of the learner that differences are taken to.
    pub reference: Option<String>,
    /// The populations of test rows.
    pub populations: Vec<Population>,
    /// Those that were trained, in the order asked for.
    pub learners: Vec<LearnerResult>,
    /// Those that could not be.
    pub failures: Vec<Failure>,
    /// What the user should know of the comparison as a whole.
    pub notes: Vec<String>,
    /// Whether most test rows have a policy with too few rows to be compared on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thin_arms: bool,
}

/// A part of the test rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// `global` or `core`.
    pub name: String,
    /// Which rows belong to it; all where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// How many.
    pub rows: usize,
}

/// One learner, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerResult {
    /// What tables call it.
    pub label: String,
    /// The learner's name.
    pub learner: String,
    /// Its schedule, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Whether its validation R-loss is the least among entries of the same learner: tables show this one.
    pub selected: bool,
    /// Mean validation R-loss over seeds and outcomes, in variances of the outcomes; less is better.
    pub validation_r_loss: Option<f64>,
    /// The same by outcome.
    pub validation_r_loss_by_outcome: Vec<f64>,
    /// Its standard deviation over seeds; none with one seed.
    pub validation_r_loss_seed_sd: Option<f64>,
    /// Metrics by outcome, policy and population.
    pub cells: Vec<Cell>,
    /// Metrics of each row by its own policy, by outcome and population.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assigned: Vec<AssignedCell>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The settings, complete.
    pub settings: Settings,
}

/// One comparison of policies on one population.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The population's name.
    pub population: String,
    /// The outcome.
    pub outcome: String,
    /// The policy; all together where there is none.
    pub policy: Option<String>,
    /// Rows that got the policy.
    pub n_treated: usize,
    /// Rows it is compared with.
    pub n_control: usize,
    /// Observed average effect.
    pub ate: Option<f64>,
    /// The metrics that are defined.
    pub metrics: Vec<Estimate>,
    /// Why numbers are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Test rows by their own policies against what was assigned on average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssignedCell {
    /// The population's name.
    pub population: String,
    /// The outcome.
    pub outcome: String,
    /// Which rows, by what training knew of their policies.
    pub policies: AssignedPolicies,
    /// How many.
    pub rows: usize,
    /// How many policies they have.
    pub n_policies: usize,
    /// R-score, slope and rank gain, where they are defined.
    pub metrics: Vec<Estimate>,
    /// Why numbers are missing or doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A metric with what is known of its precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Which one.
    pub metric: Metric,
    /// Its mean over seeds.
    pub value: f64,
    /// Bootstrap interval over test rows.
    pub interval: Option<Interval>,
    /// Standard deviation over seeds; none with one seed.
    pub seed_sd: Option<f64>,
    /// How much more than the reference's.
    pub difference: Option<f64>,
    /// Its interval, from the same draws of the test rows for both.
    pub difference_interval: Option<Interval>,
}

/// A learner that could not be trained or scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What tables would call it.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// What went wrong.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Cell {
    /// A metric, where it is defined.
    pub fn metric(&self, metric: Metric) -> Option<&Estimate> {
        self.metrics.iter().find(|estimate| estimate.metric == metric)
    }
}

impl AssignedCell {
    /// A metric, where it is defined.
    pub fn metric(&self, metric: Metric) -> Option<&Estimate> {
        self.metrics.iter().find(|estimate| estimate.metric == metric)
    }
}

impl LearnerResult {
    /// The cell of a comparison.
    pub fn cell(&self, population: &str, outcome: &str, policy: Option<&str>) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            cell.population == population && cell.outcome == outcome && cell.policy.as_deref() == policy
        })
    }
}
