//! Fits that are killed or interrupted and go on; phases, presets and warm starts from the command line.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Folder, POLICIES, experiment};

const FIT: [&str; 17] = [
    "fit",
    "data.csv",
    "--policies",
    "policies.toml",
    "--outcome",
    "gmv",
    "--id",
    "user",
    "--exclude",
    "tau*,truth,household,w,cost",
    "--folds",
    "2",
    "--members",
    "2",
    "--epochs",
    "6",
    "--out",
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(600)).write("policies.toml", POLICIES);
    folder
}

fn fit<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&FIT[..], &[out], more].concat()
}

/// Starts `poul` and waits until its checkpoint holds so many finished networks.
fn started(folder: &Folder, args: &[&str], n_done: usize) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_poul"))
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("poul starts");
    let start = Instant::now();
    let done = || folder.listing().iter().filter(|name| name.ends_with(".done.part")).count();
    while done() < n_done && start.elapsed() < Duration::from_secs(60) {
        if child.try_wait().expect("a child").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn a_killed_fit_goes_on_to_the_same_file() {
    let folder = folder();
    folder.succeeds(&fit("whole.poul", &[]));
    for (n_done, more) in [(1, &[][..]), (2, &["--resume"])] {
        let mut child = started(&folder, &fit("m.poul", more), n_done);
        child.kill().expect("a kill");
        assert!(!child.wait().expect("an end").success());
    }
    assert!(!folder.path().join("m.poul").exists());
    let run = folder.run(&fit("m.poul", &["--resume", "--threads", "1"]));
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(run.stderr.contains("done before, from the checkpoint"), "{}", run.stderr);
    assert!(folder.read("m.poul") == folder.read("whole.poul"));
    assert_eq!(folder.listing(), ["data.csv", "m.poul", "policies.toml", "whole.poul"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    let folder = folder();
    let child = started(&folder, &fit("m.poul", &[]), 1);
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let output = child.wait_with_output().expect("an end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("Ctrl-C again stops at once"), "{stderr}");
    assert!(stderr.contains("error: m.poul.partial: stopped on request\n"), "{stderr}");
    let command = fit("m.poul", &["--resume"])
        .join(" ")
        .replace("tau*,truth,household,w,cost", "'tau*,truth,household,w,cost'");
    assert!(stderr.contains(&format!("hint: resume with: poul {command}\n")), "{stderr}");
    let other = folder.run(&fit("m.poul", &["--resume", "--seed", "1"]));
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("another fit: seed (3407 there, 1 here)"), "{}", other.stderr);
    folder.succeeds(&fit("m.poul", &["--resume"]));
    let again = folder.run(&fit("m.poul", &["--resume"]));
    assert!(again.stderr.contains("warning: there is no checkpoint m.poul.partial"), "{}", again.stderr);
}

#[test]
fn without_resume_an_old_checkpoint_is_told_and_replaced() {
    let folder = folder();
    let mut child = started(&folder, &fit("m.poul", &[]), 1);
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let run = folder.run(&fit("m.poul", &[]));
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(
        run.stderr.contains("warning: m.poul.partial is left from a fit that was stopped"),
        "{}",
        run.stderr
    );
    assert!(!folder.path().join("m.poul.partial").exists());
}

#[test]
fn phases_presets_and_warm_starts() {
    let folder = folder();
    folder.write(
        "poul.toml",
        "[training]\nphases = [{ epochs = 2 }, { population = 'age > 40', epochs = 1 }]\n",
    );
    folder.succeeds(&fit("a.poul", &["--config", "poul.toml", "--preset", "paper"]));
    let shown = folder.succeeds(&["show", "a.poul"]);
    assert!(shown.contains("\npreset paper\n"), "{shown}");
    assert!(shown.contains("effects, phase 2"), "{shown}");
    folder.fails("fit_unknown_preset", 2, &fit("b.poul", &["--preset", "papre"]));
    folder.write("wrong.toml", "[training]\nphases = [{ population = 'agee > 40', epochs = 1 }]\n");
    folder.fails("fit_phase_column", 2, &fit("b.poul", &["--config", "wrong.toml"]));
    folder.write("none.toml", "[training]\nphases = [{ population = 'age > 400', epochs = 1 }]\n");
    folder.fails("fit_phase_empty", 3, &fit("b.poul", &["--config", "none.toml"]));
    // Roles, policies and settings are those of the saved model.
    let all = experiment(900);
    let rows = all.lines().enumerate().filter(|(row, _)| *row == 0 || *row > 600).map(|(_, line)| line);
    let data: Vec<&str> = rows.collect();
    folder.write("new.csv", data.join("\n"));
    folder.succeeds(&["fit", "new.csv", "--warm-start", "a.poul", "--out", "b.poul"]);
    let manifest = folder.json(&["show", "b.poul", "--json"]);
    assert_eq!(manifest["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(manifest["settings"]["model"]["members"], 2);
    assert_eq!(
        manifest["policy_rows"]
            .as_array()
            .map(|rows| rows.iter().filter_map(serde_json::Value::as_u64).sum()),
        Some(900_u64)
    );
    let other = ["fit", "new.csv", "--warm-start", "a.poul", "--out", "c.poul"];
    folder.fails("fit_warm_start_outcome", 2, &[&other[..], &["--outcome", "cost"]].concat());
    folder.fails("fit_warm_start_learner", 2, &[&other[..], &["--learner", "ridge"]].concat());
}
