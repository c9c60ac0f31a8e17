//! Rows by their own policies against what was assigned on average: what chance gives, what the truth gives, and what must
//! not change a number.

use poul::evaluate::{
    AssignedPolicies, AssignedReading, AssignedResult, AssignedRows, Bootstrap, arms_are_thin, assigned,
};
use poul::{Seed, Silent};
use rand::RngExt;

/// One row a policy, two rows a cluster whose outcomes are negatively related, as in a conjoint.
struct World {
    residual: Vec<f64>,
    contrast: Vec<f64>,
    policy: Vec<u32>,
    cluster: Vec<u32>,
    weight: Option<Vec<f64>>,
}

impl World {
    fn new(n_rows: usize, seed: u64) -> Self {
        let mut rng = Seed::new(seed).child("assigned world").rng();
        let contrast: Vec<f64> = (0..n_rows).map(|_| rng.random_range(-0.5..0.5)).collect();
        let mut noise = 0.0;
        let residual = contrast
            .iter()
            .enumerate()
            .map(|(row, contrast)| {
                let own: f64 = rng.random_range(-1.0..1.0);
                noise = if row % 2 == 0 { own } else { 0.3 * own - 0.7 * noise };
                contrast + noise
            })
            .collect();
        let policy = (0..n_rows as u32).collect();
        let cluster = (0..n_rows as u32).map(|row| row / 2).collect();
        Self { residual, contrast, policy, cluster, weight: None }
    }

    fn taken(&self, rows: &[usize]) -> Self {
        let of = |values: &[f64]| rows.iter().map(|row| values[*row]).collect::<Vec<f64>>();
        let codes = |values: &[u32]| rows.iter().map(|row| values[*row]).collect::<Vec<u32>>();
        Self {
            residual: of(&self.residual),
            contrast: of(&self.contrast),
            policy: codes(&self.policy),
            cluster: codes(&self.cluster),
            weight: self.weight.as_deref().map(of),
        }
    }

    fn rows(&self) -> AssignedRows<'_> {
        AssignedRows {
            residual: &self.residual,
            contrast: &self.contrast,
            policy: &self.policy,
            is_seen: None,
            weight: self.weight.as_deref(),
            cluster: Some(&self.cluster),
        }
    }

    fn all(&self, draws: usize) -> AssignedResult {
        read(&self.rows(), draws).remove(0).result
    }
}

fn read(rows: &AssignedRows<'_>, draws: usize) -> Vec<AssignedReading> {
    assigned(rows, &Bootstrap { draws, ..Bootstrap::default() }, &Silent).unwrap()
}

fn numbers(result: &AssignedResult) -> [f64; 4] {
    [result.r_score, result.slope, result.rank_gain, result.slope_se].map(Option::unwrap)
}

