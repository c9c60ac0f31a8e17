//! What must not change a metric: row order, ties, units, monotone scores, duplicated rows against weights, threads.

use poul::evaluate::{
    Bootstrap, Ranked, Rows, Sample, Strategy, ate, auuc, auuc_causalml, calibration, calibration_slope,
    gain_curve, qini, qini_auc_sklift, qini_causalml, rate_autoc, rate_qini, uplift_at_k, uplift_auc_sklift,
};
use poul::{Seed, Silent};
use rand::RngExt;

struct World {
    score: Vec<f64>,
    outcome: Vec<f64>,
    treated: Vec<bool>,
    dr_score: Vec<f64>,
}

/// Rows with a third of the scores tied; outcomes are 0/1 or continuous.
fn world(n_rows: usize, binary: bool, seed: u64) -> World {
    let mut rng = Seed::new(seed).child("world").rng();
    let mut world = World { score: vec![], outcome: vec![], treated: vec![], dr_score: vec![] };
    for _ in 0..n_rows {
        let effect: f64 = rng.random_range(-0.2..0.6);
        let treated = rng.random_range(0..3) > 0;
        let level = 0.3 + if treated { effect } else { 0.0 };
        let noise: f64 = rng.random_range(0.0..1.0);
        world.outcome.push(if binary { f64::from(u8::from(noise < level)) } else { 10.0 * level + noise });
        let tied = rng.random_range(0..3) == 0;
        world.score.push(if tied { (effect * 10.0).round() / 10.0 } else { effect });
        world.treated.push(treated);
        world.dr_score.push(effect + rng.random_range(-1.0..1.0));
    }
    world
}

impl World {
    fn sample(&self) -> Sample<'_> {
        Sample::new(&self.score, &self.outcome, &self.treated).unwrap()
    }

    fn taken(&self, rows: &[usize]) -> Self {
        Self {
            score: rows.iter().map(|row| self.score[*row]).collect(),
            outcome: rows.iter().map(|row| self.outcome[*row]).collect(),
            treated: rows.iter().map(|row| self.treated[*row]).collect(),
            dr_score: rows.iter().map(|row| self.dr_score[*row]).collect(),
        }
    }
}

/// Metrics that must not depend on the order of tied rows.
fn order_free(ranked: &Ranked, dr_score: &[f64]) -> Vec<(&'static str, Option<f64>)> {
    let calibration = calibration(ranked, 10);
    vec![
        ("auuc", auuc(ranked)),
        ("qini", qini(ranked)),
        ("uplift_auc_sklift", uplift_auc_sklift(ranked)),
        ("qini_auc_sklift", qini_auc_sklift(ranked, true)),
        ("uplift_at_k", uplift_at_k(ranked, 0.3, Strategy::Overall)),
        ("uplift_at_k by group", uplift_at_k(ranked, 0.3, Strategy::ByGroup)),
        ("rate_autoc", rate_autoc(ranked, dr_score)),
        ("rate_qini", rate_qini(ranked, dr_score)),
        ("mape", calibration.mape),
        ("wmape", calibration.wmape),
        ("slope", calibration_slope(ranked).map(|slope| slope.value)),
        ("ate", ate(ranked).map(|ate| ate.value)),
        ("curve", gain_curve(ranked, 11).get(4).map(|point| point.lift)),
    ]
}

