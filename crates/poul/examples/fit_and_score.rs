//! Fits a model to an experiment with 30 policies and scores new users: what would each policy do for each of them?
//!
//! `cargo run --release --example fit_and_score`

use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Experiment, Model, Result, Roles, Silent, Source};

fn main() -> Result<()> {
    // An experiment whose true effects are known; yours is a file, a folder or a glob.
    let folder = std::env::temp_dir().join("poul-fit-and-score");
    let world = Simulation { scenario: "stratified".into(), rows: 4000, ..Simulation::default() };
    run(&world.check()?, &folder, &Silent)?;
    let open = |name: &str| Source::open(&folder.join(name).to_string_lossy());

    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let roles = Roles {
        outcome: vec!["y".into()],
        stratum: Some("stratum".into()),
        design: poul::data::Design::Stratified,
        ..Roles::default()
    };
    let experiment = Experiment::open(&open("train.parquet")?, &roles, policies, &Silent)?;
    // Without a name the learner is the method of the paper, `poul`, which takes some minutes here.
    let model = Model::fit(&experiment).learner("ridge").run(&Silent)?;
    model.save(folder.join("model.poul"))?;

    let test = open("test.parquet")?;
    let scored = model.effect(&test).wide(true).write(folder.join("effects.parquet"), &Silent)?;
    println!("{} users, {} policies against {}", scored.rows, scored.policies.len(), scored.against);
    println!("written to {}", folder.display());
    Ok(())
}
