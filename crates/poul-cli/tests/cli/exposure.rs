//! Each row's own exposure on the command line: fitting, scoring, certifying, and what can be wrong.

use crate::harness::Folder;

/// A small delivery experiment.
fn delivery() -> Folder {
    let folder = Folder::new();
    let simulate =
        ["simulate", "--scenario", "delivery", "--out", ".", "--rows", "900", "--test-rows", "120"];
    folder.succeeds(&[&simulate[..], &["--features", "30", "--policies", "12"]].concat());
    folder
}

fn fit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fit = ["fit", "train.parquet", "--policies", "policies.toml", "--outcome", "spend", "--members", "2"];
    let quick = ["--epochs", "3", "--folds", "2", "--out", "m.poul"];
    [&fit[..], &quick, more].concat()
}

#[test]
fn a_model_with_exposure_is_fitted_scored_and_shown() {
    let folder = delivery();
    folder.succeeds(&fit(&["--exposure", "trips_*"]));
    folder.succeeds(&[
        "effect",
        "m.poul",
        "test.parquet",
        "--all",
        "--interval",
        "0.9",
        "--allow-unseen",
        "--out",
        "e.csv",
    ]);
    let effects = String::from_utf8(folder.read("e.csv")).expect("text");
    assert_eq!(effects.lines().count(), 1 + 120 * 11, "a row for each row and policy");
    let shown = folder.succeeds(&["show", "m.poul"]);
    assert!(shown.contains("exposure  of each row, 24 columns, as share"), "{shown}");
    let evaluated = folder.succeeds(&["evaluate", "m.poul", "test.parquet", "--draws", "0"]);
    assert!(evaluated.contains("spend"), "{evaluated}");
    let certified = folder.succeeds(&["policy", "certify", "m.poul", "P05"]);
    assert!(certified.contains("P05"), "{certified}");
    // The same by a settings file.
    folder.write("poul.toml", "[data]\nexposure = \"trips_*\"\nexposure-scale = \"total\"\n");
    folder.succeeds(&fit(&["--config", "poul.toml"]));
    assert!(folder.succeeds(&["show", "m.poul"]).contains("24 columns, as total"));
    // A rival says that it weighs contexts the same for all.
    let data = ["fit", "train.parquet", "--policies", "policies.toml", "--outcome", "spend"];
    let rival = ["--exposure", "trips_*", "--learner", "constant", "--out", "c.poul"];
    let run = folder.run(&[&data[..], &rival].concat());
    assert!(run.stderr.contains("`constant` weighs contexts the same for every row"), "{}", run.stderr);
    let compare =
        ["compare", "train.parquet", "--policies", "policies.toml", "--outcome", "spend", "--draws", "0"];
    let learners = ["--learner", "poul-linear", "--learner", "ridge", "--exposure", "trips_*"];
    let run = folder.run(&[&compare[..], &learners].concat());
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(run.transcript().contains("`ridge` weighs contexts the same"), "{}", run.transcript());
}

#[test]
fn what_is_wrong_is_told_before_training() {
    let folder = delivery();
    for (more, what) in [
        (&["--exposure", "visits_*"][..], "no column matches `visits_*`"),
        (&["--exposure", "north_lunch=trips_north_lunch"], "have no exposure column"),
        (&["--exposure", "nowhere=trips_north_lunch"], "unknown context `nowhere`"),
        (&["--exposure", "north_lunch=trip"], "there is no column `trip`"),
        (&["--exposure", "trips_*", "--exposure", "a=b"], "stands beside other columns"),
    ] {
        let run = folder.run(&fit(more));
        assert!(run.code == Some(2) || run.code == Some(3), "{}", run.transcript());
        assert!(run.stderr.contains(what), "{}", run.transcript());
    }
    let check = ["check", "train.parquet", "--policies", "policies.toml", "--outcome", "spend"];
    let run = folder.run(&[&check[..], &["--exposure", "north_lunch=trips_north_lunch"]].concat());
    assert!(run.stderr.contains("have no exposure column"), "{}", run.transcript());
    folder.succeeds(&fit(&["--exposure", "trips_*"]));
    let warm = ["fit", "train.parquet", "--warm-start", "m.poul", "--out", "n.poul"];
    let run = folder.run(&warm);
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(run.stderr.contains("cannot be trained on yet"), "{}", run.transcript());
}
