//! Several limits: against trying everything, and what holds of every solution.

use poul::Silent;
use poul::decide::allocate::{Adds, Keep, Limit, Options, Problem, solve};
use rand::RngExt;

use super::world::{World, rng};

#[test]
fn small_problems_are_solved_as_by_trying_everything() {
    let (mut n_solved, mut n_impossible) = (0, 0);
    for index in 0..600 {
        let rng = &mut rng("small", index);
        let (n_users, n_policies) = (rng.random_range(1..6), rng.random_range(2..5));
        let n_loads = rng.random_range(1..3);
        let world = World::draw(rng, n_users, n_policies, n_loads);
        let problem = world.problem(rng);
        // With hulls alone one user may be divided, and options between corners are gone.
        let options = world.options(&match Keep::for_limits(&problem.limits, n_loads) {
            Keep::Hull => Keep::All,
            keep => keep,
        });
        match (solve(&options, &problem, &Silent), world.by_trying(&problem)) {
            (Ok(solution), Some(best)) => {
                world.check(&options, &problem, &solution);
                assert!((solution.value - best).abs() < 1e-9, "{index}: {} {best}", solution.value);
                n_solved += 1;
            }
            (Err(error), None) => {
                assert_eq!(error.kind(), poul::Kind::Usage, "{index}: {error}");
                n_impossible += 1;
            }
            (found, best) => panic!("{index}: {found:?} {best:?}"),
        }
    }
    assert!(n_solved > 200 && n_impossible > 50, "{n_solved} {n_impossible}");
}

#[test]
fn limits_are_kept_and_little_is_lost_where_there_are_more_users() {
    let mut n_solved = 0;
    for index in 0..150 {
        let rng = &mut rng("medium", index);
        let n_users = rng.random_range(30..400);
        let world = World::draw(rng, n_users, 5, 2);
        let problem = world.problem(rng);
        let options = world.options(&Keep::for_limits(&problem.limits, 2));
        let Ok(solution) = solve(&options, &problem, &Silent) else { continue };
        world.check(&options, &problem, &solution);
        // At most one user is divided for each limit, and nobody's value goes beyond 3.
        assert!(solution.gap <= 3.0 * problem.limits.len() as f64, "{index}: {}", solution.gap);
        assert!(solution.fractional.is_empty());
        n_solved += 1;
    }
    assert!(n_solved > 75, "{n_solved}");
}

/// A budget, a rate, caps, a floor and a group's budget for many users.
fn many(n_users: usize) -> (World, Problem) {
    let rng = &mut rng("many", 0);
    let mut world = World::draw(rng, n_users, 6, 2);
    world.eligible = None;
    let n = n_users as f64;
    let limit = |name: &str, adds, group, at_most| Limit { name: name.into(), adds, group, at_most };
    let limits = vec![
        limit("budget", Adds::Load(0), None, 0.1 * n),
        limit("rate", Adds::Load(1), None, -0.4 * n),
        limit("cap", Adds::Users(2), None, (0.1 * n).floor()),
        limit("floor", Adds::MinusUsers(3), None, -(0.3 * n).floor()),
        limit("group", Adds::Load(0), Some(1), 0.02 * n),
    ];
    let group = Some(world.groups.clone());
    (world, Problem { limits, group })
}

#[test]
fn many_users_are_solved_alike_on_any_number_of_threads() {
    let (world, problem) = many(30_000);
    let keep = Keep::for_limits(&problem.limits, 2);
    let solutions = [1, 3].map(|n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| solve(&world.options(&keep), &problem, &Silent).unwrap())
    });
    assert_eq!(solutions[0], solutions[1]);
    let [solution, _] = solutions;
    world.check(&world.options(&keep), &problem, &solution);
    assert!(solution.gap < 1e-4 * solution.value, "{} {}", solution.gap, solution.value);
    assert!(solution.limits.iter().filter(|kept| kept.price > 0.0).count() >= 3, "{:?}", solution.limits);
}

