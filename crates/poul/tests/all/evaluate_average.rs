//! Average effects: what they are equal to, what they do not depend on, and how often their intervals hold the truth.

use poul::Seed;
use poul::data::{Design, RawColumn};
use poul::evaluate::{Assigned, AverageEffect, Effects, Outcome, Params, Scored, average_effects};
use poul::net::{DenseRows, RowSource};
use poul::nuisance::Propensity;
use rand::RngExt;
use rand_distr::StandardNormal;

/// An experiment of three policies: x drives the outcome and the effect of T1; T2 does nothing.
#[derive(Clone)]
struct Rows {
    arm: Vec<u32>,
    x: Vec<f64>,
    y: Vec<f64>,
    /// By policy but control, a prediction of the effect.
    effects: [Vec<f64>; 2],
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
}

impl Rows {
    /// `tilt` lets assignment follow the sign of x; the average effect of T1 is 1.
    fn draw(n_rows: usize, tilt: f64, seed: u64) -> Self {
        let mut rng = Seed::new(seed).rng();
        let mut rows = Self {
            arm: Vec::new(),
            x: Vec::new(),
            y: Vec::new(),
            effects: [Vec::new(), Vec::new()],
            weight: None,
            cluster: None,
        };
        for _ in 0..n_rows {
            let x: f64 = rng.sample(StandardNormal);
            let probabilities = probabilities(x, tilt);
            let u: f64 = rng.random();
            let arm = if u < probabilities[0] {
                0
            } else if u < probabilities[0] + probabilities[1] {
                1
            } else {
                2
            };
            let noise: f64 = rng.sample(StandardNormal);
            let effect = [0.0, 1.0 + 0.5 * x, 0.0][arm];
            rows.arm.push(arm as u32);
            rows.x.push(x);
            rows.y.push(5.0 + 2.0 * x + effect + noise);
            rows.effects[0].push(0.8 + 0.4 * x);
            rows.effects[1].push(0.2 - 0.1 * x);
        }
        rows
    }

    fn averages(
        &self,
        propensity: &Propensity,
        by: &[RawColumn],
        with_prediction: bool,
    ) -> Vec<AverageEffect> {
        self.averages_given(propensity, by, with_prediction, None)
    }

    fn averages_given(
        &self,
        propensity: &Propensity,
        by: &[RawColumn],
        with_prediction: bool,
        features: Option<&dyn RowSource>,
    ) -> Vec<AverageEffect> {
        // m = μ_0 + Σπτ, nearly.
        let prediction: Vec<f64> = self.x.iter().map(|x| 5.0 + 2.0 * x + 0.3).collect();
        let outcomes = [Outcome {
            name: "gmv",
            values: &self.y,
            prediction: with_prediction.then_some(prediction.as_slice()),
        }];
        let names = ["control", "T1", "T2"].map(String::from);
        let effects = [1, 2].map(|policy| Effects {
            policy,
            outcome: None,
            values: &self.effects[policy - 1],
            truth: None,
        });
        let table = Scored {
            outcomes: &outcomes,
            policies: &names,
            arm: &self.arm,
            against: 0,
            effects: &effects,
            weight: self.weight.as_deref(),
            cluster: self.cluster.as_deref(),
            propensity: None,
        };
        let design = if features.is_some() { Design::Observational } else { Design::Randomized };
        let assigned = Assigned { propensity, design, x: features };
        average_effects(&table, &assigned, by, &Params::default().check().unwrap()).unwrap()
    }

    fn shares(&self) -> Propensity {
        let weight: Option<Vec<f32>> =
            self.weight.as_ref().map(|weight| weight.iter().map(|weight| *weight as f32).collect());
        Propensity::shares(&self.arm, weight.as_deref(), 3)
    }

    fn take(&self, rows: &[usize]) -> Self {
        let of = |values: &[f64]| rows.iter().map(|row| values[*row]).collect::<Vec<f64>>();
        Self {
            arm: rows.iter().map(|row| self.arm[*row]).collect(),
            x: of(&self.x),
            y: of(&self.y),
            effects: [of(&self.effects[0]), of(&self.effects[1])],
            weight: self.weight.as_deref().map(of),
            cluster: self.cluster.as_ref().map(|cluster| rows.iter().map(|row| cluster[*row]).collect()),
        }
    }
}

fn probabilities(x: f64, tilt: f64) -> [f64; 3] {
    let treated = 0.35 + tilt * x.signum();
    [0.65 - tilt * x.signum() - 0.25, treated, 0.25]
}

fn whole(averages: &[AverageEffect]) -> Vec<&AverageEffect> {
    averages.iter().filter(|own| own.by.is_none()).collect()
}

fn close(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()))
}

