//! Effects of a whole table: every row and policy, in order, whatever the threads and the pieces; and arm means.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::data::{Encoder, EncoderParams, Need, Roles, Source};
use poul::effect::{EffectTable, OutcomeColumn, Question, Scorer, Scores, Settings, TrainingData, constant};
use poul::net::{DenseRows, RowSource};
use poul::policy::PolicySet;
use poul::stats::normal_quantile;
use poul::{Result, Run, Seed, Silent};

/// Effects that name their row and policy: x + 10·policy on the first outcome, twice that on the second.
struct Linear {
    n_targets: usize,
    members: bool,
}

impl Scorer for Linear {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let rows: Vec<u32> = (0..x.n_rows() as u32).collect();
        let mut values = vec![0.0; rows.len() * x.n_cols()];
        x.copy_rows(&rows, &mut values);
        let cells = values
            .chunks(x.n_cols())
            .flat_map(|row| (0..self.n_targets).map(|target| row[0] + 10.0 * target as f32));
        let first: Vec<f32> = cells.collect();
        let second: Vec<f32> = first.iter().map(|effect| 2.0 * effect).collect();
        let sd = vec![0.5; first.len()];
        let spread = if spread { vec![sd.clone(), sd] } else { Vec::new() };
        Ok(Scores { mean: vec![first, second], spread })
    }

    fn has_spread(&self) -> bool {
        self.members
    }
}

const N_ROWS: usize = 1000;

