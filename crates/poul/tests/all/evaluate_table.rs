//! The whole evaluation: several outcomes and policies in, one serialisable result out.

use std::sync::atomic::{AtomicU64, Ordering};

use poul::evaluate::{
    Bootstrap, CostPair, Effects, Evaluation, Metric, Outcome, Params, Ranked, Sample, Scored, ValidParams,
    auuc, evaluate,
};
use poul::{Kind, Progress, Seed, Silent};
use rand::RngExt;

struct Table {
    policies: Vec<String>,
    arm: Vec<u32>,
    gmv: Vec<f64>,
    cost: Vec<f64>,
    truth: Vec<Vec<f64>>,
    effects: Vec<Vec<f64>>,
    cluster: Vec<u32>,
}

/// Control, two policies of unequal size whose effects differ by row, and one with a single row.
fn table(n_rows: usize) -> Table {
    let mut rng = Seed::new(12).child("table").rng();
    let mut table = Table {
        policies: ["control", "T1", "T2", "T3"].map(str::to_owned).to_vec(),
        arm: vec![],
        gmv: vec![],
        cost: vec![],
        truth: vec![vec![]; 3],
        effects: vec![vec![]; 3],
        cluster: vec![],
    };
    for row in 0..n_rows {
        let arm = if row == 0 { 3 } else { [0, 0, 0, 1, 1, 1, 2][rng.random_range(0..7)] };
        let x: f64 = rng.random_range(0.0..2.0);
        let truths = [x, 2.0 - x + 1.0, 0.5];
        let effect = if arm == 0 { 0.0 } else { truths[arm as usize - 1] };
        table.arm.push(arm);
        table.gmv.push(5.0 + effect + rng.random_range(-1.0..1.0));
        table.cost.push(f64::from(u8::from(arm > 0)) * rng.random_range(0.5..1.5));
        table.cluster.push((row / 3) as u32);
        for (policy, truth) in truths.into_iter().enumerate() {
            table.truth[policy].push(truth);
            table.effects[policy].push(truth + rng.random_range(-0.3..0.3));
        }
    }
    table
}

fn params(draws: usize) -> ValidParams {
    let cost = Some(CostPair { value: "gmv".into(), cost: "cost".into() });
    Params { bootstrap: Bootstrap { draws, ..Bootstrap::default() }, cost, ..Params::default() }
        .check()
        .unwrap()
}

fn run(
    table: &Table,
    n_policies: usize,
    params: &ValidParams,
    progress: &dyn Progress,
) -> poul::Result<Evaluation> {
    let outcomes = [
        Outcome { name: "gmv", values: &table.gmv, prediction: None },
        Outcome { name: "cost", values: &table.cost, prediction: None },
    ];
    let effects: Vec<Effects<'_>> = (0..n_policies)
        .map(|policy| Effects {
            policy: policy + 1,
            outcome: Some(0),
            values: &table.effects[policy],
            truth: Some(&table.truth[policy]),
        })
        .collect();
    let scored = Scored {
        outcomes: &outcomes,
        policies: &table.policies,
        arm: &table.arm,
        against: 0,
        effects: &effects,
        weight: None,
        cluster: Some(&table.cluster),
        propensity: None,
    };
    evaluate(&scored, params, progress)
}

