//! `stratified`: policies are assigned at random within strata, with probabilities that differ and are known.

use std::io::Write as _;
use std::path::Path;

use arrow_schema::{DataType, Field};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::params::Valid;
use super::scenario::{Readme, Scenario, Task};
use super::surface::Surface;
use super::synthetic::{Assignment, MIN_FEATURES, Scored, Synthetic, formula};
use super::world::Setting;
use crate::{AtomicFile, Error, Result, Rng, Seed};

const NAMES: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];
/// Cumulative sizes of all strata but the last.
const SIZES: [f64; 4] = [0.1, 0.3, 0.55, 0.8];

/// The scenario.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "stratified",
    what: "assignment probabilities that differ between strata and are known",
    min_features: MIN_FEATURES,
    n_policies: 30,
    policy_range: (2, 20_000),
    fixed: None,
    noise: 2.0,
    max_noise: 1_000.0,
    readme: Readme {
        story: "Policies are assigned at random within five strata, with probabilities that differ between strata \
             (`strata.csv`). Strata are cut from a score\nthat also drives the outcome, so arms are not comparable \
             without them. Test rows are assigned in the same way.",
        files: &[("strata.csv", "`stratum`, `policy`, `probability` of assignment")],
        columns: &[
            ("f001 …", "features: correlated numbers of several shapes, some with missing values"),
            ("stratum", "`s1` to `s5`, a function of the features"),
            ("policy", "the policy assigned"),
            ("y", "the outcome"),
        ],
        formula,
        roles: &[("outcome", "y"), ("design", "stratified"), ("stratum", "stratum")],
        policy: None,
        more: &[],
    },
    draw: |params, seed, mut task| {
        let world = world(params, seed)?;
        if let (Task::First(output), Assignment::Stratified(strata)) = (&mut task, &world.assignment) {
            strata.write_csv(&output.file("strata.csv"), &world.setting)?;
        }
        task.carry_out(world, false)
    },
};

/// Which stratum a unit is in, and what is assigned there.
pub(super) struct Strata {
    score: Surface,
    cuts: [f64; 4],
    table: Vec<Vec<f64>>,
}

/// Draws the world: strata are cut from a score that also drives the baseline.
pub(super) fn world(params: &Valid, seed: Seed) -> Result<Synthetic> {
    let mut world = Synthetic::draw(params, seed)?;
    let scored = world.calibration(seed);
    let mut rng = seed.child("strata").rng();
    let all: Vec<usize> = (0..scored.n_drivers).collect();
    let mut strata = Strata {
        score: Surface::draw(&all, &scored.signals, scored.n_drivers, &mut rng),
        cuts: [0.0; 4],
        table: table(&world.setting.shares, &mut rng),
    };
    let mut scores = strata.scores(&scored);
    scores.sort_by(f64::total_cmp);
    strata.cuts = SIZES.map(|size| scores[(size * scores.len() as f64) as usize]);

    let in_strata = strata.strata(&scored);
    let average = |policy_idx: usize| {
        let sum: f64 = in_strata.iter().map(|&stratum| strata.table[stratum][policy_idx]).sum();
        sum / in_strata.len() as f64
    };
    world.setting.shares = (0..world.setting.shares.len()).map(average).collect();
    world.setting.fields.push(Field::new("stratum", DataType::Utf8, false));
    world.assignment = Assignment::Stratified(strata);
    Ok(world)
}

impl Strata {
    /// The stratum of each unit.
    pub(super) fn strata(&self, scored: &Scored) -> Vec<usize> {
        let stratum = |score: f64| self.cuts.iter().filter(|&&cut| score >= cut).count();
        self.scores(scored).into_iter().map(stratum).collect()
    }

    /// From now on the same shares in every stratum.
    pub(super) fn assign_alike(&mut self, shares: &[f64]) {
        self.table.iter_mut().for_each(|own| *own = shares.to_vec());
    }

    /// The probability of each policy in a stratum.
    pub(super) fn probabilities(&self, stratum: usize) -> &[f64] {
        &self.table[stratum]
    }

    /// The name of a stratum.
    pub(super) fn name(&self, stratum: usize) -> &'static str {
        NAMES[stratum]
    }

    /// Half of it is the baseline: strata that need help get other policies.
    fn scores(&self, scored: &Scored) -> Vec<f64> {
        let units = scored.signals.chunks(scored.n_drivers).zip(&scored.baseline);
        units.map(|(x, baseline)| self.score.value(x) + baseline).collect()
    }

    /// Writes `stratum,policy,probability` for every policy that is run.
    pub(super) fn write_csv(&self, path: &Path, setting: &Setting) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut text = String::from("stratum,policy,probability\n");
        for (stratum, probabilities) in self.table.iter().enumerate() {
            for (policy, probability) in setting.policies.names.iter().zip(probabilities) {
                if *probability > 0.0 {
                    text.push_str(&format!("{},{policy},{probability}\n", NAMES[stratum]));
                }
            }
        }
        file.write_all(text.as_bytes()).map_err(|error| Error::output(path, error))?;
        file.commit()
    }
}

/// Shares tilted along the strata, a fifth of them spread evenly so that every policy is met everywhere.
fn table(shares: &[f64], rng: &mut Rng) -> Vec<Vec<f64>> {
    let trends: Vec<f64> = shares.iter().map(|_| rng.sample(StandardNormal)).collect();
    (0..NAMES.len())
        .map(|stratum| {
            let position = (stratum as f64 - 2.0) / 2.0;
            let tilted = shares.iter().zip(&trends).map(|(share, trend)| {
                share * (trend * position + 0.2 * rng.sample::<f64, _>(StandardNormal)).exp()
            });
            with_floor(tilted.collect())
        })
        .collect()
}

/// Normalises weights and mixes in a fifth of the uniform distribution over those that are positive.
pub(super) fn with_floor(mut weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let n_seen = weights.iter().filter(|&&weight| weight > 0.0).count() as f64;
    for weight in weights.iter_mut().filter(|weight| **weight > 0.0) {
        *weight = 0.8 * *weight / total + 0.2 / n_seen;
    }
    weights
}
