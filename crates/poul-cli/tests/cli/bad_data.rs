//! Data that cannot be used: each message says what, where and what to do.

use crate::harness::{Folder, POLICIES, experiment};

/// A folder with `data.csv`, changed line by line, and the policies.
fn folder(change: impl Fn(usize, &str) -> String) -> Folder {
    let folder = Folder::new();
    let text = experiment(60);
    let lines: Vec<String> = text.lines().enumerate().map(|(line, text)| change(line, text)).collect();
    folder.write("data.csv", lines.join("\n") + "\n").write("policies.toml", POLICIES);
    folder
}

fn unchanged() -> Folder {
    folder(|_, text| text.to_string())
}

/// Replaces a cell of every data line for which `change` gives something.
fn with_cell(column: &str, change: impl Fn(usize) -> Option<&'static str>) -> Folder {
    let header = experiment(0);
    let idx = header.trim().split(',').position(|name| name == column).expect("a column");
    folder(|line, text| match (line, change(line)) {
        (1.., Some(cell)) => {
            let mut cells: Vec<&str> = text.split(',').collect();
            cells[idx] = cell;
            cells.join(",")
        }
        _ => text.to_string(),
    })
}

const CHECK: [&str; 6] = ["check", "data.csv", "--policies", "policies.toml", "--outcome", "gmv"];
const EVALUATE: [&str; 6] = ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv"];

fn and<'a>(start: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    start.iter().chain(more).copied().collect()
}

#[test]
fn missing_columns_are_named_with_the_nearest() {
    let folder = unchanged();
    let check = |outcome| ["check", "data.csv", "--policies", "policies.toml", "--outcome", outcome];
    folder.fails("missing_outcome", 3, &check("gvm"));
    folder.fails("missing_outcome_far", 3, &check("revenue"));
    folder.fails("missing_cluster", 3, &and(&CHECK, &["--cluster", "houshold"]));
    folder.fails("missing_exclude", 3, &and(&CHECK, &["--exclude", "citty"]));
    folder.fails("missing_treatment", 3, &and(&CHECK, &["--treatment", "polici"]));
    folder.fails("missing_effects", 3, &["evaluate", "data.csv", "--effects", "tauu", "--outcome", "gmv"]);
    folder.write("arm.csv", "arm,y,x\na,1,1\nb,2,2\n");
    folder.fails("no_policy_column", 3, &["check", "arm.csv", "--outcome", "y"]);
}

#[test]
fn wrong_types_are_told() {
    let folder = unchanged();
    folder.fails(
        "text_outcome",
        3,
        &["check", "data.csv", "--policies", "policies.toml", "--outcome", "city"],
    );
    folder.fails("text_weight", 3, &and(&CHECK, &["--weight", "city"]));
    folder.fails("text_effects", 3, &["evaluate", "data.csv", "--effects", "city", "--outcome", "gmv"]);
}

#[test]
fn files_that_hold_no_table() {
    let folder = unchanged();
    folder
        .write("empty.csv", "")
        .write("empty.parquet", "")
        .write("header.csv", "policy,gmv,age\n")
        .write("blank.csv", "\n\n")
        .write("numbers.csv", "1,2,1\n0,3,5\n")
        .write("letter.txt", "Dear all\n")
        .write("text.parquet", "policy,gmv\ncontrol,1\n")
        .write("table.csv.gz", "policy,gmv\ncontrol,1\n")
        .write("mixed/a.csv", "policy,gmv,age\ncontrol,1,2\n")
        .write("mixed/b.parquet", "PAR1")
        .write("differ/a.csv", "policy,gmv,age\ncontrol,1,2\n")
        .write("differ/b.csv", "policy,gmv,years\ncontrol,1,2\n")
        .write("void/.keep", "");
    for (name, data) in [
        ("no_file", "dta.csv"),
        ("no_match", "*.arrow"),
        ("empty_csv", "empty.csv"),
        ("empty_parquet", "empty.parquet"),
        ("header_only", "header.csv"),
        ("blank_csv", "blank.csv"),
        ("no_header", "numbers.csv"),
        ("unknown_format", "letter.txt"),
        ("csv_called_parquet", "text.parquet"),
        ("not_gzip", "table.csv.gz"),
        ("mixed_formats", "mixed"),
        ("different_columns", "differ"),
        ("folder_without_data", "void"),
    ] {
        folder.fails(name, 3, &["check", data, "--outcome", "gmv"]);
    }
}

#[test]
fn text_that_is_damaged() {
    let folder = folder(|line, text| if line == 4 { text.to_string() + ",7" } else { text.to_string() });
    folder.fails("ragged_csv", 3, &CHECK);
    let mut latin: Vec<u8> = experiment(20).into_bytes();
    let place = latin.windows(4).position(|word| word == b"Rome").expect("a city");
    latin[place] = 0xe9;
    folder.write("latin.csv", latin);
    folder.fails("not_utf8_csv", 3, &["check", "latin.csv", "--outcome", "gmv"]);
}

