//! `poul evaluate`: columns of effects that anybody predicted.

use serde_json::Value;

use crate::harness::{Folder, experiment};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("scored.csv", experiment(600));
    folder
}

fn result<'v>(metrics: &'v Value, outcome: &str, policy: &str) -> &'v Value {
    let results = metrics["results"].as_array().expect("results");
    let found = results.iter().find(|result| result["outcome"] == outcome && result["policy"] == policy);
    found.unwrap_or_else(|| panic!("no result for {outcome} and {policy} in {metrics}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn what_a_person_sees() {
    let args = ["evaluate", "scored.csv", "--effects", "tau", "--effects", "cost:T1=tau_cost", "--effects"];
    let more =
        ["cost:T2=tau_cost", "--truth", "gmv:T1=truth", "--outcome", "gmv,cost", "--cost-curve", "gmv,cost"];
    let run = folder().run(&[&args[..], &more].concat());
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    run.snapshot("evaluate_text");
}

#[test]
fn specs_are_as_exact_as_they_are_written() {
    let folder = folder();
    let metrics = |effects: &[&str]| {
        let mut args = vec!["evaluate", "scored.csv", "--outcome", "gmv,cost", "--draws", "0", "--json", "-"];
        effects.iter().for_each(|spec| args.extend(["--effects", spec]));
        folder.json(&args)
    };
    let all = metrics(&["tau"]);
    assert_eq!(all["rows"], 600);
    assert_eq!(all["results"].as_array().map(Vec::len), Some(4));
    assert_eq!(all["pooled"].as_array().map(Vec::len), Some(2));
    let named = metrics(&["T2=tau"]);
    assert_eq!(named["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(result(&named, "cost", "T2"), result(&all, "cost", "T2"));
    let exact = metrics(&["tau", "cost:T2=tau_cost"]);
    assert_eq!(result(&exact, "cost", "T1"), result(&all, "cost", "T1"));
    assert_ne!(result(&exact, "cost", "T2")["auuc"], result(&all, "cost", "T2")["auuc"]);
    assert_eq!(result(&exact, "gmv", "T2")["against"], "control");
}

#[test]
fn any_pair_of_policies_can_be_compared() {
    let folder = folder();
    let metrics = |policy, against| {
        let args = ["evaluate", "scored.csv", "--effects", "tau", "--outcome", "gmv", "--draws", "0"];
        folder.json(&[&args[..], &["--policy", policy, "--against", against, "--json", "-"]].concat())
    };
    let (there, back) = (metrics("T2", "T1"), metrics("T1", "T2"));
    let (there, back) = (result(&there, "gmv", "T2"), result(&back, "gmv", "T1"));
    assert_eq!(there["n_treated"], back["n_control"]);
    assert!((number(&there["ate"]) + number(&back["ate"])).abs() < 1e-9);
}

#[test]
fn published_values_are_met() {
    // Printed by causalml 0.18.0 and scikit-uplift 0.5.1 for these rows.
    let folder = Folder::new();
    let (y, w) = ([1, 0, 1, 1, 0, 0, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0, 1, 1, 0, 0]);
    let score = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05];
    let rows: Vec<String> = (0..10).map(|row| format!("{},{},{}", y[row], w[row], score[row])).collect();
    folder.write("golden.csv", format!("y,w,score\n{}\n", rows.join("\n")));
    let args = ["evaluate", "golden.csv", "--effects", "score", "--treatment", "w", "--control", "0"];
    let metrics = folder.json(&[&args[..], &["--outcome", "y", "--draws", "0", "--json", "-"]].concat());
    let metrics = result(&metrics, "y", "1");
    for (name, value) in [
        ("auuc_causalml", 0.933_333_33),
        ("qini_causalml", 0.568_181_82),
        ("uplift_auc_sklift", 0.391_927_08),
        ("qini_auc_sklift", 0.364_864_86),
    ] {
        assert!((number(&metrics[name]) - value).abs() < 1e-8, "{name}: {}", metrics[name]);
    }
}

#[test]
fn a_weight_of_two_is_a_row_twice() {
    let folder = folder();
    let (mut weighted, mut doubled) = (String::new(), String::new());
    for (row, line) in experiment(300).lines().enumerate() {
        let twice = row > 0 && row % 3 == 0;
        let weight = if row == 0 {
            "weight"
        } else if twice {
            "2"
        } else {
            "1"
        };
        weighted.push_str(&format!("{line},{weight}\n"));
        doubled.push_str(&format!("{line}\n"));
        if twice {
            doubled.push_str(&format!("{line}\n"));
        }
    }
    folder.write("weighted.csv", weighted).write("doubled.csv", doubled);
    let metrics = |data, more: &[&str]| {
        let args = ["evaluate", data, "--effects", "tau", "--outcome", "gmv", "--draws", "0", "--json", "-"];
        folder.json(&[&args[..], more].concat())
    };
    let (weighted, doubled) = (metrics("weighted.csv", &["--weight", "weight"]), metrics("doubled.csv", &[]));
    for policy in ["T1", "T2"] {
        let (weighted, doubled) = (result(&weighted, "gmv", policy), result(&doubled, "gmv", policy));
        for name in ["ate", "ate_predicted", "auuc", "qini", "rate_autoc", "calibration_slope"] {
            let (a, b) = (number(&weighted[name]), number(&doubled[name]));
            assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{name} of {policy}: {a} and {b}");
        }
        let plain = metrics("scored.csv", &[]);
        assert_ne!(result(&plain, "gmv", policy)["ate"], weighted["ate"]);
    }
}

#[test]
fn clusters_widen_what_rows_pretend_to_know() {
    // Every row four times under one household: clusters must see through the copies.
    let folder = folder();
    let mut copies = String::new();
    for (row, line) in experiment(300).lines().enumerate() {
        let n = if row == 0 { 1 } else { 4 };
        let household = if row == 0 { "unit".to_string() } else { format!("u{row}") };
        (0..n).for_each(|_| copies.push_str(&format!("{line},{household}\n")));
    }
    folder.write("copies.csv", copies);
    let args = ["evaluate", "copies.csv", "--effects", "tau", "--outcome", "gmv", "--json", "-"];
    let width = |metrics: &Value| {
        let interval = &result(metrics, "gmv", "T2")["ate_interval"];
        number(&interval[1]) - number(&interval[0])
    };
    let (rows, clusters) = (folder.json(&args), folder.json(&[&args[..], &["--cluster", "unit"]].concat()));
    let ratio = width(&clusters) / width(&rows);
    assert!((1.5..2.7).contains(&ratio), "{ratio}, expected about 2");
}

#[test]
fn truth_costs_and_intervals_are_added_on_request() {
    let folder = folder();
    let args = ["evaluate", "scored.csv", "--effects", "tau", "--outcome", "gmv,cost", "--json", "-"];
    let plain = folder.json(&[&args[..], &["--draws", "0"]].concat());
    assert!(result(&plain, "gmv", "T1")["auuc_interval"].is_null());
    assert!(result(&plain, "gmv", "T1")["pehe"].is_null());
    let more = ["--truth", "gmv:T1=truth", "--cost-curve", "gmv,cost", "--level", "0.5", "--draws", "50"];
    let full = folder.json(&[&args[..], &more].concat());
    assert_eq!(full["level"], 0.5);
    let known = result(&full, "gmv", "T1");
    assert!(number(&known["pehe"]) > 0.0 && result(&full, "gmv", "T2")["pehe"].is_null());
    assert!(number(&known["auuc_interval"][0]) < number(&known["auuc_interval"][1]));
    assert_eq!(full["cost_curves"].as_array().map(Vec::len), Some(2));
    assert_eq!(full["cost_curves"][0]["cost"], "cost");
}

#[test]
fn the_file_the_pipe_and_the_threads_agree() {
    let folder = folder();
    let args = ["evaluate", "scored.csv", "--effects", "tau", "--outcome", "gmv", "--json"];
    let piped = folder.succeeds(&[&args[..], &["-"]].concat());
    let table = folder.succeeds(&[&args[..], &["metrics.json"]].concat());
    assert!(table.starts_with("outcome"), "{table}");
    assert_eq!(String::from_utf8(folder.read("metrics.json")).expect("UTF-8"), piped);
    for threads in ["1", "2"] {
        assert_eq!(folder.succeeds(&[&args[..], &["-", "--threads", threads]].concat()), piped);
    }
    assert_ne!(folder.succeeds(&[&args[..], &["-", "--seed", "8"]].concat()), piped);
}
