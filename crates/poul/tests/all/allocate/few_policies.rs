//! Few policies: the best set, its bound, and what must be in it.

use poul::Silent;
use poul::decide::allocate::{Adds, Keep, Limit, Options, Problem, choose_policies, solve};

use super::world::{World, rng};

fn budget(at_most: f64) -> Problem {
    let limit = Limit { name: "‹budget=cost›".into(), adds: Adds::Load(0), group: None, at_most };
    Problem { limits: vec![limit], group: None }
}

fn with(options: &Options, policies: &[u16], problem: &Problem) -> f64 {
    let allowed: Vec<bool> = (0..options.n_policies()).map(|own| policies.contains(&(own as u16))).collect();
    solve(&options.restricted(&allowed, &Keep::Hull).unwrap(), problem, &Silent).unwrap().value
}

#[test]
fn the_best_set_is_found_and_the_control_is_free() {
    let world = World::draw(&mut rng("few", 0), 60, 6, 1);
    let options = world.options(&Keep::All);
    let problem = budget(5.0);
    let found = choose_policies(&options, &problem, &[0], 2, &Silent).unwrap();
    assert!(found.is_exact && found.policies.len() == 3 && found.policies[0] == 0);
    let pairs = (1..6).flat_map(|a| (a + 1..6).map(move |b| [0, a, b]));
    let best = pairs.map(|pair| with(&options, &pair, &problem)).fold(f64::NEG_INFINITY, f64::max);
    assert!((found.value - best).abs() < 1e-9 * best);
    assert!((with(&options, &found.policies, &problem) - best).abs() < 1e-9 * best);
    assert!((found.bound - with(&options, &[0, 1, 2, 3, 4, 5], &problem)).abs() < 1e-9 * best);
    let all = choose_policies(&options, &problem, &[0], 9, &Silent).unwrap();
    assert_eq!((all.policies.len(), all.value), (6, all.bound));
    assert_eq!(choose_policies(&options, &problem, &[0], 0, &Silent).unwrap().policies, [0]);
}

#[test]
fn of_many_policies_few_are_found_step_by_step() {
    let world = World::draw(&mut rng("few", 1), 80, 30, 1);
    let options = world.options(&Keep::All);
    let problem = budget(4.0);
    let three = choose_policies(&options, &problem, &[0], 4, &Silent).unwrap();
    assert!(!three.is_exact && three.policies.len() == 5);
    assert!(three.value <= three.bound && three.value > 0.6 * three.bound, "{three:?}");
    // No exchange of one policy is better.
    for gone in &three.policies[1..] {
        for new in (1..30).filter(|new| !three.policies.contains(new)) {
            let set: Vec<u16> =
                three.policies.iter().map(|own| if own == gone { new } else { *own }).collect();
            assert!(with(&options, &set, &problem) <= three.value * (1.0 + 1e-9));
        }
    }
}

#[test]
fn policies_with_floors_are_always_among_them() {
    let mut world = World::draw(&mut rng("few", 2), 40, 5, 1);
    world.eligible = None;
    let mut problem = budget(6.0);
    let floor =
        |policy| Limit {
            name: "‹floor›".into(), adds: Adds::MinusUsers(policy), group: None, at_most: -4.0
        };
    problem.limits.push(floor(4));
    let options = world.options(&Keep::All);
    let found = choose_policies(&options, &problem, &[0], 1, &Silent).unwrap();
    assert_eq!(found.policies, [0, 4]);
    problem.limits.push(floor(2));
    let error = choose_policies(&options, &problem, &[0], 1, &Silent).unwrap_err();
    assert_eq!(error.to_string(), "2 policies have floors, and at most 1 may be used");
}
