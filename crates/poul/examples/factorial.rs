//! A factorial experiment: a channel and a discount, of which one combination was never run. What would it do?
//!
//! `cargo run --release --example factorial`

use std::fmt::Write;

use poul::{Error, Experiment, Model, Result, Roles, Silent, Source};

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join("poul-factorial");
    let path = folder.join("users.csv");
    std::fs::create_dir_all(&folder).map_err(|error| Error::output(&folder, error))?;
    std::fs::write(&path, users()).map_err(|error| Error::output(&path, error))?;

    let users = Source::open(&path.to_string_lossy())?;
    let roles = Roles {
        // Each column is a context, each of its values an action: there is no policy file.
        treatment_columns: vec!["channel".into(), "discount".into()],
        control: Some("channel=none, discount=0".into()),
        outcome: vec!["spend".into()],
        ..Roles::default()
    };
    let experiment = Experiment::open(&users, &roles, None, &Silent)?;
    println!("run: {}", experiment.policies().names().join("; "));

    let model = Model::fit(&experiment).learner("ridge").run(&Silent)?;
    let never_run = "channel=mail, discount=10";
    let effects = folder.join("effects.csv");
    let scored = model.effect(&users).policy([never_run]).support(true).write(&effects, &Silent)?;
    let support = &scored.support[0];
    println!(
        "{} was run on {} rows; the nearest that was run: {:?}",
        support.policy, support.rows, support.nearest
    );
    println!("effects of {} users in {}", scored.rows, effects.display());
    Ok(())
}

/// Users who got a channel and a discount at random, but never mail with the discount.
fn users() -> String {
    let mut text = String::from("channel,discount,age,spend\n");
    for row in 0..1200_u32 {
        let (channel, discount) =
            [("none", 0), ("none", 10), ("mail", 0), ("push", 0), ("push", 10)][row as usize % 5];
        let age = 18 + row * 37 % 50;
        let effect = if channel == "mail" { 1.0 } else { 0.0 } + f64::from(discount) * f64::from(age) / 400.0;
        let spend = f64::from(age) / 10.0 + effect + f64::from(row * 7919 % 100) / 50.0;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{channel},{discount},{age},{spend}");
    }
    text
}
