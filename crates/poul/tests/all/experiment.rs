//! An experiment is resolved once: its policies, its control, what it refuses; and a fit by all defaults goes on from it.

use std::path::{Path, PathBuf};

use poul::check::Params;
use poul::data::Design;
use poul::policy::PolicySet;
use poul::{Experiment, Model, Policies, Result, Roles, Silent, Source};

/// Two factorial columns, of which one combination is never run.
fn factorial(folder: &Path) -> PathBuf {
    let row = |row: usize| {
        let (channel, discount) = [("none", 0), ("none", 10), ("mail", 0)][row % 3];
        format!("{channel},{discount},s{},{},{}\n", row % 2, row * 7 % 11, row * 5 % 13)
    };
    write(folder, "channel,discount,city,age,spend\n", row)
}

fn write(folder: &Path, header: &str, row: impl Fn(usize) -> String) -> PathBuf {
    let path = folder.join("users.csv");
    std::fs::write(&path, header.to_owned() + &(0..60).map(row).collect::<String>()).unwrap();
    path
}

fn roles(control: Option<&str>) -> Roles {
    Roles {
        treatment_columns: vec!["channel".into(), "discount".into()],
        control: control.map(str::to_owned),
        outcome: vec!["spend".into()],
        features: vec!["age".into()],
        ..Roles::default()
    }
}

fn opened(control: Option<&str>) -> (tempfile::TempDir, Result<Experiment>) {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open(&factorial(folder.path()).to_string_lossy()).unwrap();
    let experiment = Experiment::open(&source, &roles(control), None, &Silent);
    (folder, experiment)
}

#[test]
fn a_control_is_found_in_any_order() {
    let (_folder, experiment) = opened(Some("discount=0,channel=none"));
    let experiment = experiment.unwrap();
    assert_eq!(experiment.control(), Some("channel=none, discount=0"));
    assert_eq!(experiment.policies().len(), 3);
    let profile = experiment.profile(&Params { permutations: 0, ..Params::default() }, &Silent).unwrap();
    assert_eq!(profile.control.as_deref(), experiment.control());
    assert_eq!(opened(None).1.unwrap().control(), None);
}

#[test]
fn a_combination_that_no_row_has_is_no_control_of_a_fit() {
    let (_folder, experiment) = opened(Some("channel=mail,discount=10"));
    let experiment = experiment.unwrap();
    let error = Model::fit(&experiment).learner("constant").run(&Silent).err().unwrap().to_string();
    assert!(error.contains("unknown policy `channel=mail, discount=10`"), "{error}");
    let error = experiment.profile(&Params::default(), &Silent).unwrap_err().to_string();
    assert!(error.contains("unknown policy"), "{error}");
}

#[test]
fn policies_are_given_or_in_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "policy,age,spend\n", |row| {
        format!("{},{},{}\n", ["control", "T1"][row % 2], row % 7, row % 5)
    });
    let source = Source::open(&path.to_string_lossy()).unwrap();
    let roles = Roles { outcome: vec!["spend".into()], ..Roles::default() };
    let mut given = PolicySet::builder();
    for name in ["T1", "T2", "control"] {
        given.add(name, "all", name, 1.0);
    }
    let names = |policies: Policies<'_>| {
        Experiment::open(&source, &roles, policies, &Silent).map(|own| own.policies().names().to_vec())
    };
    assert_eq!(names(None.into()).unwrap(), ["T1", "control"]);
    assert_eq!(names(given.build().unwrap().into()).unwrap(), ["T1", "T2", "control"]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open(&factorial(folder.path()).to_string_lossy()).unwrap();
    let mut given = PolicySet::builder();
    given.add("T1", "all", "a", 1.0);
    let error = Experiment::open(&source, &roles(None), given.build().unwrap(), &Silent).unwrap_err();
    assert!(error.to_string().contains("exclude each other"), "{error}");

    let strata = folder.path().join("strata.csv");
    std::fs::write(&strata, "stratum,policy,probability\ns0,T1,1\n").unwrap();
    let strata = Source::open(&strata.to_string_lossy()).unwrap();
    for design in [Design::Randomized, Design::Observational] {
        let roles = Roles { design, ..roles(Some("channel=none, discount=0")) };
        let experiment = Experiment::open(&source, &roles, None, &Silent).unwrap();
        let experiment = experiment.strata_table(Some(strata.clone()));
        let error = Model::fit(&experiment).learner("constant").run(&Silent).err().unwrap();
        assert!(error.to_string().contains("for a stratified design"), "{error}");
    }
}

#[test]
fn a_fingerprint_is_taken_once_and_is_that_of_the_model() {
    let (folder, experiment) = opened(Some("channel=none, discount=0"));
    let experiment = experiment.unwrap();
    let fingerprint = experiment.fingerprint().unwrap();
    let model = Model::fit(&experiment).learner("constant").run(&Silent).unwrap();
    assert_eq!(model.manifest().data[0].fingerprint, fingerprint);
    assert_eq!(model.manifest().seed, 3407);
    // Whoever goes on with a table that became another is told.
    let text = std::fs::read_to_string(folder.path().join("users.csv")).unwrap();
    std::fs::write(folder.path().join("users.csv"), text.replace("mail", "push")).unwrap();
    assert_eq!(experiment.fingerprint().unwrap(), fingerprint);
    let error = Model::fit(&experiment).learner("constant").run(&Silent).err().unwrap().to_string();
    assert!(error.contains("changed while they were read") || error.contains("push"), "{error}");
}
