//! `poul compare` and `poul tune` from the command line.

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment, snapshot};

const SETTINGS: &str = "\
[data]
policies = \"policies.toml\"
outcome = \"gmv\"
id = \"user\"
exclude = [\"tau*\", \"truth\", \"household\", \"w\", \"cost\"]

[learners.ridge.training]
folds = 2

[learners.t-learner.model]
hidden = [16]

[learners.t-learner.training]
epochs = 2
";

/// A short fit of the method's own.
const SHORT: &str = "
[learners.poul.model]
members = 1
hidden = [16]
outcome_hidden = [16]

[learners.poul.training]
folds = 1
epochs = 2
";

/// A loss that a continuous outcome cannot have: told only once the rows are read.
const IMPOSSIBLE: &str = "
[learners.poul.model]
loss = \"logistic\"
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder
        .write("data.csv", experiment(600))
        .write("policies.toml", POLICIES)
        .write("poul.toml", format!("{SETTINGS}{SHORT}"))
        .write("wrong.toml", format!("{SETTINGS}{IMPOSSIBLE}"));
    folder
}

fn compare<'a>(config: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["compare", "data.csv", "--draws", "20", "--config", config][..], more].concat()
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_slice(&folder.read(name)).expect("JSON")
}

#[test]
fn a_learner_that_fails_is_left_out_and_resuming_gives_the_same_bytes() {
    let folder = folder();
    let learners = ["--learner", "poul,ridge,constant", "--seeds", "2"];
    let wrong = compare("wrong.toml", &[&learners[..], &["--json", "r.json"]].concat());
    let run = folder.run(&wrong);
    assert_eq!(run.code, Some(1), "{}", run.transcript());
    assert!(run.stdout.contains("FAILED: poul: "), "{}", run.stdout);
    assert!(
        run.stdout.contains("ridge") && run.stderr.contains("1 of 3 learners failed"),
        "{}",
        run.transcript()
    );
    let found = json(&folder, "r.json");
    assert_eq!(found["reference"], Value::Null);
    assert_eq!(found["learners"].as_array().map(Vec::len), Some(2));
    assert!(folder.path().join("r.json.partial").exists());

    let right = compare("poul.toml", &[&learners[..], &["--json", "r.json", "--resume"]].concat());
    let run = folder.run(&right);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(run.stderr.contains("ridge, seed 3408: 1 learners done before"), "{}", run.stderr);
    assert!(!folder.path().join("r.json.partial").exists());
    let fresh = [&learners[..], &["--json", "whole.json", "--threads", "1"]].concat();
    folder.succeeds(&compare("poul.toml", &fresh));
    assert!(folder.read("r.json") == folder.read("whole.json"));
    let found = json(&folder, "whole.json");
    assert_eq!(found["reference"], "poul");
    // Everything but the reference has a difference to it, with an interval.
    let auuc = &found["learners"][1]["cells"][0]["metrics"][0];
    assert_eq!(auuc["metric"], "auuc");
    assert!(auuc["difference"].is_number() && auuc["difference_interval"].is_array(), "{auuc}");
    assert_eq!(found["learners"][0]["cells"][0]["metrics"][0]["difference"], Value::Null);
    assert!(found["learners"][0]["validation_r_loss"].as_f64().is_some_and(|loss| loss > 0.0 && loss < 1.5));
}

#[test]
fn learners_share_an_outcome_model_and_score_as_they_do_alone() {
    let folder = folder();
    let short = "\n[learners.r-learner.training]\nfolds = 2\nepochs = 2\n";
    folder.write("shared.toml", format!("{SETTINGS}{short}"));
    let run = |learners: &str, json: &str| {
        let more = ["--learner", learners, "--reference", "r-learner", "--json", json];
        let run = folder.run(&compare("shared.toml", &more));
        assert_eq!(run.code, Some(0), "{}", run.transcript());
        run.stderr
    };
    let (both, alone) = (run("ridge,r-learner", "both.json"), run("r-learner", "alone.json"));
    assert!(
        both.contains("ridge: Outcome model, fold 2") && alone.contains("r-learner: Outcome model, fold 2")
    );
    assert!(!both.contains("r-learner: Outcome model"), "{both}");
    assert_eq!(json(&folder, "both.json")["learners"][1], json(&folder, "alone.json")["learners"][0]);
}

