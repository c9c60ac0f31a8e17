//! Flags and settings files that are wrong.

use crate::harness::{Folder, POLICIES, experiment};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(90)).write("policies.toml", POLICIES);
    folder
}

fn check<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let start = ["check", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
    start.iter().chain(more).copied().collect()
}

fn evaluate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let start = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv"];
    start.iter().chain(more).copied().collect()
}

#[test]
fn wrong_flags() {
    let folder = folder();
    folder.fails("unknown_flag", 2, &check(&["--outcom", "cost"]));
    folder.fails("unknown_command", 2, &["chek", "data.csv"]);
    folder.fails("no_data", 2, &["check"]);
    folder.fails("no_outcome", 2, &["check", "data.csv", "--policies", "policies.toml"]);
    folder.fails("no_outcome_evaluate", 2, &["evaluate", "data.csv", "--effects", "tau"]);
    folder.fails("no_effects", 2, &["evaluate", "data.csv", "--outcome", "gmv"]);
    folder.fails("threads_zero", 2, &check(&["--threads", "0"]));
    folder.fails("threads_word", 2, &check(&["--threads", "many"]));
    folder.fails("memory_wrong", 2, &check(&["--memory", "4 GX"]));
    folder.fails("memory_zero", 2, &check(&["--memory", "0"]));
    folder.fails("design_wrong", 2, &check(&["--design", "random"]));
    folder.fails("stratified_without_stratum", 2, &check(&["--design", "stratified"]));
    folder.fails("two_roles", 2, &check(&["--weight", "gmv"]));
    folder.fails("treatment_twice", 2, &check(&["--treatment", "policy", "--treatment-columns", "city"]));
    folder.fails("policies_and_factorial", 2, &check(&["--treatment-columns", "city,policy"]));
}

#[test]
fn wrong_shares() {
    let folder = folder();
    folder.fails("shares_form", 2, &check(&["--shares", "0.5,0.5"]));
    folder.fails("shares_number", 2, &check(&["--shares", "control=half"]));
    folder.fails("shares_negative", 2, &check(&["--shares", "control=-1,T1=1,T2=1"]));
    folder.fails("shares_zero", 2, &check(&["--shares", "control=0,T1=0,T2=0"]));
    folder.fails("shares_twice", 2, &check(&["--shares", "control=1,control=1"]));
    folder.fails("shares_unknown", 2, &check(&["--shares", "contrl=1,T1=1,T2=1"]));
    folder.fails("shares_missing", 2, &check(&["--shares", "control=1,T1=1"]));
}

#[test]
fn wrong_evaluations() {
    let folder = folder();
    folder.fails("compared_with_itself", 2, &evaluate(&["--policy", "T1", "--against", "T1"]));
    folder.fails("evaluate_unknown_policy", 3, &evaluate(&["--policy", "T9"]));
    folder.fails("evaluate_unknown_against", 3, &evaluate(&["--against", "contrl"]));
    folder.fails("evaluate_level", 2, &evaluate(&["--level", "90"]));
    folder.fails("cost_curve_form", 2, &evaluate(&["--cost-curve", "gmv"]));
    folder.fails("cost_curve_unknown", 2, &evaluate(&["--cost-curve", "gmv,cost"]));
    let effects = |spec| ["evaluate", "data.csv", "--effects", spec, "--outcome", "gmv"];
    folder.fails("effects_form", 2, &effects("T1="));
    folder.fails("effects_unknown_policy", 3, &effects("T9=tau"));
    folder.fails("effects_unknown_outcome", 2, &effects("gvm:T1=tau"));
    folder.fails("effects_of_outcome", 2, &effects("gmv"));
    folder.fails("effects_of_control", 2, &effects("control=tau"));
}

#[test]
fn wrong_scenarios() {
    let folder = folder();
    folder.fails("scenario_unknown", 2, &["simulate", "--out", "x", "--scenario", "long-tale"]);
    folder.fails("rows_zero", 2, &["simulate", "--out", "x", "--rows", "0"]);
    folder.fails("rows_word", 2, &["simulate", "--out", "x", "--rows", "1e6"]);
    folder.fails("contexts_fixed", 2, &["simulate", "--out", "x", "--contexts", "3"]);
    folder.fails("noise_negative", 2, &["simulate", "--out", "x", "--noise", "-1"]);
    folder.fails("quickstart_rows_zero", 2, &["quickstart", "--out", "x", "--rows", "0"]);
}

#[test]
fn wrong_settings_files() {
    let folder = folder();
    for (name, text) in [
        ("config_unknown_key", "[data]\noutcome = \"gmv\"\ntreatmnt = \"policy\"\n"),
        ("config_unknown_table", "[dta]\noutcome = \"gmv\"\n"),
        ("config_malformed", "[data]\noutcome = gmv\n"),
        ("config_not_a_table", "data = 3\n"),
        ("config_wrong_type", "[data]\noutcome = \"gmv\"\nweight = 3\n"),
        ("config_wrong_list", "[data]\noutcome = [\"gmv\", 3]\n"),
        ("config_wrong_design", "[data]\noutcome = \"gmv\"\ndesign = \"random\"\n"),
        ("config_wrong_shares", "[data]\noutcome = \"gmv\"\nshares = { control = \"half\" }\n"),
        ("config_policies_number", "[data]\noutcome = \"gmv\"\npolicies = 3\n"),
    ] {
        folder.write("poul.toml", text);
        folder.fails(name, 3, &["check", "data.csv", "--config", "poul.toml"]);
    }
    folder.fails("config_missing", 3, &["check", "data.csv", "--config", "pool.toml"]);
}
