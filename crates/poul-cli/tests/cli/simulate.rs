//! `poul simulate` and `poul quickstart`: files that other commands take as they are.

use std::fs;
use std::path::Path;

use poul::simulate::scenarios;

use crate::harness::Folder;

#[test]
fn every_scenario_is_named_where_people_look() {
    let help = Folder::new().succeeds(&["simulate", "--help"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "python/poul/_simulation.py"] {
        let page = fs::read_to_string(root.join(page)).expect("a page");
        for (scenario, _) in scenarios() {
            assert!(help.contains(scenario), "{scenario}: {help}");
            assert!(page.contains(&format!("`{scenario}`")), "{scenario}");
        }
    }
}

#[test]
fn every_scenario_passes_the_check_that_its_readme_shows() {
    let folder = Folder::new();
    for (scenario, _) in scenarios() {
        let simulate = ["simulate", "--scenario", scenario, "--out", scenario, "--rows", "2000"];
        let more = ["--test-rows", "500", "--features", "30"];
        assert_eq!(folder.succeeds(&[&simulate[..], &more].concat()), "", "stdout is for data");
        let readme = String::from_utf8(folder.read(&format!("{scenario}/README.md"))).expect("UTF-8");
        let command = readme.lines().find(|line| line.starts_with("poul check ")).expect("a check to try");
        // No word of these has a space in it: a shell takes the quotes off.
        let args: Vec<&str> = command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
        let run = folder.run_in(scenario, &args);
        assert_eq!(run.code, Some(0), "{}", run.transcript());
        assert!(run.stdout.starts_with("2,000 rows"), "{}", run.transcript());
        assert!(!run.stdout.contains("PROBLEM"), "{}", run.transcript());

        let run = folder.run_in(scenario, &[&args[..], &["--json", "-"]].concat());
        let profile: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(profile["rows"], 2000);
        let arms = profile["arms"].as_array().expect("arms");
        assert_eq!(arms.iter().filter_map(|arm| arm["rows"].as_u64()).sum::<u64>(), 2000);
        assert!(profile["balance"]["p_value"].as_f64().is_some_and(|p| p > 0.0 && p <= 1.0));
        assert!(profile["atoms"].as_array().is_some_and(|atoms| !atoms.is_empty()));
        assert_eq!(profile["control"], "control");
    }
}

#[test]
fn a_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = Folder::new();
    let simulate = |out, more: &[&str]| {
        let args = ["simulate", "--rows", "3000", "--features", "30", "--out", out];
        folder.succeeds(&[&args[..], more].concat());
    };
    simulate("one", &["--threads", "1"]);
    simulate("two", &["--threads", "2"]);
    simulate("other", &["--seed", "8"]);
    for file in ["train.parquet", "test.parquet", "truth.parquet", "policies.toml", "README.md"] {
        let read = |out| folder.read(&format!("{out}/{file}"));
        assert!(read("one") == read("two"), "{file} depends on the number of threads");
        assert!(
            read("one") != read("other") || file == "policies.toml",
            "{file} does not depend on the seed"
        );
    }
}

#[test]
fn quiet_is_quiet() {
    let folder = Folder::new();
    let run = folder.run(&["simulate", "--rows", "200", "--out", "rides", "--quiet"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

/// The words of a command, quotes taken off.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(part, text)| match part % 2 {
        0 => text.split_whitespace().collect(),
        _ => vec![text],
    });
    words.collect()
}

#[test]
fn quickstart_prints_commands_that_do_what_it_did() {
    let (tour, typed) = (Folder::new(), Folder::new());
    let run = tour.run(&["quickstart", "--rows", "250", "--out", "my tour", "--threads", "1", "--seed", "5"]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let commands: Vec<&str> = run.stderr.lines().filter_map(|line| line.strip_prefix("$ poul ")).collect();
    let verbs: Vec<&str> = commands.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verbs, ["simulate", "check", "fit", "evaluate"]);
    let stdout: String = commands.iter().map(|line| typed.succeeds(&words(line))).collect();
    assert!(run.stdout.starts_with(&stdout), "{stdout}\n{}", run.stdout);
    assert_eq!(tour.listing(), typed.listing());
    for file in ["model.poul", "metrics.json", "test.parquet", "report.html"] {
        let [by_tour, by_hand] = [&tour, &typed].map(|folder| folder.read(&format!("my tour/{file}")));
        assert!(by_tour == by_hand, "{file} is not what the commands give");
    }

    let rest = &run.stdout[stdout.len()..];
    let places = [
        "outcome  policy",
        "\ngmv      T1 ",
        "\ncost     T2 ",
        "\nNext:\n",
        "README.md explains",
        "report.html",
    ]
    .map(|text| rest.find(text).unwrap_or_else(|| panic!("{text}: {rest}")));
    assert!(places.is_sorted());
    assert_eq!(rest.lines().last(), Some("Open the report: my tour/report.html"));
    let next: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("  poul ")).collect();
    assert_eq!(next.len(), 4, "{rest}");
    for line in next {
        let run = typed.run(&words(line));
        assert_eq!(run.code, Some(0), "{}", run.transcript());
    }
    assert!(typed.listing().contains(&"my tour/effects.parquet".to_string()));
}