fn same(a: &AssignedResult, b: &AssignedResult) {
    for (a, b) in numbers(a).iter().zip(numbers(b)) {
        assert!((a - b).abs() < 1e-11 * b.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn random_contrasts_have_no_rank_gain_and_their_intervals_hold_zero() {
    let n_worlds = 200;
    let (mut gains, mut slopes, mut n_held) = (Vec::new(), Vec::new(), 0);
    for seed in 0..n_worlds {
        let mut world = World::new(300, seed);
        let mut rng = Seed::new(seed).child("random").rng();
        world.contrast = (0..300).map(|_| rng.random_range(-0.5..0.5)).collect();
        let result = world.all(60);
        gains.push(result.rank_gain.unwrap());
        slopes.push(result.slope.unwrap());
        // Contrasts that explain nothing add their own variance to the error, on average.
        let [low, high] = result.rank_gain_interval.unwrap();
        n_held += u32::from(low <= 0.0 && high >= 0.0);
    }
    for values in [&gains, &slopes] {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let sd =
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
        assert!(mean.abs() < 3.0 * sd / (values.len() as f64).sqrt(), "{mean} {sd}");
    }
    // 90 % of 200, give or take three standard deviations and what 60 draws cost.
    assert!((160..=196).contains(&n_held), "{n_held}");
}

#[test]
fn constant_contrasts_rank_and_explain_exactly_nothing() {
    for value in [0.0, 0.1, -1e9] {
        let mut world = World::new(101, 4);
        world.contrast.fill(value);
        let result = world.all(20);
        assert_eq!((result.slope, result.slope_se), (None, None));
        assert!(result.rank_gain.unwrap().abs() < 1e-12, "{:?}", result.rank_gain);
        assert!(result.r_score.unwrap().abs() < 1e-9, "{:?}", result.r_score);
        assert!(result.notes.iter().any(|note| note.starts_with("slope: ")), "{:?}", result.notes);
    }
}

#[test]
fn the_truth_has_slope_one_and_explains_what_can_be_explained() {
    let (mut slopes, mut errors) = (Vec::new(), Vec::new());
    for seed in 0..100 {
        let result = World::new(1000, seed).all(0);
        slopes.push(result.slope.unwrap());
        errors.push(result.slope_se.unwrap());
        let explained = result.contrast_variance.unwrap() / result.residual_variance.unwrap();
        assert!((result.r_score.unwrap() - explained).abs() < 0.1, "{:?} {explained}", result.r_score);
        let ratio = result.rank_gain.unwrap() / result.rank_gain_predicted.unwrap();
        assert!((ratio - 1.0).abs() < 0.4, "{ratio}");
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let centre = mean(&slopes);
    let spread = mean(&slopes.iter().map(|slope| (slope - centre).powi(2)).collect::<Vec<f64>>()).sqrt();
    assert!((centre - 1.0).abs() < 3.0 * spread / 10.0, "{centre} {spread}");
    assert!((mean(&errors) / spread - 1.0).abs() < 0.25, "{} {spread}", mean(&errors));
    // Twice too large: half the slope, the same ranking.
    let world = World::new(1000, 1);
    let twice = World {
        contrast: world.contrast.iter().map(|contrast| 2.0 * contrast).collect(),
        ..World::new(1000, 1)
    };
    let (own, twice) = (world.all(0), twice.all(0));
    assert!((twice.slope.unwrap() - 0.5 * own.slope.unwrap()).abs() < 1e-12);
    assert_eq!(twice.rank_gain, own.rank_gain);
    assert!(twice.r_score < own.r_score);
}

#[test]
fn rank_gain_is_the_mean_over_pairs() {
    let mut world = World::new(60, 9);
    world.contrast.iter_mut().for_each(|contrast| *contrast = (*contrast * 8.0).round());
    world.weight = Some((0..60).map(|row| f64::from(row % 3)).collect());
    let (weight, mut sum) = (world.weight.clone().unwrap(), 0.0);
    for i in 0..60 {
        for j in 0..60 {
            let sign = (world.contrast[i] - world.contrast[j]).partial_cmp(&0.0).unwrap() as i8;
            sum += weight[i] * weight[j] * f64::from(sign) * (world.residual[i] - world.residual[j]);
        }
    }
    let expected = sum / weight.iter().sum::<f64>().powi(2);
    assert!((world.all(0).rank_gain.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn order_does_not_matter_and_an_outcome_model_may_be_off_by_a_constant() {
    let world = World::new(400, 2);
    let reversed: Vec<usize> = (0..400).rev().collect();
    same(&world.taken(&reversed).all(0), &world.all(0));
    let shifted = World { residual: world.residual.iter().map(|y| y + 5.0).collect(), ..World::new(400, 2) };
    same(&shifted.all(0), &world.all(0));
}

#[test]
fn a_weight_of_two_is_the_row_twice_and_of_zero_none() {
    let mut world = World::new(200, 3);
    let rows: Vec<usize> = (0..200).flat_map(|row| vec![row; row % 3]).collect();
    let repeated = world.taken(&rows).all(40);
    world.weight = Some((0..200).map(|row| f64::from(row % 3)).collect());
    let weighted = world.all(40);
    same(&weighted, &repeated);
    // The copies of a row lie in its cluster: the draws are the same too.
    for (a, b) in [
        (weighted.slope_interval, repeated.slope_interval),
        (weighted.rank_gain_interval, repeated.rank_gain_interval),
    ] {
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!((a[0] - b[0]).abs() < 1e-11 && (a[1] - b[1]).abs() < 1e-11, "{a:?} {b:?}");
    }
    // A row that weighs nothing may hold anything.
    let kept: Vec<usize> = (0..200).filter(|row| row % 3 > 0).collect();
    assert_eq!(weighted.rows, kept.len());
    world.residual[0] = f64::NAN;
    assert_eq!(world.all(40), weighted);
    world.residual[1] = f64::NAN;
    assert!(
        assigned(&world.rows(), &Bootstrap::default(), &Silent)
            .unwrap_err()
            .to_string()
            .contains("row 1 (counted from 0)")
    );
}

#[test]
fn rows_are_told_apart_by_what_training_had_and_left_out_where_they_have_no_effect() {
    let mut world = World::new(300, 5);
    world.contrast[7] = f64::NAN;
    let is_seen: Vec<bool> = (0..300).map(|policy| policy < 100).collect();
    let readings = read(&AssignedRows { is_seen: Some(&is_seen), ..world.rows() }, 20);
    let found: Vec<(AssignedPolicies, usize, usize)> =
        readings.iter().map(|own| (own.result.policies, own.result.rows, own.result.n_policies)).collect();
    assert_eq!(
        found,
        [
            (AssignedPolicies::All, 299, 299),
            (AssignedPolicies::Seen, 99, 99),
            (AssignedPolicies::New, 200, 200)
        ]
    );
    assert!(readings[0].result.notes.iter().any(|note| note.starts_with("left out: 1 row")));
    let new: Vec<usize> = (100..300).collect();
    same(&readings[2].result, &world.taken(&new).all(20));
    // Draws follow the units, not the contrasts: those of two models are paired.
    let mut other = World::new(300, 5);
    other.contrast.iter_mut().for_each(|contrast| *contrast *= 3.0);
    other.contrast[7] = f64::NAN;
    let other = read(&other.rows(), 20);
    assert!(readings[0].draws.iter().zip(&other[0].draws).all(|(a, b)| (a[1] - 3.0 * b[1]).abs() < 1e-10));
}

#[test]
fn few_clusters_are_told() {
    let few = World::new(300, 6);
    let nine = World { cluster: (0..300).map(|row| row % 9).collect(), ..World::new(300, 6) };
    let told = |world: &World| world.all(20).notes.iter().any(|note| note.starts_with("only 9 clusters"));
    assert!(told(&nine) && !told(&few));
    assert_eq!((nine.all(20).n_clusters, few.all(20).n_clusters), (Some(9), Some(150)));
}

#[test]
fn arms_are_thin_where_many_small_ones_have_most_rows() {
    assert!(arms_are_thin(&[1; 50], Some(0)));
    assert!(arms_are_thin(&[29; 11], Some(0)) && !arms_are_thin(&[30; 11], Some(0)));
    assert!(!arms_are_thin(&[29; 10], Some(0)) && arms_are_thin(&[29; 10], None));
    let small = [[500].as_slice(), &[5; 50]].concat();
    assert!(!arms_are_thin(&small, None) && arms_are_thin(&small, Some(0)));
}
