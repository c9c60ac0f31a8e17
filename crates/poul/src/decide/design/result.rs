//! What a design finds, as JSON, text and Python tell it.

use serde::Serialize;

use super::params::By;
use crate::model::Standing;
use crate::policy::{ContextChange, PolicySet};

/// The policies to run next, and what is known of them.
#[derive(Clone, Debug, Serialize)]
pub struct Design {
    /// The outcome that is maximised; none in a plan alone.
    pub maximize: Option<String>,
    /// What policies were judged by.
    pub by: By,
    /// The policy that effects are against.
    pub against: String,
    /// Whose average it is: `training` or `users`.
    pub population: Population,
    /// Users that averages are over, where they were given.
    pub users: Option<u64>,
    /// The policy that is changed, as it is known; none in a plan alone.
    pub base: Option<Base>,
    /// What was searched; none in a plan alone.
    pub search: Option<Search>,
    /// The policies to run, the best first.
    pub proposals: Vec<Proposal>,
    /// The noise of one user, by outcome.
    pub noise: Vec<Noise>,
    /// What an experiment of so many users could tell, where a number was given.
    pub plan: Option<Plan>,
    /// How to split the users, where the aim is to learn.
    pub learn: Option<Learn>,
    /// All of it in a sentence.
    pub conclusion: String,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// Control and the proposals, ready to run.
    #[serde(skip)]
    pub policies: Option<PolicySet>,
}

/// Whose average an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Population {
    /// That of the training rows.
    Training,
    /// That of the users that were given.
    Users,
}

/// The policy that is changed.
#[derive(Clone, Debug, Serialize)]
pub struct Base {
    /// Its name.
    pub policy: String,
    /// Its training rows.
    pub rows: u64,
    /// Its average effects against control.
    pub effects: Vec<Effect>,
    /// What it is worth: its effect less prices.
    pub value: f64,
}

/// What was searched, and how.
#[derive(Clone, Debug, Serialize)]
pub struct Search {
    /// Policies in the space, before their distance, novelty and budgets are looked at.
    pub policies: u64,
    /// Policies that were looked at.
    pub looked_at: u64,
    /// Of these, how many were new, near enough and affordable.
    pub eligible: u64,
    /// Whether all were looked at, so that nothing better is in the space.
    pub exact: bool,
    /// Starts of the search where it was not exact, and how many of them ended at the best policy found.
    pub starts: usize,
    /// See `starts`.
    pub agreeing: usize,
    /// Contexts that may be changed.
    pub edits: usize,
    /// The farthest from a policy that was run.
    pub within: f64,
    /// Training rows of every action in its context.
    pub min_rows: u64,
    /// Probabilities of actions.
    pub grid: Vec<f64>,
}

/// A policy to run.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// Its name in the policy file.
    pub policy: String,
    /// What changes from the base.
    pub changes: Vec<ContextChange>,
    /// The same in words, such as `peak_beijing: none -> upgrade`.
    pub words: Vec<String>,
    /// Its average effects against control.
    pub effects: Vec<Effect>,
    /// What it is worth: its effect less prices.
    pub value: f64,
    /// The number it was judged by.
    pub score: f64,
    /// What it adds to the value of the base.
    pub improvement: Improvement,
    /// d_Π to the nearest policy that was run.
    pub distance: f64,
    /// That policy.
    pub nearest: Option<String>,
    /// Its training rows.
    pub nearest_rows: u64,
    /// What stands behind the proposal.
    pub standing: Standing,
    /// The same in a sentence.
    pub verdict: String,
    /// Training rows of its rarest action in a context.
    pub fewest_rows: u64,
}

/// An average effect on one outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// The outcome.
    pub outcome: String,
    /// The average effect for a user.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval.
    pub interval: [f64; 2],
    /// Users, half of them under control, that would tell an effect of this size from none; none where it is zero.
    pub users_needed: Option<u64>,
}

/// What a proposal adds to the base.
#[derive(Clone, Debug, Serialize)]
pub struct Improvement {
    /// The base.
    pub over: String,
    /// The difference in value.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval.
    pub interval: [f64; 2],
    /// The probability that there is any.
    pub chance: f64,
    /// Users, half of them under the base, that would tell a difference of this size; none where it is zero.
    pub users_needed: Option<u64>,
}

/// The noise of one user.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// The outcome.
    pub outcome: String,
    /// Standard deviation after the outcome model.
    pub deviation: f64,
    /// The outcome's own standard deviation.
    pub of_outcome: f64,
    /// Whether the model knows it; the outcome's own stands for it otherwise.
    pub known: bool,
}

/// What an experiment could tell.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Users.
    pub rows: u64,
    /// Policies that share them evenly, control among them.
    pub arms: usize,
    /// The smallest effect, by outcome, that two of these arms would tell.
    pub detectable: Vec<Detectable>,
    /// What could be told of each policy.
    pub policies: Vec<PlannedPolicy>,
    /// What it takes to tell two policies apart.
    pub pairs: Vec<Pair>,
}

/// The smallest effect that an experiment would tell.
#[derive(Clone, Debug, Serialize)]
pub struct Detectable {
    /// The outcome.
    pub outcome: String,
    /// The effect, told four times in five at the level of 5 %.
    pub effect: f64,
}

/// What an experiment could tell of a policy.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedPolicy {
    /// The policy.
    pub policy: String,
    /// The outcome.
    pub outcome: String,
    /// Its expected effect.
    pub effect: f64,
    /// Its standard error now.
    pub se: f64,
    /// Its standard error with the experiment.
    pub se_after: f64,
    /// Its interval as it would be, around today's expectation.
    pub interval_after: [f64; 2],
    /// The probability that the experiment tells the policy from control, by what is known today.
    pub chance: f64,
    /// Users, half of them under control, that would tell an effect of this size.
    pub users_needed: Option<u64>,
}

/// Two policies to tell apart.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// One.
    pub policy: String,
    /// The other.
    pub against: String,
    /// The outcome.
    pub outcome: String,
    /// The expected difference.
    pub effect: f64,
    /// Its standard error now.
    pub se: f64,
    /// Users, half of them under each, that would tell a difference of this size.
    pub users_needed: Option<u64>,
}

/// How to split users so that most is learned.
#[derive(Clone, Debug, Serialize)]
pub struct Learn {
    /// Users.
    pub rows: u64,
    /// Policies whose averages are to be known.
    pub candidates: usize,
    /// The root mean square of their standard errors now.
    pub se: f64,
    /// The same after the experiment.
    pub se_after: f64,
    /// Share of the users under control.
    pub control_share: f64,
    /// The policies to run, in the order of `proposals`.
    pub arms: Vec<Arm>,
}

/// A policy to learn from.
#[derive(Clone, Debug, Serialize)]
pub struct Arm {
    /// The policy.
    pub policy: String,
    /// Its share of the users.
    pub share: f64,
    /// Its users.
    pub rows: u64,
    /// The interval of its value now.
    pub interval: [f64; 2],
    /// The interval as it would be, around today's expectation.
    pub interval_after: [f64; 2],
}
