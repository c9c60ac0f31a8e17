//! `poul.toml`: the same names as the flags, relative to the file, and flags win.

use crate::harness::{Folder, POLICIES, experiment};

#[test]
fn a_settings_file_says_what_flags_say_and_flags_win() {
    let folder = Folder::new();
    let config = "\
[data]
policies = \"policies.toml\"
treatment = \"policy\"
outcome = [\"gmv\", \"cost\"]
control = \"control\"
exclude = [\"tau*\", \"truth\", \"household\"]
id = \"user\"
weight = \"w\"
population = \"age > 20\"
shares = { control = 1, T1 = 1, T2 = 1 }

[model]
learner = \"poul\"
";
    folder
        .write("data.csv", experiment(400))
        .write("settings/policies.toml", POLICIES)
        .write("settings/poul.toml", config);
    let by_file = ["check", "data.csv", "--config", "settings/poul.toml"];
    let by_flags = [
        "check",
        "data.csv",
        "--policies",
        "settings/policies.toml",
        "--outcome",
        "gmv,cost",
        "--control",
        "control",
        "--exclude",
        "tau*,truth,household",
        "--id",
        "user",
        "--weight",
        "w",
        "--population",
        "age > 20",
        "--shares",
        "control=1,T1=1,T2=1",
    ];
    assert_eq!(folder.succeeds(&by_file), folder.succeeds(&by_flags));

    let profile =
        folder.json(&[&by_file[..], &["--outcome", "cost", "--control", "T1", "--json", "-"]].concat());
    assert_eq!(profile["outcomes"].as_array().map(Vec::len), Some(1));
    assert_eq!(profile["outcomes"][0]["outcome"], "cost");
    assert_eq!(profile["control"], "T1");
    let fewer = folder.json(&[&by_file[..], &["--population", "age > 40", "--json", "-"]].concat());
    assert!(fewer["rows"].as_u64() < profile["rows"].as_u64());
    let factorial = ["--treatment-columns", "policy,city", "--json", "-"];
    let run = folder.run(&[&by_file[..], &factorial].concat());
    assert_eq!(run.code, Some(2), "a policy file and factorial columns: {}", run.transcript());
}

#[test]
fn evaluate_takes_the_same_file() {
    let folder = Folder::new();
    folder
        .write("data.csv", experiment(400))
        .write("poul.toml", "[data]\noutcome = \"gmv\"\nweight = \"w\"\ncluster = \"household\"\n");
    let by_file = ["evaluate", "data.csv", "--effects", "tau", "--config", "poul.toml", "--json", "-"];
    let by_flags = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--weight", "w"];
    let by_flags = [&by_flags[..], &["--cluster", "household", "--json", "-"]].concat();
    let [by_file, by_flags] = [&by_file[..], &by_flags].map(|args| {
        let mut metrics = folder.json(args);
        // The commands differ.
        metrics["provenance"]["command"].take();
        metrics
    });
    assert_eq!(by_file, by_flags);
}
