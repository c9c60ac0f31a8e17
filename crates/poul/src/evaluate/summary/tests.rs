//! Sums of parts against the same rows in one place: `evaluate` and `average_effects`.

use rand::RngExt;

use super::*;
use crate::data::Design;
use crate::evaluate::average::{Assigned, average_effects};
use crate::evaluate::metric::{Effects, Metric, Outcome, Params, Scored, evaluate};
use crate::evaluate::{AverageEffect, Evaluation};
use crate::nuisance::Propensity;
use crate::{Seed, Silent};

const TARGETS: [usize; 2] = [1, 3];

/// Four policies, of which 0 is compared with and 2 has no predicted effects.
struct World {
    names: Vec<String>,
    outcomes: Vec<String>,
    policy: Vec<u32>,
    weight: Option<Vec<f64>>,
    y: Vec<Vec<f64>>,
    prediction: Option<Vec<f64>>,
    effects: Vec<Vec<f64>>,
}

#[derive(Clone, Copy)]
struct Kind {
    n_rows: usize,
    weights: bool,
    prediction: bool,
    /// Distinct effects, where these are few.
    values: Option<f64>,
    /// Far from 0, as an income is.
    level: f64,
}

const PLAIN: Kind = Kind { n_rows: 3_000, weights: false, prediction: false, values: None, level: 3.0 };

fn world(kind: Kind) -> World {
    let mut rng = Seed::new(11).rng();
    let (mut policy, mut weight, mut prediction) = (Vec::new(), Vec::new(), Vec::new());
    let (mut y, mut effects) = (vec![Vec::new(); 2], vec![Vec::new(); 4]);
    for _ in 0..kind.n_rows {
        let own = rng.random_range(0..4_u32);
        let x: f64 = rng.random_range(-1.0..1.0);
        policy.push(own);
        weight.push(rng.random_range(0..4_u32) as f64 * 0.3);
        prediction.push(kind.level + x + rng.random_range(-0.1..0.1));
        for outcome in 0..2 {
            for (place, target) in TARGETS.into_iter().enumerate() {
                let effect = 0.4 + x * target as f64 * 0.3 + outcome as f64 * 0.2 * x * x;
                let effect = kind.values.map_or(effect, |n| (effect * n).round() / n);
                effects[outcome * 2 + place].push(f64::from(effect as f32));
            }
            let noise: f64 = rng.random_range(-2.0..2.0);
            let effect = if own == 0 { 0.0 } else { 0.3 + 0.2 * f64::from(own) * x };
            y[outcome].push(kind.level + x + effect + noise);
        }
    }
    World {
        names: ["control", "T1", "T2", "T3"].map(str::to_owned).to_vec(),
        outcomes: ["gmv", "cost"].map(str::to_owned).to_vec(),
        policy,
        weight: kind.weights.then_some(weight),
        y,
        prediction: kind.prediction.then_some(prediction),
        effects,
    }
}

impl World {
    fn shape(&self) -> Shape<'_> {
        Shape { outcomes: &self.outcomes, policies: &self.names, targets: &TARGETS, against: 0 }
    }

    fn in_one_place(&self) -> (Evaluation, Vec<AverageEffect>) {
        let outcome = |index: usize| Outcome {
            name: &self.outcomes[index],
            values: &self.y[index],
            prediction: self.prediction.as_deref(),
        };
        let outcomes = [outcome(0), outcome(1)];
        let effects: Vec<Effects<'_>> = self
            .effects
            .iter()
            .enumerate()
            .map(|(place, values)| Effects {
                policy: TARGETS[place % 2],
                outcome: Some(place / 2),
                values,
                truth: None,
            })
            .collect();
        let table = Scored {
            outcomes: &outcomes,
            policies: &self.names,
            arm: &self.policy,
            against: 0,
            effects: &effects,
            weight: self.weight.as_deref(),
            cluster: None,
            propensity: None,
        };
        let params = Params::default();
        let params =
            Params { bootstrap: crate::evaluate::Bootstrap { draws: 0, ..params.bootstrap }, ..params };
        let params = params.check().unwrap();
        let single: Option<Vec<f32>> =
            self.weight.as_ref().map(|weight| weight.iter().map(|own| *own as f32).collect());
        let propensity = Propensity::shares(&self.policy, single.as_deref(), 4);
        let assigned = Assigned { propensity: &propensity, design: Design::Randomized, x: None };
        let averages = average_effects(&table, &assigned, &[], &params).unwrap();
        (evaluate(&table, &params, &Silent).unwrap(), averages)
    }

    /// The rows with these numbers as a part, and through bytes.
    fn in_parts(&self, parts: &[Vec<usize>]) -> SummedEvaluation {
        let shape = self.shape();
        let each = |rows: &[usize], act: &mut dyn FnMut(&Part<'_>)| {
            let pick = |values: &Vec<f64>| rows.iter().map(|row| values[*row]).collect::<Vec<f64>>();
            let policy: Vec<u32> = rows.iter().map(|row| self.policy[*row]).collect();
            let weight = self.weight.as_ref().map(pick);
            let outcomes: Vec<Vec<f64>> = self.y.iter().map(pick).collect();
            let prediction = self.prediction.as_ref().map(pick);
            let effects: Vec<Vec<f64>> = self.effects.iter().map(pick).collect();
            let effects: Vec<&[f64]> = effects.iter().map(Vec::as_slice).collect();
            act(&Part {
                policy: &policy,
                weight: weight.as_deref(),
                outcomes: &outcomes,
                predictions: &[prediction.as_deref(); 2],
                effects: &effects,
            });
        };
        let mut outline = Outline::new(&shape);
        for rows in parts {
            let mut own = Outline::new(&shape);
            each(rows, &mut |part| own.add(part, &shape).unwrap());
            outline.merge(Outline::from_bytes(&own.to_bytes()).unwrap()).unwrap();
        }
        let plan = Plan::new(outline, &shape).unwrap();
        let mut sums = Sums::new(&plan);
        for rows in parts {
            let mut own = Sums::new(&plan);
            each(rows, &mut |part| own.add(part, &shape, &plan).unwrap());
            sums.merge(&Sums::from_bytes(&own.to_bytes()).unwrap()).unwrap();
        }
        let known = Known { is_randomized: true, has_clusters: false, level: 0.9 };
        evaluation(&sums, &shape, &plan, known, false, Vec::new())
    }
}

