//! Every command explains itself, with examples.

use crate::harness::Folder;

#[test]
fn every_command_has_help_with_examples() {
    let folder = Folder::new();
    for command in [
        &["quickstart"][..],
        &["simulate"],
        &["check"],
        &["fit"],
        &["effect"],
        &["evaluate"],
        &["allocate"],
        &["compare"],
        &["tune"],
        &["design"],
        &["show"],
        &["policy", "show"],
        &["policy", "diff"],
        &["policy", "distance"],
        &["policy", "nearest"],
        &["policy", "certify"],
        &["schema"],
        &["completions"],
        &["man"],
    ] {
        let run = folder.run(&[command, &["--help"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.contains("Example"), "{}", run.stdout);
        assert!(run.stdout.contains(&format!("\n  poul {} ", command.join(" "))), "{}", run.stdout);
        run.snapshot(&format!("help_{}", command.join("_")));
    }
    for (name, command) in [("help", &[][..]), ("help_policy", &["policy"])] {
        let run = folder.run(&[command, &["--help"]].concat());
        assert_eq!(run.code, Some(0));
        run.snapshot(name);
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let version = Folder::new().succeeds(&["--version"]);
    assert_eq!(version.trim(), format!("poul {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_commands_in_help_are_accepted() {
    // Examples name files that are not there: they must fail on those, not on a flag.
    let folder = Folder::new();
    for command in [
        &["check"][..],
        &["fit"],
        &["effect"],
        &["evaluate"],
        &["allocate"],
        &["compare"],
        &["tune"],
        &["design"],
        &["show"],
        &["policy", "show"],
        &["policy", "nearest"],
        &["policy", "certify"],
    ] {
        let help = folder.succeeds(&[command, &["--help"]].concat());
        let examples = help.split("Example").last().expect("examples").lines().skip(1);
        let mut n_examples = 0;
        for line in examples.filter(|line| !line.is_empty()) {
            let line = line.strip_prefix("  poul ").unwrap_or_else(|| panic!("a wrapped example: {line}"));
            // Words in quotes stay whole.
            let parts = line.split('\'').enumerate();
            let words = parts.flat_map(|(part, text)| match part % 2 {
                0 => text.split_whitespace().collect(),
                _ => vec![text],
            });
            let run = folder.run(&words.collect::<Vec<_>>());
            assert_eq!(run.code, Some(3), "{}", run.transcript());
            assert!(run.stderr.contains("No such file"), "{}", run.transcript());
            n_examples += 1;
        }
        assert!(n_examples > 0, "{help}");
    }
}
