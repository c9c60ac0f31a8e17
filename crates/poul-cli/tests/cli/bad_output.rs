//! Results that cannot be written: exit code 4, told before the work is done, nothing half-written.

use crate::harness::{Folder, POLICIES, experiment};

#[test]
fn json_into_nowhere() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(90)).write("policies.toml", POLICIES).write("folder/.keep", "");
    let check = ["check", "data.csv", "--policies", "policies.toml", "--outcome", "gmv", "--json"];
    let evaluate = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--json"];
    for (name, target) in [
        ("json_missing_folder", "results/profile.json"),
        ("json_is_a_folder", "folder"),
        ("json_below_a_file", "data.csv/profile.json"),
    ] {
        folder.fails(&format!("{name}_check"), 4, &[&check[..], &[target]].concat());
        folder.fails(&format!("{name}_evaluate"), 4, &[&evaluate[..], &[target]].concat());
    }
}

#[test]
fn a_report_into_nowhere() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(90)).write("policies.toml", POLICIES).write("folder/.keep", "");
    let evaluate = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--report"];
    let compare = ["compare", "data.csv", "--policies", "policies.toml", "--outcome", "gmv", "--report"];
    for (name, target) in [("report_missing_folder", "results/report.html"), ("report_is_a_folder", "folder")]
    {
        folder.fails(&format!("{name}_evaluate"), 4, &[&evaluate[..], &[target]].concat());
        folder.fails(&format!("{name}_compare"), 4, &[&compare[..], &[target]].concat());
    }
}

#[test]
fn a_failure_leaves_no_json_and_keeps_an_old_one() {
    let folder = Folder::new();
    folder.write("data.csv", "policy,gmv,age\nT1,1,2\nT1,2,3\n").write("profile.json", "old");
    let args = ["check", "data.csv", "--outcome", "gmv", "--json", "profile.json"];
    folder.fails("failure_keeps_json", 3, &args);
    assert_eq!(folder.read("profile.json"), b"old");
}

#[test]
fn folders_that_cannot_be_made() {
    let folder = Folder::new();
    folder.write("taken", "a file");
    let simulate = |out| ["simulate", "--rows", "100", "--out", out];
    folder.fails("simulate_onto_a_file", 4, &simulate("taken"));
    folder.fails("simulate_below_a_file", 4, &simulate("taken/rides"));
    folder.fails("quickstart_onto_a_file", 4, &["quickstart", "--rows", "100", "--out", "taken"]);
    assert_eq!(folder.read("taken"), b"a file");
}
