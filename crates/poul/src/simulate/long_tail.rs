//! `long-tail`: hundreds of policies, most of them rare, some never run.

use super::params::Valid;
use super::scenario::{Readme, Scenario};
use super::synthetic::{COLUMNS, MIN_FEATURES, Synthetic, formula};
use crate::{Result, Seed};

/// The scenario.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "long-tail",
    what: "hundreds of recombined policies, most of them rare, a fifth never run",
    min_features: MIN_FEATURES,
    n_policies: 200,
    policy_range: (2, 20_000),
    fixed: None,
    noise: 2.0,
    max_noise: 1_000.0,
    readme: Readme {
        story: "Policies are assigned at random with Zipf shares: a few are frequent, most are rare. Half of the policies are\nnear-copies \
             of others, with one to three contexts changed.",
        files: &[],
        columns: &COLUMNS,
        formula,
        roles: &[("outcome", "y")],
        policy: None,
        more: &[],
    },
    draw: |params, seed, task| task.carry_out(world(params, seed)?, false),
};

/// Draws the world: assignment is random, with Zipf shares.
pub(super) fn world(params: &Valid, seed: Seed) -> Result<Synthetic> {
    Synthetic::draw(params, seed)
}
