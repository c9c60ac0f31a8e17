//! `poul policy certify`, `effect --support` and the checks of `evaluate MODEL`: what stands behind numbers.

use std::sync::OnceLock;

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

/// A policy that was never run on atoms that were, one with an action that was never taken, and a copy of T1.
const NEW: &str = "\
[policies.weekend]
peak = \"none\"
off_peak = \"upgrade\"

[policies.bold]
peak = \"gift\"
off_peak = \"none\"

[policies.copy]
peak = \"upgrade\"
off_peak = \"none\"
";

fn fitted(learner: &str) -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(900)).write("policies.toml", POLICIES).write("new.toml", NEW);
    let fit = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv,cost", "--id", "user"];
    let more = ["--exclude", "tau*,truth,household,w", "--learner", learner, "--out", "m.poul"];
    let short: &[&str] =
        if learner == "poul" { &["--epochs", "3", "--members", "2", "--folds", "2"] } else { &[] };
    folder.succeeds(&[&fit[..], &more, short].concat());
    folder
}

/// One fit for all tests that only read it.
fn poul() -> &'static Folder {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    FOLDER.get_or_init(|| fitted("poul"))
}

fn certificate<'v>(all: &'v Value, policy: &str) -> &'v Value {
    let found = all["certificates"].as_array().expect("certificates").iter();
    found.clone().find(|own| own["policy"] == policy).unwrap_or_else(|| panic!("no {policy} in {all}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn every_standing_is_told() {
    let folder = poul();
    let args = ["policy", "certify", "m.poul", "--policies", "new.toml", "--json", "-"];
    let all = folder.json(&args);
    assert_eq!(all["certificates"].as_array().map(Vec::len), Some(3));
    let weekend = certificate(&all, "weekend");
    assert_eq!(weekend["standing"], "recombination");
    assert_eq!(weekend["rows"], 0);
    assert_eq!((number(&weekend["supported_share"]), number(&weekend["unseen_share"])), (1.0, 0.0));
    let bold = certificate(&all, "bold");
    assert_eq!(bold["standing"], "unseen");
    assert_eq!(number(&bold["unseen_share"]), 0.75);
    assert_eq!(bold["weak_atoms"][0]["action"], "gift");
    // A policy under another name: nothing moves.
    let copy = certificate(&all, "copy");
    assert_eq!(copy["against"], "T1");
    assert_eq!(number(&copy["nearest"][0]["distance"]), 0.0);
    for bound in copy["bounds"].as_array().expect("bounds") {
        assert_eq!(number(&bound["deciles"][9]["by_distance"]), 0.0);
        assert_eq!(number(&bound["members"][0]["moved"]), 0.0);
    }
    for bound in weekend["bounds"].as_array().expect("bounds") {
        let deciles = bound["deciles"].as_array().expect("deciles");
        assert_eq!(deciles.len(), 10);
        for decile in deciles {
            let [typical, embedding, distance] =
                ["typical", "by_embedding", "by_distance"].map(|name| number(&decile[name]));
            assert!(0.0 < typical && typical <= embedding && embedding <= distance, "{decile}");
        }
        assert!(number(&deciles[0]["gain"]) <= number(&deciles[9]["gain"]));
    }
    let own = folder.json(&["policy", "certify", "m.poul", "T2", "--json", "-"]);
    assert_eq!(certificate(&own, "T2")["standing"], "run-before");
    let thin =
        ["policy", "certify", "m.poul", "T2", "weekend", "--policies", "new.toml", "--min-rows", "500"];
    let thin = folder.json(&[&thin[..], &["--json", "-"]].concat());
    assert_eq!(certificate(&thin, "T2")["standing"], "thin");
    assert_eq!(certificate(&thin, "weekend")["standing"], "thin");
}

#[test]
fn a_learner_without_a_treatment_net_says_what_it_can() {
    let folder = fitted("ridge");
    let run = folder.run(&["policy", "certify", "m.poul", "weekend", "--policies", "new.toml"]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    run.snapshot("certify_ridge");
}

#[test]
fn mistakes_are_told() {
    let folder = fitted("constant");
    folder.write("place.toml", "[policies.x]\npeak = \"none\"\nnight = \"none\"\n");
    folder.fails("certify_unknown_policy", 3, &["policy", "certify", "m.poul", "T22"]);
    folder.fails("certify_no_policy", 2, &["policy", "certify", "m.poul"]);
    folder.fails("certify_unknown_context", 3, &["policy", "certify", "m.poul", "--policies", "place.toml"]);
    folder.fails("certify_min_rows", 2, &["policy", "certify", "m.poul", "T1", "--min-rows", "0"]);
    folder.fails("certify_no_model", 3, &["policy", "certify", "data.csv", "T1"]);
    let placebo = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--placebo", "1"];
    folder.fails("placebo_without_model", 2, &placebo);
}

#[test]
fn effects_carry_their_support() {
    let folder = poul();
    let effect = ["effect", "m.poul", "data.csv", "--policies", "new.toml", "--policy", "weekend"];
    for (min_rows, share) in [("100", ",1"), ("500", ",0")] {
        let more = ["--support", "--min-rows", min_rows, "--out", "e.csv"];
        folder.succeeds(&[&effect[..], &more].concat());
        let text = String::from_utf8(folder.read("e.csv")).expect("UTF-8");
        let mut lines = text.lines();
        assert!(lines.next().is_some_and(|heading| heading.ends_with("unseen_share,support")), "{text}");
        assert!(lines.all(|line| line.trim_end_matches(".0").ends_with(share)), "{min_rows}: {text}");
    }
}

#[test]
fn an_evaluation_says_whether_it_can_be_trusted() {
    let folder = poul();
    let evaluate = ["evaluate", "m.poul", "data.csv", "--draws", "0", "--json", "-"];
    let metrics = folder.json(&[&evaluate[..], &["--placebo", "1"]].concat());
    let validation = &metrics["validation"];
    let checks = validation["checks"].as_array().expect("checks");
    for name in ["balance", "outcome model", "overlap", "placebo"] {
        assert!(checks.iter().any(|check| check["name"] == name), "{name}: {validation}");
    }
    // Assignment was random, m can learn both outcomes.
    assert!(
        checks.iter().all(|check| check["verdict"] != "fail" || check["name"] == "placebo"),
        "{validation}"
    );
    assert_eq!(validation["placebo"][0]["permuted"].as_array().map(Vec::len), Some(1));
    assert!(validation["sensitivity"].is_null());
    let policies = metrics["policies"].as_array().expect("policies");
    assert_eq!(policies.len(), 3);
    assert!(policies.iter().all(|own| own["distance"] == 0.0 && own["bound"][0] == 0.0), "{policies:?}");
    let atoms = metrics["atoms"].as_array().expect("atoms");
    assert_eq!(atoms.len(), 8);
    let atom = |context: &str, action: &str| {
        let found = atoms.iter().find(|own| own["context"] == context && own["action"] == action);
        found.expect("an atom")
    };
    assert_eq!(atom("peak", "none")["control"], true);
    assert_eq!(number(&atom("peak", "none")["effect"]), 0.0);
    // T1 is control with one cell changed: its mean effect is that of the atom.
    let upgrade = atom("peak", "upgrade");
    let t1 = &metrics["results"][0];
    assert_eq!(t1["policy"], "T1");
    assert_eq!(upgrade["control"], false);
    let mean = number(&t1["ate_predicted"]);
    assert!((number(&upgrade["effect"]) - mean).abs() < 0.2 * mean.abs(), "{upgrade} {mean}");
    let without = folder.json(&[&evaluate[..], &["--no-checks"]].concat());
    assert!(without["validation"].is_null() && without["atoms"].is_null());
    assert_eq!(without["results"], metrics["results"]);
}

#[test]
fn observational_data_get_their_own_checks() {
    let folder = Folder::new();
    let simulate =
        ["simulate", "--out", "w", "--scenario", "observational", "--rows", "3000", "--test-rows", "2000"];
    folder.succeeds(
        &[&simulate[..], &["--features", "8", "--policies", "4", "--contexts", "3", "--actions", "3"]]
            .concat(),
    );
    let fit = ["fit", "w/train.parquet", "--policies", "w/policies.toml", "--outcome", "y"];
    let more = ["--design", "observational", "--learner", "ridge", "--out", "m.poul"];
    folder.succeeds(&[&fit[..], &more].concat());
    let metrics = folder.json(&["evaluate", "m.poul", "w/test.parquet", "--draws", "0", "--json", "-"]);
    let validation = &metrics["validation"];
    let balance = validation["balance"].as_array().expect("balance");
    let largest = |name: &str| balance.iter().map(|own| number(&own[name])).fold(0.0, f64::max);
    assert!(largest("correlation") < 0.6 * largest("before"), "{validation}");
    let sensitivity = validation["sensitivity"].as_array().expect("sensitivity");
    assert!(!sensitivity.is_empty());
    for own in sensitivity {
        let [whole, interval] = ["robustness", "robustness_interval"].map(|name| number(&own[name]));
        assert!((0.0..1.0).contains(&whole) && interval <= whole, "{own}");
    }
    let overlap = validation["overlap"][0]["quantiles"].as_array().expect("quantiles");
    assert!(number(&overlap[0]) < number(&overlap[6]));
    for own in metrics["averages"].as_array().expect("averages").iter().filter(|own| own["by"].is_null()) {
        let lacks = number(&own["share_without_overlap"]) > 0.1;
        assert!(number(&own["effective_rows"]) <= number(&own["n_treated"]), "{own}");
        // An interval comes with its bounds, and neither without overlap.
        assert_eq!(own["interval"].is_null(), own["hidden"].is_null(), "{own}");
        assert!(!lacks || own["interval"].is_null() && own["q_value"].is_null(), "{own}");
    }
}
