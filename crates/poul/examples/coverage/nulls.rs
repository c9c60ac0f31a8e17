//! Worlds in which no policy does anything and nobody randomised: what is claimed there is false.
//!
//! Each is a table of 8,000 rows to fit `ridge` on and another to evaluate, as a user would: `fit`, then `assess_model` with
//! its checks.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::assess::{AssessmentRequest, assess_model, fitted_roles};
use poul::data::{Budget, Design, EncoderParams, Need, Roles, Source};
use poul::effect::Settings;
use poul::evaluate::{Evaluation, Verdict};
use poul::model::{FitRequest, fit};
use poul::policy::PolicySet;
use poul::{Error, Result, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

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
    heavy: bool,
}

const WORLDS: [World; 6] = [
    World {
        name: "sigmoid(8x − 14)",
        policies: 2,
        logits: |x, _| 8.0 * x[0] - 14.0,
        outcome: |x| (3.0 * x[0], 1.0),
        heavy: false,
    },
    World {
        name: "sigmoid(3x − 3)",
        policies: 2,
        logits: |x, _| 3.0 * x[0] - 3.0,
        outcome: |x| (3.0 * x[0], 1.0),
        heavy: false,
    },
    World {
        name: "two groups, .07 and .93",
        policies: 2,
        logits: |x, _| if x[0] > 0.0 { 2.587 } else { -2.587 },
        outcome: |x| (if x[0] > 0.0 { 3.0 } else { 0.0 } + 0.5 * x[1], 1.0),
        heavy: false,
    },
    World {
        name: "four policies, one rare, heavy tails",
        policies: 4,
        logits: |x, policy| [0.0, 0.8 * x[0], -0.6 * x[1], -2.8 + 0.7 * x[0]][policy],
        outcome: |x| (10.0 * x[0] + 5.0 * x[1], 20.0),
        heavy: true,
    },
    World {
        name: "bent confounding",
        policies: 2,
        logits: |x, _| 1.2 * (2.0 * x[0]).sin() + 0.5 * (x[1] * x[1] - 1.0),
        outcome: |x| (2.0 * (2.0 * x[0]).sin() + x[1] * x[1], 1.0),
        heavy: false,
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
    },
];

/// Prints a line for each world.
pub(super) fn run(n_seeds: u64, rows: usize, only: Option<usize>) -> Result<()> {
    println!(
        "world                                  held      q ≤ .1    failed  false claims  interval  rows without overlap"
    );
    for world in WORLDS.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place)) {
        let world = world.1;
        let mut counts = Counts::default();
        for seed in 0..n_seeds {
            counts.add(&world.evaluate(rows, seed)?);
        }
        println!("{:37}  {}", world.name, counts.line());
    }
    Ok(())
}

impl World {
    fn evaluate(&self, rows: usize, seed: u64) -> Result<Evaluation> {
        let seed = Seed::new(seed).child(self.name);
        let (train, test) = (self.source(rows, seed.child("train"))?, self.source(rows, seed.child("test"))?);
        let features = (0..FEATURES).map(|k| format!("x{k}")).collect();
        let roles = Roles {
            outcome: vec!["y".to_owned()],
            features,
            design: Design::Observational,
            ..Roles::default()
        };
        let columns = roles.check(train.schema(), Need::FIT)?;
        let request = FitRequest {
            source: &train,
            roles: &roles,
            columns: &columns,
            policies: &PolicySet::from_data(&train, &columns, None, &Silent)?,
            control: Some("control"),
            baseline: &[],
            strata_table: None,
            learner: "ridge",
            settings: &Settings::default(),
            encoder: &EncoderParams::default().check()?,
            budget: &Budget::default(),
            seed: 3407,
            command: Vec::new(),
            checkpoint: None,
            warm_start: None,
        };
        let model = fit(&request, &Silent)?;
        let roles = fitted_roles(&model, &test, &Silent);
        let request = AssessmentRequest { roles, draws: 0, ..AssessmentRequest::default() };
        assess_model(&model, None, &test, &request.check()?, &Silent)
    }

    fn source(&self, n_rows: usize, seed: Seed) -> Result<Source> {
        let mut rng = seed.rng();
        let (mut x, mut y, mut policy) = (vec![Vec::new(); FEATURES], Vec::new(), Vec::new());
        for _ in 0..n_rows {
            let own: [f64; FEATURES] = std::array::from_fn(|_| rng.sample(StandardNormal));
            let odds: Vec<f64> = (1..self.policies).map(|k| (self.logits)(&own, k).exp()).collect();
            let mut left = rng.random::<f64>() * (1.0 + odds.iter().sum::<f64>());
            let mut arm = 0;
            while arm < odds.len() && left > odds[arm] {
                left -= odds[arm];
                arm += 1;
            }
            // What is left over is control.
            let name = if arm == odds.len() { "control".to_owned() } else { format!("T{}", arm + 1) };
            policy.push(name);
            let (mean, scale) = (self.outcome)(&own);
            let noise: f64 = rng.sample(StandardNormal);
            let noise = if self.heavy { (1.3 * noise).exp() - 2.328 } else { noise };
            y.push(mean + scale * noise);
            x.iter_mut().zip(own).for_each(|(column, value)| column.push(value));
        }
        let mut columns: Vec<(String, ArrayRef)> = x
            .into_iter()
            .enumerate()
            .map(|(k, values)| (format!("x{k}"), Arc::new(Float64Array::from(values)) as ArrayRef))
            .collect();
        columns.push(("y".to_owned(), Arc::new(Float64Array::from(y))));
        columns.push(("policy".to_owned(), Arc::new(StringArray::from(policy))));
        let table = RecordBatch::try_from_iter(columns).map_err(|error| Error::other(error.to_string()))?;
        Source::from_batches(table.schema(), vec![table])
    }
}

/// What was claimed over the seeds.
#[derive(Default)]
struct Counts {
    held: [usize; 2],
    found: [usize; 2],
    failed: [usize; 2],
    false_claims: usize,
    width: f64,
}

impl Counts {
    fn add(&mut self, evaluation: &Evaluation) {
        let checks = evaluation.validation.iter().flat_map(|own| &own.checks);
        let failed = checks.filter(|check| check.name == "overlap").any(|own| own.verdict == Verdict::Fail);
        self.failed[0] += usize::from(failed);
        self.failed[1] += 1;
        for own in evaluation.averages.iter().filter(|own| own.by.is_none()) {
            if std::env::var("SHOW").is_ok() {
                println!("{own:?}");
            }
            self.found[1] += 1;
            if own.q_value.is_some_and(|q| q <= FALSE_DISCOVERIES) {
                self.found[0] += 1;
                self.false_claims += usize::from(!failed);
            }
            if let Some([low, high]) = own.interval {
                self.held[0] += usize::from(low <= 0.0 && 0.0 <= high);
                self.held[1] += 1;
                self.width += high - low;
            }
        }
        if std::env::var("SHOW").is_ok() {
            for check in evaluation.validation.iter().flat_map(|own| &own.checks) {
                println!("{check:?}");
            }
        }
    }

    fn line(&self) -> String {
        let of = |[part, all]: [usize; 2]| format!("{part} of {all}");
        format!(
            "{:9} {:9} {:9} {:4} {:.3}",
            of(self.held),
            of(self.found),
            of(self.failed),
            self.false_claims,
            self.width / self.held[1].max(1) as f64
        )
    }
}
