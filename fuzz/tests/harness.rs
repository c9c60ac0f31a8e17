//! The fuzzer finds what it should find, names the input that did it, and makes the same inputs from the same seed.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn fuzz(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuzz"));
    command.args(arguments).arg("--crashes").arg(folder.join("crashes")).current_dir(folder);
    command.output().expect("the fuzzer starts")
}

fn summary(folder: &Path, arguments: &[&str]) -> Value {
    let output = fuzz(folder, &[arguments, &["--json", "summary.json"]].concat());
    let text = std::fs::read(folder.join("summary.json"));
    let text = text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn every_way_to_fail_is_found_and_its_input_fails_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = summary(folder.path(), &["--target", "drill", "--executions", "40", "--seed", "1"]);
    let drill = &found["targets"][0];
    assert_eq!(drill["executions"], 40, "dead workers are replaced: {drill:#}");
    for kind in ["panic", "abort", "allocation", "promise"] {
        assert!(drill["failures"][kind].as_u64() > Some(0), "no {kind}: {drill:#}");
    }
    let findings = drill["found"].as_array().expect("findings");
    assert!(
        findings.iter().any(|finding| finding["what"].to_string().contains("overflowed its stack")),
        "{drill:#}"
    );
    for finding in findings {
        let input = finding["input"].as_str().expect("a file");
        let again = fuzz(folder.path(), &["--reproduce", input]);
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        let kind = finding["kind"].as_str().expect("a kind");
        assert!(
            !again.status.success() && said.starts_with(&format!("drill: {kind}")),
            "{finding:#}: {said}"
        );
    }
    std::fs::write(folder.path().join("drill-0"), [7]).expect("a file");
    let fine = fuzz(folder.path(), &["--reproduce", "drill-0"]);
    assert!(fine.status.success() && fine.stdout == b"drill: accepted\n");
}

#[test]
fn what_does_not_end_is_a_hang() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("drill-1"), [255]).expect("a file");
    let output = fuzz(folder.path(), &["--reproduce", "drill-1"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.starts_with("drill: hang: "), "{said}");
}

#[test]
fn a_seed_makes_the_same_inputs_and_another_seed_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let digest = |seed: &str| {
        let targets =
            ["--target", "policy-toml", "--target", "csv", "--target", "expression", "--target", "config"];
        let all = summary(folder.path(), &[&targets[..], &["--executions", "60", "--seed", seed]].concat());
        assert_eq!(all["failures"], 0, "{all:#}");
        let digests =
            all["targets"].as_array().expect("targets").iter().map(|target| target["digest"].to_string());
        digests.collect::<Vec<String>>()
    };
    let first = digest("7");
    assert_eq!(first, digest("7"));
    assert_ne!(first, digest("8"));
}
