//! Values printed by causalml 0.18.0 and scikit-uplift 0.5.1, and derived from grf's definition.

use poul::evaluate::{
    Bootstrap, Ranked, Sample, Strategy, auuc, auuc_causalml, auuc_causalml_unnormalised, qini,
    qini_auc_sklift, qini_causalml, rate, rate_autoc, rate_qini, uplift_at_k, uplift_auc_sklift,
};
use poul::{Seed, Silent};

const OUTCOME: [f64; 10] = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
const TREATED: [bool; 10] = [true, false, true, false, true, false, true, true, false, false];
const SCORE: [f64; 10] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05];
const TIED: [f64; 10] = [0.9, 0.9, 0.7, 0.7, 0.5, 0.5, 0.3, 0.3, 0.1, 0.1];
const DR_SCORE: [f64; 10] = [2.0, -1.0, 1.5, 0.5, 0.0, 0.25, 1.0, -0.5, 0.0, 0.1];

fn ranked(score: &[f64]) -> Ranked {
    Ranked::new(&Sample::new(score, &OUTCOME, &TREATED).unwrap())
}

#[track_caller]
fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
}

#[test]
fn causalml_values() {
    let ranked = ranked(&SCORE);
    close(auuc_causalml(&ranked), 0.933_333_333_333);
    close(auuc_causalml_unnormalised(&ranked), 1.866_666_666_667);
    close(qini_causalml(&ranked), 0.568_181_818_182);
    // Without ties the two conventions of Qini are one, and the two of AUUC differ by the number of points.
    close(qini(&ranked), 0.568_181_818_182);
    close(auuc(&ranked), 0.933_333_333_333 * 11.0 / 10.0);
}

#[test]
fn sklift_values() {
    let untied = ranked(&SCORE);
    close(uplift_auc_sklift(&untied), 0.391_927_083_333);
    close(qini_auc_sklift(&untied, true), 0.364_864_864_865);
    close(qini_auc_sklift(&untied, false), 1.5);
    close(uplift_at_k(&untied, 0.5, Strategy::Overall), 0.166_666_666_667);
    close(uplift_at_k(&untied, 0.5, Strategy::ByGroup), 0.5);
    let tied = ranked(&TIED);
    close(uplift_auc_sklift(&tied), 0.322_916_666_667);
    close(qini_auc_sklift(&tied, true), 0.252_252_252_252);
}

#[test]
fn grf_values() {
    let ranked = ranked(&SCORE);
    close(rate_autoc(&ranked, &DR_SCORE), 0.325_255_952_381);
    close(rate_qini(&ranked, &DR_SCORE), 0.091_75);
    let bootstrap = Bootstrap { seed: Seed::new(1), ..Bootstrap::default() };
    let rate = rate(&ranked, &DR_SCORE, &bootstrap, &Silent).unwrap().unwrap();
    close(Some(rate.autoc), 0.325_255_952_381);
    assert!(rate.autoc_se.unwrap() > 0.0 && rate.qini_se.unwrap() > 0.0);
}

#[test]
fn sklift_needs_both_outcomes_and_nothing_else() {
    let continuous: Vec<f64> = OUTCOME.iter().map(|outcome| outcome * 2.0).collect();
    let doubled = Ranked::new(&Sample::new(&SCORE, &continuous, &TREATED).unwrap());
    assert_eq!(uplift_auc_sklift(&doubled), None);
    assert_eq!(qini_auc_sklift(&doubled, true), None);
    let never = Ranked::new(&Sample::new(&SCORE, &[0.0; 10], &TREATED).unwrap());
    assert_eq!(uplift_auc_sklift(&never), None);
    // A negative average effect leaves no perfect curve that only rises.
    let flipped: Vec<bool> = TREATED.iter().map(|treated| !treated).collect();
    let negative = Ranked::new(&Sample::new(&SCORE, &OUTCOME, &flipped).unwrap());
    assert!(qini_auc_sklift(&negative, true).is_some());
    assert_eq!(qini_auc_sklift(&negative, false), None);
}
