//! Whether proposals are as good as they say, on `long-tail` worlds whose truth is known.
//!
//! `cargo run --release -p benches --bin design -- [key=value …]`, where the keys are `first`, `last` (seeds of worlds, 1 to 10),
//! `rows` (40000 in a world), `round_rows` (10000 in a round), `rounds` (3; 0 for single proposals only), `policies` (60),
//! `features` (20), `epochs` (2: averages rest on the first stage) and `by` (`improvement`; `value` and `lower` are measured too
//! in the first table; rounds go by this one).
//!
//! The first table has the true average effect of the first proposal by each criterion, beside that of the best policy that was
//! run, of random edits of the same base and of the best recombination by additive effects of atoms. The second has the regret
//! after rounds of design → run → fit and after rounds of random edits: what the policy that the model then takes for the best
//! falls short of the best found by climbing on the truth itself.

mod rivals;
mod world;

use std::collections::BTreeMap;

use benches::Arguments;
use poul::decide::design::{By, DesignParams, design};
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Result, Seed, Silent};

use crate::rivals::{additive, random_edits};
use crate::world::{Shape, World};

/// Policies that are run in a round.
const BATCH: usize = 5;
const CRITERIA: [(&str, By); 3] =
    [("value", By::Value), ("lower", By::Lower), ("improvement", By::Improvement)];

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let number = |key: &str, default: u64| arguments.number(key, default);
    let shape = Shape {
        rows: number("rows", 40_000),
        round_rows: number("round_rows", 10_000),
        policies: number("policies", 60) as usize,
        features: number("features", 20) as usize,
        epochs: number("epochs", 2),
    };
    let by = arguments.get("by").unwrap_or("improvement");
    let by = CRITERIA.iter().find(|(name, _)| *name == by).map_or(By::Improvement, |(_, by)| *by);
    let mut singles: Vec<BTreeMap<&'static str, f64>> = Vec::new();
    let mut regrets: Vec<[f64; 2]> = Vec::new();
    for seed in number("first", 1)..=number("last", 10) {
        let single = single(&shape, seed)?;
        println!("world {seed:3}  {}", line(&single));
        singles.push(single);
        if number("rounds", 3) > 0 {
            let regret = rounds(&shape, seed, number("rounds", 3), by)?;
            println!("world {seed:3}  regret: design {:.3}, random edits {:.3}", regret[0], regret[1]);
            regrets.push(regret);
        }
    }
    println!("\ntrue average effect, mean ± 1.96 standard errors over {} worlds", singles.len());
    let names: Vec<&str> = singles.first().map(|own| own.keys().copied().collect()).unwrap_or_default();
    for name in &names {
        let values: Vec<f64> = singles.iter().filter_map(|own| own.get(name).copied()).collect();
        let over: Vec<f64> =
            singles.iter().filter_map(|own| Some(own.get(name)? - own.get("best run")?)).collect();
        let wins = over.iter().filter(|own| **own >= 0.0).count();
        println!(
            "{name:24} {}   over the best run {}   at least it in {wins}",
            spread(&values),
            spread(&over)
        );
    }
    if !regrets.is_empty() {
        let of = |place: usize| regrets.iter().map(|own| own[place]).collect::<Vec<f64>>();
        println!("regret after rounds        design {}   random edits {}", spread(&of(0)), spread(&of(1)));
        let ratio = of(0).iter().sum::<f64>() / of(1).iter().sum::<f64>();
        println!("ratio of mean regrets      {ratio:.2}");
    }
    Ok(())
}