#[test]
fn a_learner_scores_as_it_does_when_fitted_and_evaluated() {
    let folder = folder();
    let all = experiment(600);
    let lines: Vec<&str> = all.lines().collect();
    let table = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    folder.write("train.csv", table(&lines[1..400])).write("test.csv", table(&lines[400..]));
    let mut truth = String::from("row,policy,effect_gmv\n");
    for row in 0..lines.len() - 400 {
        let effect: f64 = lines[400 + row].rsplit(',').next().expect("a truth").parse().expect("a number");
        truth += &format!("{row},T1,{effect}\n{row},T2,{}\n", 2.0 * effect);
    }
    folder.write("truth.csv", truth);
    let config = ["--config", "poul.toml"];
    folder.succeeds(
        &[&["fit", "train.csv", "--learner", "ridge", "--folds", "2", "--out", "m.poul"][..], &config]
            .concat(),
    );
    let fitted = folder.json(&["evaluate", "m.poul", "test.csv", "--draws", "0", "--json", "-"]);
    let args =
        ["compare", "train.csv", "--test", "test.csv", "--truth", "truth.csv", "--learner", "ridge,constant"];
    let more = ["--validation-share", "0", "--draws", "20", "--json", "-"];
    let compared = folder.json(&[&args[..], &more, &config].concat());
    assert_eq!(compared["validation_rows"], 0);
    for (index, policy) in ["T1", "T2"].into_iter().enumerate() {
        let cell = &compared["learners"][0]["cells"][index];
        assert_eq!((&cell["policy"], &cell["outcome"]), (&Value::from(policy), &Value::from("gmv")));
        let metric = |name: &str| {
            let metrics = cell["metrics"].as_array().expect("metrics");
            metrics.iter().find(|own| own["metric"] == name).map(|own| own["value"].clone())
        };
        for name in ["auuc", "qini", "mape", "wmape"] {
            assert_eq!(metric(name).as_ref(), Some(&fitted["results"][index][name]), "{policy} {name}");
        }
        assert!(metric("pehe").is_some_and(|pehe| pehe.as_f64() > Some(0.0)));
    }
}

#[test]
fn schedules_populations_and_later_rows() {
    let folder = folder();
    let args =
        ["--learner", "poul,constant", "--schedule", "1,0", "--schedule", "1,1", "--core", "city = 'Rome'"];
    let files =
        ["--time", "age", "--test-from", "45", "--json", "r.json", "--markdown", "r.md", "--latex", "r.tex"];
    folder.succeeds(&compare("poul.toml", &[&args[..], &files].concat()));
    let found = json(&folder, "r.json");
    let labels: Vec<&str> = found["learners"]
        .as_array()
        .expect("learners")
        .iter()
        .filter_map(|own| own["label"].as_str())
        .collect();
    assert_eq!(labels, ["poul (1, 0)", "poul (1, 1)", "constant"]);
    let is_selected = |index: usize| found["learners"][index]["selected"] == true;
    assert!(is_selected(0) != is_selected(1) && is_selected(2));
    let losses = [0, 1].map(|index| found["learners"][index]["validation_r_loss"].as_f64().expect("a loss"));
    assert_eq!(is_selected(0), losses[0] <= losses[1]);
    assert_eq!(found["populations"][1]["name"], "core");
    let older = experiment(600).lines().skip(1).filter(|line| line.split(',').nth(4) >= Some("45")).count();
    assert_eq!(found["test_rows"], older);
    let text = |name: &str| String::from_utf8(folder.read(name)).expect("UTF-8");
    let (markdown, latex) = (text("r.md"), text("r.tex"));
    assert!(
        markdown.contains("### gmv, by training schedule") && markdown.contains("| poul | (1, 1) |"),
        "{markdown}"
    );
    assert!(
        latex.contains("\\textbf{Panel A: gmv}") && latex.contains("\\multirow{2}{*}{poul} & $(1, 0)$"),
        "{latex}"
    );
}

#[test]
fn the_table_reads_well() {
    let folder = folder();
    let shown = folder.succeeds(&compare("poul.toml", &["--learner", "ridge,constant", "--quiet"]));
    snapshot("compare_table", &shown);
}

