//! Components, an action in place of control's in one context alone: how often their intervals hold the truth.
//!
//! Worlds are drawn here, since the truth of a policy that differs in one context is needed for every atom: what an action
//! does depends on the context and on the user, and a policy that does much does a little less than the sum of its parts.

use poul::data::Design;
use poul::effect::Settings;
use poul::evaluate::trust::components;
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Result, Seed};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::table::{WorldRows, model};

const FEATURES: usize = 6;
const LEVEL: f64 = 0.9;

/// Policies, contexts, actions, rows, and the scale of noise.
const SHAPES: [(&str, usize, usize, usize, usize, f64); 3] = [
    ("60 of 12 × 5", 60, 12, 5, 20_000, 2.0),
    ("120 of 6 × 8", 120, 6, 8, 20_000, 1.0),
    ("150 of 10 × 4", 150, 10, 4, 30_000, 3.0),
];

/// Prints a line for each shape.
pub(super) fn table(seeds: std::ops::RangeInclusive<u64>) -> Result<()> {
    println!("shape           components  covered  band held  bias  spread  width");
    for (name, n_policies, n_contexts, n_actions, n_rows, noise) in SHAPES {
        let (mut z, mut squares, mut covered, mut n, mut width) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut bands, mut n_worlds) = (0, 0);
        for seed in seeds.clone() {
            let world = World::new(n_policies, n_contexts, n_actions, Seed::new(seed).child(name))?;
            let (model, truth) = world.fit(n_rows, noise, Seed::new(seed).child(name).child("rows"))?;
            let policies = &model.manifest().policies;
            let found = components(&model, policies, policies.require("control")?, LEVEL, None)?;
            let unit = (truth.iter().flatten().map(|own| own * own).sum::<f64>()
                / (n_contexts * (n_actions - 1)) as f64)
                .sqrt();
            let mut held = true;
            for atom in &found.atoms {
                let (Some(effect), Some(se), Some(interval), Some(band)) =
                    (atom.effect, atom.se, atom.interval, atom.band)
                else {
                    continue;
                };
                let of = |text: &str| text[1..].parse::<usize>().unwrap_or_default();
                let truth = truth[of(&atom.context)][of(&atom.action)];
                n += 1.0;
                z += (effect - truth) / se;
                squares += ((effect - truth) / se).powi(2);
                covered += f64::from(u8::from(interval[0] <= truth && truth <= interval[1]));
                width += (interval[1] - interval[0]) / unit;
                held &= band[0] <= truth && truth <= band[1];
            }
            bands += usize::from(held);
            n_worlds += 1;
        }
        let bias = z / n;
        println!(
            "{name:15} {n:10.0}  {:7.3}  {bands:2} of {n_worlds:3}  {bias:+.2}  {:6.2}  {:5.2}",
            covered / n,
            (squares / n - bias * bias).sqrt(),
            width / n
        );
    }
    Ok(())
}

/// What actions do, by context and action: for everybody, and with two features. Action 0 is control's.
struct World {
    n_contexts: usize,
    policies: Vec<Vec<usize>>,
    level: Vec<Vec<f64>>,
    slopes: Vec<Vec<[f64; 2]>>,
    /// How much less a policy does than the sum of its parts.
    bend: f64,
}

impl World {
    fn new(n_policies: usize, n_contexts: usize, n_actions: usize, seed: Seed) -> Result<Self> {
        let mut rng = seed.rng();
        let of_action: Vec<f64> =
            (0..n_actions).map(|_| 1.0 + 0.6 * rng.sample::<f64, _>(StandardNormal)).collect();
        let mut table = |size: f64, mean: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
            let mut draw = |action: usize| match action {
                0 => 0.0,
                action => mean(action) + size * rng.sample::<f64, _>(StandardNormal),
            };
            (0..n_contexts).map(|_| (0..n_actions).map(&mut draw).collect()).collect()
        };
        let level = table(0.5, &|action| of_action[action]);
        let (first, second) = (table(0.6, &|_| 0.0), table(0.3, &|_| 0.0));
        let pair =
            |context: usize| first[context].iter().zip(&second[context]).map(|(a, b)| [*a, *b]).collect();
        let slopes = (0..n_contexts).map(pair).collect();
        // The first is control, others leave two contexts in five as control has them.
        let cell = |rng: &mut poul::Rng| {
            if rng.random::<f64>() < 0.4 { 0 } else { rng.random_range(1..n_actions) }
        };
        let mut rng = seed.child("policies").rng();
        let mut policies = vec![vec![0; n_contexts]];
        policies.extend((1..n_policies).map(|_| (0..n_contexts).map(|_| cell(&mut rng)).collect::<Vec<_>>()));
        Ok(Self { n_contexts, policies, level, slopes, bend: 0.05 })
    }

    /// The effect of a policy on a row.
    fn effect(&self, x: &[f64], policy: &[usize]) -> f64 {
        let part = |(context, action): (usize, &usize)| {
            let [a, b] = self.slopes[context][*action];
            self.level[context][*action] + a * x[0] + b * x[1]
        };
        let sum = policy.iter().enumerate().map(part).sum::<f64>() / self.n_contexts as f64;
        sum - self.bend * sum * sum
    }

    /// A model of some rows, and the true component of every context and action over them.
    fn fit(&self, n_rows: usize, noise: f64, seed: Seed) -> Result<(Model, Vec<Vec<f64>>)> {
        let mut rng = seed.rng();
        let mut builder = PolicySet::builder();
        let name = |policy: usize| if policy == 0 { "control".to_owned() } else { format!("t{policy:03}") };
        for (number, policy) in self.policies.iter().enumerate() {
            for (context, action) in policy.iter().enumerate() {
                builder.add(&name(number), &format!("c{context}"), &format!("a{action}"), 1.0);
            }
        }
        let policies = builder.build()?;
        let mut truth: Vec<Vec<f64>> = self.level.iter().map(|own| vec![0.0; own.len()]).collect();
        let mut rows = WorldRows::default();
        for _ in 0..n_rows {
            let own: [f64; FEATURES] = std::array::from_fn(|_| rng.sample(StandardNormal));
            // A long tail: later policies have fewer rows.
            let policy = (self.policies.len() as f64 * rng.random::<f64>().powf(1.5)) as usize;
            rows.y.push(
                own[0]
                    + (2.0 * own[2]).sin()
                    + self.effect(&own, &self.policies[policy])
                    + noise * rng.sample::<f64, _>(StandardNormal),
            );
            rows.policy.push(name(policy));
            let mut switched = vec![0; self.n_contexts];
            for (context, truth) in truth.iter_mut().enumerate() {
                for (action, truth) in truth.iter_mut().enumerate() {
                    switched[context] = action;
                    *truth += self.effect(&own, &switched) / n_rows as f64;
                }
                switched[context] = 0;
            }
            rows.x.push(own.to_vec());
        }
        // Averages rest on the first stage alone.
        let mut settings = Settings::default();
        settings.training.insert("epochs".to_owned(), 1.into());
        settings.model.insert("members".to_owned(), 2.into());
        let model = model(&rows.source()?, Some(&policies), Design::Randomized, "poul", &settings)?;
        Ok((model, truth))
    }
}
