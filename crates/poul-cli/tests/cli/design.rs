//! `poul design`: proposals that other commands take as they are, plans, and what is wrong with a question.

use std::sync::OnceLock;

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

fn fitted(learner: &str, more: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(900)).write("policies.toml", POLICIES);
    let fit = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv,cost", "--id", "user"];
    let out = ["--exclude", "tau*,truth,household,w", "--learner", learner, "--out", "m.poul"];
    folder.succeeds(&[&fit[..], &out, more].concat());
    folder
}

/// One fit for all tests that only read it.
fn poul() -> &'static Folder {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    FOLDER.get_or_init(|| fitted("poul", &["--epochs", "3", "--members", "2", "--folds", "2"]))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

const WIDE: [&str; 4] = ["--within", "2", "--min-rows", "50"];

#[test]
fn proposals_are_what_certificates_and_effects_say() {
    let folder = poul();
    let design = [
        "design",
        "m.poul",
        "--maximize",
        "gmv",
        "--edits",
        "2",
        "--out",
        "next.toml",
        "--json",
        "next.json",
    ];
    let text = folder.succeeds(&[&design[..], &WIDE].concat());
    assert!(text.contains("searched all") && text.contains("->"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("Run proposal_1 next")), "{text}");
    let found: Value = serde_json::from_slice(&folder.read("next.json")).expect("JSON");
    let proposals = found["proposals"].as_array().expect("proposals");
    assert_eq!(found["population"], "training");
    assert!(found["search"]["exact"].as_bool().expect("a flag") && !proposals.is_empty());
    // Both outcomes grow with how much is upgraded, so that the best upgrades everywhere.
    assert!(number(&proposals[0]["improvement"]["value"]) > 0.0, "{}", proposals[0]);
    let certify =
        ["policy", "certify", "m.poul", "--policies", "next.toml", "--min-rows", "50", "--json", "-"];
    let certificates = folder.json(&certify);
    for own in proposals {
        let name = &own["policy"];
        let mut all = certificates["certificates"].as_array().expect("certificates").iter();
        let certified = all.find(|other| other["policy"] == *name).expect("a certificate");
        assert_eq!(certified["standing"], own["standing"]);
        assert_eq!(certified["nearest"][0]["policy"], own["nearest"]);
        assert!((number(&certified["nearest"][0]["distance"]) - number(&own["distance"])).abs() < 1e-9);
        for (certified, effect) in certified["averages"].as_array().expect("averages").iter().zip(0..) {
            for part in ["effect", "se"] {
                assert!((number(&certified[part]) - number(&own["effects"][effect][part])).abs() < 1e-9);
            }
            assert!(own["effects"][effect]["users_needed"].as_u64().is_some_and(|users| users > 1));
        }
    }
    // The same again, to the last byte, on any number of threads and by whatever is judged where there is one answer.
    let again = ["--out", "again.toml", "--threads", "1", "--quiet"];
    folder.succeeds(&[&design[..6], &again[..], &WIDE].concat());
    assert!(folder.read("next.toml") == folder.read("again.toml"));
}

#[test]
fn averages_are_those_of_the_users_given() {
    let folder = poul();
    let design = ["design", "m.poul", "data.csv", "--population", "city = \"Rome\"", "--maximize", "gmv"];
    let more = ["--proposals", "1", "--out", "rome.toml", "--json", "-"];
    let found = folder.json(&[&design[..], &more, &WIDE].concat());
    assert_eq!(found["population"], "users");
    let effect =
        ["effect", "m.poul", "data.csv", "--population", "city = \"Rome\"", "--policies", "rome.toml"];
    folder.succeeds(&[&effect[..], &["--policy", "proposal_1", "--out", "rome.csv"]].concat());
    let text = String::from_utf8(folder.read("rome.csv")).expect("UTF-8");
    let effects: Vec<f64> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').nth(3))
        .map(|cell| cell.parse().expect("a number"))
        .collect();
    assert_eq!(found["users"].as_u64(), Some(effects.len() as u64));
    let mean = effects.iter().sum::<f64>() / effects.len() as f64;
    assert!((mean - number(&found["proposals"][0]["effects"][0]["effect"])).abs() < 1e-4, "{mean} {found}");
}

#[test]
fn budgets_prices_and_actions_are_kept() {
    let folder = poul();
    let design =
        ["design", "m.poul", "--maximize", "gmv", "--from", "control", "--json", "-", "--within", "2"];
    let all = folder.json(&design);
    let cheap = folder.json(&[&design[..], &["--budget", "cost=1"]].concat());
    let cost = |found: &Value| number(&found["proposals"][0]["effects"][1]["effect"]);
    assert!(cost(&all) > 1.0 && cost(&cheap) <= 1.0, "{} {}", cost(&all), cost(&cheap));
    let dear = folder.json(&[&design[..], &["--price", "cost=100"]].concat());
    assert!(cost(&dear) < cost(&all));
    let part = folder.json(&[&design[..], &["--allow", "peak: none"]].concat());
    for own in part["proposals"].as_array().expect("proposals") {
        assert!(
            own["changes"].as_array().expect("changes").iter().all(|change| change["context"] == "off_peak")
        );
    }
    for by in ["value", "lower", "improvement"] {
        let found = folder.json(&[&design[..], &["--by", by]].concat());
        assert_eq!(found["by"], by);
        assert!(!found["proposals"].as_array().expect("proposals").is_empty());
    }
}

