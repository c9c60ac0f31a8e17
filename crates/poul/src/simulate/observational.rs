//! `observational`: nobody randomised; policies follow features that also drive the outcome, with overlap.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::params::Valid;
use super::scenario::{Readme, Scenario};
use super::stratified::with_floor;
use super::surface::Surface;
use super::synthetic::{Assignment, COLUMNS, MIN_FEATURES, Scored, Synthetic, formula};
use crate::{Result, Seed};

/// The scenario.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "observational",
    what: "assignment that follows features which also drive the outcome",
    min_features: MIN_FEATURES,
    n_policies: 10,
    policy_range: (2, 20_000),
    fixed: None,
    noise: 2.0,
    max_noise: 1_000.0,
    readme: Readme {
        story: "Nobody randomised: the probability of a policy depends on features that also drive the outcome, so raw \
             differences between arms are biased.\nOverlap holds: every policy that is run has a propensity of at \
             least 0.2 / (number of policies) for every unit. Test rows are assigned\nin the same way; their true \
             propensities are in `truth_propensity.parquet`.",
        files: &[(
            "truth_propensity.parquet",
            "the true `propensity` of every policy that is run, for the same test rows as the truth",
        )],
        columns: &COLUMNS,
        formula,
        roles: &[("outcome", "y"), ("design", "observational")],
        policy: None,
        more: &[],
    },
    draw: |params, seed, task| task.carry_out(world(params, seed)?, true),
};

/// π(t | x) ∝ share(t) · exp(tiltᵀ scores(x)), a fifth of it spread evenly: no propensity is below 0.2 / |T|.
pub(super) struct Softmax {
    scores: [Surface; 2],
    shares: Vec<f64>,
    tilts: Vec<[f64; 3]>,
}

/// Draws the world: the baseline itself is one of the scores, so a comparison of raw means is biased.
pub(super) fn world(params: &Valid, seed: Seed) -> Result<Synthetic> {
    let mut world = Synthetic::draw(params, seed)?;
    let scored = world.calibration(seed);
    let mut rng = seed.child("propensity").rng();
    let all: Vec<usize> = (0..scored.n_drivers).collect();
    let shares = world.setting.shares.clone();
    let softmax = Softmax {
        scores: [0, 1].map(|_| Surface::draw(&all, &scored.signals, scored.n_drivers, &mut rng)),
        tilts: shares
            .iter()
            .map(|_| [0.8, 0.5, 0.5].map(|sd| sd * rng.sample::<f64, _>(StandardNormal)))
            .collect(),
        shares,
    };
    let propensities = softmax.propensities(&scored);
    let n_rows = scored.baseline.len() as f64;
    let mut average = vec![0.0; world.setting.shares.len()];
    for row in propensities.chunks(average.len()) {
        average.iter_mut().zip(row).for_each(|(average, propensity)| *average += propensity / n_rows);
    }
    world.setting.shares = average;
    world.assignment = Assignment::Observational(softmax);
    Ok(world)
}

impl Softmax {
    /// π(t | x), row after row.
    pub(super) fn propensities(&self, scored: &Scored) -> Vec<f64> {
        let units = scored.signals.chunks(scored.n_drivers).zip(&scored.baseline);
        units
            .flat_map(|(x, &baseline)| {
                let scores = [baseline, self.scores[0].value(x), self.scores[1].value(x)];
                let weight = |(share, tilt): (&f64, &[f64; 3])| {
                    share * (tilt[0] * scores[0] + tilt[1] * scores[1] + tilt[2] * scores[2]).exp()
                };
                with_floor(self.shares.iter().zip(&self.tilts).map(weight).collect())
            })
            .collect()
    }
}
