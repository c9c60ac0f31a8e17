//! The world behind `long-tail`, `stratified` and `observational`: Y = m(x) + g(x)ᵀ(F(μ_t) − F(μ_control)) + ε.
//!
//! m and the components of g are random surfaces of a few of the features; effects have standard deviation 1 over
//! units and policies (control left out), m has 2, and ε is normal with standard deviation `noise`.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};
use rand::RngExt;
use rand::seq::index::sample;
use rand_distr::StandardNormal;

use super::features::{Features, factors};
use super::functional::{Functional, RANK};
use super::observational::Softmax;
use super::params::Valid;
use super::policies::PolicyTable;
use super::recombine::{Recombined, recombined};
use super::stratified::Strata;
use super::surface::Surface;
use super::world::{Contrasts, Part, Response, Setting, World, mean_and_sd};
use crate::{Result, Rng, Seed};

/// The fewest features that the effects can be made of.
pub(super) const MIN_FEATURES: usize = 8;
/// The columns, where there are no others.
pub(super) const COLUMNS: [(&str, &str); 3] = [
    ("f001 …", "features: correlated numbers of several shapes, some with missing values"),
    ("policy", "the policy assigned"),
    ("y", "the outcome"),
];

const N_FACTORS: usize = 6;
/// Effects depend on 8 features and the baseline on 8, of which 4 are shared (more where there are fewer than 12).
const N_DRIVERS: usize = 12;
const CALIBRATION_ROWS: usize = 8192;
/// How much effects vary between units, relative to how much they vary between policies.
const HETEROGENEITY: f64 = 0.6;
const BASELINE_MEAN: f64 = 5.0;
const BASELINE_SD: f64 = 2.0;

/// A random world with one outcome, `y`.
pub(super) struct Synthetic {
    pub(super) setting: Setting,
    pub(super) assignment: Assignment,
    features: Features,
    n_features: usize,
    /// The columns that matter; surfaces take their signals in this order.
    drivers: Vec<usize>,
    baseline: Surface,
    gains: Vec<Gain>,
    noise: f64,
    functional: Functional,
    /// What F is multiplied with.
    scale: f64,
}

/// How policies are given to units.
pub(super) enum Assignment {
    /// By the shares, whoever the unit is.
    Randomized,
    /// By a table for each stratum.
    Stratified(Strata),
    /// By a softmax of the features.
    Observational(Softmax),
}

/// One component of g.
struct Gain {
    mean: f64,
    surface: Surface,
}

/// A block of units.
pub(super) struct Units {
    columns: Vec<ArrayRef>,
    responses: [Response; 1],
    strata: Vec<usize>,
    propensities: Vec<f64>,
}

/// What calibration and assignment need of some units.
pub(super) struct Scored {
    /// Signals of the drivers, row after row.
    pub(super) signals: Vec<f64>,
    pub(super) n_drivers: usize,
    /// The standardised baseline of each row.
    pub(super) baseline: Vec<f64>,
}

impl Synthetic {
    /// Draws a world in which policies are assigned at random by Zipf shares.
    pub(super) fn draw(params: &Valid, seed: Seed) -> Result<Self> {
        let Recombined { table, shares } =
            recombined(params.n_policies, params.n_contexts, params.n_actions, seed.child("policies"))?;
        let features = Features::draw(params.n_features, N_FACTORS, seed.child("features"));
        let mut rng = seed.child("responses").rng();
        let n_drivers = N_DRIVERS.min(params.n_features);
        let drivers: Vec<usize> = sample(&mut rng, params.n_features, n_drivers).into_vec();
        let signals = signals(&features, &drivers, CALIBRATION_ROWS, seed.child("calibration"));

        let for_effects: Vec<usize> = (0..MIN_FEATURES).collect();
        let for_baseline: Vec<usize> = (n_drivers - MIN_FEATURES..n_drivers).collect();
        let baseline = Surface::draw(&for_baseline, &signals, n_drivers, &mut rng);
        let gains = (0..RANK)
            .map(|_| Gain {
                mean: rng.sample::<f64, _>(StandardNormal),
                surface: Surface::draw(&for_effects, &signals, n_drivers, &mut rng),
            })
            .collect();

        let functional = Functional::draw(&table, seed.child("functional"));
        let values: Vec<Vec<f64>> =
            table.mixtures().iter().map(|mixture| functional.value(mixture)).collect();
        let setting = Setting {
            policies: table,
            shares,
            outcomes: vec!["y"],
            contrasts: vec![Contrasts::against_control(&values)],
            fields: feature_fields("f", params.n_features),
        };
        let mut world = Self {
            setting,
            assignment: Assignment::Randomized,
            features,
            n_features: params.n_features,
            drivers,
            baseline,
            gains,
            noise: params.noise,
            functional,
            scale: 1.0,
        };
        world.scale = 1.0 / world.effect_sd(&signals);
        world.setting.contrasts[0].scale(world.scale);
        Ok(world)
    }

    /// Units on which thresholds and average propensities are set.
    pub(super) fn calibration(&self, seed: Seed) -> Scored {
        self.score(signals(&self.features, &self.drivers, CALIBRATION_ROWS, seed.child("calibration")))
    }

    fn score(&self, signals: Vec<f64>) -> Scored {
        let n_drivers = self.drivers.len();
        let baseline = signals.chunks(n_drivers).map(|x| self.baseline.value(x)).collect();
        Scored { signals, n_drivers, baseline }
    }

