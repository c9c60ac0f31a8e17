//! The pages of the book are run: files in them are written, commands are typed, and what comes back must be there.
//!
//! A fence with a name after its language (```` ```toml policies.toml ````) is a file; a `console` fence holds commands
//! after `$ ` and what they print, figures about (see `close`). `POUL_BOOK=update` writes what they print into the pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::close::is_close;
use crate::harness::{Folder, without_time};
use crate::real_data::shared_data;

/// A public data set that a page uses; its commands are left out where the file is not there.
const PUBLIC: &str = "hillstrom.csv.gz";

#[test]
fn policies_page() {
    check_page("policies.md");
}

#[test]
fn data_page() {
    check_page("data.md");
}

#[test]
fn check_page_of_the_book() {
    check_page("check.md");
}

#[test]
fn metrics_page() {
    check_page("metrics.md");
}

#[test]
fn report_page() {
    check_page("report.md");
}

#[test]
fn uncertainty_page() {
    check_page("uncertainty.md");
}

#[test]
fn compare_page() {
    check_page("compare.md");
}

#[test]
fn certificates_page() {
    check_page("certificates.md");
}

#[test]
fn decide_page() {
    check_page("decide.md");
}

#[test]
fn design_page() {
    check_page("design.md");
}

#[test]
fn links_lead_somewhere() {
    for entry in std::fs::read_dir(book()).expect("the book").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.starts_with("http") {
                assert!(book().join(target).exists(), "{}: {link}", entry.path().display());
            }
        }
    }
}

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book")
}

fn check_page(name: &str) {
    let path = book().join(name);
    let text = std::fs::read_to_string(&path).expect("a page");
    let folder = Folder::new();
    let public = shared_data().map(|data| data.join(PUBLIC)).filter(|path| path.exists());
    if let Some(public) = &public {
        std::fs::copy(public, folder.path().join(PUBLIC)).expect("a copy");
    }
    let mut found = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        found.push_str(&format!("{line}\n"));
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let whole = block.iter().map(|line| format!("{line}\n")).collect::<String>();
        match info.split_once(' ') {
            _ if info == "console" => {
                let skipped = public.is_none() && whole.contains(PUBLIC);
                if skipped {
                    eprintln!("SKIPPED: {PUBLIC} is not in ../shared/data: {name}");
                }
                found.push_str(&if skipped { whole } else { typed(&folder, &block) });
            }
            Some((_, file)) => {
                folder.write(file, &whole);
                found.push_str(&whole);
            }
            None => found.push_str(&whole),
        }
        found.push_str("```\n");
    }
    if std::env::var_os("POUL_BOOK").is_some_and(|value| value == "update") {
        std::fs::write(&path, &found).expect("a written page");
        return;
    }
    let stable = |text: &str| text.lines().map(|line| without_time(line) + "\n").collect::<String>();
    let (found, text) = (stable(&found), stable(&text));
    for (found, text) in found.lines().zip(text.lines()).filter(|(found, text)| !is_close(found, text)) {
        assert_eq!(found, text, "{name}: run with POUL_BOOK=update after a deliberate change");
    }
    assert_eq!(found.lines().count(), text.lines().count(), "{name}: POUL_BOOK=update");
}

/// What a terminal shows when the commands of a block are typed.
fn typed(folder: &Folder, block: &[&str]) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_poul")).parent().expect("a folder").to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).expect("a path");
    let mut shown = String::new();
    for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env_remove("RUST_BACKTRACE")
            .output()
            .expect("a shell");
        shown.push_str(&format!("$ {command}\n{}", String::from_utf8_lossy(&output.stdout)));
    }
    shown
}
