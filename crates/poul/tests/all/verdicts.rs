//! What an evaluation amounts to: neither a constant nor a random learner is ever called good, a true one is.

use poul::evaluate::{
    AverageEffect, Bootstrap, Effects, Evaluation, Grade, Metric, Metrics, Number, Outcome, Params,
    PolicyResult, Scored, Validation, Verdict, Verdicts, evaluate, verdicts,
};
use poul::{Seed, Silent};
use rand::{Rng, RngExt};

/// What a learner says of a policy (1, 2, …) for a user with `x`.
type Learner = fn(usize, f64, &mut dyn Rng) -> f64;

/// An experiment of 2,400 rows on control and `n_policies`: effects are policy · (0.5 + x), x in [0, 2), skewed noise.
fn judged(seed: u64, n_policies: usize, learner: Learner) -> Verdicts {
    let mut rng = Seed::new(seed).child("experiment").rng();
    let n_rows = 2_400;
    let arm: Vec<u32> = (0..n_rows).map(|_| rng.random_range(0..=n_policies as u32)).collect();
    let x: Vec<f64> = (0..n_rows).map(|_| rng.random_range(0.0..2.0)).collect();
    let noise = |rng: &mut poul::Rng| rng.random_range(-1.5_f64..1.5).exp();
    let gmv: Vec<f64> =
        arm.iter().zip(&x).map(|(arm, x)| f64::from(*arm) * (0.5 + x) + noise(&mut rng)).collect();
    let mut rng = Seed::new(seed).child("learner").rng();
    let columns: Vec<Vec<f64>> =
        (1..=n_policies).map(|policy| x.iter().map(|x| learner(policy, *x, &mut rng)).collect()).collect();
    let policies: Vec<String> = (0..=n_policies).map(|policy| format!("T{policy}")).collect();
    let effects: Vec<Effects<'_>> = columns
        .iter()
        .enumerate()
        .map(|(place, values)| Effects { policy: place + 1, outcome: None, values, truth: None })
        .collect();
    let table = Scored {
        outcomes: &[Outcome { name: "gmv", values: &gmv, prediction: None }],
        policies: &policies,
        arm: &arm,
        against: 0,
        effects: &effects,
        weight: None,
        cluster: None,
        propensity: None,
    };
    let bootstrap = Bootstrap { draws: 60, ..Bootstrap::default() };
    let params = Params { bootstrap, ..Params::default() }.check().unwrap();
    verdicts(&evaluate(&table, &params, &Silent).unwrap())
}

#[test]
fn a_constant_learner_is_never_good() {
    for seed in 0..50 {
        for n_policies in [1, 3] {
            let found = judged(seed, n_policies, |policy, _, _| 1.5 * policy as f64);
            let ranking = &found.outcomes[0].ranking;
            assert_eq!(ranking.grade, Grade::Poor, "seed {seed}: {}", ranking.text);
            assert!(ranking.text.contains("every user gets the same predicted effect"), "{}", ranking.text);
            assert!(found.conclusion.contains("who gains more is not established"), "{}", found.conclusion);
        }
    }
}

#[test]
fn a_random_learner_is_never_good() {
    for seed in 0..50 {
        for n_policies in [1, 3] {
            // Larger effects for later policies, as a learner would have them: pooled, it ranks policies.
            let found =
                judged(seed, n_policies, |policy, _, rng| policy as f64 * (1.0 + rng.random_range(0.0..1.0)));
            let ranking = &found.outcomes[0].ranking;
            assert_ne!(ranking.grade, Grade::Good, "seed {seed}: {}", ranking.text);
        }
    }
}