#[test]
fn with_constant_predictions_it_is_the_difference_in_means() {
    let mut rows = Rows::draw(900, 0.0, 1);
    rows.effects = [vec![0.7; 900], vec![-0.1; 900]];
    let averages = rows.averages(&rows.shares(), &[], false);
    let of = |arm: u32| -> Vec<f64> {
        (0..900).filter(|row| rows.arm[*row] == arm).map(|row| rows.y[row]).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let square = |values: &[f64]| {
        let centre = mean(values);
        values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() as f64).powi(2)
    };
    for (arm, own) in [1, 2].into_iter().zip(whole(&averages)) {
        let (treated, control) = (of(arm), of(0));
        assert!(close(own.effect, Some(mean(&treated) - mean(&control)), 1e-9));
        // Neyman's standard error.
        assert!(close(own.se, Some((square(&treated) + square(&control)).sqrt()), 2e-3), "{own:?}");
        assert_eq!((own.rows, own.n_treated, own.n_control), (900, treated.len(), control.len()));
        let ([low, high], [low_band, high_band]) = (own.interval.unwrap(), own.band.unwrap());
        assert!(low_band < low && high < high_band);
        assert!(own.q_value >= own.p_value);
    }
    // A prediction of m sharpens.
    let sharp = Rows::draw(900, 0.0, 1).averages(&rows.shares(), &[], true);
    assert!(whole(&sharp)[0].se.unwrap() < 0.6 * whole(&averages)[0].se.unwrap());
}

#[test]
fn constants_and_row_order_do_not_matter() {
    let rows = Rows::draw(600, 0.0, 2);
    let by = [RawColumn::of_numbers("x", rows.x.clone())];
    let averages = rows.averages(&rows.shares(), &by, true);
    let mut moved = rows.clone();
    moved.y.iter_mut().for_each(|y| *y += 1e3);
    let moved = moved.averages(&rows.shares(), &by, true);
    // 7 and 600 share no factor.
    let order: Vec<usize> = (0..600).map(|row| (row * 7 + 3) % 600).collect();
    let turned = rows.take(&order);
    let by = [RawColumn::of_numbers("x", turned.x.clone())];
    let turned = turned.averages(&rows.shares(), &by, true);
    for other in [moved, turned] {
        assert_eq!(other.len(), averages.len());
        for (a, b) in averages.iter().zip(&other) {
            assert_eq!((&a.policy, &a.by, &a.group, a.rows), (&b.policy, &b.by, &b.group, b.rows));
            assert!(close(a.effect, b.effect, 1e-8), "{a:?} {b:?}");
            assert!(a.se.is_none() && b.se.is_none() || close(a.se, b.se, 1e-8), "{a:?} {b:?}");
        }
    }
}

