//! Steps along the hulls of all users in the order in which money is best spent.

use rayon::prelude::*;

use super::hull::slope;
use super::options::Options;

/// Users that one task looks at.
const BLOCK: usize = 8192;

/// The steps of the users that `concerned` says, each named by the option it leads to: the steepest first, then by user. A user's
/// own steps come in their order, since slopes fall along a hull.
pub(super) fn steps_by_slope(options: &Options, concerned: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    // Slopes in single precision and the option fit in one word, which sorts in place: a third of the memory that sorting by
    // slopes in double precision takes, and unique, so that the order does not depend on threads.
    let blocks: Vec<Vec<u64>> = (0..options.n_users().div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let users = block * BLOCK..options.n_users().min((block + 1) * BLOCK);
            let n_options = options.starts[users.end] as usize - options.starts[users.start] as usize;
            let mut keys = Vec::with_capacity(n_options - users.len());
            for user in users.filter(|user| concerned(*user)) {
                keys.extend(options.of(user).skip(1).map(|option| key(slope_to(options, option), option)));
            }
            keys
        })
        .collect();
    let mut keys = Vec::with_capacity(blocks.iter().map(Vec::len).sum());
    for block in blocks {
        keys.extend_from_slice(&block);
    }
    keys.par_sort_unstable();
    // Where single precision cannot tell slopes apart, double precision does.
    keys.par_chunk_by_mut(|a, b| a >> 32 == b >> 32).for_each(|ties| {
        if ties.len() > 1 {
            let exact = |key: &u64| slope_to(options, option_of(*key) as usize);
            ties.sort_by(|a, b| exact(b).total_cmp(&exact(a)).then(a.cmp(b)));
        }
    });
    keys.par_iter().map(|key| option_of(*key)).collect()
}

/// The slope of the step that leads to an option, which is not its user's first.
pub(super) fn slope_to(options: &Options, option: usize) -> f64 {
    let (value, load) = (&options.value, &options.loads);
    slope(value[option - 1], load[option - 1], value[option], load[option])
}

/// Slopes are positive, and the bits of positive numbers are in their order.
fn key(slope: f64, option: usize) -> u64 {
    u64::from(!(slope as f32).to_bits()) << 32 | option as u64
}

fn option_of(key: u64) -> u32 {
    key as u32
}
