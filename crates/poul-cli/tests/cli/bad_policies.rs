//! Policy files that are wrong: each message names file, line and fix.

use crate::harness::{Folder, POLICIES};

fn show(name: &str, file: &str, text: &str) {
    let folder = Folder::new();
    folder.write(file, text).fails(name, 3, &["policy", "show", "--policies", file]);
}

/// `policies.csv` from lines below the usual header.
fn long(name: &str, lines: &str) {
    show(name, "policies.csv", &format!("policy,context,action,probability\n{lines}"));
}

#[test]
fn the_human_form() {
    show("toml_missing_context", "p.toml", &POLICIES.replace("off_peak = {", "# off_peak = {"));
    show("toml_probabilities", "p.toml", &POLICIES.replace("upgrade = 0.5", "upgrade = 0.4"));
    show("toml_negative_probability", "p.toml", &POLICIES.replace("upgrade = 0.5", "upgrade = -0.5"));
    show("toml_negative_weight", "p.toml", &POLICIES.replace("peak = 3", "peak = -3"));
    show("toml_nan_weight", "p.toml", &POLICIES.replace("peak = 3", "peak = nan"));
    show("toml_text_weight", "p.toml", &POLICIES.replace("peak = 3", "peak = \"three\""));
    let zero = POLICIES.replace("peak = 3", "peak = 0").replace("off_peak = 1", "off_peak = 0");
    show("toml_zero_weights", "p.toml", &zero);
    show("toml_unknown_context", "p.toml", &POLICIES.replace("peak = \"upgrade\"", "paek = \"upgrade\""));
    show("toml_duplicate_key", "p.toml", &format!("{POLICIES}peak = \"none\"\n"));
    show("toml_unknown_table", "p.toml", &POLICIES.replace("[contexts]", "[context]"));
    show("toml_malformed", "p.toml", &POLICIES.replace("peak = 3", "peak = "));
    show("toml_no_policies", "p.toml", "[contexts]\npeak = 1\n");
    show("toml_empty", "p.toml", "");
    show("json_malformed", "p.json", "{\"policies\": {\"control\": {\"peak\": \"none\",}}}");
    show("json_probabilities", "p.json", "{\"policies\":\n{\"control\": {\"peak\": {\"a\": 0.5}}}}");
}

#[test]
fn the_long_form() {
    long("csv_missing_context", "control,peak,none,1\ncontrol,off_peak,none,1\nT1,peak,upgrade,1\n");
    long("csv_probabilities", "control,peak,none,1\nT1,peak,upgrade,0.7\nT1,peak,none,0.2\n");
    long("csv_duplicate", "control,peak,none,1\nT1,peak,upgrade,0.5\nT1,peak,upgrade,0.5\n");
    long("csv_negative", "control,peak,none,1\nT1,peak,upgrade,-0.5\n");
    long("csv_word", "control,peak,none,1\nT1,peak,upgrade,half\n");
    long("csv_empty_name", "control,peak,none,1\n,peak,upgrade,1\n");
    long("csv_no_rows", "");
    show("csv_missing_column", "p.csv", "policy,contxt,action\ncontrol,peak,none\n");
    show("policies_wrong_extension", "p.yaml", "policies:\n");
    show("parquet_damaged", "p.parquet", "PAR1 and then something else PAR1");
}

#[test]
fn context_weights() {
    let folder = Folder::new();
    folder
        .write("p.toml", POLICIES)
        .write("p.csv", "policy,context,action\ncontrol,peak,none\ncontrol,night,none\n")
        .write("two.csv", "context,weight\npeak,1\nnight,2\n")
        .write("unknown.csv", "context,weight\npeak,1\nnight,2\ndawn,1\n")
        .write("missing.csv", "context,weight\npeak,1\n")
        .write("negative.csv", "context,weight\npeak,1\nnight,-2\n")
        .write("nan.csv", "context,weight\npeak,1\nnight,NaN\n")
        .write("zero.csv", "context,weight\npeak,0\nnight,0\n")
        .write("twice.csv", "context,weight\npeak,1\nnight,2\npeak,1\n")
        .write("log.csv", "stamp,place\n1,peak\n2,dusk\n");
    for name in ["unknown", "missing", "negative", "nan", "zero", "twice"] {
        let file = format!("{name}.csv");
        let show = ["policy", "show", "--policies", "p.csv", "--contexts", &file];
        folder.fails(&format!("contexts_{name}"), 3, &show);
    }
    let both = ["policy", "show", "--policies", "p.toml", "--contexts", "two.csv"];
    folder.fails("contexts_given_twice", 2, &both);
    let log = ["policy", "show", "--policies", "p.csv", "--exposure-log", "log.csv"];
    folder.fails("log_without_context", 3, &log);
    let column = [&log[..], &["--context-column", "place"]].concat();
    folder.fails("log_unknown_context", 3, &column);
    folder.fails("log_and_contexts", 2, &[&log[..], &["--contexts", "two.csv"]].concat());
}

#[test]
fn names_that_are_not_there() {
    let folder = Folder::new();
    folder.write("p.toml", POLICIES);
    folder.fails("policy_unknown", 3, &["policy", "distance", "T1", "T3", "--policies", "p.toml"]);
    folder.fails("policy_nearest_unknown", 3, &["policy", "nearest", "contrl", "--policies", "p.toml"]);
    folder.fails("policies_no_file", 3, &["policy", "show", "--policies", "q.toml"]);
    folder.fails("policies_not_given", 2, &["policy", "show"]);
}
