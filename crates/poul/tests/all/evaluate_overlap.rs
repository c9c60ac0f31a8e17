//! Average effects where nobody randomised: which rows they are over, what they claim, and that null worlds give no findings.

use std::sync::Arc;

use poul::data::Design;
use poul::evaluate::{Assigned, AverageEffect, Effects, Outcome, Params, Scored, average_effects};
use poul::net::DenseRows;
use poul::nuisance::{ObservedRows, OutcomeColumn, Propensity, evaluated_nuisances};
use poul::stats::student_quantile;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

/// Two policies; x drives assignment and outcome.
struct Rows {
    arm: Vec<u32>,
    x: Vec<f64>,
    y: Vec<f64>,
    /// P(T = 1 | x).
    chance: Vec<f64>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
}

impl Rows {
    /// y = 3x + effect + noise, treated with probability `chance(x)`.
    fn draw(n_rows: usize, chance: fn(f64) -> f64, effect: f64, seed: u64) -> Self {
        let mut rng = Seed::new(seed).rng();
        let (mut rows, normal) = (Self::empty(), StandardNormal);
        for _ in 0..n_rows {
            let (x, noise): (f64, f64) = (rng.sample(normal), rng.sample(normal));
            let is_treated = rng.random::<f64>() < chance(x);
            rows.arm.push(u32::from(is_treated));
            rows.x.push(x);
            rows.y.push(3.0 * x + noise + if is_treated { effect } else { 0.0 });
            rows.chance.push(chance(x));
        }
        rows
    }

    fn empty() -> Self {
        let (arm, x, y, chance) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { arm, x, y, chance, weight: None, cluster: None }
    }

    fn known(&self) -> Propensity {
        let pair = |chance: &f64| [(1.0 - chance) as f32, *chance as f32];
        Propensity::Rows(Arc::new(self.chance.iter().flat_map(pair).collect()))
    }

    fn averages(&self, propensity: &Propensity, design: Design, m: &[f64]) -> Result<Vec<AverageEffect>> {
        let outcomes = [Outcome { name: "y", values: &self.y, prediction: Some(m) }];
        let names = ["control", "T1"].map(String::from);
        let zero = vec![0.0; self.arm.len()];
        let effects = [Effects { policy: 1, outcome: None, values: &zero, truth: None }];
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
        let x: Vec<f32> = self.x.iter().map(|x| *x as f32).collect();
        let x = DenseRows::new(&x, 1)?;
        let assigned = Assigned { propensity, design, x: Some(&x) };
        average_effects(&table, &assigned, &[], &Params::default().check()?)
    }

    /// Over all rows, with the propensity that rows were drawn by.
    fn average(&self) -> AverageEffect {
        let m: Vec<f64> = self.x.iter().map(|x| 3.0 * x).collect();
        self.averages(&self.known(), Design::Observational, &m).unwrap().remove(0)
    }

