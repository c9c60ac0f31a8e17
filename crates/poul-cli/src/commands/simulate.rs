//! `poul simulate`: write an experiment whose true effects are known.

use poul::Result;
use poul::simulate::{Simulation, Summary};
use poul_report::number::count;

use crate::args::{Common, Simulate};
use crate::progress::Terminal;

pub(crate) fn run(args: &Simulate, common: &Common, terminal: &Terminal) -> Result<()> {
    let defaults = Simulation::default();
    let simulation = Simulation {
        scenario: args.scenario.clone(),
        rows: args.rows.unwrap_or(defaults.rows),
        test_rows: args.test_rows,
        features: args.features,
        policies: args.policies,
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
