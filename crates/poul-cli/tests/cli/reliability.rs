//! Fights over one file, signals, streams and devices, tables that change, and inputs that are too large.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Folder, POLICIES, experiment, gzip};

const FIT: [&str; 16] = [
    "fit",
    "data.csv",
    "--policies",
    "policies.toml",
    "--outcome",
    "gmv",
    "--exclude",
    "user,tau*,truth,household,w,cost",
    "--folds",
    "2",
    "--members",
    "2",
    "--epochs",
    "6",
    "--out",
    "m.poul",
];
const CHECK: [&str; 6] = ["check", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(600)).write("policies.toml", POLICIES);
    folder
}

fn spawned(folder: &Folder, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_poul"))
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("poul starts")
}

/// Waits until the checkpoint of `m.poul` holds so many finished networks.
fn wait_for(folder: &Folder, child: &mut Child, n_done: usize) {
    let start = Instant::now();
    let done = || folder.listing().iter().filter(|name| name.ends_with(".done.part")).count();
    while done() < n_done && start.elapsed() < Duration::from_secs(120) {
        if child.try_wait().expect("a child").is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn of_two_fits_of_one_model_the_second_is_refused_and_the_first_is_whole() {
    let folder = folder();
    folder.write("other.csv", experiment(500));
    folder.succeeds(&[&FIT[..15], &["alone.poul"]].concat());
    let mut first = spawned(&folder, &FIT);
    wait_for(&folder, &mut first, 1);
    let mut args = FIT;
    args[1] = "other.csv";
    let second = folder.run(&args);
    assert_eq!(second.code, Some(2), "{}", second.transcript());
    let holder = format!("m.poul: another command is working on it (process {})", first.id());
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    let first = first.wait_with_output().expect("an end");
    assert!(first.status.success(), "{}", said(&first));
    assert!(folder.read("m.poul") == folder.read("alone.poul"));
    let left = ["alone.poul", "data.csv", "m.poul", "other.csv", "policies.toml"];
    assert_eq!(folder.listing(), left);
}

/// Every command that writes, with what it holds.
const WRITERS: [(&str, &str); 13] = [
    ("simulate --rows 100 --test-rows 100 --out result", "result/"),
    ("quickstart --rows 100 --out result", "result/"),
    ("man --out result", "result/"),
    ("check data.csv --policies policies.toml --outcome gmv --json result.json", "result.json"),
    ("effect m.poul data.csv --policy T1 --out result.csv", "result.csv"),
    ("effect m.poul --components --out result.csv", "result.csv"),
    ("evaluate m.poul data.csv --draws 0 --json result.json", "result.json"),
    ("evaluate m.poul data.csv --draws 0 --report result.html", "result.html"),
    ("allocate m.poul data.csv --maximize gmv --force --out result.csv", "result.csv"),
    ("allocate m.poul data.csv --maximize gmv --force --out a.csv --report result.html", "result.html"),
    ("design m.poul --maximize gmv --out result.toml", "result.toml"),
    (
        "compare data.csv --policies policies.toml --outcome gmv --learner constant --markdown result.md",
        "result.md",
    ),
    ("tune data.csv --policies policies.toml --outcome gmv --learner ridge --out result.toml", "result.toml"),
];

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn every_command_that_writes_keeps_others_out_and_is_kept_out() {
    let folder = folder();
    folder.write("result.json", "before");
    let before = folder.listing();
    for (line, result) in WRITERS {
        let path = folder.path().join(result);
        let lock = match result.ends_with('/') {
            true => poul::OutputLock::hold_folder(&path),
            false => poul::OutputLock::hold(&path),
        };
        let lock = lock.expect("nobody else is there");
        let run = folder.run(&words(line));
        assert_eq!(run.code, Some(2), "{}", run.transcript());
        let name = result.trim_end_matches('/');
        let wanted = format!("{name}: another command is working on it (process {})", std::process::id());
        assert!(run.stderr.contains(&wanted), "{}", run.transcript());
        drop(lock);
        assert_eq!(folder.listing(), before, "{line}");
    }
    assert_eq!(folder.read("result.json"), b"before");
}

#[test]
fn the_locks_of_the_dead_hold_nobody_up() {
    let folder = folder();
    folder.succeeds(
        &[
            &FIT[..6],
            &["--learner", "ridge", "--exclude", "user,tau*,truth,household,w,cost", "--out", "m.poul"],
        ]
        .concat(),
    );
    let done = [
        "check data.csv --policies policies.toml --outcome gmv --json check.json",
        "effect m.poul data.csv --policy T1 --out effect.csv",
        "evaluate m.poul data.csv --draws 0 --json evaluate.json --report evaluate.html",
        "simulate --rows 100 --test-rows 100 --out world",
    ];
    for line in done {
        let named = words(line);
        let of_file = |flag: &str| named.iter().position(|word| *word == flag).map(|place| named[place + 1]);
        for name in ["--json", "--out", "--report"].iter().filter_map(|flag| of_file(flag)) {
            let lock = match name {
                "world" => "world/.lock".to_owned(),
                file => format!("{file}.lock"),
            };
            folder.write(&lock, "process 4294967295\n");
        }
        folder.succeeds(&named);
    }
    assert!(!folder.listing().iter().any(|name| name.ends_with(".lock")), "{:?}", folder.listing());
    assert!(folder.path().join("world/train.parquet").is_file());
}

#[test]
fn two_results_of_one_command_do_not_go_to_one_file() {
    let folder = folder();
    let line = "evaluate data.csv --effects tau --outcome gmv --draws 0 --json out --report ./out";
    let run = folder.run(&words(line));
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(run.stderr.contains("out: this command is writing there already"), "{}", run.stderr);
    assert_eq!(folder.listing(), ["data.csv", "policies.toml"]);
}

#[test]
fn two_fits_that_were_killed_do_not_go_on_from_each_other() {
    let folder = folder();
    folder.write("other.csv", experiment(500));
    folder.succeeds(&[&FIT[..15], &["alone.poul"]].concat());
    let mut other = FIT;
    other[1] = "other.csv";
    let work = || std::fs::read(folder.path().join("m.poul.partial/work.json")).ok();
    for args in [&FIT, &other] {
        let (before, start) = (work(), Instant::now());
        let mut child = spawned(&folder, args);
        // Until it has written its own work down, in the place of what the first left.
        while (work().is_none() || work() == before) && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("a kill");
        child.wait().expect("an end");
    }
    // The lock of the dead holds nobody up, and what they left is of the second alone.
    let run = folder.run(&[&FIT[..], &["--resume"]].concat());
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(run.stderr.contains("the checkpoint is of another fit: data ("), "{}", run.stderr);
    folder.succeeds(&FIT);
    assert!(folder.read("m.poul") == folder.read("alone.poul"));
}

#[cfg(unix)]
#[test]
fn the_system_that_ends_programs_is_heard_as_ctrl_c_is() {
    let folder = folder();
    folder.succeeds(&[&FIT[..15], &["alone.poul"]].concat());
    for (signal, more) in [("-TERM", &[][..]), ("-HUP", &["--resume"])] {
        let mut child = spawned(&folder, &[&FIT[..], more].concat());
        // One network more than there are.
        let before = folder.listing().iter().filter(|name| name.ends_with(".done.part")).count();
        wait_for(&folder, &mut child, before + 1);
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(130), "{signal}: {}", said(&output));
        assert!(said(&output).contains("resume with: poul fit"), "{signal}: {}", said(&output));
    }
    folder.succeeds(&[&FIT[..], &["--resume"]].concat());
    assert!(folder.read("m.poul") == folder.read("alone.poul"));
}

#[cfg(unix)]
#[test]
fn text_streams_and_devices_stay_what_they_are() {
    let folder = folder();
    let json = folder.json(&[&CHECK[..], &["--json", "-"]].concat());
    assert_eq!(json["rows"], 600);
    let same = folder.json(&[&CHECK[..], &["--json", "/dev/stdout"]].concat());
    assert_eq!(json, same);
    let evaluate = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--draws", "0"];
    for target in ["-", "/dev/stdout"] {
        let page = folder.succeeds(&[&evaluate[..], &["--report", target]].concat());
        assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{target}");
        assert!(page.trim_end().ends_with("</html>"), "{target}: a table follows the page");
    }
    let both = folder.run(&[&evaluate[..], &["--report", "-", "--json", "-"]].concat());
    assert_eq!(both.code, Some(2), "{}", both.transcript());
    assert!(both.stderr.contains("cannot both go to standard output"), "{}", both.stderr);

    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    std::os::unix::fs::symlink("/dev/null", folder.path().join("link")).expect("a link");
    let before = folder.listing();
    let fit = |out| [&FIT[..15], &[out]].concat();
    let refused = [
        ([&CHECK[..], &["--json", "/dev/null"]].concat(), 4),
        ([&CHECK[..], &["--json", "fifo"]].concat(), 4),
        ([&evaluate[..], &["--report", "link"]].concat(), 4),
        (fit("/dev/null"), 4),
        (fit("fifo"), 4),
        (fit("-"), 2),
        (fit("/dev/stdout"), 2),
    ];
    for (args, code) in refused {
        let run = folder.run(&args);
        assert_eq!(run.code, Some(code), "{}", run.transcript());
        assert_eq!(folder.listing(), before, "{}", run.transcript());
    }
    use std::os::unix::fs::FileTypeExt;
    let kind = |path: &std::path::Path| std::fs::symlink_metadata(path).expect("it is there").file_type();
    assert!(kind(&fifo).is_fifo() && kind(&folder.path().join("link")).is_symlink());
    assert!(kind(std::path::Path::new("/dev/null")).is_char_device());
    assert!(kind(std::path::Path::new("/dev/stdout")).is_symlink());
}

#[test]
fn a_table_that_is_deleted_or_replaced_while_effects_are_learned_does_not_matter_and_is_recorded_as_it_was() {
    let folder = folder();
    folder.succeeds(&[&FIT[..15], &["alone.poul"]].concat());
    let mut child = spawned(&folder, &FIT);
    wait_for(&folder, &mut child, 1);
    folder.write("data.csv", experiment(400));
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", said(&output));
    // Every row was read before: the model, and the fingerprint in it, are of those.
    assert!(folder.read("m.poul") == folder.read("alone.poul"));
    folder.write("data.csv", experiment(600));
    let mut child = spawned(&folder, &[&FIT[..15], &["n.poul"]].concat());
    wait_for(&folder, &mut child, 1);
    std::fs::remove_file(folder.path().join("data.csv")).expect("it is there");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", said(&output));
    assert!(folder.read("n.poul") == folder.read("alone.poul"));
}

#[cfg(unix)]
#[test]
fn file_names_need_not_be_text() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    let folder = folder();
    let named = |bytes: &[u8]| folder.path().join(OsStr::from_bytes(bytes));
    std::fs::copy(folder.path().join("data.csv"), named(b"d\xff[a].csv")).expect("a copy");
    let run = |args: &[&[u8]]| {
        let args: Vec<OsString> = args.iter().map(|arg| OsStr::from_bytes(arg).to_owned()).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_poul")).args(args).current_dir(folder.path()).output();
        let output = output.expect("poul runs");
        assert!(output.status.success(), "{}", said(&output));
        output
    };
    let roles: [&[u8]; 6] = [
        b"--policies",
        b"policies.toml",
        b"--outcome",
        b"gmv",
        b"--exclude",
        b"user,tau*,truth,household,w,cost",
    ];
    let fit: [&[u8]; 6] = [b"fit", b"d\xff[a].csv", b"--learner", b"ridge", b"--out", b"m\xfe.poul"];
    run(&[&fit[..], &roles].concat());
    assert!(named(b"m\xfe.poul").is_file());
    run(&[b"effect", b"m\xfe.poul", b"d\xff[a].csv", b"--out", b"e\xfd.csv"]);
    assert!(named(b"e\xfd.csv").is_file());
    run(&[
        b"check",
        b"d\xff[a].csv",
        b"--outcome",
        b"gmv",
        b"--policies",
        b"policies.toml",
        b"--json",
        b"p\xfc.json",
    ]);
    assert!(named(b"p\xfc.json").is_file());
    run(&[b"show", b"m\xfe.poul"]);
}

