//! What a newcomer trips over: labels 0 and 1, names that are too long, dates, tables without rows, a second policy file.

use crate::harness::{Folder, POLICIES, experiment};

/// A randomised experiment with treatment 0 or 1, and weeks of which the last is the commonest.
fn coded() -> Folder {
    let folder = Folder::new();
    let weeks = ["2024-W11", "2024-W09", "2024-W11", "2024-W10"];
    let mut text = String::from("treated,spend,age,week\n");
    for row in 0..400_usize {
        let (treated, age) = ((row * 7 + row / 3) % 2, 20 + (row * 13) % 50);
        let spend = 5.0 + age as f64 / 10.0 + 2.0 * treated as f64 + ((row * 29) % 17) as f64 / 10.0;
        text.push_str(&format!("{treated},{spend:.2},{age},{}\n", weeks[row % 4]));
    }
    folder.write("data.csv", text);
    let fit = ["fit", "data.csv", "--treatment", "treated", "--control", "0", "--outcome", "spend"];
    folder.succeeds(
        &[&fit[..], &["--exclude", "week", "--learner", "ridge", "--out", "m.poul", "-q"]].concat(),
    );
    folder
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).expect("UTF-8")
}

#[test]
fn numbers_are_policies_and_weeks_are_in_order() {
    let folder = coded();
    folder.succeeds(&["effect", "m.poul", "data.csv", "--policy", "1", "--out", "e.csv", "-q"]);
    assert!(text(&folder, "e.csv").starts_with("row,policy,against,effect_spend\n0,1,0,"));
    let shown = folder.succeeds(&[
        "evaluate",
        "m.poul",
        "data.csv",
        "--by",
        "week",
        "--draws",
        "0",
        "--no-checks",
        "-q",
    ]);
    let places = ["2024-W09", "2024-W10", "2024-W11"].map(|week| shown.find(week).expect("a week"));
    assert!(places.is_sorted(), "{shown}");
}

#[test]
fn wide_effects_have_a_row_for_each_row() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(200)).write("policies.toml", POLICIES);
    let fit =
        ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv,cost", "--learner", "constant"];
    folder.succeeds(
        &[&fit[..], &["--exclude", "user,tau*,truth,household,w", "--out", "m.poul", "-q"]].concat(),
    );
    folder.succeeds(&["effect", "m.poul", "data.csv", "--id", "user", "--wide", "--out", "w.csv", "-q"]);
    let wide = text(&folder, "w.csv");
    assert!(
        wide.starts_with("user,effect_gmv_T1,effect_gmv_T2,effect_cost_T1,effect_cost_T2\nu0,"),
        "{wide}"
    );
    assert_eq!(wide.lines().count(), 201);
}

#[test]
fn policies_of_two_files_or_of_a_model_are_compared() {
    let folder = Folder::new();
    let august = POLICIES.replace("upgrade = 0.5, none = 0.5", "upgrade = 0.25, none = 0.75");
    let august = format!("{august}\n[policies.T3]\n\"*\" = \"upgrade\"\n");
    folder.write("july.toml", POLICIES).write("august.toml", august).write("data.csv", experiment(300));
    let diff = |more: &[&str]| {
        let run = folder.run(&[&["policy", "diff", "--policies", "july.toml"], more].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.transcript());
        run.stdout
    };
    let all = diff(&["--with", "august.toml"]);
    assert!(all.contains("T3      added") && all.contains("2 policies are the same"), "{all}");
    let one = diff(&["T2", "--with", "august.toml"]);
    assert!(one.contains("1 context differs; 6.2 % of the mass moved; distance 0.1250"), "{one}");
    let two = diff(&["T1", "T2", "--with", "august.toml"]);
    assert!(two.contains("distance 0.1250"), "{two}");
    let fit =
        ["fit", "data.csv", "--policies", "july.toml", "--outcome", "gmv", "--learner", "constant", "-q"];
    folder.succeeds(&[&fit[..], &["--features", "age", "--out", "m.poul"]].concat());
    assert_eq!(diff(&["--with", "m.poul"]), "3 policies are the same\n");
    let json: serde_json::Value =
        serde_json::from_str(&diff(&["--with", "august.toml", "--json"])).expect("JSON");
    assert_eq!((&json["added"][0], &json["changed"][0]["from"]), (&"T3".into(), &"T2".into()));
    let run = folder.run(&["policy", "diff", "T1", "--policies", "july.toml"]);
    assert!(run.code == Some(2) && run.stderr.contains("--with FILE"), "{}", run.transcript());
}

#[test]
fn equal_weights_are_told_and_one_context_is_one() {
    let folder = Folder::new();
    let even = "policy,context,action\ncontrol,peak,none\ncontrol,off_peak,none\nT1,peak,upgrade\nT1,off_peak,none\n";
    folder.write("even.csv", even);
    let run = folder.run(&["policy", "distance", "control", "T1", "--policies", "even.csv"]);
    assert!(
        run.code == Some(0) && run.stderr.contains("the 2 contexts have equal weights"),
        "{}",
        run.transcript()
    );
    folder.write("one.toml", "[policies.a]\nhome = \"x\"\n[policies.b]\nhome = \"y\"\n");
    let run = folder.run(&["policy", "distance", "a", "b", "--policies", "one.toml"]);
    assert_eq!(run.stderr, "", "{}", run.transcript());
    let shown = folder.succeeds(&["policy", "show", "--policies", "one.toml"]);
    assert!(shown.starts_with("2 policies over 1 context and 2 actions (2 atoms)\n"), "{shown}");
}

#[test]
fn long_combinations_are_told_by_what_sets_them_apart() {
    let folder = Folder::new();
    let columns: Vec<String> = (0..12).map(|place| format!("attribute_{place:02}")).collect();
    let mut data = format!("{},y,x\n", columns.join(","));
    for row in 0..240_usize {
        let cells: Vec<&str> =
            (0..12).map(|place| if place == 11 && row % 2 == 1 { "high" } else { "low" }).collect();
        data.push_str(&format!("{},{}.5,{}\n", cells.join(","), (row * 17) % 11 + row % 2, (row * 31) % 13));
    }
    folder.write("data.csv", data);
    let control = columns.iter().map(|name| format!("{name}=low")).collect::<Vec<_>>().join(", ");
    let columns = columns.join(",");
    let shown = folder.succeeds(&[
        "check",
        "data.csv",
        "--treatment-columns",
        &columns,
        "--outcome",
        "y",
        "--control",
        &control,
        "-q",
    ]);
    assert!(shown.contains("\n… attribute_11=high "), "{shown}");
}

#[test]
fn settings_are_told_by_name_and_value() {
    let folder = coded();
    folder.write("poul.toml", "[training]\nepochs = -1\n");
    let fit = ["fit", "data.csv", "--treatment", "treated", "--control", "0", "--outcome", "spend"];
    let run = folder.run(&[&fit[..], &["--config", "poul.toml", "--out", "x.poul"]].concat());
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(
        run.stderr.contains("`epochs` is -1: must be a whole number of at least 0"),
        "{}",
        run.transcript()
    );
}
