//! Tables of assignment probabilities by stratum.

use std::sync::Arc;

use poul::data::{Budget, Dataset, Design, EncoderParams, Need, Roles, Source};
use poul::nuisance::{Assignment, ObservedRows, Propensity, StratumTable, evaluated_nuisances};
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Run, Seed, Silent};

#[test]
fn the_table_of_a_stratified_simulation_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let simulation = Simulation {
        scenario: "stratified".into(),
        rows: 20_000,
        features: Some(8),
        policies: Some(5),
        ..Simulation::default()
    };
    run(&simulation.check().unwrap(), folder.path(), &Silent).unwrap();
    let set = PolicySet::read(&folder.path().join("policies.toml"), None).unwrap();
    let source = Source::open(folder.path().join("train.parquet").to_str().unwrap()).unwrap();
    let roles = Roles { outcome: vec!["y".into()], stratum: Some("stratum".into()), ..Roles::default() };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let encoder = EncoderParams::default().check().unwrap();
    let (data, _) =
        Dataset::read_and_fit(&source, &columns, &encoder, &Budget::of(1 << 30), &Silent).unwrap();
    let name = |code: &u32| data.treatment_labels[0].name(*code).unwrap();
    let policy: Vec<u32> =
        data.treatment[0].iter().map(|code| set.index(name(code)).unwrap() as u32).collect();
    let table = StratumTable::open(folder.path().join("strata.csv").to_str().unwrap(), set.names()).unwrap();
    assert_eq!(table.strata().collect::<Vec<_>>(), ["s1", "s2", "s3", "s4", "s5"]);
    let assignment = Assignment::new(set.names(), &policy);
    let (stratum, labels) = (data.stratum.as_ref().unwrap(), data.stratum_labels.names());
    let given = table.propensity(stratum, labels, &assignment).unwrap();
    let estimated = Propensity::strata(&policy, stratum, labels.len(), None, set.len());
    for row in 0..policy.len() {
        let pair = given.of_row(row, set.len()).iter().zip(estimated.of_row(row, set.len()));
        pair.for_each(|(given, estimated)| assert!((given - estimated).abs() < 0.04, "{given} {estimated}"));
    }
}

#[test]
fn what_is_wrong_with_a_table_of_strata_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["control", "t1"].map(String::from);
    let open = |text: &str| {
        let path = folder.path().join("strata.csv");
        std::fs::write(&path, format!("stratum,policy,probability\n{text}")).unwrap();
        StratumTable::open(path.to_str().unwrap(), &names)
    };
    let told = |text: &str| {
        let error = open(text).unwrap_err();
        assert!(error.hint_text().is_some() && error.to_string().contains("strata.csv: "), "{error}");
        error.to_string()
    };
    assert!(told("a,control,0.5\na,t1,0.4\n").contains("stratum `a`: the probabilities sum to 0.9, not 1"));
    assert!(told("a,control,0.5\na,t2,0.5\n").contains("row 1 (counted from 0): unknown policy `t2`"));
    assert!(told("a,control,1.5\na,t1,-0.5\n").contains("row 0 (counted from 0): the probability is 1.5"));
    assert!(
        told("a,control,0.5\na,control,0.5\n").contains("row 1 (counted from 0): policy `control` has two")
    );
    assert!(told("a,control,0.5\na,t1,\n").contains("row 1 (counted from 0): the probability is null"));
    assert!(told("a,control,half\na,t1,half\n").contains("column `probability`"));
    let path = folder.path().join("other.csv");
    std::fs::write(&path, "stratum,policy\na,control\n").unwrap();
    let error = StratumTable::open(path.to_str().unwrap(), &names).unwrap_err();
    assert!(error.to_string().contains("`probability`"), "{error}");

    let table = open("a,control,1\nb,control,0.5\nb,t1,0.5\n").unwrap();
    assert_eq!(table.probabilities("a"), Some([1.0, 0.0].as_slice()));
    let labels: [Arc<str>; 2] = ["b".into(), "a".into()];
    let given = |stratum: &[u32], labels: &[Arc<str>], policy: &[u32]| {
        table.propensity(stratum, labels, &Assignment::new(&names, policy))
    };
    assert_eq!(given(&[0, 1], &labels, &[1, 0]).unwrap().of_row(1, 2), [1.0, 0.0]);
    let error = given(&[0, 1], &labels, &[1, 1]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("row 1 (counted from 0) of the data: policy `t1` has probability 0 in stratum `a`")
    );
    let labels: [Arc<str>; 2] = ["b".into(), "c".into()];
    let error = given(&[0, 1], &labels, &[1, 1]).unwrap_err();
    assert!(error.to_string().contains("row 1 (counted from 0) of the data: unknown stratum `c`"), "{error}");
}

#[test]
fn a_stratified_design_without_strata_is_an_error() {
    let names = ["control".to_owned(), "t1".to_owned()];
    let policy: Vec<u32> = (0..20).map(|row| row % 2).collect();
    let stratum = vec![0; 20];
    let labels = [Arc::<str>::from("all")];
    let rows = ObservedRows { design: Design::Stratified, ..ObservedRows::new(&names, &policy) };
    let error = evaluated_nuisances(&rows, Run::new(Seed::new(1), &Silent)).unwrap_err();
    assert_eq!(error.to_string(), "a stratified design needs strata");
    let rows = ObservedRows { stratum: Some((&stratum, &labels)), ..rows };
    assert!(evaluated_nuisances(&rows, Run::new(Seed::new(1), &Silent)).unwrap().propensity.is_some());
}