#[test]
fn order_of_users_and_units_change_nothing() {
    let (world, problem) = many(900);
    let keep = Keep::for_limits(&problem.limits, 2);
    let solution = solve(&world.options(&keep), &problem, &Silent).unwrap();

    let mut reversed = world.clone();
    let (n, width) = (world.n_users, world.n_policies);
    for user in 0..n {
        let (from, to) = ((n - 1 - user) * width, user * width);
        reversed.values[to..to + width].copy_from_slice(&world.values[from..from + width]);
        reversed.loads[2 * to..2 * (to + width)].copy_from_slice(&world.loads[2 * from..2 * (from + width)]);
        reversed.groups[user] = world.groups[n - 1 - user];
    }
    let other = Problem { group: Some(reversed.groups.clone()), ..problem.clone() };
    let turned = solve(&reversed.options(&keep), &other, &Silent).unwrap();
    assert!((turned.bound - solution.bound).abs() < 1e-10 * solution.bound);

    // Costs in other units: a power of two is exact, one of ten is not quite.
    for (unit, tolerance) in [(1_048_576.0, 1e-12), (1e6, 1e-6)] {
        let mut scaled = world.clone();
        scaled.loads.iter_mut().for_each(|load| *load = (f64::from(*load) * unit) as f32);
        let mut other = problem.clone();
        for limit in &mut other.limits {
            if matches!(limit.adds, Adds::Load(_)) {
                limit.at_most *= unit;
            }
        }
        let found = solve(&scaled.options(&keep), &other, &Silent).unwrap();
        assert!((found.bound - solution.bound).abs() < tolerance * solution.bound);
        let price = found.limits[0].price * unit;
        assert!((price - solution.limits[0].price).abs() < 1e-3 * (1.0 + price));
    }
}

#[test]
fn limits_that_contradict_each_other_are_named_with_what_would_work() {
    // Two users; policy 1 costs 2 and 3.
    let problem = |floor: f64, budget: f64| {
        let limit = |name: &str, adds, at_most| Limit { name: name.into(), adds, group: None, at_most };
        let limits = vec![
            limit("‹floor=a=2›", Adds::MinusUsers(1), -floor),
            limit("‹budget=cost=4›", Adds::Load(0), budget),
            limit("‹cap=b=1›", Adds::Users(2), 1.0),
        ];
        Problem { limits, group: None }
    };
    let values = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0];
    let loads = [0.0, 2.0, 1.0, 0.0, 3.0, 1.0];
    let keep = Keep::for_limits(&problem(2.0, 4.0).limits, 1);
    let options = Options::dense(3, 1, &values, &loads, None, &keep).unwrap();
    let error = solve(&options, &problem(2.0, 4.0), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "`floor = a=2` and `budget = cost=4` cannot all be kept");
    assert_eq!(
        error.hint_text(),
        Some(
            "with the others as they are, for `floor = a=2` at most 1 users can be asked for; \
              for `budget = cost=4` the least amount that works is 5"
        )
    );
    assert!(solve(&options, &problem(2.0, 5.0), &Silent).is_ok());
    assert!(solve(&options, &problem(1.0, 4.0), &Silent).is_ok());
    let error = solve(&options, &problem(3.0, 9.0), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "`floor = a=2` cannot be kept: at most 2 users can be asked for");
}

#[test]
fn amounts_without_end_are_no_limits() {
    let (world, mut problem) = many(200);
    let options = world.options(&Keep::for_limits(&problem.limits, 2));
    problem.limits.iter_mut().for_each(|limit| limit.at_most = f64::INFINITY);
    let solution = solve(&options, &problem, &Silent).unwrap();
    let best: f64 = (0..200).map(|user| (0..6).map(|k| world.value(user, k)).fold(0.0, f64::max)).sum();
    assert!((solution.value - best).abs() < 1e-9 && solution.gap < 1e-9);
    assert!(solution.limits.iter().all(|kept| kept.price == 0.0 && kept.slack == f64::INFINITY));
}

#[test]
fn users_who_are_all_alike_are_shared_out() {
    let n = 12_000;
    let world = World {
        n_users: n,
        n_policies: 4,
        n_loads: 2,
        values: [0.0, 1.0, 1.5, 2.5].repeat(n),
        loads: [0.0, 0.0, 0.2, 0.3, 0.6, -0.2, 1.5, 0.4].repeat(n),
        eligible: None,
        groups: vec![0; n],
    };
    let limit = |adds, at_most| Limit { name: String::new(), adds, group: None, at_most };
    let limits = vec![
        limit(Adds::Load(0), 0.3 * n as f64),
        limit(Adds::Load(1), 0.1 * n as f64),
        limit(Adds::Users(1), 3600.0),
    ];
    let problem = Problem { limits, group: None };
    let options = world.options(&Keep::for_limits(&problem.limits, 2));
    let solution = solve(&options, &problem, &Silent).unwrap();
    world.check(&options, &problem, &solution);
    // All that are allowed have policy 1, the rest of the budget goes to policy 2, but for a part of a user.
    assert!((solution.bound - 0.9 * n as f64).abs() < 1e-3, "{}", solution.bound);
    assert!(solution.gap < 1.6, "{}", solution.gap);
}