#[track_caller]
fn same(a: &[(&'static str, Option<f64>)], b: &[(&'static str, Option<f64>)], skipped: &[&str]) {
    for ((name, a), (_, b)) in a.iter().zip(b).filter(|((name, _), _)| !skipped.contains(name)) {
        match (a, b) {
            (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{name}: {a} is not {b}"),
            _ => assert_eq!(a, b, "{name}"),
        }
    }
}

#[test]
fn shuffled_rows() {
    for binary in [true, false] {
        let world = world(2000, binary, 1);
        let mut rng = Seed::new(2).rng();
        let mut rows: Vec<usize> = (0..2000).collect();
        for last in (1..rows.len()).rev() {
            rows.swap(last, rng.random_range(0..=last));
        }
        let shuffled = world.taken(&rows);
        let metrics = order_free(&Ranked::new(&world.sample()), &world.dr_score);
        assert_eq!(metrics.iter().filter(|(_, value)| value.is_some()).count(), if binary { 13 } else { 11 });
        same(&metrics, &order_free(&Ranked::new(&shuffled.sample()), &shuffled.dr_score), &[]);
    }
}

#[test]
fn monotone_transforms_of_the_score() {
    let world = world(2000, true, 3);
    let cubed: Vec<f64> = world.score.iter().map(|score| (score * 3.0).exp() - 100.0).collect();
    let sample = Sample::new(&cubed, &world.outcome, &world.treated).unwrap();
    same(
        &order_free(&Ranked::new(&world.sample()), &world.dr_score),
        &order_free(&Ranked::new(&sample), &world.dr_score),
        &["mape", "wmape", "slope"],
    );
}

#[test]
fn units_of_the_outcome() {
    let world = world(2000, false, 4);
    let scaled: Vec<f64> = world.outcome.iter().map(|outcome| 250.0 * outcome + 1e4).collect();
    let score: Vec<f64> = world.score.iter().map(|score| 250.0 * score).collect();
    let before = order_free(&Ranked::new(&world.sample()), &world.dr_score);
    let sample = Sample::new(&score, &scaled, &world.treated).unwrap();
    let after = order_free(&Ranked::new(&sample), &world.dr_score);
    same(&before, &after, &["uplift_at_k", "uplift_at_k by group", "ate", "curve"]);
    let ranked = (Ranked::new(&world.sample()), Ranked::new(&sample));
    assert!((auuc_causalml(&ranked.0).unwrap() - auuc_causalml(&ranked.1).unwrap()).abs() < 1e-9);
    assert!((qini_causalml(&ranked.0).unwrap() - qini_causalml(&ranked.1).unwrap()).abs() < 1e-9);
}

#[test]
fn whole_weights_are_duplicated_rows() {
    for binary in [true, false] {
        let world = world(800, binary, 5);
        let mut rng = Seed::new(6).rng();
        let copies: Vec<usize> = (0..800).map(|_| rng.random_range(0..4)).collect();
        let weight: Vec<f64> = copies.iter().map(|copies| *copies as f64).collect();
        let rows: Vec<usize> =
            copies.iter().enumerate().flat_map(|(row, copies)| std::iter::repeat_n(row, *copies)).collect();
        let duplicated = world.taken(&rows);
        let weighted = Ranked::new(&world.sample().with_weight(&weight).unwrap());
        same(
            &order_free(&weighted, &world.dr_score),
            &order_free(&Ranked::new(&duplicated.sample()), &duplicated.dr_score),
            &[],
        );
    }
}

#[test]
fn weights_may_be_shares() {
    let world = world(800, false, 7);
    let share = vec![1.0 / 800.0; 800];
    let weighted = Ranked::new(&world.sample().with_weight(&share).unwrap());
    same(
        &order_free(&Ranked::new(&world.sample()), &world.dr_score),
        &order_free(&weighted, &world.dr_score),
        &[],
    );
}

#[test]
fn a_draw_of_counts_is_those_rows_repeated() {
    // Each draw's total over the rows, found through the metric itself, must match the rows it was given.
    let world = world(500, true, 8);
    let cluster: Vec<u32> = (0..500).map(|row| row % 50).collect();
    let ranked = Ranked::new(&world.sample().with_cluster(&cluster).unwrap());
    let bootstrap = Bootstrap { draws: 20, ..Bootstrap::default() };
    let draws = bootstrap
        .draw(&ranked, &Silent, |rows: Rows<'_>| vec![rows.totals().k(), auuc(rows).unwrap_or(f64::NAN)])
        .unwrap();
    // 50 clusters of 10 rows drawn 50 times: always 500 rows.
    assert_eq!(draws.interval(0, 0.9), Some([500.0, 500.0]));
    let [low, high] = draws.interval(1, 0.9).unwrap();
    assert!(low < high);
}

#[test]
fn one_thread_or_two_give_the_same_bits() {
    for n_rows in [300, 5000] {
        let world = world(n_rows, true, 9);
        let ranked = Ranked::new(&world.sample());
        let intervals: Vec<_> = [1, 2]
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    Bootstrap::default().interval(&ranked, &Silent, |rows| auuc(rows)).unwrap().unwrap()
                })
            })
            .to_vec();
        assert_eq!(intervals[0].map(f64::to_bits), intervals[1].map(f64::to_bits));
    }
}

#[test]
fn intervals_cover_and_widen_with_clusters() {
    // The mean effect is 0.2 by construction, times 10 in continuous outcomes.
    let covered = (0..60)
        .filter(|seed| {
            let world = world(1500, false, 100 + seed);
            let ranked = Ranked::new(&world.sample());
            let [low, high] = Bootstrap { draws: 100, ..Bootstrap::default() }
                .interval(&ranked, &Silent, |rows| rows.totals().lift())
                .unwrap()
                .unwrap();
            low <= 2.0 && high >= 2.0
        })
        .count();
    assert!((46..=60).contains(&covered), "{covered} of 60 at level 0.9");

    let world = world(1000, false, 11);
    let rows: Vec<usize> = (0..4000).map(|row| row / 4).collect();
    let copied = world.taken(&rows);
    let cluster: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
    let width = |ranked: &Ranked| {
        let [low, high] = Bootstrap::default().interval(ranked, &Silent, |rows| auuc(rows)).unwrap().unwrap();
        high - low
    };
    let (apart, together) = (
        width(&Ranked::new(&copied.sample())),
        width(&Ranked::new(&copied.sample().with_cluster(&cluster).unwrap())),
    );
    assert!(together > 1.5 * apart, "{together} {apart}");
}