#[test]
fn copies_in_a_cluster_are_no_new_rows_and_weights_are_copies() {
    let rows = Rows::draw(700, 0.0, 3);
    let once = rows.averages(&rows.shares(), &[], true);
    let mut twice = rows.take(&(0..1400).map(|row| row / 2).collect::<Vec<_>>());
    twice.cluster = Some((0..1400).map(|row| row / 2).collect());
    let copies = twice.averages(&rows.shares(), &[], true);
    for (a, b) in whole(&once).into_iter().zip(whole(&copies)) {
        assert!(close(a.effect, b.effect, 1e-9) && close(a.se, b.se, 1e-9), "{a:?} {b:?}");
    }
    let mut weighted = rows.clone();
    weighted.weight = Some((0..700).map(|row| f64::from(row % 3)).collect());
    let mut repeated = rows.take(&(0..700).flat_map(|row| vec![row; row % 3]).collect::<Vec<_>>());
    repeated.cluster = Some((0..700_u32).flat_map(|row| vec![row; row as usize % 3]).collect());
    let (weighted, repeated) =
        (weighted.averages(&weighted.shares(), &[], true), repeated.averages(&repeated.shares(), &[], true));
    for (a, b) in whole(&weighted).into_iter().zip(whole(&repeated)) {
        assert!(close(a.effect, b.effect, 1e-6) && close(a.se, b.se, 1e-6), "{a:?} {b:?}");
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let rows = Rows::draw(40_000, 0.0, 4);
    let on = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| rows.averages(&rows.shares(), &[RawColumn::of_numbers("x", rows.x.clone())], true))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn groups_add_up_and_deciles_follow_the_truth() {
    let rows = Rows::draw(20_000, 0.0, 5);
    let sign = rows.x.iter().map(|x| Some(if *x > 0.0 { "plus" } else { "minus" }));
    let by = [RawColumn::of_categories("sign", sign), RawColumn::of_numbers("x", rows.x.clone())];
    let averages = rows.averages(&rows.shares(), &by, true);
    let t1 = |by: &str| -> Vec<&AverageEffect> {
        averages.iter().filter(|own| own.policy == "T1" && own.by.as_deref() == Some(by)).collect()
    };
    let whole = whole(&averages)[0];
    for by in ["predicted effect", "sign", "x"] {
        let own = t1(by);
        assert_eq!(
            own.len(),
            match by {
                "sign" => 2,
                "x" => 4,
                _ => 10,
            }
        );
        assert_eq!(own.iter().map(|own| own.rows).sum::<usize>(), 20_000);
        let sum: f64 = own.iter().map(|own| own.rows as f64 * own.effect.unwrap()).sum();
        assert!((sum / 20_000.0 - whole.effect.unwrap()).abs() < 1e-9);
    }
    let deciles = t1("predicted effect");
    // E[1 + x/2] of the highest and lowest tenth of x.
    for (decile, truth) in [(0, 1.877), (9, 0.123)] {
        assert!((deciles[decile].effect.unwrap() - truth).abs() < 4.0 * deciles[decile].se.unwrap());
    }
}

#[test]
fn what_cannot_be_known_is_said() {
    let rows = Rows::draw(400, 0.0, 6);
    let few: Vec<usize> = {
        let mut n_treated = 0;
        let keep = |row: &usize| {
            n_treated += usize::from(rows.arm[*row] == 1);
            rows.arm[*row] != 1 || n_treated <= 29
        };
        (0..400).filter(keep).collect()
    };
    let few = rows.take(&few);
    let averages = few.averages(&few.shares(), &[], true);
    let own = whole(&averages)[0];
    assert!(own.effect.is_some() && own.se.is_none() && own.interval.is_none() && own.band.is_none());
    assert!(own.p_value.is_none() && own.q_value.is_none());
    assert!(own.notes[0].starts_with("29 treated"), "{:?}", own.notes);
    assert!(whole(&averages)[1].interval.is_some());
}

/// The strata are the signs of x, with their own shares: the mean outcomes of arms differ by more than the effect.
fn by_stratum(rows: &Rows) -> Propensity {
    let stratum: Vec<u32> = rows.x.iter().map(|x| u32::from(*x > 0.0)).collect();
    Propensity::strata(&rows.arm, &stratum, 2, None, 3)
}

#[test]
fn strata_remove_what_assignment_followed() {
    let rows = Rows::draw(20_000, 0.2, 7);
    let (by_shares, by_strata) =
        (rows.averages(&rows.shares(), &[], false), rows.averages(&by_stratum(&rows), &[], false));
    let error = |averages: &[AverageEffect]| {
        let own = whole(averages)[0];
        (own.effect.unwrap() - 1.0).abs() / own.se.unwrap()
    };
    assert!(error(&by_shares) > 10.0, "{}", error(&by_shares));
    assert!(error(&by_strata) < 4.0, "{}", error(&by_strata));
}

#[test]
fn intervals_and_bands_cover_as_often_as_they_say() {
    const EXPERIMENTS: u64 = 300;
    for tilt in [0.0, 0.2] {
        let (mut inside, mut all_inside, mut false_found) = (0, 0, 0);
        for seed in 0..EXPERIMENTS {
            let rows = Rows::draw(500, tilt, 100 + seed);
            let propensity = if tilt > 0.0 { by_stratum(&rows) } else { rows.shares() };
            let averages = rows.averages(&propensity, &[], true);
            let own = whole(&averages);
            let holds = |ends: Option<[f64; 2]>, truth: f64| {
                ends.is_some_and(|[low, high]| low <= truth && truth <= high)
            };
            inside += own.iter().zip([1.0, 0.0]).filter(|(own, truth)| holds(own.interval, *truth)).count();
            all_inside += u64::from(own.iter().zip([1.0, 0.0]).all(|(own, truth)| holds(own.band, truth)));
            false_found += u64::from(own[1].q_value.is_some_and(|q| q <= 0.1));
        }
        let share = inside as f64 / (2 * EXPERIMENTS) as f64;
        assert!((0.86..=0.94).contains(&share), "intervals cover {share}");
        let share = all_inside as f64 / EXPERIMENTS as f64;
        assert!((0.85..=0.95).contains(&share), "bands cover {share}");
        // T1 is always found, so that T2 is falsely found at the level itself: half of the discoveries then.
        let share = 0.5 * false_found as f64 / EXPERIMENTS as f64;
        assert!(share < 0.09, "false discoveries {share}");
    }
}

/// Neither π nor m is known: what confounds is a smooth function of a feature, which the arms' own ridges find.
#[test]
fn features_take_out_what_the_nuisances_missed() {
    let rows = Rows::draw(6_000, 0.2, 11);
    let columns: Vec<f32> = rows.x.iter().flat_map(|x| [*x as f32, (5.0 * x).sin() as f32]).collect();
    let x = DenseRows::new(&columns, 2).unwrap();
    let plain = rows.averages(&rows.shares(), &[], false);
    let on = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| rows.averages_given(&rows.shares(), &[], false, Some(&x)))
    };
    let refined = on(1);
    assert_eq!(refined, on(2));
    for (own, truth) in whole(&refined).into_iter().zip([1.0, 0.0]) {
        let off = (own.effect.unwrap() - truth).abs() / own.se.unwrap();
        assert!(off < 3.0, "{off} standard errors: {own:?}");
    }
    let off = (whole(&plain)[0].effect.unwrap() - 1.0) / whole(&plain)[0].se.unwrap();
    assert!(off > 10.0, "nothing confounds: {off} standard errors");
    // Smaller residuals make a smaller standard error.
    assert!(whole(&refined)[0].se < whole(&plain)[0].se);
}
