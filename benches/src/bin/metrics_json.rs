//! Prints every ranking metric of a CSV of `score,outcome,treated[,weight]` as JSON.
//!
//! `cargo run --release -p benches --bin metrics_json -- rows.csv`; `tests/metrics/compare.py` holds the output against
//! other packages.

use std::error::Error;

use poul::evaluate::{
    Ranked, Sample, Strategy, ate, auuc, auuc_causalml, auuc_causalml_unnormalised, calibration,
    calibration_slope, dr_scores_randomized, qini, qini_auc_sklift, qini_causalml,
    qini_causalml_unnormalised, random_auuc, rate_autoc, rate_qini, uplift_at_k, uplift_auc_sklift,
};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: metrics_json ROWS.csv")?;
    let mut reader = csv::Reader::from_path(path)?;
    let headers = reader.headers()?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let place = |name: &str| column(name).ok_or_else(|| format!("there is no column `{name}`"));
    let (score_at, outcome_at, treated_at) = (place("score")?, place("outcome")?, place("treated")?);
    let weight_at = column("weight");

    let (mut score, mut outcome, mut treated, mut weight) = (vec![], vec![], vec![], vec![]);
    for record in reader.records() {
        let record = record?;
        score.push(record[score_at].parse::<f64>()?);
        outcome.push(record[outcome_at].parse::<f64>()?);
        treated.push(record[treated_at].parse::<f64>()? != 0.0);
        if let Some(at) = weight_at {
            weight.push(record[at].parse::<f64>()?);
        }
    }
    let mut sample = Sample::new(&score, &outcome, &treated)?;
    if weight_at.is_some() {
        sample = sample.with_weight(&weight)?;
    }
    let ranked = Ranked::new(&sample);
    let dr_score = dr_scores_randomized(&sample);
    let calibration = calibration(&ranked, 10);
    let slope = calibration_slope(&ranked);
    let ate = ate(&ranked);
    let at_k = |share, strategy| uplift_at_k(&ranked, share, strategy);
    let metrics = json!({
        "rows": sample.n_rows(),
        "ate": ate.map(|ate| ate.value),
        "ate_se": ate.and_then(|ate| ate.se),
        "auuc": auuc(&ranked),
        "random_auuc": random_auuc(&ranked),
        "qini": qini(&ranked),
        "auuc_causalml": auuc_causalml(&ranked),
        "auuc_causalml_unnormalised": auuc_causalml_unnormalised(&ranked),
        "qini_causalml": qini_causalml(&ranked),
        "qini_causalml_unnormalised": qini_causalml_unnormalised(&ranked),
        "uplift_auc_sklift": uplift_auc_sklift(&ranked),
        "qini_auc_sklift": qini_auc_sklift(&ranked, true),
        "qini_auc_sklift_positive": qini_auc_sklift(&ranked, false),
        "uplift_at_10": at_k(0.1, Strategy::Overall),
        "uplift_at_30": at_k(0.3, Strategy::Overall),
        "uplift_at_30_by_group": at_k(0.3, Strategy::ByGroup),
        "rate_autoc": rate_autoc(&ranked, &dr_score),
        "rate_qini": rate_qini(&ranked, &dr_score),
        "mape": calibration.mape,
        "wmape": calibration.wmape,
        "calibration_slope": slope.map(|slope| slope.value),
        "calibration_slope_se": slope.and_then(|slope| slope.se),
    });
    println!("{metrics:#}");
    Ok(())
}
