//! `poul simulate` and `poul quickstart`: files that other commands take as they are.

use crate::harness::Folder;

const SCENARIOS: [&str; 4] = ["ride-hailing", "long-tail", "stratified", "observational"];

#[test]
fn every_scenario_passes_the_check_that_its_readme_shows() {
    let folder = Folder::new();
    for scenario in SCENARIOS {
        let simulate = ["simulate", "--scenario", scenario, "--out", scenario, "--rows", "2000"];
        let more = ["--test-rows", "500", "--features", "30"];
        assert_eq!(folder.succeeds(&[&simulate[..], &more].concat()), "", "stdout is for data");
        let readme = String::from_utf8(folder.read(&format!("{scenario}/README.md"))).expect("UTF-8");
        let command = readme.lines().find(|line| line.starts_with("poul check ")).expect("a check to try");
        let args: Vec<&str> = command.split(' ').skip(1).collect();
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

#[test]
fn quickstart_tours_everything() {
    let folder = Folder::new();
    let tour = |out, threads| {
        let run = folder.run(&["quickstart", "--rows", "3000", "--out", out, "--threads", threads]);
        assert_eq!(run.code, Some(0), "{}", run.transcript());
        assert!(run.stderr.contains("$ poul simulate ") && run.stderr.contains("$ poul check "));
        run.stdout.replace(out, "tour")
    };
    let stdout = tour("tour-one", "1");
    assert_eq!(stdout, tour("tour-two", "2"));
    for heading in
        ["3,000 rows, features: ", "\npolicy ", "Balance: permutation test p = ", "\nleast covered atoms"]
    {
        assert!(stdout.contains(heading), "{heading}: {stdout}");
    }
    let places = ["ranked by their true effects:", "ranked at random:", "README.md explains the files"]
        .map(|text| stdout.find(text).unwrap_or_else(|| panic!("{text}: {stdout}")));
    assert!(places.is_sorted());
    assert!(folder.listing().contains(&"tour-one/truth.parquet".to_string()));
}
