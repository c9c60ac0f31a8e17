//! An evaluation with every part filled, for tests and for looking at: a ride-hailing experiment as it might be.

use poul::compare::{AssignedCell, Cell, Comparison, Estimate, LearnerResult, Population};
use poul::effect::Settings;
use poul::evaluate::{
    AssignedPolicies, AssignedResult, AtomEffect, AverageEffect, Balance, Bin, CheckResult, CostPoint,
    CostResult, CurvePoint, Evaluation, FeatureEffect, FeatureGroup, HiddenBound, HiddenConfounding, Metric,
    Metrics, Number, OutcomeCalibration, Overlap, Placebo, PolicyPlace, PolicyResult, PooledResult,
    Provenance, Sensitivity, TrainingPoint, TreeNode, Validation, Verdict, WhoGains,
};

/// The same wiggle for the same place, between −1 and 1.
fn wiggle(place: usize) -> f64 {
    ((place as f64 * 12.9898).sin() * 43_758.545_3).fract()
}

/// An evaluation of `n_policies` policies on GMV and cost; the last policy has too few rows.
pub(super) fn evaluation(n_policies: usize) -> Evaluation {
    let names: Vec<String> = (1..=n_policies).map(|place| format!("T{place}")).collect();
    let mut evaluation = Evaluation { rows: 1_000_000, level: 0.9, ..Evaluation::default() };
    for (outcome, scale) in [("gmv", 1.0), ("cost", 0.25)] {
        evaluation.assigned.push(AssignedResult {
            outcome: outcome.to_owned(),
            policies: AssignedPolicies::All,
            rows: 1_000_000,
            n_policies: n_policies + 1,
            n_clusters: None,
            residual_variance: Some(4.0),
            contrast_variance: Some(0.1),
            r_score: Some(0.02),
            r_score_interval: Some([0.01, 0.03]),
            slope: Some(0.9),
            slope_se: Some(0.05),
            slope_interval: Some([0.8, 1.0]),
            rank_gain: Some(0.4 * scale),
            rank_gain_interval: Some([0.3 * scale, 0.5 * scale]),
            rank_gain_predicted: Some(0.45 * scale),
            notes: Vec::new(),
        });
        for (place, policy) in names.iter().enumerate() {
            let n_treated = if place + 1 == n_policies && n_policies > 2 { 12 } else { 40_000 - 90 * place };
            let effect = scale * (1.2 + 0.9 * wiggle(place + 3));
            evaluation.results.push(PolicyResult {
                outcome: outcome.to_owned(),
                policy: policy.clone(),
                against: "control".to_owned(),
                metrics: metrics(effect, n_treated, place),
            });
            evaluation.averages.push(average(outcome, policy, effect, n_treated));
            evaluation.who_gains.push(who_gains(outcome, policy, effect));
        }
        evaluation.pooled.push(PooledResult {
            outcome: outcome.to_owned(),
            policies: names.clone(),
            against: "control".to_owned(),
            metrics: metrics(scale * 1.2, 600_000, 77),
        });
        for (row, context) in ["airport", "evening", "morning peak", "rain", "weekend"].iter().enumerate() {
            for (column, action) in ["none", "coupon 10 %", "coupon 20 %", "upgrade"].iter().enumerate() {
                let unseen = row == 3 && column == 3;
                let effect = scale * column as f64 * (0.8 + 1.4 * wiggle(row * 4 + column));
                evaluation.atoms.push(AtomEffect {
                    outcome: outcome.to_owned(),
                    context: (*context).to_owned(),
                    action: (*action).to_owned(),
                    effect: Some(effect),
                    se: Some(0.2 * scale),
                    interval: Some([effect - 0.33 * scale, effect + 0.33 * scale]),
                    band: Some([effect - 0.5 * scale, effect + 0.5 * scale]),
                    weight: 0.25,
                    rows: if unseen { 0 } else { 1_000 * (row as u64 + 2) },
                    control: column == 0,
                });
            }
        }
    }
    for (place, policy) in names.iter().enumerate() {
        let curve = |point: usize| {
            let share = point as f64 / 100.0;
            CostPoint { share, cost: 9_000.0 * share.powf(1.2), value: 42_000.0 * share.powf(0.7) }
        };
        evaluation.cost_curves.push(CostResult {
            policy: policy.clone(),
            against: "control".to_owned(),
            value: "gmv".to_owned(),
            cost: "cost".to_owned(),
            aucc: Some(0.61 + 0.05 * wiggle(place)),
            aucc_interval: Some([0.55, 0.68]),
            random_aucc: Some(0.5),
            curve: (0..=100).map(curve).collect(),
            notes: Vec::new(),
        });
        let run = place % 5 != 4;
        evaluation.policies.push(PolicyPlace {
            policy: policy.clone(),
            rows: if run { 40_000 - 90 * place as u64 } else { 0 },
            at: [2.0 * wiggle(place), 1.5 * wiggle(place + 50)],
            nearest: Some(if run { policy.clone() } else { "T1".to_owned() }),
            distance: Some(if run { 0.0 } else { 0.4 + 0.1 * place as f64 / n_policies as f64 }),
            supported_share: if run { 1.0 } else { 0.8 },
            unseen_share: if run { 0.0 } else { 0.05 },
            bound: vec![0.3, 0.1],
            averages: Vec::new(),
        });
    }
    evaluation.validation = Some(validation(&names));
    evaluation.provenance = Some(provenance());
    evaluation
}