#[test]
fn mistakes_are_told_before_any_row_is_read() {
    let folder = folder();
    folder.fails("compare_unknown_learner", 2, &compare("poul.toml", &["--learner", "poul,rigde"]));
    let reference = ["--learner", "ridge,constant", "--reference", "poul"];
    folder.fails("compare_unknown_reference", 2, &compare("poul.toml", &reference));
    folder.fails("compare_schedule_without_core", 2, &compare("poul.toml", &["--schedule", "1,1"]));
    folder.fails("compare_no_time", 2, &compare("poul.toml", &["--test-from", "3"]));
    folder.write("bad.toml", format!("{SETTINGS}\n[learners.ridge.training.x]\n"));
    folder.fails("compare_wrong_settings", 2, &compare("bad.toml", &["--learner", "ridge"]));
    folder.write("bad.toml", format!("{SETTINGS}\n[compare]\nseed = 3\n"));
    folder.fails("compare_wrong_table", 3, &compare("bad.toml", &[]));
}

#[test]
fn tune_finds_the_better_settings_and_fit_takes_them() {
    let folder = folder();
    let space = "\n[tune]\n\"training.learning_rate\" = [1e-9, 1e-2]\n";
    let config = SETTINGS.replace("epochs = 2", "epochs = 12\npatience = 0");
    folder.write("search.toml", format!("{config}{space}"));
    let tune = ["tune", "data.csv", "--config", "search.toml", "--learner", "t-learner"];
    let shown = folder.succeeds(&[&tune[..], &["--out", "best.toml", "--json", "r.json"]].concat());
    assert!(shown.contains("2 *"), "{shown}");
    let found = json(&folder, "r.json");
    assert_eq!(found["best"], 2);
    let loss = |index: usize| found["trials"][index]["r_loss"].as_f64().expect("a loss");
    assert!(loss(1) < loss(0), "{found}");
    folder.succeeds(&["fit", "data.csv", "--config", "best.toml", "--out", "m.poul"]);
    let manifest = folder.json(&["show", "m.poul", "--json"]);
    assert_eq!(manifest["learner"], "t-learner");
    let rate = manifest["settings"]["training"]["learning_rate"].as_f64().expect("a rate");
    assert!((rate - 1e-2).abs() < 1e-6, "{rate}");
    assert_eq!(manifest["settings"]["training"]["epochs"], 12);
    // Halving on one thread, into another folder: the same winner, and paths that still lead to the policies.
    std::fs::create_dir(folder.path().join("out")).expect("a folder");
    let more =
        ["--halving", "--resource", "epochs", "--threads", "1", "--out", "out/best.toml", "--json", "-"];
    assert_eq!(folder.json(&[&tune[..], &more].concat())["best"], 2);
    folder.succeeds(&["check", "data.csv", "--config", "out/best.toml", "--permutations", "19"]);
}

#[test]
fn tune_goes_on_and_tells_mistakes() {
    let folder = folder();
    let tune = ["tune", "data.csv", "--out", "best.toml", "--config"];
    let write = |space: &str| {
        folder.write("search.toml", format!("{SETTINGS}{SHORT}\n[tune]\n{space}\n"));
    };
    write("\"model.loss\" = [\"logistic\"]");
    let run = folder.run(&[&tune[..], &["search.toml"]].concat());
    assert_eq!(run.code, Some(1), "{}", run.transcript());
    assert!(run.stderr.contains("every trial failed") && folder.path().join("best.toml.partial").exists());
    write("\"model.loss\" = [\"logistic\", \"squared\"]");
    let run = folder.run(&[&tune[..], &["search.toml", "--resume"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(!folder.path().join("best.toml.partial").exists());
    write("\"model.dropout\" = [0.1, 2]");
    folder.fails("tune_point_out_of_range", 2, &[&tune[..], &["search.toml"]].concat());
    write("dropout = [0.1]");
    folder.fails("tune_wrong_space", 2, &[&tune[..], &["search.toml"]].concat());
    let preset = ["poul.toml", "--preset", "paper-gvm"];
    folder.fails("tune_unknown_preset", 2, &[&tune[..], &preset].concat());
}