#[test]
fn a_true_learner_is_good_and_one_wrong_policy_is_named() {
    let judge = |seed: u64| judged(seed, 3, |policy, x, _| policy as f64 * (0.5 + x));
    // Intervals of 90 % miss now and then: the truth is good in most draws, not in all.
    let all: Vec<_> = (0..10).map(judge).collect();
    let n_good = all.iter().filter(|found| found.outcomes[0].sizes.grade == Grade::Good).count();
    assert!(n_good >= 6, "{n_good} of 10 are good");
    let is_good = |grade: Grade| grade == Grade::Good;
    let truth = all.into_iter().find(|found| is_good(found.outcomes[0].sizes.grade)).unwrap();
    let own = &truth.outcomes[0];
    assert_eq!((own.ranking.grade, own.sizes.grade), (Grade::Good, Grade::Good), "{own:?}");
    assert!(own.ranking.policies.iter().all(|policy| policy.passes));
    assert!(own.pooled.as_ref().unwrap().contains("ranks policies and users together"));
    assert!(
        truth
            .conclusion
            .starts_with("If the experiment was sound, which was not checked here, T3 raises gmv by about"),
        "{}",
        truth.conclusion
    );
    assert!(truth.conclusion.contains("the 30 % of users ranked highest gain about"), "{}", truth.conclusion);

    let mixed = judged(5, 3, |policy, x, _| if policy == 2 { 3.0 } else { policy as f64 * (0.5 + x) });
    let ranking = &mixed.outcomes[0].ranking;
    assert_eq!(ranking.grade, Grade::Mixed);
    assert!(
        ranking.text.contains("2 of 3 policies, but not within T2 (every user gets the same"),
        "{}",
        ranking.text
    );

    // The opposite order.
    let worse = judged(5, 3, |policy, x, _| policy as f64 * (2.5 - x));
    assert_eq!(worse.outcomes[0].ranking.grade, Grade::Poor, "{}", worse.outcomes[0].ranking.text);
}

/// Two policies with everything in order.
fn sound() -> Evaluation {
    let number = |value: f64, se: f64| Number { value: Some(value), se: Some(se), interval: None };
    let metrics = |slope: f64| {
        let mut metrics = Metrics { n_treated: 5_000, n_control: 5_000, ..Metrics::default() };
        metrics[Metric::Ate] = number(6.0, 0.5);
        metrics[Metric::RateQini] = number(0.8, 0.1);
        let interval = Some([slope - 0.16, slope + 0.16]);
        metrics[Metric::CalibrationSlope] = Number { interval, ..number(slope, 0.1) };
        metrics
    };
    let result = |policy: &str| PolicyResult {
        outcome: "gmv".into(),
        policy: policy.into(),
        against: "control".into(),
        metrics: metrics(1.05),
    };
    let average = |policy: &str| AverageEffect {
        outcome: "gmv".into(),
        policy: policy.into(),
        effect: Some(6.1),
        se: Some(0.4),
        band: Some([5.2, 7.0]),
        predicted: Some(6.3),
        ..AverageEffect::default()
    };
    Evaluation {
        rows: 15_000,
        level: 0.9,
        results: vec![result("T1"), result("T2")],
        averages: vec![average("T1"), average("T2")],
        ..Evaluation::default()
    }
}

fn checked(name: &str, verdict: Verdict) -> Option<Validation> {
    let check = poul::evaluate::CheckResult { name: name.into(), verdict, text: String::new() };
    Some(Validation { checks: vec![check], ..Validation::default() })
}

#[test]
fn sizes_are_those_of_every_policy() {
    let sizes = |change: &dyn Fn(&mut Evaluation)| {
        let mut evaluation = sound();
        change(&mut evaluation);
        verdicts(&evaluation).outcomes.remove(0).sizes
    };
    assert_eq!(sizes(&|_| {}).grade, Grade::Good);
    let slope = |evaluation: &mut Evaluation, slope: f64, half: f64| {
        let metrics = &mut evaluation.results[1].metrics;
        metrics[Metric::CalibrationSlope].value = Some(slope);
        metrics[Metric::CalibrationSlope].se = Some(half / 1.645);
        metrics[Metric::CalibrationSlope].interval = Some([slope - half, slope + half]);
    };
    let steep = sizes(&|evaluation| slope(evaluation, 2.9, 0.5));
    assert_eq!(steep.grade, Grade::Mixed);
    assert!(
        steep.text.contains("not within T2 (predicted differences between users are too small: slope 2.90"),
        "{}",
        steep.text
    );
    // So uncertain that it holds 1 and much else: that is no agreement.
    let vague = sizes(&|evaluation| slope(evaluation, 1.8, 0.9));
    assert_eq!(vague.grade, Grade::Mixed);
    assert!(vague.text.contains("is too uncertain"), "{}", vague.text);
    let off = sizes(&|evaluation| evaluation.averages[0].predicted = Some(9.0));
    assert_eq!(off.grade, Grade::Mixed);
    assert!(
        off.text.contains("T1 (predicted average 9.00 is outside the observed band 5.20 … 7.00)"),
        "{}",
        off.text
    );
    let all = sizes(&|evaluation| evaluation.averages.iter_mut().for_each(|own| own.predicted = Some(9.0)));
    assert_eq!(all.grade, Grade::Poor);
    let thin = sizes(&|evaluation| evaluation.results.iter_mut().for_each(|own| own.metrics.n_treated = 20));
    assert_eq!(thin.grade, Grade::Undecided);
}

