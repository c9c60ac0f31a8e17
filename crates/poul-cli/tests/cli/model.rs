//! `poul fit`, `effect`, `show` and `evaluate MODEL`: from data to a model to effects to metrics.

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

const FIT: [&str; 13] = [
    "fit",
    "data.csv",
    "--policies",
    "policies.toml",
    "--outcome",
    "gmv,cost",
    "--id",
    "user",
    "--exclude",
    "tau*,truth,household,w",
    "--learner",
    "constant",
    "--out",
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(600)).write("policies.toml", POLICIES);
    folder
}

fn fitted() -> Folder {
    let folder = folder();
    folder.succeeds(&[&FIT[..], &["m.poul"]].concat());
    folder
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).expect("UTF-8")
}

#[test]
fn what_a_person_sees() {
    let folder = folder();
    let run = folder.run(&[&FIT[..], &["m.poul"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    run.snapshot("fit");
    folder.run(&["show", "m.poul"]).snapshot("show");
    let effect = ["effect", "m.poul", "data.csv", "--support", "--out", "e.csv"];
    folder.run(&effect).snapshot("effect");
    let metrics =
        ["evaluate", "m.poul", "data.csv", "--truth", "gmv:T1=truth", "--draws", "0", "--json", "-"];
    let metrics = folder.json(&metrics);
    let [first, second] = [0, 1].map(|result| &metrics["results"][result]);
    // A constant misses all of the spread of the true effect, and its mean by the error of the arm means.
    assert!(first["normalised_pehe"].as_f64().is_some_and(|pehe| (0.95..1.1).contains(&pehe)), "{first}");
    assert!(second["normalised_pehe"].is_null(), "{second}");
    assert_eq!(folder.listing(), ["data.csv", "e.csv", "m.poul", "policies.toml"]);
}

#[test]
fn the_same_fit_is_the_same_file() {
    let folder = folder();
    for (name, more) in [("a.poul", &["--threads", "1"][..]), ("b.poul", &["--threads", "3", "-q"])] {
        folder.succeeds(&[&FIT[..], &[name], more].concat());
    }
    assert!(folder.read("a.poul") == folder.read("b.poul"));
    let manifest = folder.json(&["show", "a.poul", "--json"]);
    let command: Vec<&str> =
        manifest["command"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    assert_eq!(command.join(" "), format!("poul {}", FIT[..12].join(" ")));
    assert_eq!(manifest["policy_rows"].as_array().map(Vec::len), Some(3));
}

#[test]
fn effects_are_differences_of_arm_means_and_evaluate_agrees() {
    let folder = fitted();
    folder.succeeds(&[
        "effect",
        "m.poul",
        "data.csv",
        "--policy",
        "T2",
        "--against",
        "T1",
        "--interval",
        "0.9",
        "--out",
        "e.csv",
    ]);
    let effects = text(&folder, "e.csv");
    let lines: Vec<&str> = effects.lines().collect();
    assert_eq!(lines.len(), 601);
    assert_eq!(
        lines[0],
        "user,policy,against,effect_gmv,effect_cost,lower_gmv,upper_gmv,lower_cost,upper_cost"
    );
    assert!(lines[1].starts_with("u0,T2,T1,"), "{}", lines[1]);
    let predicted: f64 = lines[1].split(',').nth(3).and_then(|cell| cell.parse().ok()).expect("a number");
    let args = [
        "evaluate",
        "m.poul",
        "data.csv",
        "--policy",
        "T2",
        "--against",
        "T1",
        "--draws",
        "0",
        "--json",
        "-",
    ];
    let metrics = folder.json(&args);
    let result = &metrics["results"][0];
    assert_eq!((&result["outcome"], &result["policy"]), (&Value::from("gmv"), &Value::from("T2")));
    for name in ["ate", "ate_predicted"] {
        let value = result[name].as_f64().expect("a number");
        assert!((value - predicted).abs() < 1e-4, "{name}: {value}, effect: {predicted}");
    }
}

#[test]
fn new_policies_are_laid_beside_the_models() {
    let folder = fitted();
    folder.write("new.toml", "[policies.T3]\n\"*\" = \"none\"\noff_peak = \"upgrade\"\n");
    folder.succeeds(&["effect", "m.poul", "data.csv", "--policies", "new.toml", "--out", "e.csv"]);
    let effects = text(&folder, "e.csv");
    assert_eq!(effects.lines().count(), 601);
    assert!(effects.lines().skip(1).all(|line| line.contains(",T3,control,")));
    folder.succeeds(&["effect", "m.poul", "data.csv", "--policies", "new.toml", "--all", "--out", "all.csv"]);
    assert_eq!(text(&folder, "all.csv").lines().count(), 3 * 600 + 1);
    folder.write("wild.toml", "[policies.T4]\n\"*\" = \"none\"\npeak = \"taxi\"\n");
    let effect = ["effect", "m.poul", "data.csv", "--policies", "wild.toml", "--out", "wild.csv"];
    folder.fails("effect_unseen", 3, &effect);
    folder.succeeds(&[&effect[..], &["--allow-unseen"]].concat());
    let wild = text(&folder, "wild.csv");
    assert!(wild.starts_with("user,policy,against,effect_gmv,effect_cost,unseen_share\n"), "{wild}");
    assert!(wild.lines().nth(1).is_some_and(|line| line.ends_with(",0.75")), "{wild}");
}

#[test]
fn combinations_of_columns_are_policies() {
    let folder = Folder::new();
    let values = |row: usize| (["m", "f"][row % 2], ["cook", "nurse", "guard"][row % 3]);
    let rows = (0..240).filter(|row| row % 6 != 5).map(|row| {
        let (gender, job) = values(row);
        format!("{gender},{job},{},{}", row % 7, row % 5)
    });
    folder.write("data.csv", format!("Gender,Job,chosen,age\n{}\n", rows.collect::<Vec<_>>().join("\n")));
    let fit = [
        "fit",
        "data.csv",
        "--treatment-columns",
        "Gender,Job",
        "--outcome",
        "chosen",
        "--learner",
        "constant",
    ];
    folder.succeeds(&[&fit[..], &["--control", "Job=cook,Gender=m", "--out", "m.poul"]].concat());
    // No row has this combination; its atoms were seen.
    let effect = ["effect", "m.poul", "data.csv", "--policy", "Job=guard, Gender=f", "--out", "e.csv"];
    folder.succeeds(&effect);
    let effects = text(&folder, "e.csv");
    let line = effects.lines().nth(1).unwrap_or_default();
    assert!(line.starts_with("0,\"Gender=f, Job=guard\",\"Gender=m, Job=cook\","), "{line}");
    let metrics = folder.json(&["evaluate", "m.poul", "data.csv", "--draws", "0", "--json", "-"]);
    assert_eq!(metrics["results"].as_array().map(Vec::len), Some(4));
    folder.fails(
        "effect_half_combination",
        2,
        &["effect", "m.poul", "data.csv", "--policy", "Job=guard", "--out", "f.csv"],
    );
}

#[test]
fn columns_may_differ_where_it_does_not_matter() {
    let folder = fitted();
    // Without treatment, outcomes and ids, in another order, with a city never seen and ages missing.
    let rows = "city,age\nRome,30\nParis,\nOslo,51\n";
    folder.write("new.csv", rows);
    folder.succeeds(&["effect", "m.poul", "new.csv", "--policy", "T1", "--out", "e.csv"]);
    let effects = text(&folder, "e.csv");
    assert!(effects.starts_with("row,policy,against,effect_gmv,effect_cost\n0,T1,control,"), "{effects}");
    assert_eq!(effects.lines().count(), 4);
    folder.write("less.csv", "city\nRome\n").write("text.csv", "city,age\nRome,old\n");
    let effect = |data| ["effect", "m.poul", data, "--policy", "T1", "--out", "f.csv"];
    folder.fails("effect_missing_feature", 3, &effect("less.csv"));
    folder.fails("effect_changed_type", 3, &effect("text.csv"));
    folder.fails("evaluate_model_without_outcome", 3, &["evaluate", "m.poul", "new.csv"]);
}

#[test]
fn what_is_wrong_with_a_model_is_told() {
    let folder = fitted();
    let whole = folder.read("m.poul");
    let version = br#"\"format\":1,"#;
    let at = whole.windows(version.len()).position(|bytes| bytes == version).expect("a format");
    let mut newer = whole.clone();
    newer[at + version.len() - 2] = b'7';
    folder.write("short.poul", &whole[..whole.len() / 2]).write("newer.poul", newer);
    folder.fails("model_missing", 3, &["show", "none.poul"]);
    folder.fails("model_is_data", 3, &["effect", "data.csv", "m.poul", "--out", "e.csv"]);
    folder.fails("model_cut_short", 3, &["show", "short.poul"]);
    folder.fails("model_newer", 3, &["show", "newer.poul"]);
    let effect = |more: &[&'static str]| [&["effect", "m.poul", "data.csv", "--out", "e.csv"], more].concat();
    folder.fails("effect_unknown_policy", 3, &effect(&["--policy", "T22"]));
    folder.fails("effect_itself", 2, &effect(&["--policy", "control"]));
    folder.fails("effect_interval", 2, &effect(&["--interval", "90"]));
    folder.fails("effect_bad_out", 2, &["effect", "m.poul", "data.csv", "--out", "e.txt"]);
    folder.fails("evaluate_nothing", 2, &["evaluate", "m.poul"]);
    folder.fails("evaluate_both", 2, &["evaluate", "m.poul", "data.csv", "--effects", "tau"]);
}

#[test]
fn what_is_wrong_with_a_fit_is_told() {
    let folder = folder();
    let fit = |more: &[&'static str]| {
        [&["fit", "data.csv", "--policies", "policies.toml", "--out", "m.poul"], more].concat()
    };
    let constant = ["--learner", "constant"];
    folder.fails("fit_unknown_learner", 2, &fit(&["--outcome", "gmv", "--learner", "constnat"]));
    folder.fails("fit_no_outcome", 2, &fit(&constant));
    folder.fails("fit_setting", 2, &fit(&["--outcome", "gmv", "--epochs", "3", "--learner", "constant"]));
    let one = ["--outcome", "gmv", "--population", "policy = 'T1'", "--learner", "constant"];
    folder.fails("fit_one_policy", 3, &fit(&one));
    folder.fails(
        "fit_unknown_control",
        3,
        &fit(&["--outcome", "gmv", "--control", "T9", "--learner", "constant"]),
    );
    let nowhere = ["fit", "data.csv", "--outcome", "gmv", "--learner", "constant", "--out", "no/m.poul"];
    folder.fails("fit_nowhere", 4, &nowhere);
    folder.write(
        "poul.toml",
        "[data]\noutcome = 'gmv'\n[data.encoder]\nmax_levels = 2\n[model]\nlearner = 'constant'\n",
    );
    folder.succeeds(&[
        "fit",
        "data.csv",
        "--policies",
        "policies.toml",
        "--config",
        "poul.toml",
        "--out",
        "m.poul",
    ]);
    folder.write("wrong.toml", "[model]\nlearner = 'constant'\nhidden = 3\n");
    folder.fails("fit_config_setting", 2, &["fit", "data.csv", "--config", "wrong.toml", "--out", "n.poul"]);
}

#[test]
fn a_stack_is_fitted_shown_and_scored_and_what_is_wrong_with_it_is_told() {
    let folder = folder();
    let fit = |more: &[&'static str]| {
        let own = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv", "--out", "s.poul"];
        [&own, more].concat()
    };
    let stack = |more: &[&'static str]| fit(&[&["--learner", "stack"], more].concat());
    folder.fails("stack_twice", 2, &stack(&["--of", "ridge,constant,ridge"]));
    folder.fails("stack_unknown", 2, &stack(&["--of", "ridge,constnat"]));
    folder.fails("stack_itself", 2, &stack(&["--of", "ridge,stack"]));
    folder.fails("stack_alone", 2, &stack(&["--of", "ridge"]));
    folder.fails("stack_folds", 2, &stack(&["--of", "ridge,constant", "--folds", "1"]));
    folder.fails("of_without_stack", 2, &fit(&["--of", "ridge,constant"]));
    // Settings of members stand where they do for a comparison; those of others do not matter.
    folder.write(
        "poul.toml",
        "[model]\nlearner = 'stack'\nof = ['uplift-forest', 'constant']\n[training]\nfolds = 2\n\
         [learners.uplift-forest.model]\ntrees = 3\n[learners.poul.model]\nmembers = 2\n",
    );
    folder.succeeds(&fit(&["--config", "poul.toml"]));
    let shown = folder.succeeds(&["show", "s.poul"]);
    assert!(shown.contains("\"trees\":3") && !shown.contains("\"members\":2"), "{shown}");
    assert!(shown.contains("members by R-loss over 2 folds, in units of the outcome's variance"), "{shown}");
    assert!(shown.contains("is stacked of"), "{shown}");
    folder.succeeds(&["effect", "s.poul", "data.csv", "--policy", "T1", "--out", "e.csv"]);
    // The order of members does not matter.
    let bytes = folder.read("s.poul");
    folder.succeeds(&fit(&["--config", "poul.toml", "--of", "constant,uplift-forest"]));
    // But for the command, which the header holds: the numbers come after it.
    let other = folder.read("s.poul");
    assert_eq!(bytes[bytes.len() - 3000..], other[other.len() - 3000..]);
    assert_eq!(shown.replace(" --of constant,uplift-forest", ""), {
        let again = folder.succeeds(&["show", "s.poul"]);
        again.replace(" --of constant,uplift-forest", "")
    });
}

#[test]
fn a_constant_outcome_has_no_effects() {
    let folder = Folder::new();
    folder.write("data.csv", "policy,y,x\ncontrol,1,1\nT1,1,2\ncontrol,1,3\nT1,1,5\n");
    folder.fails(
        "fit_constant_outcome",
        3,
        &["fit", "data.csv", "--outcome", "y", "--learner", "constant", "--out", "m.poul"],
    );
}
