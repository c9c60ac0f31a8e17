//! What a metric is: its name, how it is read off ranked rows, what stands beside it, and which tables show it.

use super::metrics::Metrics;
use super::params::ValidParams;
use super::ranked::Ranked;
use super::rate::Rate;
use super::reading::Pass;

/// A metric, as everything that reads, stores or shows it knows it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The key in JSON, the same in Python and in the docs.
    pub name: &'static str,
    /// What tables call it.
    pub title: &'static str,
    /// What it says something about.
    pub about: About,
    /// Which values are good.
    pub better: Better,
    /// How the tables of an evaluation show it.
    pub evaluated: Option<Shown>,
    /// How the report's table of rankings and sizes shows it.
    pub reported: Option<Shown>,
    /// How the tables of a comparison of learners show it.
    pub compared: Option<Shown>,
    /// Whether a comparison measures it, shown or not.
    pub in_comparisons: bool,
    /// Whether it needs true effects. Where they are not known its keys are left out.
    pub needs_truth: bool,
    /// Its value on the rows or a draw of them; none where it is not defined.
    pub(super) read: fn(&Pass<'_>) -> Option<f64>,
    /// Its standard error on the rows, where it has one.
    pub(super) se: Option<fn(&Whole<'_>) -> Option<f64>>,
    /// Whether it has an interval by the draws.
    pub(super) has_interval: bool,
    /// Whether it divides by what may be next to nothing: then draws of sums of rows are not set right by a difference.
    pub(super) is_quotient: bool,
    /// What follows it in JSON.
    pub(super) beside: Option<Beside>,
    /// Why it is missing or doubtful, in words for the reader of a report.
    pub(super) notes: fn(&Told<'_>) -> Vec<String>,
}

/// What a metric says something about. Tables of a report are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// The average effect.
    Average,
    /// The order of users.
    Ranking,
    /// The sizes of effects.
    Sizes,
    /// The distance from true effects.
    Truth,
}

/// Which values of a metric are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Large ones.
    More,
    /// Small ones.
    Less,
    /// Neither: one is, or none is better than another.
    Neither,
}

/// How a table shows a metric beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether its interval follows.
    pub interval: bool,
    /// Whether its difference to the reference follows, with an interval, where learners are compared.
    pub difference: bool,
}

impl Shown {
    /// The value alone.
    pub(super) const VALUE: Option<Self> = Some(Self { interval: false, difference: false });
    /// The value and its interval.
    pub(super) const INTERVAL: Option<Self> = Some(Self { interval: true, difference: false });
    /// The value and its difference to the reference.
    pub(super) const DIFFERENCE: Option<Self> = Some(Self { interval: false, difference: true });
    /// All.
    pub(super) const ALL: Option<Self> = Some(Self { interval: true, difference: true });
}

/// What else an evaluation has that belongs to a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Effects among the rows ranked highest.
    TopShares,
    /// How many bins have an effect too small to divide by.
    FlaggedBins,
    /// Predicted and observed effects by bin.
    Bins,
}

/// The rows as they are, for standard errors that no draw gives.
pub(super) struct Whole<'a> {
    pub(super) ranked: &'a Ranked,
    /// RATE with errors of its own draws of half of the rows.
    pub(super) rate: Option<Rate>,
}

/// What notes are about.
pub(super) struct Told<'a> {
    pub(super) metrics: &'a Metrics,
    pub(super) ranked: &'a Ranked,
    pub(super) params: &'a ValidParams,
}

impl Definition {
    /// A metric with an interval that no table shows; more of it is better.
    pub(super) const fn new(
        name: &'static str,
        title: &'static str,
        about: About,
        read: fn(&Pass<'_>) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            title,
            about,
            better: Better::More,
            evaluated: None,
            reported: None,
            compared: None,
            in_comparisons: false,
            needs_truth: false,
            read,
            se: None,
            has_interval: true,
            is_quotient: false,
            beside: None,
            notes: |_| Vec::new(),
        }
    }
}
