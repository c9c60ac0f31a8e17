//! Stage 1 as a person sets it up: the outcome model, baseline data, strata as designed, clipping.

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

/// One small network, quickly trained.
const QUICK: [&str; 6] = ["--members", "1", "--epochs", "2", "--folds", "2"];
const FEATURES: [&str; 2] = ["--features", "age,city"];

fn fit<'a>(more: &[&'a str], out: &'a str) -> Vec<&'a str> {
    let start = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
    [&start[..], &FEATURES, &QUICK, more, &["--out", out]].concat()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", experiment(400)).write("policies.toml", POLICIES);
    folder
}

/// The effects of a model on the rows of `data.csv`.
fn effects(folder: &Folder, model: &str) -> String {
    folder.succeeds(&["effect", model, "data.csv", "--all", "--out", "e.csv"]);
    String::from_utf8(folder.read("e.csv")).expect("UTF-8")
}

fn manifest(folder: &Folder, model: &str) -> Value {
    folder.json(&["show", model, "--json"])
}

#[test]
fn the_outcome_model_is_chosen_by_flag_or_file() {
    let folder = folder();
    folder.write("poul.toml", "[model]\noutcome_model = \"dragonnet\"\noutcome_hidden = [16]\n");
    folder.succeeds(&fit(&[], "mlp.poul"));
    folder.succeeds(&fit(&["--config", "poul.toml"], "file.poul"));
    folder.succeeds(&fit(&["--config", "poul.toml", "--outcome-model", "mlp"], "narrow.poul"));
    assert_eq!(manifest(&folder, "mlp.poul")["settings"]["model"]["outcome_model"], "mlp");
    assert_eq!(manifest(&folder, "file.poul")["settings"]["model"]["outcome_model"], "dragonnet");
    let narrow = manifest(&folder, "narrow.poul");
    assert_eq!(narrow["settings"]["model"]["outcome_model"], "mlp");
    assert_eq!(narrow["settings"]["model"]["outcome_hidden"], serde_json::json!([16]));
    let found = ["mlp.poul", "file.poul", "narrow.poul"].map(|model| effects(&folder, model));
    assert!(found[0] != found[1] && found[1] != found[2] && found[0] != found[2]);

    folder.write("wrong.toml", "[model]\noutcome_model = \"forest\"\n");
    folder.fails("outcome_model_unknown", 2, &fit(&["--config", "wrong.toml"], "m.poul"));
    folder.write("flat.toml", "[model]\noutcome_hidden = []\n");
    folder.fails("outcome_hidden_empty", 2, &fit(&["--config", "flat.toml"], "m.poul"));
}

