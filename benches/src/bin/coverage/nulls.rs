//! Worlds in which no policy does anything and nobody randomised: what is claimed there is false.
//!
//! Each has a table to fit `ridge` on and one to evaluate for each seed, by `fit` and `evaluate_model`, as a user would. A policy
//! fails where more than a tenth of the rows have no overlap with it: so does the check, which is left out to save its time.

use poul::data::{Design, Source};
use poul::effect::Settings;
use poul::evaluate::Evaluation;
use poul::evaluate::run::{EvaluationRequest, evaluate_model, fitted_roles};
use poul::model::Model;
use poul::{Result, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::table::{WorldRows, model};

const FEATURES: usize = 4;
const FALSE_DISCOVERIES: f64 = 0.1;

/// How rows come to their policies, and what their outcome is without any effect.
struct World {
    name: &'static str,
    policies: usize,
    /// The log-odds of each policy but control against control.
    logits: fn(&[f64], usize) -> f64,
    /// The mean outcome, and the scale of its noise.
    outcome: fn(&[f64]) -> (f64, f64),
    /// Whether noise is lognormal, with a standard deviation of 4.9 times the scale.
    heavy: bool,
    /// Whether the first feature is its sign alone.
    two_groups: bool,
}

const WORLDS: [World; 6] = [
    World {
        name: "sigmoid(8x − 14)",
        policies: 2,
        logits: |x, _| 8.0 * x[0] - 14.0,
        outcome: |x| (3.0 * x[0], 1.0),
        heavy: false,
        two_groups: false,
    },
    World {
        name: "sigmoid(3x − 3)",
        policies: 2,
        logits: |x, _| 3.0 * x[0] - 3.0,
        outcome: |x| (3.0 * x[0], 1.0),
        heavy: false,
        two_groups: false,
    },
    World {
        name: "two groups, .08 and .92",
        policies: 2,
        logits: |x, _| 2.442 * x[0],
        outcome: |x| (1.5 * x[0] + 0.5 * x[1], 1.0),
        heavy: false,
        two_groups: true,
    },
    World {
        name: "four policies, one rare, heavy tails",
        policies: 4,
        logits: |x, policy| [0.0, 0.8 * x[0], -0.6 * x[1], -2.8 + 0.7 * x[0]][policy],
        outcome: |x| (10.0 * x[0] + 5.0 * x[1], 20.0),
        heavy: true,
        two_groups: false,
    },
    World {
        name: "bent confounding",
        policies: 2,
        logits: |x, _| 1.2 * (2.0 * x[0]).sin() + 0.5 * (x[1] * x[1] - 1.0),
        outcome: |x| (2.0 * (2.0 * x[0]).sin() + x[1] * x[1], 1.0),
        heavy: false,
        two_groups: false,
    },
    World {
        name: "twelve small arms, heavy tails",
        policies: 13,
        logits: |x, policy| {
            let own = [1.2, -1.2, 0.6, -0.6, 1.5, -1.5, 0.0, 0.3, -0.3, 0.9, -0.9, 1.0][policy - 1];
            -3.2 + own * x[policy % 3]
        },
        outcome: |x| (60.0 * (x[0] + x[1]), 120.0),
        heavy: true,
        two_groups: false,
    },
];

/// Prints a line for each world, or for one.
pub(super) fn run(n_seeds: u64, rows: usize, only: Option<usize>) -> Result<()> {
    println!(
        "world                                 claims held  ±1.645 se  q ≤ .1     failed     width  overlap"
    );
    for (_, world) in WORLDS.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place)) {
        let mut counts = Counts::default();
        let model = world.model(rows)?;
        for seed in 0..n_seeds {
            counts.add(&world.evaluate(&model, rows, seed)?);
        }
        println!("{:37} {}", world.name, counts.line());
    }
    Ok(())
}

impl World {
    fn model(&self, rows: usize) -> Result<Model> {
        let train = self.source(rows, Seed::new(0).child(self.name).child("train"))?;
        model(&train, None, Design::Observational, "ridge", &Settings::default())
    }

    fn evaluate(&self, model: &Model, rows: usize, seed: u64) -> Result<Evaluation> {
        let test = self.source(rows, Seed::new(seed).child(self.name).child("test"))?;
        let roles = fitted_roles(model, &test, &Silent);
        let request =
            EvaluationRequest { roles, draws: 0, checks: false, seed, ..EvaluationRequest::default() };
        evaluate_model(model, None, &test, &request.check()?, &Silent)
    }

    fn source(&self, n_rows: usize, seed: Seed) -> Result<Source> {
        let mut rng = seed.rng();
        let mut rows = WorldRows::default();
        for _ in 0..n_rows {
            let mut own: [f64; FEATURES] = std::array::from_fn(|_| rng.sample(StandardNormal));
            if self.two_groups {
                own[0] = own[0].signum();
            }
            let odds: Vec<f64> = (1..self.policies).map(|k| (self.logits)(&own, k).exp()).collect();
            let mut left = rng.random::<f64>() * (1.0 + odds.iter().sum::<f64>());
            let mut arm = 0;
            while arm < odds.len() && left > odds[arm] {
                left -= odds[arm];
                arm += 1;
            }
            // What is left over is control.
            let name = if arm == odds.len() { "control".to_owned() } else { format!("T{}", arm + 1) };
            rows.policy.push(name);
            let (mean, scale) = (self.outcome)(&own);
            let noise: f64 = rng.sample(StandardNormal);
            let noise = if self.heavy { (1.3 * noise).exp() - 2.328 } else { noise };
            rows.y.push(mean + scale * noise);
            rows.x.push(own.to_vec());
        }
        rows.source()
    }
}

/// What was claimed over the seeds.
#[derive(Default)]
struct Counts {
    claims: [usize; 2],
    numbers: [usize; 2],
    found: [usize; 2],
    failed: [usize; 2],
    width: f64,
    overlap: f64,
}

impl Counts {
    fn add(&mut self, evaluation: &Evaluation) {
        for own in evaluation.averages.iter().filter(|own| own.by.is_none()) {
            let mut count = |of: fn(&mut Self) -> &mut [usize; 2], applies: bool| {
                of(self)[0] += usize::from(applies);
                of(self)[1] += 1;
            };
            count(|own| &mut own.found, own.q_value.is_some_and(|q| q <= FALSE_DISCOVERIES));
            count(|own| &mut own.failed, own.lacks_overlap());
            if let Some([low, high]) = own.interval {
                count(|own| &mut own.claims, low <= 0.0 && 0.0 <= high);
            }
            if let (Some(effect), Some(se)) = (own.effect, own.se) {
                count(|own| &mut own.numbers, effect.abs() <= 1.645 * se);
                self.width += 2.0 * 1.645 * se;
            }
            self.overlap += 1.0 - own.share_without_overlap.unwrap_or_default();
        }
    }

    fn line(&self) -> String {
        let of = |[part, all]: [usize; 2]| format!("{part} of {all}");
        format!(
            "{:12} {:10} {:10} {:10} {:.3}  {:.2}",
            of(self.claims),
            of(self.numbers),
            of(self.found),
            of(self.failed),
            self.width / self.numbers[1].max(1) as f64,
            self.overlap / self.found[1].max(1) as f64
        )
    }
}