#[test]
fn more_threads_than_are_of_use_are_not_started() {
    let folder = folder();
    let start = Instant::now();
    let run = folder.run(&[&CHECK[..], &["--threads", "100000", "--json", "-"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("100000 threads are more than are of use here"), "{}", run.stderr);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(run.stdout, folder.succeeds(&[&CHECK[..], &["--threads", "1", "--json", "-"]].concat()));
}

#[test]
fn a_cell_without_end_is_refused_with_its_line() {
    let folder = folder();
    let mut text = b"policy,gmv,note\ncontrol,1,a\nT1,2,\"".to_vec();
    text.resize(text.len() + (70 << 20), b'x');
    folder.write("data.csv", &text).write("packed.csv.gz", gzip(&text));
    for table in ["data.csv", "packed.csv.gz"] {
        let run = folder.run(&["check", table, "--outcome", "gmv", "--policies", "policies.toml"]);
        assert_eq!(run.code, Some(3), "{}", run.transcript());
        let wanted = format!("{table}: line 3: the row that begins here is longer than 64 MiB");
        assert!(run.stderr.contains(&wanted), "{}", run.stderr);
        assert!(
            run.stderr.contains("hint: a quote that is opened there may never be closed"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn what_a_killed_command_left_beside_an_output_is_removed_by_the_next() {
    let folder = folder();
    folder.write(".poul-dead01", "half a file");
    folder.succeeds(&[&CHECK[..], &["--json", "profile.json"]].concat());
    assert_eq!(folder.listing(), ["data.csv", "policies.toml", "profile.json"]);
}

#[test]
fn an_arm_of_one_row_is_named() {
    let folder = folder();
    let text = experiment(600);
    let is_first = |row: usize| text.lines().position(|line| line.contains(",T2,")) == Some(row);
    let rows = text.lines().enumerate().filter(|(row, line)| !line.contains(",T2,") || is_first(*row));
    let rows: Vec<&str> = rows.map(|(_, line)| line).collect();
    folder.write("data.csv", rows.join("\n"));
    let run = folder.run(
        &[&FIT[..], &["--learner", "ridge"]]
            .concat()
            .into_iter()
            .filter(|arg| !["--folds", "--members", "--epochs", "2", "6"].contains(arg))
            .collect::<Vec<_>>(),
    );
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(
        run.stderr.contains("warning: 1 policy was run on fewer than 5 rows: `T2` (1)"),
        "{}",
        run.stderr
    );
}