fn source(n_batches: usize) -> Source {
    let rows = N_ROWS / n_batches;
    let batch = |part: usize| {
        let range = part * rows..(part + 1) * rows;
        let ids = StringArray::from_iter_values(range.clone().map(|row| format!("u{row}")));
        let x = Float64Array::from_iter_values(range.map(|row| row as f64));
        let columns: Vec<(&str, ArrayRef)> = vec![("user", Arc::new(ids)), ("x", Arc::new(x))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..n_batches).map(batch).collect();
    Source::from_batches(batches[0].schema(), batches).unwrap()
}

fn encoder(source: &Source) -> Encoder {
    let roles = Roles { exclude: vec!["user".into()], ..Roles::default() };
    let columns = roles.check(source.schema(), Need::SCORE).unwrap();
    Encoder::fit(source, &columns, &EncoderParams::default().check().unwrap(), &Silent).unwrap()
}

fn write(path: &Path, roles: &Roles, n_policies: usize, members: bool, interval: Option<f64>) -> Result<u64> {
    let linear = Linear { n_targets: n_policies, members };
    write_as(false, &source(4), path, roles, &linear, interval)
}

fn write_as(
    wide: bool,
    source: &Source,
    path: &Path,
    roles: &Roles,
    linear: &Linear,
    interval: Option<f64>,
) -> Result<u64> {
    let encoder = encoder(&self::source(4));
    let n_policies = linear.n_targets;
    let columns = roles.check(source.schema(), Need { features: false, ..Need::SCORE })?;
    let columns = encoder.columns_for(columns, source.schema())?;
    let policies: Vec<String> = (0..n_policies).map(|policy| format!("T{policy}")).collect();
    let unseen = vec![0.25; n_policies];
    let table = EffectTable {
        encoder: &encoder,
        columns: &columns,
        exposure: None,
        scorer: linear,
        outcomes: &["gmv".to_owned(), "cost".to_owned()],
        policies: &policies,
        against: "control",
        interval,
        unseen_share: interval.map(|_| unseen.as_slice()),
        support: None,
        wide,
    };
    table.write(source, path, &Silent)
}

#[test]
fn every_row_and_policy_in_order() {
    // More pairs than one piece holds, and rows that no piece divides evenly.
    let n_policies = 1500;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.parquet");
    assert_eq!(write(&path, &Roles::default(), n_policies, false, None).unwrap(), 1_500_000);
    let written = Source::open(&path.to_string_lossy()).unwrap();
    assert_eq!(written.column_names(), ["row", "policy", "against", "effect_gmv", "effect_cost"]);
    let encoder = encoder(&source(1));
    let x = Float64Array::from_iter_values((0..N_ROWS).map(|row| row as f64));
    let mut encoded = vec![0.0; N_ROWS];
    encoder.encode(&[Arc::new(x)], &mut encoded).unwrap();
    let mut pair = 0;
    for batch in written.batches(&written.column_names(), 4096).unwrap() {
        let batch = batch.unwrap();
        let row = batch.column(0).as_primitive::<Int64Type>();
        let (policy, against) = (batch.column(1).as_string::<i32>(), batch.column(2).as_string::<i32>());
        let gmv = batch.column(3).as_primitive::<Float32Type>();
        let cost = batch.column(4).as_primitive::<Float32Type>();
        for i in 0..batch.num_rows() {
            let (expected_row, target) = (pair / n_policies, pair % n_policies);
            assert_eq!(row.value(i), expected_row as i64);
            assert_eq!((policy.value(i), against.value(i)), (format!("T{target}").as_str(), "control"));
            let expected = encoded[expected_row] + 10.0 * target as f32;
            assert_eq!((gmv.value(i), cost.value(i)), (expected, 2.0 * expected));
            pair += 1;
        }
    }
    assert_eq!(pair, N_ROWS * n_policies);
}

#[test]
fn wide_tables_have_the_cells_of_long_ones() {
    let folder = tempfile::tempdir().unwrap();
    let roles = Roles {
        id: vec!["user".into()],
        population: Some("x >= 500 and x < 503".into()),
        ..Roles::default()
    };
    let cells = |wide, name: &str| {
        let path = folder.path().join(name);
        let linear = Linear { n_targets: 2, members: true };
        let n_rows = write_as(wide, &source(4), &path, &roles, &linear, Some(0.9)).unwrap();
        assert_eq!(n_rows, if wide { 3 } else { 6 });
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    let (long, wide) = (cells(false, "long.csv"), cells(true, "wide.csv"));
    assert_eq!(
        wide[0].join(","),
        "user,effect_gmv_T0,effect_gmv_T1,effect_cost_T0,effect_cost_T1,\
         lower_gmv_T0,upper_gmv_T0,lower_gmv_T1,upper_gmv_T1,lower_cost_T0,upper_cost_T0,lower_cost_T1,upper_cost_T1,\
         unseen_share_T0,unseen_share_T1"
    );
    for line in &long[1..] {
        let row = wide[1..].iter().find(|row| row[0] == line[0]).unwrap();
        for (place, name) in long[0].iter().enumerate().skip(3) {
            let column = wide[0].iter().position(|own| *own == format!("{name}_{}", line[1])).unwrap();
            assert_eq!(row[column], line[place], "{name} of {}", line[0]);
        }
    }
}

#[test]
fn a_table_without_rows_has_no_effects() {
    let folder = tempfile::tempdir().unwrap();
    let empty = Source::from_batches(source(1).schema().clone(), Vec::new()).unwrap();
    for wide in [false, true] {
        let path = folder.path().join("none.csv");
        let linear = Linear { n_targets: 2, members: true };
        assert_eq!(write_as(wide, &empty, &path, &Roles::default(), &linear, None).unwrap(), 0);
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
    }
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["e.parquet", "e.csv"] {
        let bytes = [1, 3].map(|n_threads| {
            let path = folder.path().join(name);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| write(&path, &Roles::default(), 7, true, Some(0.9))).unwrap();
            std::fs::read(path).unwrap()
        });
        assert!(bytes[0] == bytes[1], "{name}");
    }
}

#[test]
fn ids_intervals_and_shares_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.csv");
    let roles = Roles {
        id: vec!["user".into()],
        population: Some("x >= 500 and x < 502".into()),
        ..Roles::default()
    };
    assert_eq!(write(&path, &roles, 2, true, Some(0.9)).unwrap(), 4);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        lines[0].join(","),
        "user,policy,against,effect_gmv,effect_cost,lower_gmv,upper_gmv,lower_cost,upper_cost,unseen_share"
    );
    let ids: Vec<&str> = lines[1..].iter().map(|line| line[0]).collect();
    assert_eq!(ids, ["u500", "u500", "u501", "u501"]);
    let number = |line: usize, column: usize| lines[line][column].parse::<f64>().unwrap();
    let half_width = 0.5 * normal_quantile(0.95);
    for line in 1..5 {
        assert!((number(line, 3) - number(line, 5) - half_width).abs() < 1e-5);
        assert!((number(line, 8) - number(line, 4) - half_width).abs() < 1e-5);
        assert_eq!(number(line, 9), 0.25);
    }
}

