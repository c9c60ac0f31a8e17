//! Small worlds with known effects of one or two policies on one or two outcomes.

use poul::Seed;
use poul::data::Design;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Rows that are held out to measure on.
pub(super) const TEST_ROWS: usize = 2_000;

/// Rows to learn from and rows to measure on.
pub(super) struct Draw {
    pub(super) design: Design,
    pub(super) n_features: usize,
    /// Features, row-major.
    pub(super) x: Vec<f32>,
    pub(super) test_x: Vec<f32>,
    /// 0 for control.
    pub(super) policy: Vec<u32>,
    /// By outcome.
    pub(super) outcomes: Vec<Vec<f64>>,
    /// By outcome, the true effect of the first policy on every row to measure on.
    pub(super) truth: Vec<Vec<f64>>,
}

/// A kind of world with one outcome.
pub(super) struct World {
    pub(super) name: &'static str,
    n_features: usize,
    design: Design,
    /// The chance of the policy.
    chance: fn(&[f64]) -> f64,
    /// The outcome without the policy, and the effect; `draw` tells worlds of a kind apart.
    baseline: fn(&[f64], &Coefficients) -> f64,
    effect: fn(&[f64], &Coefficients) -> f64,
}

/// What differs between draws of a world: a few numbers from 0 to 1.
pub(super) type Coefficients = [f64; 16];

fn dot(x: &[f64], c: &Coefficients) -> f64 {
    // Most are zero, as in response surface B of Hill (2011).
    x.iter().zip(c).map(|(x, c)| x * (4.0 * c - 2.4).max(0.0) * 0.25).sum()
}

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// The kinds that are drawn to see whether a constant does better.
pub(super) const WORLDS: [World; 6] = [
    World {
        name: "exponential",
        n_features: 16,
        design: Design::Observational,
        chance: |x| logistic(0.6 * x[0] - 0.6 * x[1] - 0.8),
        baseline: |x, c| (dot(x, c) + 0.5).exp(),
        effect: |x, c| 4.0 + dot(x, c) - (dot(x, c) + 0.5).exp(),
    },
    World {
        name: "sparse",
        n_features: 30,
        design: Design::Randomized,
        chance: |_| 0.5,
        baseline: |x, c| x[3] + (2.0 * x[4]).sin() + c[0],
        effect: |x, c| c[1] + if x[0] > 0.5 { 1.0 } else { 0.0 },
    },
    World {
        name: "smooth",
        n_features: 10,
        design: Design::Randomized,
        chance: |_| 0.3,
        baseline: |x, _| x[0] * x[1] + x[2].abs(),
        effect: |x, c| 0.5 + (2.0 * c[0] - 1.0) * x[1] + 0.5 * (x[2] + c[1]).tanh(),
    },
    World {
        name: "null",
        n_features: 20,
        design: Design::Randomized,
        chance: |_| 0.5,
        baseline: |x, _| x[0] + x[1].powi(2),
        effect: |_, _| 0.0,
    },
    World {
        name: "constant",
        n_features: 20,
        design: Design::Randomized,
        chance: |_| 0.25,
        baseline: |x, _| 2.0 * x[0] + x[1].max(0.0),
        effect: |_, c| 1.0 + c[0],
    },
    World {
        name: "confounded",
        n_features: 12,
        design: Design::Observational,
        chance: |x| logistic(1.2 * x[0] + 0.5 * x[1]),
        baseline: |x, _| 1.5 * x[0] + x[1].powi(2) + (2.0 * x[2]).sin(),
        effect: |x, c| 0.5 + 0.4 * c[0] * x[2],
    },
];

impl World {
    /// A draw of its coefficients and rows; `noise` is the standard deviation of what nothing explains.
    pub(super) fn draw(&self, n_rows: usize, noise: f64, seed: Seed) -> Draw {
        let mut rng = seed.rng();
        let c: Coefficients = std::array::from_fn(|_| rng.random());
        let mut draw = Draw {
            design: self.design,
            n_features: self.n_features,
            x: Vec::new(),
            test_x: Vec::new(),
            policy: Vec::new(),
            outcomes: vec![Vec::new()],
            truth: vec![Vec::new()],
        };
        for row in 0..n_rows + TEST_ROWS {
            let x: Vec<f64> = (0..self.n_features).map(|_| rng.sample(StandardNormal)).collect();
            let effect = (self.effect)(&x, &c);
            let features = x.iter().map(|value| *value as f32);
            if row >= n_rows {
                draw.test_x.extend(features);
                draw.truth[0].push(effect);
                continue;
            }
            draw.x.extend(features);
            let is_treated = rng.random::<f64>() < (self.chance)(&x);
            draw.policy.push(u32::from(is_treated));
            let error: f64 = rng.sample(StandardNormal);
            let own = if is_treated { effect } else { 0.0 };
            draw.outcomes[0].push((self.baseline)(&x, &c) + own + noise * error);
        }
        draw
    }
}

/// Two outcomes of which the second has `noise`: the same users gain in both, others do, or nobody does more than others.
pub(super) fn two_outcomes(kind: &str, n_rows: usize, noise: f64, seed: Seed) -> Draw {
    const FEATURES: usize = 8;
    let mut rng = seed.rng();
    let mut draw = Draw {
        design: Design::Randomized,
        n_features: FEATURES,
        x: Vec::new(),
        test_x: Vec::new(),
        policy: Vec::new(),
        outcomes: vec![Vec::new(); 2],
        truth: vec![Vec::new(); 2],
    };
    for row in 0..n_rows + TEST_ROWS {
        let x: Vec<f64> = (0..FEATURES).map(|_| rng.sample(StandardNormal)).collect();
        let first = if kind == "none" { 0.5 } else { 0.5 + x[0].max(0.0) };
        let second = match kind {
            "same" => first,
            "apart" => 0.5 + 0.6 * x[2],
            _ => 0.5,
        };
        let features = x.iter().map(|value| *value as f32);
        if row >= n_rows {
            draw.test_x.extend(features);
            [first, second].iter().zip(&mut draw.truth).for_each(|(effect, truth)| truth.push(*effect));
            continue;
        }
        draw.x.extend(features);
        let policy = rng.random_range(0..3_u32);
        draw.policy.push(policy);
        // The second policy does the same in one context of two.
        let dose = [0.0, 1.0, 0.5][policy as usize];
        let mut error = || rng.sample::<f64, _>(StandardNormal);
        draw.outcomes[0].push(x[1] + dose * first + 0.7 * error());
        draw.outcomes[1].push(2.0 * x[1] + dose * second + noise * error());
    }
    draw
}