    /// Over all rows, with learned nuisances.
    fn learned(&self, seed: u64) -> AverageEffect {
        let x: Vec<f32> = self.x.iter().map(|x| *x as f32).collect();
        let x = DenseRows::new(&x, 1).unwrap();
        let names = ["control", "T1"].map(String::from);
        let rows = ObservedRows {
            x: Some(&x),
            design: Design::Observational,
            outcomes: vec![OutcomeColumn { name: "y", values: &self.y, prediction: None }],
            ..ObservedRows::new(&names, &self.arm)
        };
        let fit = evaluated_nuisances(&rows, Run::new(Seed::new(seed), &Silent)).unwrap();
        let (m, propensity) = (fit.predictions[0].clone().unwrap(), fit.propensity.unwrap().propensity);
        self.averages(&propensity, Design::Observational, &m).unwrap().remove(0)
    }
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn claims_nothing(own: &AverageEffect) -> bool {
    own.interval.is_none() && own.band.is_none() && own.p_value.is_none() && own.q_value.is_none()
}

#[test]
fn rows_without_a_chance_are_left_out_and_named() {
    // π leaves [.05, .95] on 2.5 % of the rows to either side.
    let rows = Rows::draw(4_000, |x| sigmoid(1.5 * x), 1.0, 1);
    let own = rows.average();
    let share = own.share_without_overlap.unwrap();
    assert!((0.03..0.07).contains(&share), "{share}");
    assert_eq!(own.rows, 4_000 - (4_000.0 * share).round() as usize);
    assert_eq!(own.population, Some(format!("rows with overlap ({:.0} %)", 100.0 * (1.0 - share))));
    let [low, high] = own.interval.unwrap();
    assert!(low < 1.0 && 1.0 < high && high - low < 0.5, "{own:?}");
    assert!(own.q_value.unwrap() < 1e-6);
    let effective = own.effective_rows.unwrap();
    assert!(effective < 0.9 * own.n_treated as f64 && effective > 0.2 * own.n_treated as f64, "{own:?}");
    // By design the same propensities leave nobody out.
    let designed = rows.averages(&rows.known(), Design::Stratified, &[0.0; 4_000]).unwrap().remove(0);
    assert_eq!((designed.rows, designed.population, designed.share_without_overlap), (4_000, None, None));
}

#[test]
fn where_a_tenth_of_the_rows_lack_overlap_nothing_is_claimed() {
    let own = Rows::draw(4_000, |x| sigmoid(4.0 * x), 5.0, 2).average();
    assert!(own.lacks_overlap() && own.effect.is_some() && own.se.is_some(), "{own:?}");
    assert!(claims_nothing(&own), "{own:?}");
    assert!(own.notes.iter().any(|note| note.contains("no finding")), "{:?}", own.notes);
    // No row at all had a real chance of both.
    let own = Rows::draw(500, |x| if x > 0.0 { 0.999 } else { 0.001 }, 5.0, 3).average();
    assert_eq!((own.rows, own.effect, own.share_without_overlap), (0, None, Some(1.0)));
    assert!(claims_nothing(&own) && own.predicted.is_none(), "{own:?}");
}

#[test]
fn the_error_is_never_below_what_the_arms_own_rows_allow() {
    // π̂ is .9 wherever the policy was given, although one row in twenty got it: 1/π̂ says 1.1 rows where 20 are meant.
    let mut rows = Rows::draw(3_000, |_| 0.05, 0.0, 4);
    rows.y.iter_mut().for_each(|y| *y *= 100.0);
    for (chance, arm) in rows.chance.iter_mut().zip(&rows.arm) {
        *chance = if *arm == 1 { 0.9 } else { 0.1 };
    }
    let own = rows.averages(&rows.known(), Design::Observational, &[0.0; 3_000]).unwrap().remove(0);
    let treated: Vec<f64> = (0..3_000).filter(|row| rows.arm[*row] == 1).map(|row| rows.x[row]).collect();
    // The ridge explains x; what is left has a standard deviation of 100.
    let least = 100.0 / (treated.len() as f64).sqrt();
    let se = own.se.unwrap();
    assert!(se > 0.85 * least, "{se} of {least}");
}

#[test]
fn few_clusters_widen_the_interval_or_take_it_away() {
    let mut rows = Rows::draw(900, |_| 0.5, 1.0, 5);
    rows.cluster = Some((0..900).map(|row| row % 6).collect());
    for design in [Design::Randomized, Design::Observational] {
        let m: Vec<f64> = rows.x.iter().map(|x| 3.0 * x).collect();
        let own = rows.averages(&rows.known(), design, &m).unwrap().remove(0);
        let ([low, high], se) = (own.interval.unwrap(), own.se.unwrap());
        assert!(((high - low) / (2.0 * se) - student_quantile(0.95, 5)).abs() < 1e-9, "{own:?}");
        assert!(own.notes.iter().any(|note| note.contains("only 6 clusters")), "{:?}", own.notes);
    }
    // The policy was given to one cluster only.
    rows.cluster =
        Some((0..900_usize).map(|row| if rows.arm[row] == 1 { 99 } else { row as u32 % 20 }).collect());
    let own = rows.average();
    assert!(claims_nothing(&own) && own.se.is_none(), "{own:?}");
    assert!(own.notes.iter().any(|note| note.contains("in 1 and the control rows in 20")), "{:?}", own.notes);
}

#[test]
fn an_arm_without_weight_is_told() {
    let mut rows = Rows::draw(600, |_| 0.5, 1.0, 6);
    let without = |rows: &Rows, arm: u32| -> Option<Vec<f64>> {
        Some(rows.arm.iter().map(|own| f64::from(u8::from(*own != arm))).collect())
    };
    rows.weight = without(&rows, 1);
    for (design, propensity) in
        [(Design::Observational, rows.known()), (Design::Randomized, Propensity::Shares(vec![1.0, 0.0]))]
    {
        let own = rows.averages(&propensity, design, &[0.0; 600]).unwrap().remove(0);
        assert!(own.effect.is_none() && claims_nothing(&own), "{own:?}");
        assert!(own.notes.iter().any(|note| note == "all rows of `T1` have weight 0"), "{:?}", own.notes);
    }
    rows.weight = without(&rows, 0);
    let error = rows.averages(&rows.known(), Design::Observational, &[0.0; 600]).unwrap_err();
    assert!(error.to_string().contains("have weight 0") && error.hint_text().is_some(), "{error}");
}

#[test]
fn a_hidden_cause_widens_bounds_until_the_effect_vanishes() {
    let strong = Rows::draw(3_000, sigmoid, 1.0, 7).average();
    let hidden = strong.hidden.unwrap();
    let mut last = strong.interval.unwrap();
    for bound in &hidden.bounds {
        let ([low, high], [inner_low, inner_high]) = (bound.interval, bound.effect);
        assert!(low < inner_low && inner_low < inner_high && inner_high < high);
        assert!(low < last[0] && last[1] < high, "{hidden:?}");
        // The interval holds zero from the factor on that is named.
        assert_eq!(low <= 0.0, bound.lambda >= hidden.vanishes_at, "{hidden:?}");
        last = bound.interval;
    }
    assert!(hidden.vanishes_at > 1.5 && hidden.vanishes_at < 20.0, "{hidden:?}");
    // Of what is no finding there is nothing to explain away.
    let null = Rows::draw(3_000, sigmoid, 0.0, 8).average();
    let [low, high] = null.interval.unwrap();
    assert!(low < 0.0 && 0.0 < high && null.hidden.unwrap().vanishes_at == 1.0);
}

/// With the propensity known and nothing known of the outcome: intervals hold the truth as often as they say.
#[test]
fn intervals_over_rows_with_overlap_hold_the_truth() {
    const WORLDS: u64 = 200;
    let mut held = 0;
    for seed in 0..WORLDS {
        let rows = Rows::draw(600, |x| sigmoid(1.4 * x), 0.0, 100 + seed);
        let own = rows.averages(&rows.known(), Design::Observational, &[0.0; 600]).unwrap().remove(0);
        held += u64::from(own.interval.is_none_or(|[low, high]| low <= 0.0 && 0.0 <= high));
    }
    let share = held as f64 / WORLDS as f64;
    assert!((0.85..=0.98).contains(&share), "{share}");
}

/// P(T) = sigmoid(8x − 14) and sigmoid(3x − 3), where most rows have no overlap; sigmoid(1.2x), where they have.
#[test]
fn null_worlds_give_no_findings() {
    let worlds: [fn(f64) -> f64; 3] =
        [|x| sigmoid(8.0 * x - 14.0), |x| sigmoid(3.0 * x - 3.0), |x| sigmoid(1.2 * x)];
    for (chance, lacks_overlap) in worlds.into_iter().zip([true, true, false]) {
        // Where nothing is claimed, one world says so; where there is an interval, one in ten may miss.
        let n_worlds = if lacks_overlap { 1 } else { 3 };
        let mut held = 0;
        for seed in 0..n_worlds {
            let own = Rows::draw(1_200, chance, 0.0, 10 + seed).learned(seed);
            assert_eq!(own.lacks_overlap(), lacks_overlap, "{own:?}");
            assert!(!lacks_overlap || claims_nothing(&own), "{own:?}");
            held += u64::from(own.interval.is_none_or(|[low, high]| low <= 0.0 && 0.0 <= high));
        }
        assert!(lacks_overlap || held >= 2, "{held} of 3 intervals hold zero");
    }
}