#[test]
fn parquet_that_is_damaged() {
    let folder = Folder::new();
    folder.succeeds(&["simulate", "--out", "rides", "--rows", "400", "--test-rows", "10"]);
    let whole = folder.read("rides/train.parquet");
    folder.write("cut.parquet", &whole[..whole.len() / 2]);
    folder.fails("truncated_parquet", 3, &["check", "cut.parquet", "--outcome", "gmv"]);

    // A wrong byte gives the same numbers, other numbers or an error, but never a panic and never half a result.
    let args = ["check", "wrong.parquet", "--outcome", "gmv", "--permutations", "0", "--quiet"];
    let mut n_errors = 0;
    for flip in 0..60 {
        let mut bytes = whole.clone();
        let place = 4 + flip * (whole.len() - 12) / 60;
        bytes[place] ^= 0xff;
        folder.write("wrong.parquet", &bytes);
        let run = folder.run(&args);
        assert!(matches!(run.code, Some(0 | 3)), "byte {place}: {}", run.transcript());
        assert!(!run.stderr.contains("panicked"), "byte {place}: {}", run.transcript());
        if run.code == Some(3) {
            n_errors += 1;
            assert!(run.stderr.starts_with("error: wrong.parquet: "), "byte {place}: {}", run.transcript());
            assert_eq!(run.stdout, "");
        }
    }
    assert!(n_errors > 10, "only {n_errors} of 60 damaged files were noticed");
}

#[test]
fn wrong_sample_weights() {
    let weight = ["--weight", "w"];
    let third = |cell| move |line| (line == 3).then_some(cell);
    with_cell("w", third("-0.5")).fails("negative_weight", 3, &and(&CHECK, &weight));
    with_cell("w", third("NaN")).fails("nan_weight", 3, &and(&CHECK, &weight));
    with_cell("w", third("inf")).fails("infinite_weight", 3, &and(&CHECK, &weight));
    with_cell("w", |_| Some("0")).fails("zero_weights", 3, &and(&CHECK, &weight));
    with_cell("w", third("-0.5")).fails("negative_weight_evaluate", 3, &and(&EVALUATE, &weight));
    with_cell("w", |_| Some("0")).fails("zero_weights_evaluate", 3, &and(&EVALUATE, &weight));
}

#[test]
fn wrong_treatments() {
    with_cell("policy", |line| (line == 5).then_some("T3")).fails("unknown_policy_in_data", 3, &CHECK);
    with_cell("policy", |line| (line == 5).then_some("")).fails("null_policy", 3, &CHECK);
    with_cell("policy", |_| Some("T1")).fails("one_policy", 3, &CHECK);
    with_cell("policy", |_| Some("control")).fails("one_policy_evaluate", 3, &EVALUATE);
    let folder = unchanged();
    folder.fails("control_not_present", 3, &and(&CHECK, &["--control", "contrl"]));
    let factorial = ["check", "data.csv", "--treatment-columns", "policy,city", "--outcome", "gmv"];
    folder.fails("control_not_present_factorial", 2, &and(&factorial, &["--control", "city=Rome"]));
    let named = with_cell("policy", |line| Some(if line % 2 == 0 { "A" } else { "B" }));
    named.fails("no_control_evaluate", 3, &EVALUATE);
}

#[test]
fn wrong_outcomes_and_effects() {
    with_cell("gmv", |_| Some("")).fails("outcome_all_null", 3, &CHECK);
    with_cell("gmv", |line| (line == 9).then_some("NA")).fails("outcome_null", 3, &CHECK);
    with_cell("gmv", |line| (line == 9).then_some("n/a")).fails("outcome_with_a_word", 3, &CHECK);
    with_cell("gmv", |line| (line == 9).then_some("inf")).fails("outcome_infinite", 3, &CHECK);
    with_cell("tau", |line| (line == 2).then_some("")).fails("effect_null", 3, &EVALUATE);
    with_cell("tau", |_| Some("")).fails("effect_all_null", 3, &EVALUATE);
}

#[test]
fn wrong_populations() {
    let folder = unchanged();
    for (name, code, expression) in [
        ("population_empty", 3, "age > 200"),
        ("population_unknown_column", 2, "agee > 20"),
        ("population_syntax", 2, "age >"),
        ("population_type", 2, "city > 3"),
        ("population_unquoted_text", 2, "city = Rome"),
    ] {
        folder.fails(name, code, &and(&CHECK, &["--population", expression]));
    }
    folder.fails("population_empty_evaluate", 3, &and(&EVALUATE, &["--population", "age > 200"]));
}
