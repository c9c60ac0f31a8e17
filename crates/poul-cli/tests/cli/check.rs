//! `poul check` on good data, however it is stored and described.

use crate::harness::{Folder, POLICIES, experiment, gzip};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(600)).write("policies.toml", POLICIES);
    folder
}

const ROLES: [&str; 7] = [
    "--policies",
    "policies.toml",
    "--outcome",
    "gmv,cost",
    "--id",
    "user",
    "--exclude=w,tau*,truth,household",
];

fn check<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["check", data][..], &ROLES, more].concat()
}

#[test]
fn what_a_person_sees() {
    let shares = ["--shares", "control=1,T1=1,T2=1"];
    folder().run(&check("data.csv", &shares)).snapshot("check_text");
}

#[test]
fn what_a_program_sees() {
    let folder = folder();
    let args = check("data.csv", &["--shares", "control=2,T1=1,T2=1", "--json"]);
    let profile = folder.json(&[&args[..], &["-"]].concat());
    assert_eq!(profile["rows"], 600);
    assert_eq!(profile["outcomes"][0]["outcome"], "gmv");
    assert_eq!(profile["arms"].as_array().map(Vec::len), Some(3));
    // Thirds were drawn: half for control is refuted.
    assert!(profile["sample_ratio"]["p_value"].as_f64().is_some_and(|p| p < 1e-6));
    assert_eq!(profile["sample_ratio"]["worst_policy"], "control");
    assert_eq!(profile["findings"][0]["level"], "problem");
    assert!(profile["balance"]["p_value"].as_f64().is_some_and(|p| p > 0.01));

    let text = folder.succeeds(&[&args[..], &["profile.json"]].concat());
    assert!(text.contains("PROBLEM: sample-ratio mismatch"), "{text}");
    let written: serde_json::Value = serde_json::from_slice(&folder.read("profile.json")).expect("JSON");
    assert_eq!(written, profile);
}

#[test]
fn storage_and_threads_do_not_matter() {
    let folder = folder();
    let text = experiment(600);
    let lines: Vec<&str> = text.lines().collect();
    let part = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    folder
        .write("data.csv.gz", gzip(text.as_bytes()))
        .write("parts/a.csv", part(&lines[1..200]))
        .write("parts/b.csv", part(&lines[200..]))
        .write("parts/.notes.csv", "not,a,part\n");
    let expected = folder.succeeds(&check("data.csv", &[]));
    for data in ["data.csv.gz", "parts", "parts/*.csv", "./data.csv"] {
        assert_eq!(folder.succeeds(&check(data, &[])), expected, "{data}");
    }
    for more in [["--threads", "1"], ["--threads", "2"], ["--memory", "1MB"]] {
        assert_eq!(folder.succeeds(&check("data.csv", &more)), expected, "{more:?}");
    }
}

#[test]
fn the_order_of_the_policy_file_does_not_matter() {
    let folder = folder();
    let tables: Vec<&str> = POLICIES.split("\n\n").collect();
    folder.write("policies.toml", format!("{}\n{}\n{}\n{}\n", tables[2], tables[3], tables[0], tables[1]));
    let swapped = folder.succeeds(&check("data.csv", &["--json", "-"]));
    folder.write("policies.toml", POLICIES);
    assert_eq!(folder.succeeds(&check("data.csv", &["--json", "-"])), swapped);
}

#[test]
fn factorial_columns_are_policies_without_a_file() {
    let folder = folder();
    folder.write("log.csv", "context,count\npolicy,30\ncity,10\n");
    let args = ["check", "data.csv", "--treatment-columns", "policy,city", "--outcome", "gmv"];
    let control = ["--control", "city=Rome, policy=control", "--features", "age", "--json", "-"];
    let profile = folder.json(&[&args[..], &control].concat());
    assert_eq!(profile["arms"].as_array().map(Vec::len), Some(9));
    assert_eq!(profile["atoms"].as_array().map(Vec::len), Some(6));
    assert_eq!(profile["control"], "city=Rome, policy=control");
    let weighted = folder.json(&[&args[..], &control, &["--exposure-log", "log.csv"]].concat());
    assert_eq!(weighted["atoms"].as_array().map(Vec::len), Some(6));
}

#[test]
fn problems_are_found() {
    let folder = folder();
    // A feature measured after assignment, a copy of the outcome, a constant, and clusters split between policies.
    let header = "policy,gmv,age,after,copy,one,household";
    let rows: Vec<String> = experiment(600)
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let after = if cells[1] == "T2" { "5" } else { "4" };
            format!("{},{},{},{after},{},1,{}", cells[1], cells[2], cells[4], cells[2], cells[6])
        })
        .collect();
    folder.write("wrong.csv", format!("{header}\n{}\n", rows.join("\n")));
    let args =
        ["check", "wrong.csv", "--policies", "policies.toml", "--outcome", "gmv", "--cluster", "household"];
    folder.run(&args).snapshot("check_problems");
    let profile = folder.json(&[&args[..], &["--json", "-"]].concat());
    assert_eq!(profile["post_treatment_columns"], serde_json::json!(["after", "copy"]));
    assert_eq!(profile["leaks"][0]["column"], "copy");
    assert_eq!(profile["constant_columns"], serde_json::json!(["one"]));
}

#[test]
fn a_filter_with_text_numbers_and_nulls() {
    let folder = folder();
    let rows = |expression| {
        let profile = folder.json(&check("data.csv", &["--population", expression, "--json", "-"]));
        profile["rows"].as_u64().expect("rows")
    };
    let (rome, rest) = (rows("city = \"Rome\""), rows("city != \"Rome\""));
    assert_eq!(rome + rest, 600);
    assert_eq!(rows("city in (\"Rome\", \"Oslo\") or city = 'Lima'"), 600);
    assert_eq!(rows("age >= 40 and gmv is not null") + rows("not (age >= 40)"), 600);
}
