//! `long-tail`: hundreds of policies, most of them rare, some never run.

use super::params::Valid;
use super::synthetic::Synthetic;
use crate::{Result, Seed};

/// Draws the world: assignment is random, with Zipf shares.
pub(super) fn world(params: &Valid, seed: Seed) -> Result<Synthetic> {
    Synthetic::draw(params, seed)
}
