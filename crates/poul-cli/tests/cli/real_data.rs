//! Public experiments, used as a person would; skipped, saying so, where `../shared/data` is not there.

use std::path::PathBuf;

use serde_json::Value;

use crate::harness::Folder;

/// The folder of public experiments beside the repository.
pub(crate) fn shared_data() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    path.is_dir().then_some(path)
}

/// The path of a file, or a line that says why the test does nothing.
fn shared(name: &str) -> Option<String> {
    let found = shared_data().map(|folder| folder.join(name)).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not in ../shared/data");
    }
    found.map(|path| path.to_string_lossy().into_owned())
}

fn arm<'v>(profile: &'v Value, policy: &str) -> &'v Value {
    let arms = profile["arms"].as_array().expect("arms");
    arms.iter().find(|arm| arm["policy"] == policy).unwrap_or_else(|| panic!("no {policy} in {arms:?}"))
}

fn p_of_balance(profile: &Value) -> f64 {
    profile["balance"]["p_value"].as_f64().expect("a balance test")
}

const HILLSTROM: [&str; 6] = ["--treatment", "segment", "--control", "No E-Mail", "--outcome", "visit"];

#[test]
fn hillstrom_is_balanced_until_outcomes_are_taken_for_features() {
    let Some(data) = shared("hillstrom.csv.gz") else { return };
    let folder = Folder::new();
    let check = [&["check", &data][..], &HILLSTROM, &["--json", "-"]].concat();
    let profile = folder.json(&[&check[..], &["--exclude", "conversion,spend"]].concat());
    assert_eq!(profile["rows"], 64_000);
    assert_eq!(arm(&profile, "No E-Mail")["rows"], 21_306);
    assert!((arm(&profile, "Mens E-Mail")["share"].as_f64().expect("a share") - 0.333).abs() < 0.001);
    assert!(
        (arm(&profile, "Mens E-Mail")["outcome_means"][0].as_f64().expect("a mean") - 0.1828).abs() < 1e-4
    );
    assert!(p_of_balance(&profile) > 0.05, "{}", p_of_balance(&profile));
    assert_eq!(profile["outcomes"][0]["binary"], true);

    let careless = folder.json(&check);
    assert!(p_of_balance(&careless) <= 0.01, "{}", p_of_balance(&careless));
    let columns = careless["post_treatment_columns"].as_array().expect("columns");
    assert!(columns.contains(&"conversion".into()), "{columns:?}");
}

#[test]
fn hillstrom_scores_evaluate() {
    let Some(data) = shared("hillstrom.csv.gz") else { return };
    let folder = Folder::new();
    let args = [&["evaluate", &data, "--effects", "history", "--draws", "0", "--json", "-"][..], &HILLSTROM]
        .concat();
    let metrics = folder.json(&args);
    assert_eq!(metrics["results"].as_array().map(Vec::len), Some(2));
    let mens = metrics["results"].as_array().expect("results").iter().find(|r| r["policy"] == "Mens E-Mail");
    let ate = mens.and_then(|result| result["ate"].as_f64()).expect("an effect");
    assert!((ate - 0.0766).abs() < 5e-4, "{ate}");
}

#[test]
fn voters_were_assigned_by_household() {
    let Some(data) = shared("gotv_social_pressure2008.csv.gz") else { return };
    let folder = Folder::new();
    let check = ["check", &data, "--treatment", "treatment", "--cluster", "hh_id", "--outcome"];
    // `voted` is Yes or No: which of them is 1 is not for the tool to guess.
    let run = folder.run(&[&check[..], &["voted"]].concat());
    assert_eq!(run.code, Some(3), "{}", run.transcript());
    assert!(run.stderr.contains("column `voted`: is text"), "{}", run.transcript());
    assert!(run.stderr.contains("write yes and no as 1 and 0"), "{}", run.transcript());
    // Names carry a leading space in this file.
    let run = folder.run(&[&check[..], &["hh_size", "--control", "Control"]].concat());
    assert_eq!(run.code, Some(3), "{}", run.transcript());
    assert!(run.stderr.contains("did you mean ` Control`?"), "{}", run.transcript());

    let check = [&check[..], &["hh_size", "--control", " Control", "--json", "-"]].concat();
    let profile = folder.json(&[&check[..], &["--exclude", "voted"]].concat());
    assert_eq!(profile["rows"], 344_084);
    assert_eq!(profile["units"], 180_002);
    assert!(p_of_balance(&profile) > 0.05, "{}", p_of_balance(&profile));
    let careless = folder.json(&check);
    let columns = careless["post_treatment_columns"].as_array().expect("columns");
    assert!(columns.iter().any(|column| column.as_str().is_some_and(|name| name.starts_with("voted"))));
    assert_eq!(careless["findings"][0]["level"], "problem");
}