fn metrics(effect: f64, n_treated: usize, seed: usize) -> Metrics {
    let n = (n_treated + 200_000) as f64;
    let point = |place: usize| {
        let share = place as f64 / 100.0;
        let lift = if place == 0 { 0.0 } else { effect * (1.0 + 0.8 * (1.0 - share)) };
        let gain = share * n * lift;
        let half = 0.12 * n * effect.abs() * share.sqrt();
        CurvePoint { share, k: share * n, lift, gain, gain_interval: Some([gain - half, gain + half]) }
    };
    let bin = |place: usize| {
        let predicted = effect * (1.9 - 0.2 * place as f64);
        let observed = predicted * 0.95 + 0.15 * effect * wiggle(seed + place);
        Bin {
            predicted,
            observed: Some(observed),
            se: Some(0.12 * effect.abs()),
            flagged: false,
            n_treated: n_treated as f64 / 10.0,
            n_control: 20_000.0,
        }
    };
    let number = |value: f64, interval: Option<[f64; 2]>| Number { value: Some(value), se: None, interval };
    let size = effect.abs();
    let mut metrics = Metrics {
        n_treated,
        n_control: 200_000,
        calibration: (0..10).map(bin).collect(),
        curve: (0..=100).map(point).collect(),
        ..Metrics::default()
    };
    metrics[Metric::Ate] = Number { se: Some(0.1), ..number(effect, Some([effect - 0.16, effect + 0.16])) };
    metrics[Metric::AtePredicted] = number(0.95 * effect, None);
    metrics[Metric::Auuc] = number(0.63, Some([0.58, 0.68]));
    metrics[Metric::RandomAuuc] = number(0.5, None);
    metrics[Metric::Qini] = number(0.13, None);
    metrics[Metric::RateQini] = Number { se: Some(0.02 * size), ..number(0.13 * size, None) };
    metrics[Metric::Mape] = number(0.21, None);
    metrics[Metric::Wmape] = number(0.18, None);
    metrics[Metric::CalibrationSlope] = number(0.94, Some([0.8, 1.08]));
    metrics
}

fn average(outcome: &str, policy: &str, effect: f64, n_treated: usize) -> AverageEffect {
    AverageEffect {
        outcome: outcome.to_owned(),
        policy: policy.to_owned(),
        against: "control".to_owned(),
        rows: 1_000_000,
        n_treated,
        n_control: 200_000,
        effect: Some(effect + 0.02),
        se: Some(0.07),
        interval: Some([effect - 0.1, effect + 0.14]),
        band: Some([effect - 0.2, effect + 0.24]),
        p_value: Some(0.001),
        q_value: Some(0.004),
        predicted: Some(0.96 * effect),
        ..AverageEffect::default()
    }
}