/// The true averages of what each way of choosing would run next.
fn single(shape: &Shape, seed: u64) -> Result<BTreeMap<&'static str, f64>> {
    let world = World::new(shape, seed)?;
    let model = world.fit()?;
    let mut policies = world.policies.clone();
    let mut named: Vec<(&'static str, String)> = Vec::new();
    let mut expected = BTreeMap::new();
    let mut base = String::new();
    for (name, by) in CRITERIA {
        let found = design(&model, &params(by, 1).check()?, None, &Silent)?;
        if let (Some(set), Some(first)) = (&found.policies, found.proposals.first()) {
            let own = renamed(set, &first.policy, name)?;
            policies = policies.union(&own)?;
            named.push((name, name.to_owned()));
            expected.insert(name, first.value);
        }
        if by == By::Value {
            base = found.base.map(|base| base.policy).unwrap_or_default();
        }
    }
    let random = random_edits(&model, &base, 20, 3, 0.5, Seed::new(seed).child("random"))?;
    policies = policies.union(&random)?;
    policies = policies.union(&additive(&model, &world, &base, 3, 0.5)?)?;
    let truth = world.truth(&policies)?;
    let mut found = BTreeMap::new();
    let run = world.run_policies(&model);
    found.insert("best run", run.iter().map(|name| truth[name]).fold(f64::MIN, f64::max));
    found.insert("base", truth[&base]);
    for (name, policy) in named {
        found.insert(name, truth[&policy]);
    }
    found.insert("value, as expected", expected.get("value").copied().unwrap_or(f64::NAN));
    let n = random.len() as f64;
    found.insert("random edits", random.names().iter().map(|name| truth[name]).sum::<f64>() / n);
    found.insert("additive atoms", truth["additive"]);
    Ok(found)
}

/// The regret after rounds by design, and by random edits.
fn rounds(shape: &Shape, seed: u64, n_rounds: u64, by: By) -> Result<[f64; 2]> {
    let mut ends = Vec::new();
    let mut best = f64::MIN;
    for is_designed in [true, false] {
        let mut world = World::new(shape, seed)?;
        let mut model = world.fit()?;
        for round in 1..=n_rounds {
            let found = design(&model, &params(by, BATCH as i64).check()?, None, &Silent)?;
            let base = found.base.as_ref().map(|base| base.policy.clone()).unwrap_or_default();
            let next = match (is_designed, found.policies) {
                (true, Some(policies)) => policies,
                _ => {
                    let stream = Seed::new(seed).child("rounds").index(round);
                    let edits = random_edits(&model, &base, BATCH, 3, 0.5, stream)?;
                    let named = edits.names().iter().enumerate();
                    let sets = named.map(|(place, name)| renamed(&edits, name, &format!("r{round}_{place}")));
                    sets.reduce(|all, one| all?.union(&one?)).unwrap_or_else(|| Ok(edits.clone()))?
                }
            };
            world.run(&next, round)?;
            model = world.fit()?;
        }
        let last = design(&model, &params(By::Value, 1).check()?, None, &Silent)?;
        let chosen = last.base.map(|base| base.policy).unwrap_or_default();
        let truth = world.truth(&world.policies)?;
        ends.push(truth[&chosen]);
        best = best.max(world.climb(&chosen)?);
    }
    Ok([best - ends[0], best - ends[1]])
}

fn params(by: By, proposals: i64) -> DesignParams {
    DesignParams { maximize: Some("y".to_owned()), by, proposals, min_rows: 50, ..DesignParams::default() }
}

/// One policy of a set under another name.
fn renamed(set: &PolicySet, policy: &str, name: &str) -> Result<PolicySet> {
    let mut builder = PolicySet::builder();
    let does = set.by_context(set.require(policy)?);
    for ((context, weight), actions) in set.contexts().iter().zip(set.weights()).zip(does) {
        builder.weight(context, *weight);
        for (action, probability) in actions {
            builder.add(name, context, action, probability);
        }
    }
    builder.build()
}

fn line(found: &BTreeMap<&'static str, f64>) -> String {
    found.iter().map(|(name, value)| format!("{name} {value:.3}")).collect::<Vec<_>>().join("  ")
}

fn spread(values: &[f64]) -> String {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:+.3} ± {:.3}", 1.96 * (variance / n).sqrt())
}

/// The names of policies that were run, which a model keeps.
fn run_names(model: &Model) -> Vec<String> {
    let manifest = model.manifest();
    let rows = manifest.policies.names().iter().zip(&manifest.policy_rows);
    rows.filter(|(_, rows)| **rows > 0).map(|(name, _)| name.clone()).collect()
}