fn close(found: Option<f64>, expected: Option<f64>, what: &str) {
    let (Some(found), Some(expected)) = (found, expected) else {
        panic!("{what}: {found:?} instead of {expected:?}");
    };
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs().max(1e-3),
        "{what}: {found} instead of {expected}"
    );
}

const EXACT: [Metric; 5] =
    [Metric::Ate, Metric::AtePredicted, Metric::CalibrationSlope, Metric::RLoss, Metric::RScore];
const RANKED: [Metric; 5] =
    [Metric::Auuc, Metric::RandomAuuc, Metric::Qini, Metric::RateAutoc, Metric::RateQini];

fn compare_exact(kind: Kind) -> (SummedEvaluation, Evaluation) {
    let world = world(kind);
    let (expected, averages) = world.in_one_place();
    let found = world.in_parts(&[
        (0..kind.n_rows / 3).collect(),
        Vec::new(),
        (kind.n_rows / 3..kind.n_rows).collect(),
    ]);
    assert_eq!(found.rows, kind.n_rows as u64);
    assert_eq!(found.results.len(), 4);
    for (own, expected) in found.results.iter().zip(&expected.results) {
        let own = &own.result;
        assert_eq!((&own.outcome, &own.policy), (&expected.outcome, &expected.policy));
        assert_eq!(own.metrics.n_treated, expected.metrics.n_treated);
        assert_eq!(own.metrics.n_control, expected.metrics.n_control);
        for metric in EXACT {
            close(own.metrics[metric].value, expected.metrics[metric].value, metric.name());
        }
        for metric in [Metric::Ate, Metric::CalibrationSlope] {
            close(own.metrics[metric].se, expected.metrics[metric].se, metric.name());
        }
    }
    let expected_averages: Vec<&AverageEffect> = averages.iter().filter(|own| own.by.is_none()).collect();
    assert_eq!(found.averages.len(), expected_averages.len());
    for (own, expected) in found.averages.iter().zip(expected_averages) {
        assert_eq!(
            (&own.outcome, &own.policy, own.rows),
            (&expected.outcome, &expected.policy, expected.rows)
        );
        assert_eq!((own.n_treated, own.n_control), (expected.n_treated, expected.n_control));
        close(own.effect, expected.effect, "average");
        close(own.se, expected.se, "its error");
        close(own.predicted, expected.predicted, "predicted");
        close(own.p_value.map(|p| p + 1.0), expected.p_value.map(|p| p + 1.0), "p-value");
        let (own, expected) = (own.interval.unwrap(), expected.interval.unwrap());
        close(Some(own[0]), Some(expected[0]), "interval");
    }
    (found, expected)
}