#[test]
fn what_cannot_be_written_is_told_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let message = |name: &str, id: &[&str], members, interval| {
        let roles = Roles { id: id.iter().map(|id| (*id).to_owned()).collect(), ..Roles::default() };
        write(&folder.path().join(name), &roles, 2, members, interval).unwrap_err().to_string()
    };
    assert!(message("e.xlsx", &[], true, None).contains("must end in"));
    assert_eq!(
        message("e.csv", &[], false, Some(0.9)),
        "the model has one member, so its effects have no interval"
    );
    assert_eq!(message("e.csv", &[], true, Some(1.0)), "an interval of level 1");
    assert!(message("no/e.csv", &[], true, None).contains("cannot write"));
    assert!(message("e.csv", &["none"], true, None).contains("no column `none`"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Effects of b and c against a by the learner `constant`, and their standard errors.
fn arm_means(policy: &[u32], y: &[f64], weight: Option<&[f64]>) -> (Vec<f32>, Vec<f32>) {
    let mut builder = PolicySet::builder();
    for (name, action) in [("a", "none"), ("b", "few"), ("c", "many"), ("never", "many")] {
        builder.add(name, "s", action, 0.9).add(name, "s", if name == "c" { "all" } else { "x" }, 0.1);
    }
    let policies = builder.build().unwrap();
    let x = vec![0.0; y.len()];
    let x = DenseRows::new(&x, 1).unwrap();
    let data = TrainingData {
        weight,
        control: Some(0),
        ..TrainingData::new(
            &x,
            &policies,
            policy,
            vec![OutcomeColumn { name: "y", values: y, prediction: None }],
        )
    };
    let data = data.check().unwrap();
    let trained = constant::train(&data, &Settings::default(), Run::new(Seed::new(1), &Silent)).unwrap();
    let question =
        Question { policies: vec!["b".into(), "c".into(), "never".into()], against: Some("a".into()) };
    let asked = question.ask(&policies, false).unwrap();
    let scorer = trained.effects.prepare(&policies, &asked.targets, asked.against).unwrap();
    assert_eq!(scorer.notes().len(), 1);
    let one = [0.0];
    let scores = scorer.score(&DenseRows::new(&one, 1).unwrap(), true).unwrap();
    (scores.mean[0].clone(), scores.spread[0].clone())
}

#[test]
fn the_constant_learner_compares_arm_means() {
    let policy = [0, 1, 2, 0, 1, 2, 1];
    let y = [1.0, 5.0, 2.0, 3.0, 6.0, 8.0, 7.0];
    let (effect, spread) = arm_means(&policy, &y, None);
    // a: 1, 3; b: 5, 6, 7; c: 2, 8. `never` takes c's mean, the nearest.
    assert_eq!(effect, [4.0, 3.0, 3.0]);
    // Variances over n: a 2/2, b 1/3, c 18/2.
    let expected = [(1.0_f64 + 1.0 / 3.0).sqrt(), 10.0_f64.sqrt()];
    assert!(spread.iter().zip(expected).all(|(found, expected)| (f64::from(*found) - expected).abs() < 1e-6));

    // Units scale, a constant does not matter, order does not matter, a weight of 2 is the row twice.
    let shifted: Vec<f64> = y.iter().map(|y| 1e7 + 10.0 * y).collect();
    assert_eq!(arm_means(&policy, &shifted, None).0, [40.0, 30.0, 30.0]);
    let (mut reversed_policy, mut reversed) = (policy, y);
    reversed_policy.reverse();
    reversed.reverse();
    assert_eq!(arm_means(&reversed_policy, &reversed, None).0, effect);
    let weighted = arm_means(&policy, &y, Some(&[1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0]));
    let twice = arm_means(&[0, 1, 2, 2, 0, 1, 2], &[1.0, 5.0, 2.0, 2.0, 3.0, 6.0, 8.0], None);
    assert_eq!(weighted.0, twice.0);
}
