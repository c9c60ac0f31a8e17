//! Effects on public experiments, out of sample: they explain residual outcomes better than one effect for all, and no
//! worse than bilinear ridge. Skipped, saying so, where `../shared/data` is not there.

use poul::effect::Settings;

use super::experiments::{Experiment, HeldOut, charity_mail, conjoint};

/// Small networks: the test is about order, not about the last per cent.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.model.insert("members".into(), 2.into());
    settings.model.insert("hidden".into(), serde_json::json!([32, 16]));
    settings.model.insert("outcome_hidden".into(), serde_json::json!([32]));
    settings.training.insert("epochs".into(), 20.into());
    settings
}

/// R-scores against no effect, one effect for all, and ridge.
fn scores(name: &str, experiment: &Experiment) -> [(f64, [f64; 2]); 3] {
    let contrasts =
        |learner: &str, settings| experiment.contrasts(learner, &settings, HeldOut::People).unwrap();
    let (own, rival) = (contrasts("poul", settings()), contrasts("ridge", Settings::default()));
    let nothing = vec![0.0; own.len()];
    let scores = [&nothing, &experiment.constant, &rival].map(|other| experiment.r_score(&own, other));
    eprintln!("{name}: R-score against no effect, one effect for all, ridge: {scores:.5?}");
    scores
}

#[test]
fn a_conjoint_by_respondent() {
    let Some(experiment) = conjoint().unwrap() else { return };
    let [nothing, constant, ridge] = scores("conjoint", &experiment);
    assert!(nothing.1[0] > 0.0 && constant.1[0] > 0.0, "{nothing:?} {constant:?}");
    assert!(ridge.1[1] >= 0.0, "worse than ridge: {ridge:?}");
}

#[test]
fn a_mailing_of_36_arms() {
    // The grant moves one answer in 250: what is to be explained is 0.02 % of the variance.
    let Some(experiment) = charity_mail().unwrap() else { return };
    let [nothing, constant, ridge] = scores("mailing", &experiment);
    // One number for all arms is a hair better: they do not differ by more than their noise.
    assert!(nothing.0 > 0.0 && constant.1[1] > -2e-5, "{nothing:?} {constant:?}");
    assert!(ridge.1[1] >= 0.0, "worse than ridge: {ridge:?}");
}
