//! Single users moved: until limits are kept, and then as long as something fits.

use super::round::tolerance;
use super::table::Table;

/// Passes over all users that repair.
const REPAIRS: usize = 500;
/// What a move must bring towards the limits, in units of what one user adds at most.
const WORTH_IT: f64 = 1e-9;
/// Passes that fill what is left.
const PASSES: usize = 8;

/// A user who goes over to another option.
#[derive(Clone, Copy)]
struct Move {
    score: f64,
    user: usize,
    option: usize,
}

/// Moves users until every limit is kept: those that lose least at prices for what they bring towards the limits. Whether that was
/// possible.
pub(super) fn repair(table: &Table, prices: &[f64], choice: &mut [u32]) -> bool {
    let (scales, tolerance) = (table.scales(), tolerance(table));
    let cells = table.prices(prices);
    let excess = |limit: usize, left: f64| if left < -tolerance[limit] { -left / scales[limit] } else { 0.0 };
    // How much less is exceeded after a move.
    let gain = |user: usize, own: usize, option: usize, left: &[f64]| -> f64 {
        let changes = changes(table, user, own, option);
        let gain = |(limit, change): &(usize, f64)| {
            excess(*limit, left[*limit]) - excess(*limit, left[*limit] - change)
        };
        changes.iter().map(gain).sum()
    };
    let mut left = left(table, choice);
    for _ in 0..REPAIRS {
        if (0..left.len()).all(|limit| excess(limit, left[limit]) == 0.0) {
            return true;
        }
        let moves = table.by_block(|users| {
            let mut best: Option<Move> = None;
            for user in users {
                let own = choice[user] as usize;
                let prices = table.prices_of(&cells, user);
                for option in table.options.of(user).filter(|option| *option != own) {
                    let gain = gain(user, own, option, &left);
                    if gain <= WORTH_IT {
                        continue;
                    }
                    let loss = (table.net(prices, own) - table.net(prices, option)).max(0.0);
                    // Of moves that lose nothing, the one that brings most.
                    let score = if loss == 0.0 { gain } else { -loss / gain };
                    if best.is_none_or(|best| score > best.score) {
                        best = Some(Move { score, user, option });
                    }
                }
            }
            best
        });
        // The best of every block, as long as they still bring something.
        let mut moves: Vec<Move> = moves.into_iter().flatten().collect();
        moves.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.user.cmp(&b.user)));
        if moves.is_empty() {
            return false;
        }
        for own in moves {
            if gain(own.user, choice[own.user] as usize, own.option, &left) > WORTH_IT {
                apply(table, own, choice, &mut left);
            }
        }
    }
    false
}

/// Moves users to options of greater value that fit into what is left, those that gain most first.
pub(super) fn fill(table: &Table, choice: &mut [u32]) {
    let mut left = left(table, choice);
    let tolerance = tolerance(table);
    for _ in 0..PASSES {
        let moves = table.by_block(|users| {
            let mut moves: Vec<Move> = Vec::new();
            for user in users {
                let own = choice[user] as usize;
                let mut best: Option<Move> = None;
                for option in table.options.of(user) {
                    let score = table.options.value(option) - table.options.value(own);
                    if score > best.map_or(0.0, |best| best.score)
                        && fits(table, user, own, option, (&left, &tolerance))
                    {
                        best = Some(Move { score, user, option });
                    }
                }
                moves.extend(best);
            }
            moves
        });
        let mut moves = moves.concat();
        moves.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.user.cmp(&b.user)));
        let mut n_moved = 0;
        for own in moves {
            if fits(table, own.user, choice[own.user] as usize, own.option, (&left, &tolerance)) {
                apply(table, own, choice, &mut left);
                n_moved += 1;
            }
        }
        if n_moved == 0 {
            return;
        }
        // Sums of many moves drift.
        left = self::left(table, choice);
    }
}

fn left(table: &Table, choice: &[u32]) -> Vec<f64> {
    let used = table.used(&table.add_up(choice));
    table.problem.limits.iter().zip(used).map(|(limit, used)| limit.at_most - used).collect()
}

/// What limits add up to by a move, less what they did.
fn changes(table: &Table, user: usize, own: usize, option: usize) -> Vec<(usize, f64)> {
    let mut changes: Vec<(usize, f64)> = Vec::new();
    let more = table.entries(user, option);
    let less = table.entries(user, own).map(|(limit, entry)| (limit, -entry));
    for (limit, entry) in more.chain(less) {
        let limit = limit as usize;
        match changes.iter_mut().find(|(own, _)| *own == limit) {
            Some((_, sum)) => *sum += entry,
            None => changes.push((limit, entry)),
        }
    }
    changes
}

/// Whether a move leaves no limit exceeded that it makes worse.
fn fits(table: &Table, user: usize, own: usize, option: usize, (left, tolerance): (&[f64], &[f64])) -> bool {
    let changes = changes(table, user, own, option);
    changes.iter().all(|(limit, change)| *change <= 0.0 || left[*limit] - change >= -tolerance[*limit])
}

fn apply(table: &Table, own: Move, choice: &mut [u32], left: &mut [f64]) {
    for (limit, change) in changes(table, own.user, choice[own.user] as usize, own.option) {
        left[limit] -= change;
    }
    choice[own.user] = own.option as u32;
}
