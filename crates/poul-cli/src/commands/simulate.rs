//! `poul simulate`: write an experiment whose true effects are known.

use std::path::Path;

use poul::simulate::{Again, Simulation, Summary};
use poul::{Error, Result};
use poul_report::number::count;

use crate::args::{Common, Simulate};
use crate::progress::Terminal;

pub(crate) fn run(args: &Simulate, common: &Common, terminal: &Terminal) -> Result<()> {
    if let Some(world) = &args.world {
        return again(args, world, common, terminal);
    }
    let defaults = Simulation::default();
    let simulation = Simulation {
        scenario: args.scenario.clone(),
        rows: args.rows.unwrap_or(defaults.rows),
        test_rows: args.test_rows,
        features: args.features,
        policies: args.policies.as_deref().map(number_of_policies).transpose()?,
        contexts: args.contexts,
        actions: args.actions,
        noise: args.noise,
        truth_rows: args.truth_rows,
        seed: common.seed,
    };
    let summary = poul::simulate::run(&simulation.check()?, &args.out, terminal)?;
    describe(&summary, terminal);
    Ok(())
}

/// Other policies in a world that was simulated before.
fn again(args: &Simulate, world: &Path, common: &Common, terminal: &Terminal) -> Result<()> {
    let Some(policies) = &args.policies else {
        return Err(Error::usage("which policies are to be run in the world?")
            .hint("give a file: ‹policies=proposals.toml›"));
    };
    let request = Again {
        world: world.to_path_buf(),
        policies: policies.into(),
        rows: args.rows,
        test_rows: args.test_rows,
        truth_rows: args.truth_rows,
        seed: common.seed,
    };
    describe(&poul::simulate::run_again(&request, &args.out, terminal)?, terminal);
    Ok(())
}

fn number_of_policies(text: &str) -> Result<usize> {
    text.parse().map_err(|_| {
        Error::usage(format!("--policies: `{text}` is not a number of policies"))
            .hint("give a number; or, to run the policies of a file, the world to run them in: --world DIR")
    })
}

/// Says what was written.
pub(crate) fn describe(summary: &Summary, terminal: &Terminal) {
    let Summary { scenario, train_rows, test_rows, features, policies, held_out, outcomes, .. } = summary;
    terminal.say(format!(
        "{scenario}: {} training and {} test rows, {features} features, {} policies ({} held out), outcomes {}",
        count(*train_rows),
        count(*test_rows),
        policies.len(),
        held_out.len(),
        outcomes.join(" and "),
    ));
    for file in &summary.files {
        terminal.say(format!("wrote {}", file.display()));
    }
}
