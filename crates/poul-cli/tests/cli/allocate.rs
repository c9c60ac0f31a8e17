//! `poul allocate` and `poul evaluate --allocation`: limits are kept, prices decide alone, worth is told, mistakes are.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

/// A model of the first 900 rows, and 600 others as users with outcomes.
fn fitted() -> Folder {
    let folder = Folder::new();
    let rows = experiment(1500);
    let lines: Vec<&str> = rows.lines().collect();
    folder.write("train.csv", lines[..901].join("\n") + "\n").write("policies.toml", POLICIES);
    folder.write("users.csv", format!("{}\n{}\n", lines[0], lines[901..].join("\n")));
    let fit =
        ["fit", "train.csv", "--policies", "policies.toml", "--outcome", "gmv,cost", "--learner", "ridge"];
    let roles = ["--exclude", "tau*,truth,household,w", "--id", "user", "--out", "m.poul", "-q"];
    folder.succeeds(&[&fit[..], &roles].concat());
    folder
}

/// What `poul allocate` says of the users as JSON, and what it gives each of them.
fn allocated(folder: &Folder, more: &[&str]) -> (Value, Vec<BTreeMap<String, String>>) {
    let base = ["allocate", "m.poul", "users.csv", "--out", "a.csv", "--json", "-", "-q"];
    let found = folder.json(&[&base[..], more].concat());
    (found, table(folder, "a.csv"))
}