#[test]
fn a_conjoint_is_factorial() {
    let Some(data) = shared("conjoint_immigration_hh2015.csv.gz") else { return };
    let folder = Folder::new();
    let columns = "Education,Gender,Country of Origin,Reason for Application,Job,Job Experience,Job Plans,Prior Entry,\
        Language Skills";
    let args = ["check", &data, "--treatment-columns", columns, "--cluster", "CaseID", "--outcome"];
    let args = [&args[..], &["Chosen_Immigrant", "--features", "ethnocentrism"]].concat();
    let profile = folder.json(&[&args[..], &["--json", "-"]].concat());
    assert_eq!(profile["rows"], 13_960);
    assert_eq!(profile["arms"].as_array().map(Vec::len), Some(13_846));
    assert_eq!(profile["atoms"].as_array().map(Vec::len), Some(50));
    assert!(p_of_balance(&profile) > 0.01, "{}", p_of_balance(&profile));
    let text = folder.succeeds(&args);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 320), "{widest:?}: names of combinations fill the screen");
}

#[test]
fn a_conjoint_is_evaluated_on_other_people() {
    let Some(data) = shared("conjoint_immigration_hh2015.csv.gz") else { return };
    let folder = Folder::new();
    let columns = "Education,Gender,Country of Origin,Reason for Application,Job,Job Experience,Job Plans,Prior Entry,\
        Language Skills";
    let fit = [
        "fit",
        &data,
        "--treatment-columns",
        columns,
        "--cluster",
        "CaseID",
        "--outcome",
        "Chosen_Immigrant",
    ];
    let more = [
        "--features",
        "ethnocentrism",
        "--population",
        "CaseID < 787",
        "--learner",
        "ridge",
        "--out",
        "model",
    ];
    folder.succeeds(&[&fit[..], &more].concat());
    let evaluate =
        ["evaluate", "model", &data, "--population", "CaseID >= 787", "--no-checks", "--json", "-"];
    let found = folder.json(&evaluate);
    assert_eq!(found["thin_arms"], true);
    for policies in ["all", "new"] {
        let entries = found["assigned"].as_array().expect("entries");
        let own = entries.iter().find(|own| own["policies"] == policies).expect("an entry");
        let number = |name: &str| own[name].as_f64().expect("a number");
        // The nine attributes explain some of the choices of people who were not asked before, at about the right size.
        assert!(number("r_score") > 0.03 && number("r_score") < 0.3, "{own}");
        assert!((number("slope") - 1.0).abs() < 0.25 && number("slope_se") < 0.1, "{own}");
        assert!(own["rank_gain_interval"][0].as_f64().is_some_and(|low| low > 0.1), "{own}");
    }
}

#[test]
fn a_mailing_with_columns_that_know_too_much() {
    let Some(data) = shared("charitable_karlan_list2007.csv.gz") else { return };
    let folder = Folder::new();
    let arms = "treat_ratio2,treat_ratio3,treat_size25,treat_size50,treat_size100,treat_sizeno,treat_askd1,\
        treat_askd2,treat_askd3";
    let args = ["check", &data, "--treatment-columns", arms, "--outcome", "out_gavedum,out_amountgive"];
    let run = folder.run(&args);
    assert_eq!(run.code, Some(3), "{}", run.transcript());
    assert!(run.stderr.contains("column `out_amountgive`: the outcome is null"), "{}", run.transcript());
    let keep = ["--population", "out_amountgive is not null", "--exclude", "treatment", "--json", "-"];
    let profile = folder.json(&[&args[..], &keep].concat());
    assert_eq!(profile["rows"], 50_081);
    assert_eq!(profile["arms"].as_array().map(Vec::len), Some(37));
    assert_eq!(profile["atoms"].as_array().map(Vec::len), Some(18));

    // The parts of the treatment, taken for features, give it away.
    let args = ["check", &data, "--treatment", "treatment", "--control", "0", "--outcome", "out_gavedum"];
    let profile = folder.json(&[&args[..], &["--json", "-"]].concat());
    let columns = profile["post_treatment_columns"].as_array().expect("columns");
    assert!(columns.contains(&"treat_ratio2".into()), "{columns:?}");
    assert!((arm(&profile, "1")["share"].as_f64().expect("a share") - 2.0 / 3.0).abs() < 0.001);
}

#[test]
fn a_file_without_a_header_is_told() {
    let Some(data) = shared("ihdp/ihdp_npci_1.csv") else { return };
    let run = Folder::new().run(&["check", &data, "--treatment", "t", "--outcome", "yf"]);
    assert_eq!(run.code, Some(3), "{}", run.transcript());
    assert!(run.stderr.contains("looks like data: add a line of names above it"), "{}", run.transcript());
}
