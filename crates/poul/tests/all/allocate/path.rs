//! The path of one budget against the dual at every slope there is, and what it must not depend on.

use poul::Silent;
use poul::decide::allocate::{Adds, Keep, Limit, Options, OptionsBuilder, Path, Problem, solve};
use rand::RngExt;

use super::world::{World, rng};

/// The best value by the dual, whose minimum is at one of the slopes between two options of a user, or at 0.
fn by_dual(world: &World, budget: f64) -> f64 {
    let n = world.n_policies;
    let open = |user: usize, policy: usize| world.eligible.as_ref().is_none_or(|own| own[user * n + policy]);
    let point =
        |user: usize, policy: usize| (f64::from(world.loads[user * n + policy]), world.value(user, policy));
    let mut prices = vec![0.0];
    for user in 0..world.n_users {
        for a in (0..n).filter(|a| open(user, *a)) {
            for b in (0..n).filter(|b| open(user, *b)) {
                let ((c, v), (d, w)) = (point(user, a), point(user, b));
                if d > c && w > v {
                    prices.push((w - v) / (d - c));
                }
            }
        }
    }
    let dual = |price: &f64| {
        let best = |user: usize| {
            let nets = (0..n).filter(|own| open(user, *own)).map(|own| point(user, own));
            nets.map(|(c, v)| v - price * c).fold(f64::NEG_INFINITY, f64::max)
        };
        (0..world.n_users).map(best).sum::<f64>() + price * budget
    };
    prices.iter().map(dual).fold(f64::INFINITY, f64::min)
}

fn budget(at_most: f64) -> Problem {
    let limit = Limit { name: "‹budget=cost›".into(), adds: Adds::Load(0), group: None, at_most };
    Problem { limits: vec![limit], group: None }
}

#[test]
fn every_budget_has_its_best_value() {
    for index in 0..200 {
        let rng = &mut rng("path", index);
        let n_policies = rng.random_range(1..6);
        let world = World::draw(rng, 12, n_policies, 1);
        let options = world.options(&Keep::Hull);
        let path = Path::new(&options).unwrap();
        assert!(path.at(path.least() - 1e-6).is_none());
        let (least, greatest) = (path.least(), path.greatest());
        let corners: Vec<f64> = path.corners().map(|point| point.load).collect();
        let between = (0..6).map(|k| least + (greatest - least) * (f64::from(k) + 0.37) / 5.0);
        for amount in corners.into_iter().chain(between) {
            let point = path.at(amount).unwrap();
            let expected = by_dual(&world, amount);
            assert!((point.value - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{point:?} {expected}");
            let solution = solve(&options, &budget(amount), &Silent).unwrap();
            world.check(&options, &budget(amount), &solution);
            assert!((solution.value - expected).abs() < 1e-9 * (1.0 + expected.abs()));
            assert!(solution.fractional.len() <= 1 && solution.gap < 1e-9);
        }
    }
}

#[test]
fn corners_rise_by_falling_prices_and_the_curve_lies_on_them() {
    let world = World::draw(&mut rng("corners", 0), 3000, 6, 1);
    let options = world.options(&Keep::Hull);
    let path = Path::new(&options).unwrap();
    let corners: Vec<_> = path.corners().collect();
    assert_eq!(corners.len(), path.n_steps() + 1);
    for pair in corners.windows(2) {
        assert!(
            pair[1].load >= pair[0].load && pair[1].value >= pair[0].value && pair[1].price <= pair[0].price
        );
        let middle = 0.5 * (pair[0].load + pair[1].load);
        let expected = pair[0].value + pair[0].price * (middle - pair[0].load);
        assert!((path.at(middle).unwrap().value - expected).abs() < 1e-9 * expected.abs());
    }
    let curve = path.curve(11);
    assert_eq!((curve.len(), curve[0], curve[10]), (11, corners[0], corners[corners.len() - 1]));
    assert!(path.at(f64::INFINITY) == Some(curve[10]) && path.at(f64::NAN).is_none());
}

#[test]
fn blocks_and_threads_change_nothing() {
    let world = World::draw(&mut rng("threads", 1), 20_000, 5, 1);
    let whole = world.options(&Keep::Hull);
    let problem = budget(1500.0);
    let solutions = [1, 3].map(|n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| solve(&world.options(&Keep::Hull), &problem, &Silent).unwrap())
    });
    assert_eq!(solutions[0], solutions[1]);

    let mut joined = OptionsBuilder::new(1, Keep::Hull).unwrap();
    for first in [0, 7000] {
        let mut block = OptionsBuilder::new(1, Keep::Hull).unwrap();
        for user in first..if first == 0 { 7000 } else { 20_000 } {
            let cells = user * 5..(user + 1) * 5;
            let is_open = |k: &usize| world.eligible.as_ref().is_none_or(|open| open[*k]);
            let open: Vec<usize> = cells.clone().filter(is_open).collect();
            let policies: Vec<u16> = open.iter().map(|k| (k - cells.start) as u16).collect();
            let values: Vec<f32> = open.iter().map(|k| world.values[*k]).collect();
            let loads: Vec<f32> = open.iter().map(|k| world.loads[*k]).collect();
            block.user(&policies, &values, &loads).unwrap();
        }
        joined.append(block).unwrap();
    }
    assert_eq!(
        solve(&joined.finish(), &problem, &Silent).unwrap(),
        solve(&whole, &problem, &Silent).unwrap()
    );
}

#[test]
fn budgets_of_groups_are_spent_apart() {
    let world = World::draw(&mut rng("groups", 2), 400, 5, 1);
    let options = world.options(&Keep::Hull);
    let limit =
        |group, at_most| Limit { name: String::new(), adds: Adds::Load(0), group: Some(group), at_most };
    let group = Some(world.groups.clone());
    let both = Problem { limits: vec![limit(0, 12.0), limit(2, 3.0)], group };
    let solution = solve(&options, &both, &Silent).unwrap();
    world.check(&options, &both, &solution);
    assert!(solution.gap < 1e-9 && solution.fractional.len() == 2);
    // The general way finds the same bound and prices.
    let general = solve(&world.options(&Keep::All), &both, &Silent).unwrap();
    world.check(&options, &both, &solution);
    assert!((general.bound - solution.bound).abs() < 1e-9 * solution.bound);
}

#[test]
fn what_cannot_be_kept_is_told_with_what_can() {
    let options =
        Options::dense(2, 1, &[1.0, 2.0, 1.0, 3.0], &[0.1, 1.0, 0.25, 1.0], None, &Keep::Hull).unwrap();
    let error = solve(&options, &budget(0.3), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "`budget = cost` cannot be kept: the least amount that works is 0.350001");
    assert!(solve(&options, &budget(0.350_001), &Silent).is_ok());
    let error = Path::new(&options).unwrap().allocation(0.3).unwrap_err();
    assert_eq!(error.to_string(), "the budget is below the least that can be spent, 0.350001");
}

#[test]
fn what_is_no_number_is_refused() {
    let refused = |values: &[f32], eligible: Option<&[bool]>| {
        Options::dense(2, 1, values, &[0.0, 1.0], eligible, &Keep::Hull).unwrap_err().to_string()
    };
    assert_eq!(refused(&[0.0, f32::NAN], None), "an effect of user 1 is not a finite number");
    assert_eq!(refused(&[0.0, 1.0], Some(&[false, false])), "user 1 has no policy to choose");
    let options = Options::dense(2, 1, &[0.0, 1.0], &[0.0, 1.0], None, &Keep::Hull).unwrap();
    let error = solve(&options, &budget(f64::NAN), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "`budget = cost`: the amount is not a number");
}
