//! Average effects in `poul evaluate`: by model and by columns, by group, and what cannot be averaged.

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

fn fitted() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(900)).write("policies.toml", POLICIES);
    let fit =
        ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv,cost", "--learner", "constant"];
    let exclude = ["--exclude", "user,tau*,truth,household,w", "--out", "m.poul"];
    folder.succeeds(&[&fit[..], &exclude].concat());
    folder
}

/// Averages of an outcome and a policy over all rows, or by a column.
fn averages<'v>(metrics: &'v Value, outcome: &str, policy: &str, by: Option<&str>) -> Vec<&'v Value> {
    let all = metrics["averages"].as_array().expect("averages");
    let own = all.iter().filter(|own| own["outcome"] == outcome && own["policy"] == policy);
    own.filter(|own| own.get("by").and_then(Value::as_str) == by).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn what_a_person_sees() {
    let folder = fitted();
    let run = folder.run(&["evaluate", "m.poul", "data.csv", "--draws", "0", "--by", "city", "-q"]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    run.snapshot("evaluate_averages");
}

#[test]
fn a_model_sharpens_what_columns_say() {
    let folder = fitted();
    let more = ["--draws", "0", "--json", "-", "-q", "--by", "city", "--by", "age"];
    let by_model = folder.json(&[&["evaluate", "m.poul", "data.csv"][..], &more].concat());
    let columns = ["evaluate", "data.csv", "--effects", "truth", "--outcome", "gmv,cost"];
    let by_columns = folder.json(&[&columns[..], &more].concat());
    let (model, column) =
        (averages(&by_model, "gmv", "T1", None)[0], averages(&by_columns, "gmv", "T1", None)[0]);
    // The true mean effect: age is even from 18 to 67.
    for own in [model, column] {
        assert!((number(&own["effect"]) - 1.125).abs() < 4.0 * number(&own["se"]), "{own}");
        assert!(number(&own["q_value"]) >= number(&own["p_value"]));
    }
    assert_eq!((model["rows"].as_u64(), model["against"].as_str()), (Some(900), Some("control")));
    // Constant effects, and m of the features: noise is what is left.
    assert!(number(&model["se"]) < 0.15, "{model}");
    let cities = averages(&by_model, "gmv", "T1", Some("city"));
    assert_eq!(cities.len(), 3);
    assert_eq!(cities.iter().filter_map(|own| own["rows"].as_u64()).sum::<u64>(), 900);
    let ages = averages(&by_model, "gmv", "T1", Some("age"));
    let effects: Vec<f64> = ages.iter().map(|own| number(&own["effect"])).collect();
    assert_eq!(ages.len(), 4);
    assert!(effects.windows(2).all(|pair| pair[0] < pair[1]), "{effects:?}");
    assert!(averages(&by_columns, "gmv", "T1", Some("predicted effect")).len() > 5);
}

#[test]
fn who_gains_is_told_of_models() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(900)).write("policies.toml", POLICIES);
    let fit = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv", "--learner", "ridge"];
    folder.succeeds(
        &[&fit[..], &["--exclude", "user,tau*,truth,household,w,cost", "--out", "m.poul", "-q"]].concat(),
    );
    let metrics = folder.json(&["evaluate", "m.poul", "data.csv", "--draws", "0", "--json", "-", "-q"]);
    let gains = metrics["who_gains"].as_array().expect("who gains");
    assert_eq!(gains.len(), 2);
    for own in gains {
        assert_eq!(own["features"][0]["feature"], "age", "{own}");
        assert_eq!(own["tree"][0]["rule"], "all rows");
        assert!(own["tree"][1]["rule"].as_str().is_some_and(|rule| rule.starts_with("age < ")), "{own}");
        assert!(number(&own["tree_share"]) > 0.5);
    }
}

#[test]
fn a_rare_policy_is_shown_without_an_interval() {
    let folder = fitted();
    let mut n_treated = 0;
    let rows = experiment(900);
    let keep = |line: &&str| {
        n_treated += usize::from(line.contains(",T1,"));
        !line.contains(",T1,") || n_treated <= 20
    };
    let rows: Vec<&str> = rows.lines().filter(keep).collect();
    folder.write("test.csv", rows.join("\n"));
    let metrics = folder.json(&["evaluate", "m.poul", "test.csv", "--draws", "0", "--json", "-", "-q"]);
    let own = averages(&metrics, "gmv", "T1", None)[0];
    assert!(own["effect"].is_number() && own["interval"].is_null() && own["q_value"].is_null(), "{own}");
    assert!(own["notes"][0].as_str().is_some_and(|note| note.starts_with("20 treated")), "{own}");
    assert!(averages(&metrics, "gmv", "T2", None)[0]["interval"].is_array());
}

#[test]
fn bad_input_is_told() {
    let folder = fitted();
    let rows = experiment(300);
    let without: Vec<&str> = rows.lines().filter(|line| !line.contains(",control,")).collect();
    folder.write("no_control.csv", without.join("\n"));
    folder.fails("averages_no_control", 3, &["evaluate", "m.poul", "no_control.csv", "-q"]);
    let infinite: Vec<String> = rows
        .lines()
        .enumerate()
        .map(|(row, line)| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if row == 7 {
                cells[2] = "inf";
            }
            cells.join(",")
        })
        .collect();
    folder.write("infinite.csv", infinite.join("\n"));
    folder.fails("averages_infinite", 3, &["evaluate", "m.poul", "infinite.csv", "-q"]);
    folder.fails("averages_by_unknown", 3, &["evaluate", "m.poul", "data.csv", "--by", "cty", "-q"]);
    folder.fails("averages_by_outcome", 2, &["evaluate", "m.poul", "data.csv", "--by", "gmv", "-q"]);
}