    fn response(&self, scored: &Scored) -> Response {
        let gain = |x: &[f64]| -> Vec<f64> {
            self.gains.iter().map(|gain| gain.mean + HETEROGENEITY * gain.surface.value(x)).collect()
        };
        Response {
            baseline: scored.baseline.iter().map(|value| BASELINE_MEAN + BASELINE_SD * value).collect(),
            gain: scored.signals.chunks(scored.n_drivers).flat_map(gain).collect(),
        }
    }

    /// Over units and policies, control left out.
    fn effect_sd(&self, signals: &[f64]) -> f64 {
        let response = self.response(&self.score(signals.to_vec()));
        let n_policies = self.setting.shares.len();
        let contrasts = &self.setting.contrasts[0];
        let rows = 0..response.baseline.len();
        let effects = rows.flat_map(|row| {
            let response = &response;
            (1..n_policies).map(move |policy_idx| response.effect(row, contrasts, policy_idx))
        });
        mean_and_sd(effects).1.max(1e-12)
    }
}

impl World for Synthetic {
    type Units = Units;

    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn with_policies(mut self, policies: PolicyTable, shares: Vec<f64>) -> Self {
        let values: Vec<Vec<f64>> =
            policies.mixtures().iter().map(|mixture| self.functional.value(mixture)).collect();
        let mut contrasts = Contrasts::against_control(&values);
        contrasts.scale(self.scale);
        self.setting.contrasts = vec![contrasts];
        self.setting.policies = policies;
        match &mut self.assignment {
            Assignment::Stratified(strata) => strata.assign_alike(&shares),
            Assignment::Randomized | Assignment::Observational(_) => self.assignment = Assignment::Randomized,
        }
        self.setting.shares = shares;
        self
    }

    fn units(&self, _part: Part, n_rows: usize, seed: Seed) -> Units {
        let hidden = factors(N_FACTORS, n_rows, seed.child("factors"));
        let columns: Vec<_> =
            (0..self.n_features).map(|j| self.features.column(j, &hidden, seed.child("features"))).collect();
        let of_drivers: Vec<Vec<f64>> =
            self.drivers.iter().map(|&j| self.features.signal(j, &columns[j])).collect();
        let scored = self.score(by_row(&of_drivers));
        let (mut strata, mut propensities) = (Vec::new(), Vec::new());
        match &self.assignment {
            Assignment::Randomized => {}
            Assignment::Stratified(rule) => strata = rule.strata(&scored),
            Assignment::Observational(rule) => propensities = rule.propensities(&scored),
        }
        let columns = columns.into_iter().map(|column| Arc::new(column) as ArrayRef).collect();
        Units { columns, responses: [self.response(&scored)], strata, propensities }
    }

    fn columns(&self, units: &Units) -> Vec<ArrayRef> {
        let mut columns = units.columns.clone();
        if let Assignment::Stratified(rule) = &self.assignment {
            let names = units.strata.iter().map(|&stratum| rule.name(stratum));
            columns.push(Arc::new(StringArray::from_iter_values(names)));
        }
        columns
    }

    fn propensities<'a>(&'a self, units: &'a Units, row: usize) -> &'a [f64] {
        let n_policies = self.setting.shares.len();
        match &self.assignment {
            Assignment::Randomized => &self.setting.shares,
            Assignment::Stratified(rule) => rule.probabilities(units.strata[row]),
            Assignment::Observational(_) => &units.propensities[row * n_policies..(row + 1) * n_policies],
        }
    }

    fn responses<'a>(&self, units: &'a Units) -> &'a [Response] {
        &units.responses
    }

    fn draw(&self, units: &Units, row: usize, policy_idx: usize, rng: &mut Rng, outcomes: &mut [f64]) {
        let noise: f64 = rng.sample(StandardNormal);
        outcomes[0] = self.expected(units, 0, row, policy_idx) + self.noise * noise;
    }
}

/// How the outcome comes about, in words.
pub(super) fn formula(noise: f64) -> String {
    format!(
        "\n`y` = m(x) + g(x)ᵀ(F(μ) − F(μ_control)) + noise, with m and g smooth and non-linear in at most 12 of \
             the features, and F non-linear in\nthe policy's mixture μ over contexts and actions. Over units and \
             policies other than control the effect has standard deviation 1; the noise\nis normal with standard \
             deviation {noise}; m has 2.\n"
    )
}

/// Fields `f001`, `f002`, … of the numeric features.
pub(super) fn feature_fields(prefix: &str, n_features: usize) -> Vec<Field> {
    let width = n_features.to_string().len().max(3);
    let field = |idx| Field::new(format!("{prefix}{idx:0width$}"), DataType::Float32, true);
    (1..=n_features).map(field).collect()
}

/// Signals of some columns alone, row after row.
fn signals(features: &Features, drivers: &[usize], n_rows: usize, seed: Seed) -> Vec<f64> {
    let hidden = factors(N_FACTORS, n_rows, seed.child("factors"));
    let column = |&j: &usize| features.signal(j, &features.column(j, &hidden, seed.child("features")));
    by_row(&drivers.iter().map(column).collect::<Vec<_>>())
}

fn by_row(columns: &[Vec<f64>]) -> Vec<f64> {
    let n_rows = columns.first().map_or(0, Vec::len);
    (0..n_rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}
