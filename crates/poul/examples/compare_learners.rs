//! Which learner is best on these data? All are trained on the same rows and judged on the same test rows.
//!
//! `cargo run --release --example compare_learners`

use poul::compare::{ComparisonRequest, Entrant, Split, compare};
use poul::effect::Settings;
use poul::model::learner;
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Experiment, Result, Roles, Silent, Source};

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join("poul-compare-learners");
    let world = Simulation { rows: 4000, features: Some(25), ..Simulation::default() };
    run(&world.check()?, &folder, &Silent)?;
    let train = Source::open(&folder.join("train.parquet").to_string_lossy())?;

    let roles = Roles { outcome: vec!["gmv".into()], exclude: vec!["cost".into()], ..Roles::default() };
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let experiment = Experiment::open(&train, &roles, policies, &Silent)?;

    let mut entrants = Vec::new();
    for name in ["constant", "ridge", "uplift-forest"] {
        entrants.push(Entrant::new(learner(name)?, &Settings::default())?);
    }
    let request = ComparisonRequest::new(&experiment, &Split::DEFAULT, &entrants);
    let comparison = compare(&request, &Silent)?;
    println!("{} rows to train on, {} to test on", comparison.train_rows, comparison.test_rows);
    for learner in &comparison.learners {
        println!("{}: validation R-loss {:?}", learner.label, learner.validation_r_loss);
    }
    Ok(())
}
