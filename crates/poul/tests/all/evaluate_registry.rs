//! A metric of the registry stands everywhere: in the JSON of evaluations and comparisons, and in the docs.

use std::fs;
use std::path::Path;

use poul::evaluate::{Bootstrap, Effects, Evaluation, Metric, Outcome, Params, Scored, evaluate};
use poul::{Seed, Silent};
use serde_json::Value;

/// Keys of a comparison that are no metrics of the registry.
const OTHERS: [&str; 11] = [
    "outcome",
    "policy",
    "against",
    "n_treated",
    "n_control",
    "uplift_at_k",
    "mape_flagged_bins",
    "calibration",
    "curve",
    "notes",
    "policies",
];

/// Two policies on rows whose effects are known.
fn evaluation(truth: bool) -> Evaluation {
    let n = 240;
    let x = |row: usize| (row * 37 % n) as f64 / n as f64;
    let arm: Vec<u32> = (0..n).map(|row| (row % 3) as u32).collect();
    let effect: Vec<f64> = (0..n).map(|row| 1.0 + 2.0 * x(row)).collect();
    let outcome: Vec<f64> = (0..n)
        .map(|row| (row * 53 % 17) as f64 / 17.0 + if arm[row] > 0 { effect[row] } else { 0.0 })
        .collect();
    let policies = ["control", "T1", "T2"].map(str::to_owned);
    let outcomes = [Outcome { name: "y", values: &outcome, prediction: None }];
    let of =
        |policy: usize| Effects { policy, outcome: None, values: &effect, truth: truth.then_some(&effect) };
    let effects = [of(1), of(2)];
    let table = Scored {
        outcomes: &outcomes,
        policies: &policies,
        arm: &arm,
        against: 0,
        effects: &effects,
        weight: None,
        cluster: None,
        propensity: None,
    };
    let params =
        Params { bootstrap: Bootstrap { draws: 20, level: 0.9, seed: Seed::new(1) }, ..Params::default() };
    evaluate(&table, &params.check().unwrap(), &Silent).unwrap()
}

/// The keys of the metrics that the registry says an evaluation has.
fn promised(truth: bool) -> Vec<String> {
    let mut keys = Vec::new();
    for metric in Metric::ARMS.iter().filter(|metric| truth || !metric.definition().needs_truth) {
        keys.push(metric.name().to_owned());
    }
    keys
}

#[test]
fn the_json_of_an_evaluation_has_every_metric_in_order_and_no_other() {
    for truth in [false, true] {
        let evaluation = evaluation(truth);
        let text = serde_json::to_string(&evaluation).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        for part in ["results", "pooled"] {
            let Value::Object(result) = &document[part][0] else { panic!("no object") };
            let is_of = |key: &str, metric: &str| {
                key == metric || ["_se", "_interval"].iter().any(|end| key.strip_suffix(end) == Some(metric))
            };
            let promised = promised(truth);
            let strange: Vec<&String> = result
                .keys()
                .filter(|key| !OTHERS.contains(&key.as_str()) && !promised.iter().any(|own| is_of(key, own)))
                .collect();
            assert!(strange.is_empty(), "{strange:?} are not in the registry");
            for metric in &promised {
                assert!(result.contains_key(metric), "`{metric}` is not in {part}");
            }
        }
        // The order is that of the registry.
        let places: Vec<usize> =
            promised(truth).iter().map(|name| text.find(&format!("\"{name}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        let again: Evaluation = serde_json::from_str(&text).unwrap();
        assert_eq!(again, evaluation);
        assert!(evaluation.results[0].metrics[Metric::Auuc].interval.is_some());
    }
}

#[test]
fn numbers_of_a_comparison_are_read_from_documents_with_fewer_and_with_more_keys() {
    let evaluation = evaluation(false);
    let mut document = serde_json::to_value(&evaluation).unwrap();
    let result = document["results"][0].as_object_mut().unwrap();
    assert!(result.remove("rate_qini").is_some());
    result.insert("of_a_later_version".to_owned(), 1.5.into());
    let read: Evaluation = serde_json::from_value(document.clone()).unwrap();
    let (own, read) = (&evaluation.results[0].metrics, &read.results[0].metrics);
    assert_eq!((own[Metric::Auuc], None), (read[Metric::Auuc], read[Metric::RateQini].value));
    document["results"][0].as_object_mut().unwrap().remove("n_treated");
    let error = serde_json::from_value::<Evaluation>(document).unwrap_err();
    assert!(error.to_string().contains("n_treated"), "{error}");
}

#[test]
fn the_page_of_metrics_explains_every_metric() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../book/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let missing: Vec<&str> = Metric::ARMS
        .iter()
        .chain(&Metric::ASSIGNED)
        .map(|metric| metric.name())
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "book/metrics.md does not explain {missing:?}");
}

#[test]
fn comparisons_measure_what_their_tables_show() {
    for metric in Metric::ARMS {
        let own = metric.definition();
        assert!(own.in_comparisons || own.compared.is_none(), "{metric} is shown and not measured");
    }
}