fn who_gains(outcome: &str, policy: &str, effect: f64) -> WhoGains {
    let group = |label: &str, rows: usize, size: f64| FeatureGroup {
        label: label.to_owned(),
        rows,
        effect: effect * size,
    };
    let feature = |name: &str, share: f64, groups: Vec<FeatureGroup>| FeatureEffect {
        feature: name.to_owned(),
        share,
        groups,
    };
    let node = |rule: &str, rows: usize, size: f64, parent: Option<usize>| TreeNode {
        rule: rule.to_owned(),
        rows,
        effect: effect * size,
        parent,
    };
    WhoGains {
        outcome: outcome.to_owned(),
        policy: policy.to_owned(),
        against: "control".to_owned(),
        features: vec![
            feature(
                "trips in 30 days",
                0.42,
                vec![
                    group("below 1", 210_000, 0.3),
                    group("1 to 4", 260_000, 0.8),
                    group("4 to 9", 270_000, 1.3),
                    group("9 and more", 240_000, 1.7),
                    group("missing", 20_000, 0.6),
                ],
            ),
            feature("city", 0.12, vec![group("Beijing", 600_000, 1.2), group("Shanghai", 400_000, 0.7)]),
        ],
        tree: vec![
            node("all rows", 1_000_000, 1.0, None),
            node("trips in 30 days < 3.5", 430_000, 0.5, Some(0)),
            node("trips in 30 days ≥ 3.5", 570_000, 1.4, Some(0)),
            node("city is Shanghai", 180_000, -0.1, Some(1)),
            node("city is not Shanghai", 250_000, 0.9, Some(1)),
            node("age < 31", 300_000, 1.8, Some(2)),
            node("age ≥ 31", 270_000, 1.0, Some(2)),
        ],
        tree_share: Some(0.55),
    }
}

fn validation(names: &[String]) -> Validation {
    let check = |name: &str, verdict: Verdict, text: &str| CheckResult {
        name: name.to_owned(),
        verdict,
        text: text.to_owned(),
    };
    let balance = |place: usize| Balance {
        feature: format!("feature {place}"),
        correlation: 0.004 / (place + 1) as f64,
        before: 0.03 / (place + 1) as f64,
        z: 2.1 / (place + 1) as f64,
    };
    Validation {
        checks: vec![
            check(
                "Outcome model",
                Verdict::Doubt,
                "The outcome model explains 4 % of the variance of cost: intervals are wide.",
            ),
            check("Sample ratio", Verdict::Pass, "the arms have the declared shares (p = 0.41)."),
            check("Balance", Verdict::Pass, "no feature predicts the assignment (largest z 2.1 of 100)."),
        ],
        balance: (0..18).map(balance).collect(),
        outcome_model: ["gmv", "cost"]
            .map(|outcome| OutcomeCalibration {
                outcome: outcome.to_owned(),
                r2: 0.31,
                bins: (0..10).map(|place| [f64::from(place) * 4.0, f64::from(place) * 4.1]).collect(),
            })
            .to_vec(),
        overlap: names
            .iter()
            .take(4)
            .map(|policy| Overlap {
                policy: policy.clone(),
                rows: 40_000,
                quantiles: vec![0.03, 0.035, 0.039, 0.04, 0.041, 0.045, 0.06],
                clipped: 3,
                without_overlap: 12,
                effective_rows: 38_211.4,
            })
            .collect(),
        placebo: vec![Placebo { outcome: "gmv".to_owned(), spread: 0.8, permuted: vec![0.11, 0.09, 0.14] }],
        sensitivity: vec![Sensitivity {
            outcome: "gmv".to_owned(),
            policy: "T1".to_owned(),
            robustness: 0.06,
            robustness_interval: 0.04,
            hidden: Some(HiddenConfounding {
                bounds: [1.5, 2.0, 3.0]
                    .map(|lambda| HiddenBound {
                        lambda,
                        effect: [1.2 - lambda, 1.2 + lambda],
                        interval: [1.1 - lambda, 1.3 + lambda],
                    })
                    .to_vec(),
                vanishes_at: 1.31,
            }),
        }],
    }
}

