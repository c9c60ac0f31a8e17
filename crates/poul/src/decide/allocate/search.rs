//! Whole options for a few users, by branch and bound.

use super::table::Table;

/// Options tried before the search is content with what it has.
const TRIES: usize = 100_000;
/// Where everybody is searched, the result is exact and worth more of them.
const TRIES_OF_ALL: usize = 2_000_000;

/// What a search has found.
pub(super) struct Found {
    /// An option for each of the users; none where nothing keeps to the limits.
    pub(super) options: Option<Vec<u32>>,
    /// Whether there is certainly nothing better for these users.
    pub(super) is_exact: bool,
}

/// The best options of a few `users` that add no more to the limits than is `left`.
///
/// At prices, whatever the rest of the users may add to the value is at most what their best options are worth plus what is left at
/// its price. Users whose best options are far apart come first, so that those who can go either way are tried most; what users have
/// by `choice` is tried first, since together it is close to the limits.
pub(super) fn search(table: &Table, users: &[usize], choice: &[u32], prices: &[f64], left: &[f64]) -> Found {
    let cells = table.prices(prices);
    let mut branches: Vec<Branch> = users
        .iter()
        .enumerate()
        .map(|(place, user)| {
            let own = table.prices_of(&cells, *user);
            let mut tried: Vec<Tried> = table
                .options
                .of(*user)
                .map(|option| Tried {
                    option: option as u32,
                    value: table.options.value(option),
                    net: table.net(own, option),
                    adds: table
                        .entries(*user, option)
                        .map(|(limit, entry)| (limit as usize, entry))
                        .collect(),
                })
                .collect();
            tried.sort_by(|a, b| b.net.total_cmp(&a.net));
            let best = tried[0].net;
            let gap = tried.get(1).map_or(f64::INFINITY, |next| best - next.net);
            tried.sort_by_key(|tried| tried.option != choice[*user]);
            Branch { place, tried, best, gap }
        })
        .collect();
    branches.sort_by(|a, b| b.gap.total_cmp(&a.gap));
    // What branches from each one on are worth at best, and add to every limit at least.
    let n_limits = left.len();
    let mut worth = vec![0.0; branches.len() + 1];
    let mut least = vec![0.0; (branches.len() + 1) * n_limits];
    for (k, branch) in branches.iter().enumerate().rev() {
        worth[k] = worth[k + 1] + branch.best;
        for limit in 0..n_limits {
            let adds = branch.tried.iter().map(|tried| tried.adds_to(limit));
            least[k * n_limits + limit] =
                least[(k + 1) * n_limits + limit] + adds.fold(f64::INFINITY, f64::min);
        }
    }
    let is_all = users.len() == table.options.n_users();
    let mut search = Search {
        branches: &branches,
        prices,
        worth: &worth,
        least: &least,
        tolerance: super::round::tolerance(table),
        tries: if is_all { TRIES_OF_ALL } else { TRIES },
        current: vec![0; branches.len()],
        best: None,
    };
    search.go(0, 0.0, &mut left.to_vec());
    let is_exact = search.tries > 0;
    let options = search.best.map(|(_, chosen)| {
        let mut options = vec![0; users.len()];
        for (branch, k) in branches.iter().zip(chosen) {
            options[branch.place] = branch.tried[k].option;
        }
        options
    });
    Found { options, is_exact }
}

/// A user to decide on.
struct Branch {
    place: usize,
    /// What the user has, then the best at prices.
    tried: Vec<Tried>,
    /// What the best is worth at prices, and how much less the second best is.
    best: f64,
    gap: f64,
}

struct Tried {
    option: u32,
    value: f64,
    net: f64,
    adds: Vec<(usize, f64)>,
}

impl Tried {
    fn adds_to(&self, limit: usize) -> f64 {
        self.adds.iter().filter(|(own, _)| *own == limit).map(|(_, adds)| adds).sum()
    }
}

struct Search<'a> {
    branches: &'a [Branch],
    prices: &'a [f64],
    worth: &'a [f64],
    least: &'a [f64],
    tolerance: Vec<f64>,
    tries: usize,
    current: Vec<usize>,
    best: Option<(f64, Vec<usize>)>,
}

impl Search<'_> {
    fn go(&mut self, depth: usize, value: f64, left: &mut [f64]) {
        let n_limits = left.len();
        let least = &self.least[depth * n_limits..][..n_limits];
        if left
            .iter()
            .zip(least)
            .zip(&self.tolerance)
            .any(|((left, least), tolerance)| left + tolerance < *least)
        {
            return;
        }
        if depth == self.branches.len() {
            if self.best.as_ref().is_none_or(|(best, _)| value > *best) {
                self.best = Some((value, self.current.clone()));
            }
            return;
        }
        let spare: f64 = left.iter().zip(self.prices).map(|(left, price)| left * price).sum();
        let bound = value + self.worth[depth] + spare;
        if self.best.as_ref().is_some_and(|(best, _)| bound <= *best + 1e-12 * (1.0 + best.abs())) {
            return;
        }
        let branch = &self.branches[depth];
        for (k, tried) in branch.tried.iter().enumerate() {
            if self.tries == 0 {
                return;
            }
            self.tries -= 1;
            self.current[depth] = k;
            for (limit, adds) in &tried.adds {
                left[*limit] -= adds;
            }
            self.go(depth + 1, value + tried.value, left);
            for (limit, adds) in &tried.adds {
                left[*limit] += adds;
            }
        }
    }
}