fn table(folder: &Folder, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(folder.read(name)).expect("UTF-8");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().expect("a heading").collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Σ share · column over rows that `keep` says.
fn total(
    rows: &[BTreeMap<String, String>],
    column: &str,
    keep: impl Fn(&BTreeMap<String, String>) -> bool,
) -> f64 {
    let cell = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().expect("a number");
    let kept = rows.iter().filter(|row| keep(row));
    kept.map(|row| cell(row, "share") * if column == "share" { 1.0 } else { cell(row, column) }).sum()
}

const GMV: [&str; 2] = ["--maximize", "gmv"];

#[test]
fn what_a_person_sees() {
    let folder = fitted();
    let run = folder.run(
        &[&["allocate", "m.poul", "users.csv", "--budget", "cost=300", "--out", "a.csv", "-q"][..], &GMV]
            .concat(),
    );
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    run.snapshot("allocate_text");
}

#[test]
fn a_budget_is_spent_where_it_brings_most() {
    let folder = fitted();
    let more = ["--budget", "cost=300", "--curve", "curve.csv", "--prices", "prices.json"];
    let (found, rows) = allocated(&folder, &[&more[..], &GMV].concat());
    assert_eq!(rows[0].keys().collect::<Vec<_>>(), ["effect_cost", "effect_gmv", "policy", "share", "user"]);
    let everybody = |_: &BTreeMap<String, String>| true;
    let spent = total(&rows, "effect_cost", everybody);
    assert!((spent - 300.0).abs() < 0.01, "{spent}");
    assert!((number(&found["value"]["cost"]) - spent).abs() < 0.01);
    assert!((total(&rows, "share", everybody) - 600.0).abs() < 1e-9);
    assert!(rows.len() <= 601, "at most one user is divided");
    let budget = &found["constraints"][0];
    assert_eq!((budget["name"].as_str(), number(&budget["limit"])), (Some("budget cost"), 300.0));
    assert!(number(&budget["price"]) > 0.0 && number(&budget["slack"]).abs() < 0.01, "{budget}");
    assert!(number(&found["duality_gap"]) < 1e-3 * number(&found["value"]["gmv"]));
    // The exact path, and no other allocation of the same file, has the value that is told.
    let curve = table(&folder, "curve.csv");
    let at = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().expect("a number");
    assert_eq!(curve.len(), 20);
    assert!(curve.windows(2).all(|pair| at(&pair[0], "predicted") <= at(&pair[1], "predicted") + 1e-6));
    assert!(
        curve.iter().all(|row| at(row, "lower") <= at(row, "value") && at(row, "value") <= at(row, "upper"))
    );
    let prices: Value = serde_json::from_slice(&folder.read("prices.json")).expect("JSON");
    assert_eq!(number(&prices["prices"][0]["price"]), number(&budget["price"]));
}

#[test]
fn more_budget_never_brings_less_and_the_price_says_how_much() {
    let folder = fitted();
    let value = |budget: &str| {
        let (found, _) = allocated(&folder, &[&["--budget", budget][..], &GMV].concat());
        (number(&found["counted"]), number(&found["constraints"][0]["price"]))
    };
    let (at_200, price) = value("cost=200");
    let (at_201, _) = value("cost=201");
    let (at_400, _) = value("cost=400");
    assert!(at_200 < at_201 && at_201 < at_400);
    assert!(at_201 - at_200 <= price + 1e-6 && at_400 - at_200 <= 200.0 * price + 1e-6);
}

#[test]
fn every_limit_is_kept() {
    let folder = fitted();
    folder.write("cities.csv", "city,cost,cap_T2\nRome,60,\nOslo,,0.1\nLima,50,0.2\n");
    let limits =
        ["--rate", "cost/gmv=0.9", "--cap", "T2=0.4", "--floor", "T1=0.1", "--eligible", "T1: age < 50"];
    let groups = ["--group", "city", "--group-budgets", "cities.csv", "--budget", "cost=250"];
    let (found, rows) = allocated(&folder, &[&limits[..], &groups, &GMV].concat());
    let users = table(&folder, "users.csv");
    let city: BTreeMap<&str, &str> =
        users.iter().map(|own| (own["user"].as_str(), own["city"].as_str())).collect();
    let age: BTreeMap<&str, u32> =
        users.iter().map(|own| (own["user"].as_str(), own["age"].parse().unwrap())).collect();
    let has = |policy: &'static str| move |row: &BTreeMap<String, String>| row["policy"] == policy;
    let everybody = |_: &BTreeMap<String, String>| true;
    assert!(total(&rows, "effect_cost", everybody) <= 250.0 + 1e-3);
    let (cost, gmv) = (total(&rows, "effect_cost", everybody), total(&rows, "effect_gmv", everybody));
    assert!(cost <= 0.9 * gmv + 1e-3, "{cost} {gmv}");
    assert!(total(&rows, "share", has("T2")) <= 240.0 && total(&rows, "share", has("T1")) >= 60.0);
    assert!(rows.iter().filter(|row| row["policy"] == "T1").all(|row| age[row["user"].as_str()] < 50));
    let of = |name: &'static str| {
        let city = &city;
        move |row: &BTreeMap<String, String>| city[row["user"].as_str()] == name
    };
    assert!(total(&rows, "effect_cost", of("Rome")) <= 60.0 + 1e-3);
    assert!(total(&rows, "effect_cost", of("Lima")) <= 50.0 + 1e-3);
    let oslo = total(&rows, "share", of("Oslo"));
    assert!(total(&rows, "share", |row| of("Oslo")(row) && row["policy"] == "T2") <= 0.1 * oslo + 1e-9);
    let names: Vec<&str> =
        found["constraints"].as_array().unwrap().iter().filter_map(|own| own["name"].as_str()).collect();
    assert!(
        names.contains(&"cap T2 in Oslo") && names.contains(&"rate cost/gmv") && names.contains(&"floor T1"),
        "{names:?}"
    );
    assert!(
        found["constraints"].as_array().unwrap().iter().all(|own| number(&own["slack"]) > -1e-6),
        "{found}"
    );
    let (few, rows) =
        allocated(&folder, &[&["--at-most-policies", "1", "--budget", "cost=250"][..], &GMV].concat());
    let used: std::collections::BTreeSet<&str> = rows.iter().map(|row| row["policy"].as_str()).collect();
    assert!(
        used.len() <= 2 && few["notes"][0].as_str().is_some_and(|note| note.contains("at most 1:")),
        "{used:?}"
    );
}

