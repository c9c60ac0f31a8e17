//! Columns that should not be features: told at `check`, and at `fit` refused where certain, told where not.

use crate::harness::{Folder, POLICIES, experiment};

/// The experiment with one more column, by the number of the row and its cells.
fn with_column(name: &str, value: impl Fn(usize, &[&str]) -> String) -> Folder {
    let mut text = String::new();
    for (row, line) in experiment(600).lines().enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = if row == 0 { name.to_owned() } else { value(row - 1, &cells) };
        text.push_str(&format!("{line},{cell}\n"));
    }
    let folder = Folder::new();
    folder.write("data.csv", text).write("policies.toml", POLICIES);
    folder
}

const ROLES: [&str; 4] = ["--policies", "policies.toml", "--id", "user"];

fn fit<'a>(outcome: &'a str, exclude: &'a str) -> Vec<&'a str> {
    let own = ["fit", "data.csv", "--outcome", outcome, "--exclude", exclude, "--learner", "constant"];
    [&own[..], &ROLES, &["--out", "m.poul"]].concat()
}

fn check<'a>(outcome: &'a str, exclude: &'a str) -> Vec<&'a str> {
    [&["check", "data.csv", "--outcome", outcome, "--exclude", exclude][..], &ROLES].concat()
}

const OTHERS: &str = "tau*,truth,household,w";

/// What is certain: `fit` writes nothing, `check` calls it a problem, both with the same words.
fn is_refused(folder: &Folder, what: &str, hint: &str) {
    let run = folder.run(&fit("gmv,cost", OTHERS));
    assert_ne!(run.code, Some(0), "{}", run.transcript());
    assert!(run.stderr.contains(what) && run.stderr.contains(hint), "{}", run.transcript());
    assert!(!folder.listing().contains(&"m.poul".to_owned()));
    let text = folder.succeeds(&check("gmv,cost", OTHERS));
    assert!(text.contains(&format!("PROBLEM: {what}")) && text.contains(hint), "{text}");
}

/// What is not: a warning that names the flag, in both, and in the model's notes.
fn is_told(folder: &Folder, args: [&str; 2], what: &str, hint: &str) {
    let run = folder.run(&fit(args[0], args[1]));
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(run.stderr.contains(what) && run.stderr.contains(hint), "{}", run.transcript());
    let shown = folder.succeeds(&["show", "m.poul", "--json"]);
    assert!(shown.contains(what), "{shown}");
    let text = folder.succeeds(&check(args[0], args[1]));
    assert!(text.contains(&format!("warning: {what}")) && text.contains(hint), "{text}");
}

#[test]
fn the_index_of_a_data_frame() {
    for name in ["__index_level_0__", "Unnamed: 0"] {
        let folder = with_column(name, |row, _| row.to_string());
        let what = format!("`{name}` is the index of a data frame, not a feature");
        is_refused(&folder, &what, name);
    }
}

#[test]
fn the_outcome_under_another_name() {
    let folder =
        with_column("copy", |_, cells| format!("{}", 2.0 * cells[2].parse::<f64>().expect("a number")));
    is_refused(&folder, "`copy` is the outcome `gmv` under another name", "--exclude copy");
}

#[test]
fn the_treatment_under_another_name() {
    let folder = with_column("group", |_, cells| if cells[1] == "T2" { "b".into() } else { "a".into() });
    is_refused(&folder, "`group` tells which policy a row got", "--exclude group");
}

#[test]
fn numbers_of_rows_and_ids() {
    let folder = with_column("line", |row, _| (row + 1).to_string());
    is_told(
        &folder,
        ["gmv,cost", OTHERS],
        "`line` counts the rows",
        "leave it out with --exclude line, or keep it as --id",
    );
    let folder = with_column("number", |row, _| (row * 367 % 600).to_string());
    is_told(
        &folder,
        ["gmv,cost", OTHERS],
        "`number` is different in every row, like an id",
        "--exclude number",
    );
}

#[test]
fn another_outcome_of_the_experiment() {
    // `cost` is in the table of every test, and a feature once it is not named as an outcome.
    let folder = with_column("spare", |row, _| (row % 7).to_string());
    let hint = "leave it out with --exclude cost, or name it as an --outcome";
    is_told(&folder, ["gmv", OTHERS], "`cost` is named like an outcome and is used as a feature", hint);
    let run = folder.run(&fit("gmv", OTHERS));
    assert!(run.stderr.contains("`cost` differs by policy far beyond chance"), "{}", run.transcript());
}

#[test]
fn sound_features_are_not_told() {
    let folder = with_column("spare", |row, _| (row % 7).to_string());
    let run = folder.run(&fit("gmv,cost", OTHERS));
    assert!(!run.stderr.contains("--exclude"), "{}", run.transcript());
}