#[test]
fn every_number_is_there_or_explained() {
    let table = table(3000);
    let evaluation = run(&table, 3, &params(40), &Silent).unwrap();
    assert_eq!(evaluation.rows, 3000);
    let names: Vec<&str> = evaluation.results.iter().map(|result| result.policy.as_str()).collect();
    assert_eq!(names, ["T1", "T2", "T3"]);

    let metrics = &evaluation.results[0].metrics;
    assert!((metrics[Metric::Ate].value.unwrap() - 1.0).abs() < 0.1);
    assert!(metrics[Metric::Auuc].value.unwrap() > 0.6 && metrics[Metric::RandomAuuc].value == Some(0.5));
    let [low, high] = metrics[Metric::Auuc].interval.unwrap();
    assert!(low < metrics[Metric::Auuc].value.unwrap() && metrics[Metric::Auuc].value.unwrap() < high);
    assert!(
        (metrics[Metric::CalibrationSlope].value.unwrap() - 0.92).abs() < 0.15,
        "{:?}",
        metrics[Metric::CalibrationSlope].value
    );
    assert!(metrics[Metric::Pehe].value.unwrap() > 0.15 && metrics[Metric::Pehe].value.unwrap() < 0.2);
    assert!(metrics[Metric::RScore].value.unwrap() > 0.1);
    assert!(metrics[Metric::RateAutoc].value.unwrap() > 2.0 * metrics[Metric::RateAutoc].se.unwrap());
    assert!(metrics[Metric::UpliftAucSklift].value.is_none());
    assert!(metrics.notes.iter().any(|note| note.contains("0/1 outcomes only")), "{:?}", metrics.notes);
    assert_eq!((metrics.curve.len(), metrics.calibration.len(), metrics.uplift_at_k.len()), (101, 10, 3));
    let middle = metrics.curve[50];
    let [low, high] = middle.gain_interval.unwrap();
    assert!(low < middle.gain && middle.gain < high);

    let rare = &evaluation.results[2].metrics;
    assert_eq!((rare.n_treated, rare[Metric::Auuc].value), (1, None));
    assert!(rare.notes[0].starts_with("1 treated and "), "{:?}", rare.notes);
    let cost = &evaluation.cost_curves[0];
    assert!(cost.aucc.unwrap() > 0.6 && cost.random_aucc == Some(0.5) && cost.curve.len() == 101);
}

#[test]
fn json_has_the_documented_keys_and_reads_back() {
    let evaluation = run(&table(600), 2, &params(20), &Silent).unwrap();
    let json = serde_json::to_value(&evaluation).unwrap();
    let result = &json["results"][0];
    for key in [
        "outcome",
        "policy",
        "against",
        "n_treated",
        "n_control",
        "ate",
        "ate_se",
        "ate_interval",
        "ate_predicted",
        "auuc",
        "auuc_interval",
        "random_auuc",
        "qini",
        "qini_interval",
        "mape",
        "wmape",
        "calibration_slope",
        "curve",
        "notes",
    ] {
        assert!(!result[key].is_null(), "{key}");
        assert!(key == "policy" || !json["pooled"][0][key].is_null(), "pooled {key}");
    }
    assert_eq!(json["pooled"][0]["policies"], serde_json::json!(["T1", "T2"]));
    assert!(result.get("uplift_auc_sklift").is_some_and(serde_json::Value::is_null));
    assert_eq!(serde_json::from_value::<Evaluation>(json).unwrap(), evaluation);
}