#[test]
fn one_policy_just_beyond_chance_is_not_good() {
    let grade = |z: f64, n_policies: usize| {
        let mut evaluation = sound();
        evaluation.results.truncate(n_policies);
        evaluation.results.iter_mut().for_each(|own| own.metrics[Metric::RateQini].se = Some(0.8 / z));
        verdicts(&evaluation).outcomes[0].ranking.grade
    };
    // 95 % is for each, 99.9 % for all together.
    assert_eq!([1.5, 2.5, 3.2].map(|z| grade(z, 1)), [Grade::Undecided, Grade::Undecided, Grade::Good]);
    // Two that share half of their variance: z of the mean is z·√(2/1.5).
    assert_eq!([2.5, 2.8].map(|z| grade(z, 2)), [Grade::Undecided, Grade::Good]);
}

#[test]
fn tables_that_differ_are_explained() {
    let said = |change: &dyn Fn(&mut Evaluation)| {
        let mut evaluation = sound();
        change(&mut evaluation);
        verdicts(&evaluation).outcomes.remove(0).difference
    };
    assert_eq!(said(&|_| {}), None);
    let apart = |evaluation: &mut Evaluation, effect: f64, design: &str| {
        evaluation.averages[0].effect = Some(effect);
        evaluation.provenance =
            Some(poul::evaluate::Provenance { design: Some(design.into()), ..Default::default() });
    };
    let chance = said(&|evaluation| apart(evaluation, 6.5, "randomized")).unwrap();
    assert!(
        chance.starts_with(
            "On gmv the difference in means of T1 is +6.00 and the doubly robust average +6.50: "
        ),
        "{chance}"
    );
    assert!(chance.contains("no more than chance allows"), "{chance}");
    let more = said(&|evaluation| apart(evaluation, 9.0, "randomized")).unwrap();
    assert!(more.contains("look at the balance of features"), "{more}");
    let observed = said(&|evaluation| apart(evaluation, 9.0, "observational")).unwrap();
    assert!(observed.contains("adjusts for who received which policy"), "{observed}");
}

#[test]
fn nothing_is_claimed_where_a_check_fails() {
    let said = |change: &dyn Fn(&mut Evaluation)| {
        let mut evaluation = sound();
        change(&mut evaluation);
        verdicts(&evaluation).conclusion
    };
    let passed = said(&|evaluation| evaluation.validation = checked("Balance", Verdict::Pass));
    assert_eq!(
        passed,
        "T1 raises gmv by about 6.10 per user (90 % sure: 5.20 to 7.00); the ranking tells who gains more."
    );
    let doubt = said(&|evaluation| evaluation.validation = checked("Overlap", Verdict::Doubt));
    assert!(doubt.starts_with("Subject to a look at Overlap, T1 raises gmv"), "{doubt}");
    let failed = said(&|evaluation| evaluation.validation = checked("Balance", Verdict::Fail));
    assert_eq!(failed, "No claim is made about gmv: the experiment failed a check (Balance).");
    let none = said(&|evaluation| {
        evaluation.validation = checked("Balance", Verdict::Pass);
        evaluation.averages.iter_mut().for_each(|own| own.band = Some([-0.5, 12.0]));
    });
    assert_eq!(none, "No policy is shown to change gmv: every effect may be zero.");
    let lowers = said(&|evaluation| {
        for own in &mut evaluation.averages {
            (own.effect, own.band) = (Some(-6.1), Some([-7.0, -5.2]));
        }
    });
    assert!(lowers.contains("T1 lowers gmv by about 6.10 per user (90 % sure: 5.20 to 7.00)"), "{lowers}");
}

#[test]
fn verdicts_survive_the_metrics_file() {
    let mut evaluation = sound();
    evaluation.verdicts = Some(verdicts(&evaluation));
    let text = serde_json::to_string(&evaluation).unwrap();
    assert!(text.contains("\"grade\":\"good\""));
    let again: Evaluation = serde_json::from_str(&text).unwrap();
    assert_eq!(again, evaluation);
    // A file from before verdicts.
    let old: Evaluation = serde_json::from_str(r#"{"rows":0,"level":0.9,"results":[],"pooled":[]}"#).unwrap();
    assert_eq!(old.verdicts, None);
}
