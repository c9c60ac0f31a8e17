//! Small allocation problems, drawn.

use poul::decide::allocate::{Adds, Keep, Limit, Options, Problem, Solution};
use poul::{Rng, Seed};
use rand::RngExt;

/// Users by policies with two loads, cost and cost − rate·value. Policy 0 is the control: nothing gained, nothing spent.
#[derive(Clone)]
pub(super) struct World {
    pub(super) n_users: usize,
    pub(super) n_policies: usize,
    pub(super) n_loads: usize,
    pub(super) values: Vec<f32>,
    pub(super) loads: Vec<f32>,
    pub(super) eligible: Option<Vec<bool>>,
    pub(super) groups: Vec<u32>,
}

pub(super) fn rng(name: &str, index: u64) -> Rng {
    Seed::new(3407).child(name).index(index).rng()
}

impl World {
    pub(super) fn draw(rng: &mut Rng, n_users: usize, n_policies: usize, n_loads: usize) -> Self {
        // Coarse numbers tie; negative costs and free policies occur.
        let is_coarse = rng.random_range(0..3) == 0;
        let coarse = |number: f32| if is_coarse { (number * 4.0).round() / 4.0 } else { number };
        let (mut values, mut loads, mut eligible) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n_users {
            for policy in 0..n_policies {
                let free = if policy == 0 || rng.random_range(0..10) == 0 { 0.0 } else { 1.0 };
                let value = coarse(rng.random_range(-1.0..2.0)) * f32::from(u8::from(policy > 0));
                let cost = coarse(rng.random_range(-0.2..1.0)) * free;
                values.push(value);
                loads.push(cost);
                if n_loads > 1 {
                    loads.push(cost - 0.4 * value);
                }
                eligible.push(policy == 0 || rng.random_range(0..5) > 0);
            }
        }
        let groups = (0..n_users).map(|_| rng.random_range(0..3)).collect();
        let eligible = (rng.random_range(0..2) == 0).then_some(eligible);
        Self { n_users, n_policies, n_loads, values, loads, eligible, groups }
    }

    pub(super) fn options(&self, keep: &Keep) -> Options {
        let eligible = self.eligible.as_deref();
        Options::dense(self.n_policies, self.n_loads, &self.values, &self.loads, eligible, keep).unwrap()
    }

    /// Limits of every kind, some of them, which may or may not be possible together.
    pub(super) fn problem(&self, rng: &mut Rng) -> Problem {
        let n = self.n_users as f64;
        let mut limits = Vec::new();
        let mut add = |adds, group, at_most| {
            let name = format!("‹limit={}›", limits.len());
            limits.push(Limit { name, adds, group, at_most });
        };
        if rng.random_range(0..3) > 0 {
            add(Adds::Load(0), None, n * rng.random_range(-0.05..0.4));
        }
        if self.n_loads > 1 && rng.random_range(0..3) > 0 {
            add(Adds::Load(1), None, 0.0);
        }
        for group in 0..3 {
            if rng.random_range(0..4) == 0 {
                add(Adds::Load(0), Some(group), n / 3.0 * rng.random_range(0.0..0.4));
            }
        }
        for policy in 1..self.n_policies as u16 {
            if rng.random_range(0..4) == 0 {
                add(Adds::Users(policy), None, (n * rng.random_range(0.0..0.5)).floor());
            }
            if rng.random_range(0..6) == 0 {
                add(Adds::MinusUsers(policy), None, -(n * rng.random_range(0.0..0.3)).ceil());
            }
            if rng.random_range(0..6) == 0 {
                add(Adds::Users(policy), Some(1), (n / 3.0 * rng.random_range(0.0..0.5)).floor());
            }
        }
        Problem { limits, group: Some(self.groups.clone()) }
    }

    /// What a policy of a user adds to a limit.
    pub(super) fn adds(&self, limit: &Limit, user: usize, policy: usize) -> f64 {
        if limit.group.is_some_and(|group| self.groups[user] != group) {
            return 0.0;
        }
        let has = |own: u16| f64::from(u8::from(usize::from(own) == policy));
        match limit.adds {
            Adds::Load(load) => {
                f64::from(self.loads[(user * self.n_policies + policy) * self.n_loads + load])
            }
            Adds::Users(own) => has(own),
            Adds::MinusUsers(own) => -has(own),
        }
    }

    pub(super) fn value(&self, user: usize, policy: usize) -> f64 {
        f64::from(self.values[user * self.n_policies + policy])
    }

    /// Checks a solution against the table it came from: nothing it says of itself is taken for granted.
    pub(super) fn check(&self, options: &Options, problem: &Problem, solution: &Solution) {
        let mut shares: Vec<(usize, usize, f64)> = Vec::new();
        for (user, option) in solution.choice.iter().enumerate() {
            assert!(options.of(user).contains(&(*option as usize)));
            let policy = usize::from(options.policy(*option as usize));
            assert!(self.eligible.as_ref().is_none_or(|own| own[user * self.n_policies + policy]));
            shares.push((user, policy, 1.0));
        }
        for divided in &solution.fractional {
            assert!(divided.share > 0.0 && divided.share < 1.0);
            shares[divided.user].2 -= divided.share;
            shares.push((divided.user, usize::from(options.policy(divided.option as usize)), divided.share));
        }
        let value: f64 = shares.iter().map(|(user, policy, share)| share * self.value(*user, *policy)).sum();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        assert!(close(value, solution.value));
        assert!(solution.bound >= solution.value && close(solution.bound - solution.value, solution.gap));
        for (limit, kept) in problem.limits.iter().zip(&solution.limits) {
            let used: f64 =
                shares.iter().map(|(user, policy, share)| share * self.adds(limit, *user, *policy)).sum();
            assert!(close(used, kept.used), "{} {used} {}", limit.name, kept.used);
            assert!(close(kept.slack, limit.at_most - used));
            assert!(used <= limit.at_most + 1e-11 * (1.0 + limit.at_most.abs()), "{} is broken", limit.name);
            assert!(kept.price >= 0.0);
        }
    }

    /// The best value by trying everything with whole users; none where nothing keeps to the limits.
    pub(super) fn by_trying(&self, problem: &Problem) -> Option<f64> {
        let mut best: Option<f64> = None;
        let n = self.n_policies;
        for code in 0..n.pow(self.n_users as u32) {
            let policies: Vec<usize> = (0..self.n_users).map(|user| code / n.pow(user as u32) % n).collect();
            let own = policies.iter().copied().enumerate();
            let is_open = |(user, policy): (usize, usize)| {
                self.eligible.as_ref().is_none_or(|open| open[user * n + policy])
            };
            let keeps = |limit: &Limit| {
                let used: f64 = own.clone().map(|(user, policy)| self.adds(limit, user, policy)).sum();
                used <= limit.at_most + 1e-12
            };
            if own.clone().all(is_open) && problem.limits.iter().all(keeps) {
                let value: f64 = own.map(|(user, policy)| self.value(user, policy)).sum();
                best = Some(best.map_or(value, |best| best.max(value)));
            }
        }
        best
    }
}
