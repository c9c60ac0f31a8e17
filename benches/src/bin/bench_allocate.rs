//! Times the full path of one budget from scores, and an allocation under several limits.
//!
//! `cargo run --release -p benches --bin bench_allocate -- [RUNS]`. Rewards are N(0, 1), costs U(.05, 1) × (number of the arm from 1), and
//! the control gains and costs nothing: the same shape as the benchmark of the C++ package maq, on all threads there are.

use std::error::Error;
use std::time::Instant;

use poul::decide::allocate::{Adds, Keep, Limit, Options, Path, Problem, solve};
use poul::{Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

fn main() -> Result<(), Box<dyn Error>> {
    let n_runs: usize = std::env::args().nth(1).map_or(Ok(5), |runs| runs.parse())?;
    println!("{:>9} {:>5} {:>12} {:>12} {:>12}", "users", "arms", "path s", "5 limits s", "gap");
    for (n_users, n_arms) in [(100_000, 10), (1_000_000, 5), (1_000_000, 20)] {
        let (values, costs) = draw(n_users, n_arms);
        let n_policies = n_arms + 1;
        let path = median(n_runs, || {
            let options = Options::dense(n_policies, 1, &values, &costs, None, &Keep::Hull)?;
            let path = Path::new(&options)?;
            // The path is of use only if it can be read.
            assert!(path.at(0.5 * path.greatest()).is_some_and(|point| point.value > 0.0));
            Ok(())
        })?;
        let problem = limits(n_users);
        let keep = Keep::for_limits(&problem.limits, 1);
        let mut gap = 0.0;
        let several = median(n_runs, || {
            let options = Options::dense(n_policies, 1, &values, &costs, None, &keep)?;
            let solution = solve(&options, &problem, &Silent)?;
            gap = solution.gap / solution.value;
            Ok(())
        })?;
        println!("{n_users:>9} {n_arms:>5} {path:>12.3} {several:>12.3} {gap:>12.1e}");
    }
    Ok(())
}

/// A budget for all, one for a group, two caps and a floor.
fn limits(n_users: usize) -> Problem {
    let n = n_users as f64;
    let limit = |name: &str, adds, group, at_most| Limit { name: name.to_owned(), adds, group, at_most };
    let limits = vec![
        limit("budget", Adds::Load(0), None, 0.2 * n),
        limit("budget of a group", Adds::Load(0), Some(1), 0.03 * n),
        limit("cap of 1", Adds::Users(1), None, 0.1 * n),
        limit("cap of 2", Adds::Users(2), None, 0.1 * n),
        limit("floor of 3", Adds::MinusUsers(3), None, -0.12 * n),
    ];
    Problem { limits, group: Some((0..n_users as u32).map(|user| user % 4).collect()) }
}

fn draw(n_users: usize, n_arms: usize) -> (Vec<f32>, Vec<f32>) {
    let mut rng = Seed::new(3407).child("bench").rng();
    let (mut values, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..n_users {
        values.push(0.0);
        costs.push(0.0);
        for arm in 1..=n_arms {
            values.push(rng.sample(StandardNormal));
            costs.push(rng.random_range(0.05_f32..1.0) * arm as f32);
        }
    }
    (values, costs)
}

fn median(n_runs: usize, mut work: impl FnMut() -> poul::Result<()>) -> poul::Result<f64> {
    let mut seconds = Vec::new();
    for _ in 0..n_runs.max(1) {
        let started = Instant::now();
        work()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}