#[test]
fn threads_do_not_change_a_byte() {
    let table = table(2500);
    let texts = [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        serde_json::to_string(&pool.install(|| run(&table, 2, &params(20), &Silent).unwrap())).unwrap()
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn a_single_policy_is_its_own_pool() {
    let evaluation = run(&table(1500), 1, &params(20), &Silent).unwrap();
    let (alone, pooled) = (&evaluation.results[0].metrics, &evaluation.pooled[0].metrics);
    assert_eq!(
        (alone[Metric::Auuc].value, alone[Metric::Qini].value, alone[Metric::Mape].value),
        (pooled[Metric::Auuc].value, pooled[Metric::Qini].value, pooled[Metric::Mape].value)
    );
    assert_eq!(
        (alone[Metric::Ate].value, alone[Metric::Ate].se),
        (pooled[Metric::Ate].value, pooled[Metric::Ate].se)
    );
}

#[test]
fn pooling_balances_rare_and_common_policies() {
    // T1 does nothing for 1000 rows, T2 brings 1 for ten, and the scores know: the best ranking has AUUC near 1.
    let arm: Vec<u32> = (0..2010)
        .map(|row| {
            if row < 1000 {
                0
            } else if row < 2000 {
                1
            } else {
                2
            }
        })
        .collect();
    let outcome: Vec<f64> =
        (0..2010).map(|row| f64::from(row % 2) + if row < 2000 { 0.0 } else { 1.0 }).collect();
    let effects = [
        Effects { policy: 1, outcome: None, values: &[0.0; 2010], truth: None },
        Effects { policy: 2, outcome: None, values: &[1.0; 2010], truth: None },
    ];
    let scored = Scored {
        outcomes: &[Outcome { name: "y", values: &outcome, prediction: None }],
        policies: &["control".to_owned(), "T1".to_owned(), "T2".to_owned()],
        arm: &arm,
        against: 0,
        effects: &effects,
        weight: None,
        cluster: None,
        propensity: None,
    };
    let params = Params { bootstrap: Bootstrap { draws: 0, ..Bootstrap::default() }, ..Params::default() };
    let evaluation = evaluate(&scored, &params.check().unwrap(), &Silent).unwrap();
    let pooled = &evaluation.pooled[0].metrics;
    assert!(
        (pooled[Metric::Ate].value.unwrap() - 10.0 / 1010.0).abs() < 1e-9,
        "{:?}",
        pooled[Metric::Ate].value
    );
    assert!((pooled[Metric::Auuc].value.unwrap() - 0.995).abs() < 0.002, "{:?}", pooled[Metric::Auuc].value);
    assert!(pooled.notes.iter().any(|note| note.starts_with("intervals: ")));
}

#[test]
fn numbers_agree_with_the_plain_functions() {
    let table = table(900);
    let evaluation = run(&table, 2, &params(20), &Silent).unwrap();
    let rows: Vec<usize> = (0..900).filter(|row| matches!(table.arm[*row], 0 | 2)).collect();
    let score: Vec<f64> = rows.iter().map(|row| table.effects[1][*row]).collect();
    let outcome: Vec<f64> = rows.iter().map(|row| table.gmv[*row]).collect();
    let treated: Vec<bool> = rows.iter().map(|row| table.arm[*row] == 2).collect();
    let ranked = Ranked::new(&Sample::new(&score, &outcome, &treated).unwrap());
    assert_eq!(evaluation.results[1].metrics[Metric::Auuc].value, auuc(&ranked));
}

#[test]
fn errors_name_row_and_column() {
    let mut wrong = table(300);
    let row = wrong.arm.iter().position(|arm| *arm == 1).unwrap();
    wrong.gmv[row] = f64::NAN;
    let error = run(&wrong, 2, &params(20), &Silent).unwrap_err();
    assert_eq!(error.to_string(), format!("row {row} (counted from 0): the outcome `gmv` is NaN"));
    let mut wrong = table(300);
    wrong.effects[1].pop();
    let error = run(&wrong, 2, &params(20), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "effects of `T2`: 299 values for 300 rows");
    let cost = Some(CostPair { value: "gvm".into(), cost: "cost".into() });
    let params = Params { cost, ..Params::default() }.check().unwrap();
    let error = run(&table(300), 2, &params, &Silent).unwrap_err();
    assert_eq!(error.to_string(), "unknown outcome `gvm`");
}

#[derive(Default)]
struct Watch {
    total: AtomicU64,
    done: AtomicU64,
    stop: bool,
}

impl Progress for Watch {
    fn start(&self, _: &str, _: &str, total: Option<u64>) {
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }

    fn advance(&self, n: u64) {
        self.done.fetch_add(n, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stop
    }
}

#[test]
fn progress_adds_up_and_a_stop_is_heard() {
    let table = table(400);
    let watch = Watch::default();
    run(&table, 2, &params(20), &watch).unwrap();
    assert_eq!(watch.total.load(Ordering::Relaxed), watch.done.load(Ordering::Relaxed));
    let stopped = Watch { stop: true, ..Watch::default() };
    assert_eq!(run(&table, 2, &params(20), &stopped).unwrap_err().kind(), Kind::Cancelled);
}