#[test]
fn plans_tell_more_with_more_users() {
    let folder = poul();
    let plan = |rows: &str| folder.json(&["design", "m.poul", "--rows", rows, "--json", "-"]);
    let (few, many) = (plan("2000"), plan("200000"));
    let smallest = |found: &Value| number(&found["plan"]["detectable"][0]["effect"]);
    assert!((smallest(&few) / smallest(&many) - 10.0).abs() < 1e-6);
    // What is left of the noise is no more than there was.
    assert!(number(&few["noise"][0]["deviation"]) < 1.05 * number(&few["noise"][0]["of_outcome"]));
    let text = folder.succeeds(&["design", "m.poul", "--rows", "2000", "--policy", "T1", "--policy", "T2"]);
    assert!(text.contains("chance to tell") && text.contains("against"), "{text}");
    let learn =
        ["design", "m.poul", "--maximize", "gmv", "--learn", "--batch", "2", "--rows", "9000", "--json", "-"];
    let learn = folder.json(&[&learn[..], &WIDE].concat());
    let learn = &learn["learn"];
    assert!(number(&learn["se_after"]) < number(&learn["se"]));
    let shares: f64 = learn["arms"].as_array().expect("arms").iter().map(|arm| number(&arm["share"])).sum();
    assert!((shares + number(&learn["control_share"]) - 1.0).abs() < 1e-9);
}

#[test]
fn mistakes_are_told() {
    // A folder of its own: what other tests write would look like what a mistake left behind.
    let folder = fitted("poul", &["--epochs", "3", "--members", "2", "--folds", "2"]);
    let fails = |name: &str, code: i32, more: &[&str]| {
        folder.fails(
            name,
            code,
            &[&["design", "m.poul", "--out", "p.toml", "--json", "p.json"], more].concat(),
        );
    };
    fails("design_unknown_outcome", 2, &["--maximize", "gvm"]);
    fails("design_unknown_price", 2, &["--maximize", "gmv", "--price", "costs=1"]);
    fails("design_unknown_base", 3, &["--maximize", "gmv", "--from", "T22"]);
    fails("design_unknown_action", 2, &["--maximize", "gmv", "--allow", "peak: gift"]);
    fails("design_unknown_context", 2, &["--maximize", "gmv", "--allow", "night: none"]);
    fails("design_nothing_allowed", 2, &["--maximize", "gmv", "--from", "control", "--allow", "*: none"]);
    fails("design_too_far", 2, &["--maximize", "gmv", "--from", "control", "--within", "0.01"]);
    fails("design_seldom_seen", 2, &["--maximize", "gmv", "--min-rows", "5000"]);
    fails("design_negative_edits", 2, &["--maximize", "gmv", "--edits", "-1"]);
    fails("design_base_over_budget", 2, &["--maximize", "gmv", "--from", "T2", "--budget", "cost=-1"]);
    fails("design_all_over_budget", 2, &["--maximize", "gmv", "--budget", "cost=-1"]);
    fails("design_no_number", 2, &["--maximize", "gmv", "--budget", "cost"]);
    fails("design_learn_without_rows", 2, &["--maximize", "gmv", "--learn"]);
    folder.fails("design_what", 2, &["design", "m.poul"]);
    folder.fails("design_out_form", 2, &["design", "m.poul", "--maximize", "gmv", "--out", "p.csv"]);
    let ridge = fitted("ridge", &[]);
    ridge.fails("design_rival", 2, &["design", "m.poul", "--maximize", "gmv", "--out", "p.toml"]);
}

#[test]
fn proposals_run_in_a_simulated_world() {
    let folder = Folder::new();
    let world = ["simulate", "--scenario", "long-tail", "--out", "world", "--rows", "400", "--features", "8"];
    folder.succeeds(&[&world[..], &["--policies", "6", "--contexts", "3", "--actions", "3"]].concat());
    folder.write(
        "next.toml",
        "[policies.next]\n\"*\" = \"none\"\ncontext_01 = { action_1 = 0.25, none = 0.75 }\n",
    );
    let again = ["simulate", "--world", "world", "--policies", "next.toml", "--rows", "300"];
    folder.succeeds(&[&again[..], &["--out", "round"]].concat());
    let averages = String::from_utf8(folder.read("round/averages.csv")).expect("UTF-8");
    let names: Vec<&str> = averages.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["control", "next"]);
    folder.fails("simulate_world_without_policies", 2, &["simulate", "--world", "world", "--out", "other"]);
    folder.fails(
        "simulate_file_without_world",
        2,
        &["simulate", "--policies", "next.toml", "--out", "other"],
    );
    folder.fails(
        "simulate_no_world",
        3,
        &["simulate", "--world", "moon", "--policies", "next.toml", "--out", "other"],
    );
}
