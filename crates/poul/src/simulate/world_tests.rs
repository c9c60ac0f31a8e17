//! What must hold in every world: outcomes average to the truth, shares and propensities are as said.

use rand::RngExt;

use super::params::{Simulation, Valid};
use super::run::choose;
use super::world::{Part, World, mean_and_sd};
use super::{delivery, long_tail, observational, ride_hailing, stratified};
use crate::Seed;

fn params(scenario: &str) -> Valid {
    let n_features = match scenario {
        "ride-hailing" => 30,
        "delivery" => 40,
        _ => 20,
    };
    let simulation =
        Simulation { scenario: scenario.into(), features: Some(n_features), ..Simulation::default() };
    simulation.check().unwrap()
}

/// Draws by row and policy average to the expected outcome, within five standard errors.
fn outcomes_average_to_the_truth(world: &impl World, part: Part) {
    const DRAWS: usize = 40_000;
    let units = world.units(part, 200, Seed::new(11));
    let n_outcomes = world.setting().outcomes.len();
    let n_policies = world.setting().shares.len();
    let mut rng = Seed::new(12).rng();
    for row in (0..200).step_by(50) {
        for policy_idx in [0, 1, n_policies - 1] {
            let mut draws = vec![Vec::with_capacity(DRAWS); n_outcomes];
            let mut drawn = vec![0.0; n_outcomes];
            for _ in 0..DRAWS {
                world.draw(&units, row, policy_idx, &mut rng, &mut drawn);
                draws.iter_mut().zip(&drawn).for_each(|(draws, &value)| draws.push(value));
            }
            for (outcome_idx, draws) in draws.into_iter().enumerate() {
                let expected = world.expected(&units, outcome_idx, row, policy_idx);
                let (mean, sd) = mean_and_sd(draws);
                let error = 5.0 * sd / (DRAWS as f64).sqrt();
                assert!(
                    (mean - expected).abs() <= error,
                    "{row} {policy_idx}: {mean} ± {error}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn outcomes_average_to_the_truth_in_every_scenario() {
    let seed = Seed::new(1);
    outcomes_average_to_the_truth(&ride_hailing::world(&params("ride-hailing"), seed), Part::Train);
    outcomes_average_to_the_truth(&ride_hailing::world(&params("ride-hailing"), seed), Part::Test);
    outcomes_average_to_the_truth(&delivery::world(&params("delivery"), seed), Part::Test);
    outcomes_average_to_the_truth(&long_tail::world(&params("long-tail"), seed).unwrap(), Part::Test);
    outcomes_average_to_the_truth(&stratified::world(&params("stratified"), seed).unwrap(), Part::Test);
    outcomes_average_to_the_truth(&observational::world(&params("observational"), seed).unwrap(), Part::Test);
}

#[test]
fn control_has_no_effect_and_effects_have_unit_spread() {
    for seed in 0..3 {
        let world = long_tail::world(&params("long-tail"), Seed::new(seed)).unwrap();
        let units = world.units(Part::Test, 4096, Seed::new(21));
        assert!((0..4096).all(|row| world.effect(&units, 0, row, 0) == 0.0));
        let pairs = (0..4096).flat_map(|row| (1..200).map(move |policy_idx| (row, policy_idx)));
        let (_, sd) = mean_and_sd(pairs.map(|(row, policy_idx)| world.effect(&units, 0, row, policy_idx)));
        assert!((0.93..1.07).contains(&sd), "{sd}");

        let mut rng = Seed::new(22).rng();
        let noise = (0..4096).map(|row| {
            let mut drawn = [0.0];
            world.draw(&units, row, 5, &mut rng, &mut drawn);
            drawn[0] - world.expected(&units, 0, row, 5)
        });
        let (mean, noise) = mean_and_sd(noise);
        assert!((1.9..2.1).contains(&noise) && mean.abs() < 0.15, "{mean} {noise}");
    }
}

#[test]
fn effects_differ_between_units_and_between_policies() {
    for seed in 0..3 {
        let world = long_tail::world(&params("long-tail"), Seed::new(seed)).unwrap();
        let units = world.units(Part::Test, 1024, Seed::new(31));
        let effect = |row, policy_idx| world.effect(&units, 0, row, policy_idx);
        let over_units = |policy_idx| mean_and_sd((0..1024).map(|row| effect(row, policy_idx)));
        let averages: Vec<(f64, f64)> = (1..200).map(over_units).collect();
        let (_, between_policies) = mean_and_sd(averages.iter().map(|(mean, _)| *mean));
        let (within_policies, _) = mean_and_sd(averages.iter().map(|(_, sd)| *sd));
        assert!(between_policies > 0.05, "{between_policies}");
        assert!((0.4..1.0).contains(&within_policies), "{within_policies}");
    }
}

#[test]
fn propensities_are_distributions_with_overlap_and_average_to_the_shares() {
    fn check(world: &impl World, floor: f64) {
        let setting = world.setting();
        let units = world.units(Part::Train, 4096, Seed::new(41));
        let mut average = vec![0.0; setting.shares.len()];
        for row in 0..4096 {
            let propensities = world.propensities(&units, row);
            assert!((propensities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for (policy_idx, &propensity) in propensities.iter().enumerate() {
                assert_eq!(propensity == 0.0, setting.shares[policy_idx] == 0.0);
                assert!(propensity == 0.0 || propensity >= floor, "{propensity}");
                average[policy_idx] += propensity / 4096.0;
            }
        }
        for (average, share) in average.iter().zip(&setting.shares) {
            assert!((average - share).abs() < 0.02, "{average} {share}");
        }
    }
    for seed in [1, 2].map(Seed::new) {
        check(&stratified::world(&params("stratified"), seed).unwrap(), 0.2 / 30.0);
        check(&observational::world(&params("observational"), seed).unwrap(), 0.2 / 10.0);
        check(&long_tail::world(&params("long-tail"), seed).unwrap(), 0.0);
    }
}

/// Inverse propensities undo the confounding that a raw difference of means suffers from.
#[test]
fn raw_means_are_biased_where_nobody_randomised() {
    let mut biases = Vec::new();
    for seed in 0..4 {
        let world = observational::world(&params("observational"), Seed::new(seed)).unwrap();
        let units = world.units(Part::Train, 20_000, Seed::new(51));
        let n_policies = world.setting().shares.len();
        let baseline = &world.responses(&units)[0].baseline;
        let (population, _) = mean_and_sd(baseline.iter().copied());
        let (mut raw, mut weighted) = (vec![[0.0; 2]; n_policies], vec![[0.0; 2]; n_policies]);
        let mut rng = Seed::new(52).rng();
        for (row, baseline) in baseline.iter().enumerate() {
            let propensities = world.propensities(&units, row);
            let policy_idx = choose(propensities, rng.random());
            for (sums, weight) in [(&mut raw, 1.0), (&mut weighted, 1.0 / propensities[policy_idx])] {
                sums[policy_idx][0] += weight * baseline;
                sums[policy_idx][1] += weight;
            }
        }
        for policy_idx in (0..n_policies).filter(|&idx| world.setting().shares[idx] > 0.05) {
            let bias = |sums: [f64; 2]| (sums[0] / sums[1] - population).abs();
            assert!(bias(weighted[policy_idx]) < 0.35, "{}", bias(weighted[policy_idx]));
            biases.push(bias(raw[policy_idx]));
        }
    }
    assert!(biases.iter().copied().fold(0.0, f64::max) > 0.5, "{biases:?}");
}

#[test]
fn upgrades_lift_gmv_by_a_few_percent_and_only_for_the_exposed() {
    let world = ride_hailing::world(&params("ride-hailing"), Seed::new(1));
    for (part, range) in [(Part::Train, 0.045..0.055), (Part::Test, 0.035..0.065)] {
        let units = world.units(part, 50_000, Seed::new(61));
        let mean = |values: &dyn Fn(usize) -> f64| mean_and_sd((0..50_000).map(values)).0;
        let control = mean(&|row| world.expected(&units, 0, row, 0));
        let t1 = mean(&|row| world.effect(&units, 0, row, 1)) / control;
        let t2 = mean(&|row| world.effect(&units, 0, row, 2)) / control;
        assert!(range.contains(&t2), "{part:?}: {t2}");
        assert!(t1 > 0.01 && t1 < t2, "{part:?}: {t1} {t2}");
        let (mut exposed, mut harmed) = (0, 0);
        for row in 0..50_000 {
            let (gain, cost) = (world.effect(&units, 0, row, 2), world.effect(&units, 1, row, 2));
            exposed += usize::from(cost > 0.0);
            harmed += usize::from(gain < 0.0);
            assert_eq!(world.expected(&units, 1, row, 0), 0.0);
            assert!(cost > 0.0 || (cost == 0.0 && gain == 0.0));
            assert!((0..8).all(|policy_idx| world.expected(&units, 0, row, policy_idx) > 0.0));
        }
        assert!((15_000..30_000).contains(&exposed), "{exposed}");
        assert!((250..10_000).contains(&harmed), "{harmed}");
    }
}

#[test]
fn tiers_split_the_policies_that_are_run() {
    let world = long_tail::world(&params("long-tail"), Seed::new(1)).unwrap();
    let tiers = world.setting().tiers();
    let count = |tier| tiers.iter().filter(|&&known| known == tier).count();
    assert_eq!((count("control"), count("frequent"), count("rare"), count("unseen")), (1, 53, 106, 40));
    let shares = &world.setting().shares;
    let of = |tier: &'static str| (0..200).filter(|&idx| tiers[idx] == tier).map(|idx| shares[idx]).collect();
    let (frequent, rare): (Vec<f64>, Vec<f64>) = (of("frequent"), of("rare"));
    let largest_rare = rare.into_iter().fold(0.0, f64::max);
    assert!(frequent.into_iter().all(|share| share > largest_rare));
}

#[test]
fn choice_never_falls_on_probability_zero() {
    let probabilities = [0.0, 0.3, 0.0, 0.7, 0.0];
    assert_eq!([0.0, 0.29, 0.31, 0.999_999_999].map(|u| choose(&probabilities, u)), [1, 1, 3, 3]);
    assert_eq!(choose(&[0.1; 10], 1.0 - f64::EPSILON / 2.0), 9);
}