#[test]
fn few_different_effects_are_ranked_exactly_too() {
    let kinds = [
        PLAIN,
        Kind { weights: true, ..PLAIN },
        Kind { weights: true, prediction: true, ..PLAIN },
        Kind { values: Some(40.0), n_rows: 30_000, ..PLAIN },
        Kind { level: 1e4, prediction: true, ..PLAIN },
    ];
    for kind in kinds {
        let (found, expected) = compare_exact(kind);
        for (own, expected) in found.results.iter().zip(&expected.results) {
            for metric in RANKED {
                close(own.result.metrics[metric].value, expected.metrics[metric].value, metric.name());
            }
            let bounds = own.bounds;
            assert_eq!([bounds.auuc, bounds.qini, bounds.rate_autoc, bounds.rate_qini], [Some(0.0); 4]);
            for (own, expected) in own.result.metrics.curve.iter().zip(&expected.metrics.curve) {
                close(Some(own.gain + 1.0), Some(expected.gain + 1.0), "curve");
            }
        }
    }
}

#[test]
fn many_different_effects_are_ranked_within_the_bound() {
    for weights in [false, true] {
        let (found, expected) = compare_exact(Kind { n_rows: 60_000, weights, ..PLAIN });
        for (own, expected) in found.results.iter().zip(&expected.results) {
            let bounds = own.bounds;
            for (metric, bound) in [
                (Metric::Auuc, bounds.auuc),
                (Metric::Qini, bounds.qini),
                (Metric::RateAutoc, bounds.rate_autoc),
                (Metric::RateQini, bounds.rate_qini),
            ] {
                let difference = (own.result.metrics[metric].value.unwrap()
                    - expected.metrics[metric].value.unwrap())
                .abs();
                let bound = bound.unwrap();
                assert!(difference <= bound, "{metric}: {difference} beyond {bound}");
                // A bound that says nothing would hold too.
                assert!(bound < 0.02, "{metric}: {bound}");
                assert!(difference > 0.0, "{metric}: the buckets part all rows");
            }
        }
    }
}

#[test]
fn neither_order_nor_parts_matter() {
    let kind = Kind { n_rows: 40_000, weights: true, prediction: true, ..PLAIN };
    let world = world(kind);
    let whole = world.in_parts(&[(0..kind.n_rows).collect()]);
    let mut rows: Vec<usize> = (0..kind.n_rows).collect();
    rows.sort_by_key(|row| row.wrapping_mul(2_654_435_761) % 100_003);
    for n_parts in [2, 7, 200] {
        let parts: Vec<Vec<usize>> =
            rows.chunks(kind.n_rows.div_ceil(n_parts)).map(<[usize]>::to_vec).collect();
        let found = world.in_parts(&parts);
        for (own, expected) in found.results.iter().zip(&whole.results) {
            for metric in EXACT.iter().chain(&RANKED) {
                let (own, expected) = (
                    own.result.metrics[*metric].value.unwrap(),
                    expected.result.metrics[*metric].value.unwrap(),
                );
                assert!(
                    (own - expected).abs() <= 1e-13 * expected.abs().max(1.0),
                    "{metric}: {own} {expected}"
                );
            }
            let (own, expected) = (own.bounds.auuc.unwrap(), expected.bounds.auuc.unwrap());
            assert!((own / expected - 1.0).abs() < 1e-12);
        }
        for (own, expected) in found.averages.iter().zip(&whole.averages) {
            assert!((own.effect.unwrap() - expected.effect.unwrap()).abs() < 1e-13);
            assert!((own.se.unwrap() / expected.se.unwrap() - 1.0).abs() < 1e-12);
        }
    }
}

/// One arm comes first in the ranking, so that the other is empty for some buckets.
#[test]
fn the_bound_holds_where_an_arm_is_empty_at_first() {
    let mut world = world(Kind { n_rows: 60_000, ..PLAIN });
    for (row, policy) in world.policy.iter().enumerate() {
        if *policy == 0 {
            world.effects.iter_mut().for_each(|own| own[row] = f64::from((own[row] - 0.3) as f32));
        }
    }
    let (expected, _) = world.in_one_place();
    let found = world.in_parts(&[(0..60_000).collect()]);
    for (own, expected) in found.results.iter().zip(&expected.results) {
        for (metric, bound) in [(Metric::Auuc, own.bounds.auuc), (Metric::Qini, own.bounds.qini)] {
            let difference =
                (own.result.metrics[metric].value.unwrap() - expected.metrics[metric].value.unwrap()).abs();
            assert!(difference <= bound.unwrap(), "{metric}: {difference} beyond {bound:?}");
        }
    }
}

#[test]
fn sums_of_different_questions_do_not_merge() {
    let world = world(PLAIN);
    let shape = world.shape();
    let one = Shape { targets: &TARGETS[..1], ..shape };
    let mut outline = Outline::new(&shape);
    assert!(outline.merge(Outline::new(&one)).is_err());
    assert!(Plan::new(Outline::new(&one), &shape).is_err());
    assert!(Sums::from_bytes(&outline.to_bytes()).is_err());
}