#[test]
fn prices_decide_as_the_whole_was_decided() {
    let folder = fitted();
    let base = ["--budget", "cost=300", "--cap", "T2=0.3", "--prices", "prices.json"];
    let (_, whole) = allocated(&folder, &[&base[..], &GMV].concat());
    let (found, rows) = allocated(&folder, &["--prices", "prices.json"]);
    assert_eq!(rows.len(), 600);
    let of = |rows: &[BTreeMap<String, String>]| -> BTreeMap<String, String> {
        rows.iter().map(|row| (row["user"].clone(), row["policy"].clone())).collect()
    };
    let (a, b) = (of(&whole), of(&rows));
    let n_other = a.iter().filter(|(user, policy)| b[*user] != **policy).count();
    // Those whom the limits meet by chance, not by price.
    assert!(n_other <= 12, "{n_other}");
    assert!(found["duality_gap"].is_null() && found["constraints"][0]["limit"].is_null());
    // Each row alone: a part of the users gets what it got among all.
    let text = String::from_utf8(folder.read("users.csv")).unwrap();
    folder.write("few.csv", text.lines().take(40).collect::<Vec<_>>().join("\n") + "\n");
    folder.succeeds(&[
        "allocate",
        "m.poul",
        "few.csv",
        "--prices",
        "prices.json",
        "--out",
        "few_out.csv",
        "-q",
    ]);
    assert!(table(&folder, "few_out.csv").iter().all(|row| b[&row["user"]] == row["policy"]));
}

#[test]
fn the_bytes_do_not_depend_on_threads() {
    let folder = fitted();
    let bytes = ["1", "3"].map(|threads| {
        let more = ["--budget", "cost=300", "--cap", "T2=0.3", "--prices", "p.json", "--json", "a.json"];
        let base = ["allocate", "m.poul", "users.csv", "--out", "a.parquet", "-q", "--threads", threads];
        folder.succeeds(&[&base[..], &more, &GMV].concat());
        (folder.read("a.parquet"), folder.read("p.json"), folder.read("a.json"))
    });
    assert!(bytes[0] == bytes[1]);
}