#[test]
fn boosted_trees_and_what_is_best_are_chosen_told_and_stored() {
    let folder = folder();
    folder.write("poul.toml", "[model]\noutcome_model = \"boosted\"\n");
    folder.succeeds(&fit(&[], "mlp.poul"));
    folder.succeeds(&fit(&["--outcome-model", "boosted"], "boosted.poul"));
    folder.succeeds(&fit(&["--config", "poul.toml"], "file.poul"));
    let trees = effects(&folder, "boosted.poul");
    assert_eq!(trees, effects(&folder, "file.poul"));
    assert_ne!(trees, effects(&folder, "mlp.poul"));
    assert_eq!(manifest(&folder, "mlp.poul")["model"]["nuisances"], Value::Null);

    let run = folder.run(&fit(&["--outcome-model", "auto", "--design", "observational"], "auto.poul"));
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    for said in ["outcome model of `gmv`: ", "out-of-fold R2 ", "propensity: ", "log loss explained "] {
        assert!(run.stderr.contains(said), "{said}: {}", run.transcript());
    }
    let stored = manifest(&folder, "auto.poul");
    let chosen = &stored["model"]["nuisances"];
    assert_eq!(chosen["outcomes"][0]["outcome"], "gmv");
    let models = |choice: &Value| -> Vec<String> {
        let candidates = choice["candidates"].as_array().expect("candidates").iter();
        candidates.map(|own| own["model"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(models(&chosen["outcomes"][0]["choice"]), ["ridge", "network", "boosted"]);
    assert_eq!(models(&chosen["propensity"]), ["network", "boosted"]);
    let shown = folder.succeeds(&["show", "auto.poul"]);
    assert!(shown.contains("predicted") && shown.contains("boosted trees"), "{shown}");
    assert!(shown.contains("note: outcome model of `gmv`: "), "{shown}");

    let one_fold = ["--outcome-model", "auto", "--folds", "1", "--members", "1", "--out", "m.poul"];
    let start = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
    let run = folder.run(&[&start[..], &FEATURES, &one_fold].concat());
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(run.stderr.contains("out-of-fold") && run.stderr.contains("hint: "), "{}", run.transcript());
}

/// Some columns of a table, without some lines.
fn part(text: &str, columns: &[&str], lines: impl Fn(usize) -> bool) -> String {
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    let idx: Vec<usize> =
        columns.iter().map(|name| header.iter().position(|own| own == name).expect("a column")).collect();
    let kept = text.lines().enumerate().filter(|(line, _)| *line == 0 || lines(*line));
    kept.map(|(_, line)| {
        let cells: Vec<&str> = line.split(',').collect();
        idx.iter().map(|idx| cells[*idx]).collect::<Vec<_>>().join(",") + "\n"
    })
    .collect()
}

#[test]
fn baseline_rows_teach_the_outcome_model() {
    let folder = folder();
    let (history, columns) = (experiment(1200), ["age", "city", "gmv", "household"]);
    folder
        .write("all.csv", part(&history, &columns, |_| true))
        .write("parts/a.csv", part(&history, &columns, |line| line <= 500))
        .write("parts/b.csv", part(&history, &columns, |line| line > 500));
    let cluster = ["--cluster", "household"];
    let with = |data: &[&'static str], out: &'static str| {
        let flags: Vec<&str> = data.iter().flat_map(|data| ["--baseline-data", data]).collect();
        folder.succeeds(&fit(&[&cluster[..], &flags].concat(), out));
        effects(&folder, out)
    };
    let without = with(&[], "none.poul");
    let whole = with(&["all.csv"], "whole.poul");
    assert_ne!(without, whole, "the outcome model learned nothing from the baseline");
    // One table or two, a glob or a folder: the same rows are the same rows.
    assert_eq!(whole, with(&["parts/a.csv", "parts/b.csv"], "two.poul"));
    assert_eq!(whole, with(&["parts/*.csv"], "glob.poul"));
    folder.write("poul.toml", "[data]\nbaseline-data = \"parts\"\n");
    folder.succeeds(&fit(&["--config", "poul.toml", "--cluster", "household"], "file.poul"));
    assert_eq!(whole, effects(&folder, "file.poul"));

    let data = &manifest(&folder, "two.poul")["data"];
    let files: Vec<&Value> = (0..3).map(|table| &data[table]["files"][0]).collect();
    assert_eq!(files, ["data.csv", "a.csv", "b.csv"]);
    assert_eq!((&data[0]["used_for"], &data[1]["used_for"]), (&Value::Null, &Value::from("baseline")));
    assert_eq!((&data[1]["rows"], &data[2]["rows"]), (&Value::from(500), &Value::from(700)));
    let shown = folder.succeeds(&["show", "two.poul"]);
    assert!(shown.contains("\nbaseline  a.csv, 500 rows, "), "{shown}");
}

#[test]
fn what_is_wrong_with_baseline_data_is_told() {
    let folder = folder();
    let history = experiment(50);
    let table = |columns: &[&str]| part(&history, columns, |_| true);
    folder
        .write("narrow.csv", table(&["city", "gmv", "household"]))
        .write("blind.csv", table(&["age", "city", "household"]))
        .write("loose.csv", table(&["age", "city", "gmv"]))
        .write("gap.csv", "age,city,gmv,household\n30,Rome,1.5,h1\n40,Oslo,,h2\n");
    for (name, file) in [
        ("baseline_no_feature", "narrow.csv"),
        ("baseline_no_outcome", "blind.csv"),
        ("baseline_no_cluster", "loose.csv"),
        ("baseline_null_outcome", "gap.csv"),
        ("baseline_no_file", "gone.csv"),
    ] {
        folder.fails(name, 3, &fit(&["--cluster", "household", "--baseline-data", file], "m.poul"));
    }
}

/// Two strata with shares of a quarter, a quarter and a half, each in its own order.
fn stratified() -> Folder {
    let folder = Folder::new();
    let mut text = "policy,gmv,age,zone\n".to_owned();
    for row in 0..400_usize {
        let (zone, policies) = match row % 2 {
            0 => ("north", ["control", "T1", "T2", "T2"]),
            _ => ("south", ["control", "control", "T1", "T2"]),
        };
        let (policy, age) = (policies[row / 2 % 4], 20 + row * 7 % 41);
        text += &format!("{policy},{},{age},{zone}\n", 10 + row * 13 % 29);
    }
    folder.write("data.csv", text).write("policies.toml", POLICIES);
    folder
}

const DESIGNED: &str = "stratum,policy,probability
north,control,0.25
north,T1,0.25
north,T2,0.5
south,control,0.5
south,T1,0.25
south,T2,0.25
";

fn fit_strata<'a>(more: &[&'a str], out: &'a str) -> Vec<&'a str> {
    let start = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
    [&start[..], &QUICK, more, &["--out", out]].concat()
}

#[test]
fn probabilities_by_stratum_may_be_given() {
    let folder = stratified();
    let design = ["--design", "stratified", "--stratum", "zone"];
    folder
        .write("pi.csv", DESIGNED)
        .write("other.csv", DESIGNED.replace("0.25", "0.375").replace("0.5", "0.25"));
    let with = |table: &[&'static str], out: &'static str| {
        folder.succeeds(&fit_strata(&[&design[..], table].concat(), out));
        effects(&folder, out)
    };
    let shares = with(&[], "shares.poul");
    // The design as it happened to come out is what is estimated without it.
    assert_eq!(shares, with(&["--strata-table", "pi.csv"], "table.poul"));
    assert_ne!(shares, with(&["--strata-table", "other.csv"], "other.poul"));
    folder.write(
        "poul.toml",
        "[data]\ndesign = \"stratified\"\nstratum = \"zone\"\nstrata_table = \"pi.csv\"\n",
    );
    folder.succeeds(&fit_strata(&["--config", "poul.toml"], "file.poul"));
    assert_eq!(shares, effects(&folder, "file.poul"));
}

#[test]
fn what_is_wrong_with_strata_is_told() {
    let folder = stratified();
    let without = |line: &str| DESIGNED.replace(line, "");
    folder
        .write("pi.csv", DESIGNED)
        .write("north.csv", DESIGNED.lines().take(4).map(|line| line.to_owned() + "\n").collect::<String>())
        .write("no_t1.csv", without("south,T1,0.25\n").replace("south,control,0.5", "south,control,0.75"))
        .write("short.csv", without("south,T1,0.25\n"))
        .write("range.csv", DESIGNED.replace("north,T2,0.5", "north,T2,1.5"))
        .write("twice.csv", DESIGNED.to_owned() + "south,T2,0.25\n")
        .write("unknown.csv", DESIGNED.replace("south,T2", "south,T9"))
        .write("columns.csv", DESIGNED.replace("probability", "p"));
    let design = ["--design", "stratified", "--stratum", "zone", "--strata-table"];
    for (name, file) in [
        ("strata_missing_stratum", "north.csv"),
        ("strata_missing_policy", "no_t1.csv"),
        ("strata_sum", "short.csv"),
        ("strata_range", "range.csv"),
        ("strata_twice", "twice.csv"),
        ("strata_unknown_policy", "unknown.csv"),
        ("strata_columns", "columns.csv"),
        ("strata_no_file", "gone.csv"),
    ] {
        folder.fails(name, 3, &fit_strata(&[&design[..], &[file]].concat(), "m.poul"));
    }
    folder.fails("strata_not_stratified", 2, &fit_strata(&["--strata-table", "pi.csv"], "m.poul"));
}

#[test]
fn clipping_is_set_counted_and_shown() {
    let folder = Folder::new();
    // Above 40 nearly everybody has T1, below nearly nobody.
    let mut text = "policy,gmv,age\n".to_owned();
    for row in 0..1500_usize {
        let (age, luck) = (18 + row * 7 % 45, row * 31 % 97);
        let policy = if (age > 40) == (luck > 1) { "T1" } else { "control" };
        text += &format!("{policy},{},{age}\n", 10 + row * 13 % 29);
    }
    folder.write("data.csv", text);
    let start = ["fit", "data.csv", "--outcome", "gmv", "--design", "observational", "--out"];
    let fit = |out: &'static str, clip: &[&'static str]| {
        let run = folder.run(&[&start[..], &[out], &QUICK, clip].concat());
        assert_eq!(run.code, Some(0), "{}", run.transcript());
        run.stderr
    };
    assert!(fit("wide.poul", &["--clip", "0.2"]).contains("estimated probability was below the floor"));
    let shown = folder.succeeds(&["show", "wide.poul"]);
    assert!(shown.contains("\nclip = 0.2"), "{shown}");
    let note = shown.lines().find(|line| line.contains("below the floor (`clip`")).expect("a note");
    assert!(note.contains("(`clip` = 0.2), and ") && note.contains(" %) received a policy"), "{note}");
    assert!(!fit("none.poul", &["--clip", "0"]).contains("below the floor"));
    assert!(!folder.succeeds(&["show", "none.poul"]).contains("below the floor"));
    folder.fails("clip_range", 2, &[&start[..], &["m.poul", "--clip", "0.5"]].concat());
}

#[test]
fn wrong_propensity_columns_are_told_with_row_and_column() {
    let folder = Folder::new();
    let table = |third: &str| {
        let mut text = "policy,gmv,age,p_control,p_T1\n".to_owned();
        for row in 0..40_usize {
            let policy = if row % 3 == 0 { "control" } else { "T1" };
            let cells = if row == 2 { third } else { "0.25,0.75" };
            text += &format!("{policy},{},{},{cells}\n", 10 + row * 13 % 29, 20 + row);
        }
        text
    };
    folder
        .write("right.csv", table("0.25,0.75"))
        .write("range.csv", table("-0.25,1.25"))
        .write("null.csv", table(",0.75"))
        .write("sum.csv", table("0.25,0.5"))
        .write("zero.csv", table("1,0"));
    let fit = |data: &'static str| {
        [&["fit", data, "--outcome", "gmv", "--propensity", "p_*", "--out", "m.poul"][..], &QUICK].concat()
    };
    for (name, data) in [
        ("propensity_range", "range.csv"),
        ("propensity_null", "null.csv"),
        ("propensity_sum", "sum.csv"),
        ("propensity_zero", "zero.csv"),
    ] {
        folder.fails(name, 3, &fit(data));
    }
    folder.succeeds(&fit("right.csv"));
}

#[test]
fn the_learner_refuses_a_constant_outcome() {
    let folder = Folder::new();
    let rows: String = (0..30).map(|row| format!("{},7,{row}\n", ["control", "T1"][row % 2])).collect();
    folder.write("data.csv", format!("policy,y,x\n{rows}"));
    folder.fails("fit_poul_constant_outcome", 3, &["fit", "data.csv", "--outcome", "y", "--out", "m.poul"]);
}

#[test]
fn categories_that_training_never_saw_are_counted() {
    let folder = folder();
    let start = ["fit", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
    folder.succeeds(&[&start[..], &FEATURES, &["--learner", "constant", "--out", "c.poul"]].concat());
    folder.write("new.csv", "city,age\nRome,30\nParis,31\nOslo,51\nKyiv,20\n");
    let run = folder.run(&["effect", "c.poul", "new.csv", "--policy", "T1", "--out", "e.csv"]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let warning = "warning: column `city`: 2 of 4 rows (50.0 %) have a value that training never saw";
    assert!(run.stderr.contains(warning), "{}", run.transcript());
    let run = folder.run(&["effect", "c.poul", "data.csv", "--policy", "T1", "--out", "e.csv"]);
    assert!(!run.stderr.contains("warning"), "{}", run.transcript());
    let changed = experiment(400).replace("Lima", "Quito");
    folder.write("changed.csv", changed);
    let run = folder.run(&["evaluate", "c.poul", "changed.csv", "--draws", "0"]);
    assert!(run.stderr.contains("warning: column `city`: "), "{}", run.transcript());
}
