//! What a scenario is, and the list of them: a scenario is a file of its own and a line here.

use super::again::Round;
use super::params::Valid;
use super::run::{Output, Summary};
use super::world::World;
use super::{delivery, long_tail, observational, ride_hailing, stratified};
use crate::{Error, Kind, Result, Seed};

/// Every scenario, the default first.
pub(super) const SCENARIOS: &[&Scenario] = &[
    &ride_hailing::SCENARIO,
    &long_tail::SCENARIO,
    &stratified::SCENARIO,
    &observational::SCENARIO,
    &delivery::SCENARIO,
];

/// A scenario: what can be set, what it says of itself, and how its world is drawn.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// What it is, in a line.
    pub(super) what: &'static str,
    pub(super) min_features: usize,
    /// Policies unless a number is given, and the least and the most that there can be.
    pub(super) n_policies: usize,
    pub(super) policy_range: (usize, usize),
    /// Contexts and actions, where they are part of the story.
    pub(super) fixed: Option<(usize, usize)>,
    /// Noise unless it is given, and the most that there can be.
    pub(super) noise: f64,
    pub(super) max_noise: f64,
    pub(super) readme: Readme,
    /// Draws the world and does the task in it.
    pub(super) draw: fn(&Valid, Seed, Task<'_>) -> Result<Summary>,
}

/// What the README of a folder says of a scenario.
#[derive(Debug)]
pub(super) struct Readme {
    pub(super) story: &'static str,
    /// Files that other scenarios have not.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// How outcomes come about, by the noise; empty where the story says it.
    pub(super) formula: fn(f64) -> String,
    /// Its roles, as a shell has them.
    pub(super) roles: &'static [(&'static str, &'static str)],
    /// The policy to score; the first that is held out where there is none.
    pub(super) policy: Option<&'static str>,
    /// Settings of one more evaluation to try; none where there is none.
    pub(super) more: &'static [(&'static str, &'static str)],
}

/// What is to be done in a world.
pub(super) enum Task<'a> {
    /// To write it.
    First(Output<'a>),
    /// To run other policies in it.
    Again(Round<'a>),
}

impl Task<'_> {
    /// Does it; `with_propensities`, where they differ by unit, are written of a world alone.
    pub(super) fn carry_out<W: World>(self, world: W, with_propensities: bool) -> Result<Summary> {
        match self {
            Self::First(output) => output.write(&world, with_propensities),
            Self::Again(round) => round.write(world),
        }
    }
}

impl Scenario {
    /// The scenario of this name.
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        SCENARIOS.iter().copied().find(|scenario| scenario.name == name).ok_or_else(|| {
            Error::unknown(Kind::Usage, "scenario", name, "scenarios", scenarios().map(|(name, _)| name))
        })
    }
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The names of the scenarios and what each is.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCENARIOS.iter().map(|scenario| (scenario.name, scenario.what))
}