#[test]
fn worth_is_told_by_outcomes() {
    let folder = fitted();
    let (found, _) = allocated(&folder, &[&["--budget", "cost=300"][..], &GMV].concat());
    let worth = &found["evaluation"];
    assert_eq!(worth["rows"], 600);
    let rules = worth["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), 5);
    let value =
        |worth: &Value, rule: usize, outcome: usize| worth["rules"][rule]["outcomes"][outcome].clone();
    // Effects grow with age, which a ridge finds: the allocation beats chance at the same cost.
    let better = value(worth, 3, 0)["first_is_better_by"].clone();
    assert!(number(&better["interval"][0]) > 0.0, "{better}");
    assert_eq!(number(&value(worth, 1, 0)["per_user"]["estimate"]), 0.0);
    let by_file = ["evaluate", "m.poul", "users.csv", "--allocation", "a.csv", "--json", "-", "-q"];
    let again = folder.json(&by_file);
    let (a, b) = (value(worth, 0, 0), value(&again, 0, 0));
    assert!(
        (number(&a["per_user"]["estimate"]) - number(&b["per_user"]["estimate"])).abs() < 0.02,
        "{a} {b}"
    );
    let alone =
        ["evaluate", "users.csv", "--allocation", "a.csv", "--outcome", "gmv,cost", "--json", "-", "-q"];
    let alone = folder.json(&alone);
    let c = value(&alone, 0, 0);
    let far = (number(&a["per_user"]["estimate"]) - number(&c["per_user"]["estimate"])).abs();
    assert!(far < 3.0 * number(&c["per_user"]["se"]), "{a} {c}");
    assert!(alone["notes"].to_string().contains("without a model"));
    let run = folder.run(&["evaluate", "m.poul", "users.csv", "--allocation", "a.csv", "-q"]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    assert!(run.stdout.contains("best single policy: everybody T2"), "{}", run.transcript());
    folder.write("more.csv", experiment(700));
    folder.fails(
        "allocation_other_rows",
        3,
        &["evaluate", "m.poul", "more.csv", "--allocation", "a.csv", "-q"],
    );
    folder.fails(
        "allocation_training",
        3,
        &["evaluate", "m.poul", "train.csv", "--allocation", "a.csv", "-q"],
    );
}

#[test]
fn bad_input_is_told_and_nothing_is_written() {
    let folder = fitted();
    let fails = |name: &str, code: i32, more: &[&str]| {
        let base = ["allocate", "m.poul", "users.csv", "--out", "a.csv", "-q"];
        folder.fails(name, code, &[&base[..], more].concat());
    };
    fails("allocate_no_maximize", 2, &["--budget", "cost=1"]);
    fails("allocate_unknown_outcome", 2, &["--maximize", "gmv", "--budget", "csot=100"]);
    fails("allocate_unknown_maximize", 2, &["--maximize", "profit"]);
    fails("allocate_budget_form", 2, &["--maximize", "gmv", "--budget", "cost"]);
    fails("allocate_negative_budget", 2, &["--maximize", "gmv", "--budget", "cost=-100"]);
    fails("allocate_nobody", 3, &["--maximize", "gmv", "--eligible", "T2: age > 200"]);
    fails("allocate_eligible_column", 2, &["--maximize", "gmv", "--eligible", "T2: agee > 20"]);
    fails("allocate_eligible_control", 2, &["--maximize", "gmv", "--eligible", "control: age > 20"]);
    fails("allocate_floors", 2, &["--maximize", "gmv", "--floor", "T1=0.7", "--floor", "T2=0.5"]);
    fails(
        "allocate_floor_unaffordable",
        2,
        &["--maximize", "gmv", "--floor", "T2=0.5", "--budget", "cost=10"],
    );
    fails("allocate_unknown_policy", 2, &["--maximize", "gmv", "--cap", "T9=0.5"]);
    fails("allocate_risk_without_members", 2, &["--maximize", "gmv", "--risk", "0.1"]);
    fails("allocate_group_alone", 2, &["--maximize", "gmv", "--group", "city"]);
    fails("allocate_curve_alone", 2, &["--maximize", "gmv", "--cap", "T1=0.5", "--curve", "c.csv"]);
    folder.write("cities.csv", "city,cost\nRome,60\n");
    fails(
        "allocate_group_missing",
        3,
        &["--maximize", "gmv", "--group", "city", "--group-budgets", "cities.csv"],
    );
    folder.write("prices.json", "{}");
    fails("allocate_no_prices", 3, &["--prices", "prices.json"]);
    let base =
        |users: &'static str| ["allocate", "m.poul", users, "--maximize", "gmv", "--out", "a.csv", "-q"];
    folder.fails("allocate_training", 3, &base("train.csv"));
    folder.write("empty.csv", "user,age,city\n");
    folder.fails("allocate_empty", 3, &base("empty.csv"));
    folder.write("thin.csv", "user,city\nu1,Rome\n");
    folder.fails("allocate_no_feature", 3, &base("thin.csv"));
    let fit =
        ["fit", "train.csv", "--policies", "policies.toml", "--outcome", "gmv", "--learner", "constant"];
    folder.succeeds(
        &[&fit[..], &["--exclude", "user,tau*,truth,household,w,cost", "--out", "g.poul", "-q"]].concat(),
    );
    let no_cost = [
        "allocate",
        "g.poul",
        "users.csv",
        "--maximize",
        "gmv",
        "--budget",
        "cost=1",
        "--out",
        "a.csv",
        "-q",
    ];
    folder.fails("allocate_no_cost", 2, &no_cost);
}