fn provenance() -> Provenance {
    let point = |phase: &str, epoch: usize| TrainingPoint {
        phase: phase.to_owned(),
        epoch,
        loss: 1.0 / (epoch as f64).sqrt(),
        validation: Some(0.3 + 0.7 / epoch as f64),
    };
    let history = ["outcome model", "effects, member 1"];
    Provenance {
        poul: "0.1.0".to_owned(),
        command: "poul evaluate model.poul test.parquet --cost-curve gmv,cost".to_owned(),
        fit_command: Some("poul fit train.parquet --policies policies.toml --outcome gmv,cost".to_owned()),
        learner: Some("poul".to_owned()),
        design: Some("randomized".to_owned()),
        seeds: vec![("fit".to_owned(), 3407), ("evaluation".to_owned(), 3407)],
        files: vec![("train.parquet (training)".to_owned(), "9f2c51d07ab3e846".to_owned())],
        fit_notes: vec!["only 41 % of the predicted differences between users in `gmv` held up".to_owned()],
        history: history.iter().flat_map(|phase| (1..=20).map(|epoch| point(phase, epoch))).collect(),
    }
}

/// Three learners on two outcomes.
pub(super) fn comparison() -> Comparison {
    let cell = |outcome: &str, policy: Option<&str>, value: f64| Cell {
        population: "global".to_owned(),
        outcome: outcome.to_owned(),
        policy: policy.map(str::to_owned),
        n_treated: 5_000,
        n_control: 5_000,
        ate: Some(1.0),
        metrics: [(Metric::Auuc, value), (Metric::Wmape, 1.0 - value)]
            .map(|(metric, value)| Estimate {
                metric,
                value,
                interval: Some([value - 0.05, value + 0.05]),
                seed_sd: None,
                difference: Some(value - 0.65),
                difference_interval: Some([value - 0.69, value - 0.61]),
            })
            .to_vec(),
        note: None,
    };
    let assigned = |value: f64| AssignedCell {
        population: "global".to_owned(),
        outcome: "gmv".to_owned(),
        policies: AssignedPolicies::All,
        rows: 10_000,
        n_policies: 4,
        metrics: cell("gmv", None, value).metrics,
        notes: Vec::new(),
    };
    let learner = |label: &str, value: f64| LearnerResult {
        label: label.to_owned(),
        learner: label.to_owned(),
        schedule: None,
        selected: true,
        validation_r_loss: Some(0.9 - value / 10.0),
        validation_r_loss_by_outcome: vec![0.9, 0.8],
        validation_r_loss_seed_sd: None,
        cells: ["gmv", "cost"]
            .iter()
            .flat_map(|outcome| [cell(outcome, Some("T1"), value), cell(outcome, None, value + 0.01)])
            .collect(),
        assigned: vec![assigned(value)],
        notes: vec!["trained on 9,000 rows".to_owned()],
        settings: Settings::default(),
    };
    Comparison {
        poul: "0.1.0".to_owned(),
        train_rows: 9_000,
        validation_rows: 1_000,
        test_rows: 10_000,
        seeds: vec![3407],
        draws: 200,
        level: 0.9,
        against: "control".to_owned(),
        reference: Some("poul".to_owned()),
        populations: vec![Population { name: "global".to_owned(), expression: None, rows: 10_000 }],
        learners: vec![learner("poul", 0.65), learner("ridge", 0.6), learner("random", 0.5)],
        failures: Vec::new(),
        notes: Vec::new(),
        thin_arms: false,
    }
}
