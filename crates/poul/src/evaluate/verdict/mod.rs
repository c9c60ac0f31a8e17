//! What the numbers of an evaluation amount to: is the ranking of users real, are the sizes right, what can be claimed.
//!
//! Everything is judged *within* policies. Pooling stacks the rows of all policies with their own predicted effects, so a
//! learner that gives every user the same effect still ranks policies and beats a random order; it says nothing of users.
//!
//! **Ranking.** z = RATE with weight q over its half-sample standard error: the numerator of AUUC − ½, without the
//! division by an average effect that may be near zero. A policy passes where its users vary and z > 1.645 (95 %,
//! one-sided). `good` needs every policy, and the mean over policies beyond 99.9 % (shared among the outcomes), whose
//! standard error allows for the control rows that policies share. So a random ranking is called `good` with probability
//! at most 0.001, whatever the number of policies: for one policy the second condition is the stricter; for K that do not
//! depend on each other the first alone leaves 0.05^K. That `good` is undeserved by one policy while the others earn it has
//! probability at most 0.05, which needs no correction: all must pass (Berger 1982, intersection-union). `mixed` needs the
//! mean beyond 99.9 %, or one policy beyond 95 % after Bonferroni.
//!
//! **Sizes.** A policy passes where its calibration slope holds 1 (after Šidák's correction for the number of policies),
//! is known well enough to exclude both 0 and 2, and its predicted average lies in the observed band.

mod conclusion;
mod difference;
mod ranking;
mod sizes;
mod words;

use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::reasons::AverageEffect;
use super::result::{Evaluation, Interval, PolicyResult};

/// Fewer rows in an arm than this, and a comparison is not judged.
const FEWEST_ROWS: usize = 30;

/// What an evaluation amounts to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// For each outcome.
    pub outcomes: Vec<OutcomeVerdict>,
    /// What can be claimed, in one sentence for somebody who reads nothing else.
    pub conclusion: String,
}

/// What the numbers on one outcome amount to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeVerdict {
    /// Name of the outcome.
    pub outcome: String,
    /// Whether users are ranked better than at random, within policies.
    pub ranking: Judgement,
    /// Whether predicted effects have the size that is observed, within policies.
    pub sizes: Judgement,
    /// The metrics of all policies pooled, named as what they are; none for one policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<String>,
    /// Why the difference in means and the doubly robust average differ, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// A grade, the sentence behind it, and each policy's part in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// `good`, `mixed`, `poor` or `undecided`.
    pub grade: Grade,
    /// One sentence with the numbers behind it.
    pub text: String,
    /// The mean over the policies that were judged: of the gain over a random order, or of slopes.
    pub mean: Option<f64>,
    /// Its standard error, where it decides.
    pub mean_se: Option<f64>,
    /// Each policy.
    pub policies: Vec<PolicyJudgement>,
}

/// How something ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Every policy is as it should be.
    Good,
    /// Some policies are, and some are not or cannot be judged.
    Mixed,
    /// It is not as it should be.
    Poor,
    /// The rows do not tell.
    #[default]
    Undecided,
}

/// One policy's part in a judgement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyJudgement {
    /// Name of the policy.
    pub policy: String,
    /// Whether it is as it should be.
    pub passes: bool,
    /// In a few words.
    pub why: String,
    /// The gain over a random order per user, or the calibration slope.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
}

/// Judges every outcome of an evaluation. A pure function: the same evaluation gives the same words anywhere.
pub fn verdicts(evaluation: &Evaluation) -> Verdicts {
    let mut names: Vec<&str> = Vec::new();
    for result in &evaluation.results {
        if !names.contains(&result.outcome.as_str()) {
            names.push(&result.outcome);
        }
    }
    let outcomes: Vec<OutcomeVerdict> = names
        .iter()
        .map(|outcome| {
            let own = Outcome::new(evaluation, outcome);
            OutcomeVerdict {
                outcome: (*outcome).to_owned(),
                ranking: ranking::judge(&own, names.len()),
                sizes: sizes::judge(&own),
                pooled: pooled(evaluation, outcome),
                difference: difference::explain(&own),
            }
        })
        .collect();
    let conclusion = conclusion::sentence(evaluation, &outcomes);
    Verdicts { outcomes, conclusion }
}

/// The comparisons of one outcome.
struct Outcome<'a> {
    name: &'a str,
    evaluation: &'a Evaluation,
    results: Vec<&'a PolicyResult>,
}

impl<'a> Outcome<'a> {
    fn new(evaluation: &'a Evaluation, name: &'a str) -> Self {
        let results = evaluation.results.iter().filter(|result| result.outcome == name).collect();
        Self { name, evaluation, results }
    }

    /// The doubly robust average over all rows, where it was computed.
    fn average(&self, policy: &str) -> Option<&'a AverageEffect> {
        let whole =
            |own: &&AverageEffect| own.by.is_none() && own.outcome == self.name && own.policy == policy;
        self.evaluation.averages.iter().find(whole)
    }
}

fn is_thin(result: &PolicyResult) -> bool {
    result.metrics.n_treated.min(result.metrics.n_control) < FEWEST_ROWS
}

/// Whether every user has the same predicted effect: bins of equal size have the same mean, up to the rounding of floats.
fn is_constant(result: &PolicyResult) -> bool {
    let bins = &result.metrics.calibration;
    let fold = |start: f64, pick: fn(f64, f64) -> f64| bins.iter().map(|bin| bin.predicted).fold(start, pick);
    let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
    !bins.is_empty() && high - low <= 1e-6 * low.abs().max(high.abs())
}

fn pooled(evaluation: &Evaluation, outcome: &str) -> Option<String> {
    let own = evaluation.pooled.iter().find(|own| own.outcome == outcome && own.policies.len() > 1)?;
    let metrics = &own.metrics;
    let auuc = metrics[Metric::Auuc].value.map(|auuc| format!("AUUC is {}", words::number(auuc)));
    let slope = metrics[Metric::CalibrationSlope]
        .value
        .map(|slope| format!("the calibration slope {}", words::number(slope)));
    let numbers: Vec<String> = auuc.into_iter().chain(slope).collect();
    (!numbers.is_empty()).then(|| {
        format!(
            "On {outcome}, with {} policies pooled, {}: that ranks policies and users together, and is no verdict on the \
             ranking of users.",
            own.policies.len(),
            numbers.join(" and ")
        )
    })
}
