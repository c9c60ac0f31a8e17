//! `poul policy`: text, JSON, and files whose order does not matter.

use crate::harness::{Folder, POLICIES, snapshot};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("policies.toml", POLICIES);
    folder
}

const LONG: &str = "\
policy,context,action,probability
control,peak,none,1
control,off_peak,none,1
T1,peak,upgrade,1
T1,off_peak,none,1
T2,peak,upgrade,1
T2,off_peak,upgrade,0.5
T2,off_peak,none,0.5
";
const WEIGHTS: &str = "context,weight\npeak,3\noff_peak,1\n";

#[test]
fn what_a_person_sees() {
    let folder = folder();
    let mut text = String::new();
    for args in [
        &["show"][..],
        &["show", "T2"],
        &["diff", "T1", "T2"],
        &["diff", "T1", "T1"],
        &["distance", "control", "T2"],
        &["nearest", "T2", "--count", "1"],
        &["nearest", "control"],
    ] {
        let run = folder.run(&[&["policy"], args, &["--policies", "policies.toml"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.transcript());
        text.push_str(&format!("$ poul {}\n{}\n", run.command, run.stdout));
    }
    snapshot("policy_text", &text);
}

#[test]
fn what_a_program_sees() {
    let folder = folder();
    let json = |args: &[&str]| {
        folder.json(&[&["policy"], args, &["--policies", "policies.toml", "--json"]].concat())
    };
    let show = json(&["show", "T2"]);
    assert_eq!(show["contexts"]["peak"], 0.75);
    assert_eq!(show["policies"]["T2"]["off_peak"]["none"], 0.5);
    assert_eq!(show["policies"].as_object().map(serde_json::Map::len), Some(1));
    // Half of the off-peak quarter moves from `none` to `upgrade`, counted once at either end.
    assert_eq!(json(&["distance", "T1", "T2"])["distance"], 0.25);
    assert_eq!(json(&["distance", "T1", "T1"])["distance"], 0.0);
    let diff = json(&["diff", "T1", "T2"]);
    assert_eq!(diff["diff"]["distance"], 0.25);
    assert_eq!(diff["diff"]["contexts"].as_array().map(Vec::len), Some(1));
    assert_eq!(diff["diff"]["contexts"][0]["context"], "off_peak");
    let nearest = json(&["nearest", "T2"]);
    assert_eq!(nearest["nearest"][0]["policy"], "T1");
    assert_eq!(nearest["nearest"][1]["policy"], "control");
}

#[test]
fn order_and_form_do_not_matter() {
    let folder = folder();
    let mut reversed: Vec<&str> = LONG.trim().lines().skip(1).collect();
    reversed.reverse();
    let tables: Vec<&str> = POLICIES.split("\n\n").collect();
    let swapped = format!("{}\n{}\n{}\n{}\n", tables[3], tables[1], tables[2], tables[0]);
    let json = r#"{"policies": {"T2": {"off_peak": {"none": 0.5, "upgrade": 0.5}, "peak": "upgrade"},
        "T1": {"peak": "upgrade", "*": "none"}, "control": {"*": "none"}}, "contexts": {"off_peak": 1, "peak": 3}}"#;
    folder
        .write("swapped.toml", swapped)
        .write("same.json", json)
        .write("long.csv", LONG)
        .write("reversed.csv", format!("policy,context,action,probability\n{}\n", reversed.join("\n")))
        .write("columns.csv", "action,probability,policy,context\nnone,1,control,peak\nnone,1,control,off_peak\nupgrade,1,T1,peak\nnone,1,T1,off_peak\nupgrade,1,T2,peak\nupgrade,.5,T2,off_peak\nnone,.5,T2,off_peak\n")
        .write("weights.csv", WEIGHTS)
        .write("sthgiew.csv", "weight,context\n1,off_peak\n3,peak\n");
    let show = |args: &[&str]| folder.succeeds(&[&["policy", "show", "--json", "--policies"], args].concat());
    let expected = show(&["policies.toml"]);
    for args in [
        &["swapped.toml"][..],
        &["same.json"],
        &["long.csv", "--contexts", "weights.csv"],
        &["reversed.csv", "--contexts", "sthgiew.csv"],
        &["columns.csv", "--contexts", "weights.csv"],
    ] {
        assert_eq!(show(args), expected, "{args:?}");
    }
}

#[test]
fn weights_from_an_exposure_log() {
    let folder = folder();
    folder
        .write("long.csv", LONG)
        .write("counts.csv", "context,count\npeak,200\noff_peak,100\npeak,100\n")
        .write("log.csv", "stamp,screen\n1,peak\n2,peak\n3,off_peak\n4,peak\n")
        .write("weights.csv", WEIGHTS);
    let show = |args: &[&str]| {
        folder.succeeds(&[&["policy", "show", "--json", "--policies", "long.csv"], args].concat())
    };
    let expected = show(&["--contexts", "weights.csv"]);
    assert_eq!(show(&["--exposure-log", "counts.csv"]), expected);
    assert_eq!(show(&["--exposure-log", "log.csv", "--context-column", "screen"]), expected);
    assert_ne!(show(&[]), expected, "without weights contexts count the same");
}
