//! Steps along the hulls of all users in the order in which money is best spent.

use rayon::prelude::*;

use super::hull::slope;
use super::options::Options;

/// Users that one task looks at.
const BLOCK: usize = 8192;

/// The steps of the users that `concerned` says, each named by the option it leads to: the steepest first, then by user. A user's
/// own steps come in their order, since slopes fall along a hull.
pub(super) fn steps_by_slope(options: &Options, concerned: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    // Slopes in single precision and the option fit in one word: half of the memory that slopes in double precision would take.
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
    let mut keys = sorted(keys);
    // Where single precision cannot tell slopes apart, double precision does.
    keys.par_chunk_by_mut(|a, b| a >> 32 == b >> 32).for_each(|ties| {
        if ties.len() > 1 {
            let exact = |key: &u64| slope_to(options, option_of(*key) as usize);
            ties.sort_by(|a, b| exact(b).total_cmp(&exact(a)).then(a.cmp(b)));
        }
    });
    keys.par_iter().map(|key| option_of(*key)).collect()
}

/// Sorts by the upper halves of keys and leaves equal ones in their order, digit by digit from the last.
fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    // Slopes are positive, so that the first bit is the same in all keys.
    const DIGITS: [(u32, u32); 3] = [(32, 11), (43, 10), (53, 10)];
    let digit = |key: u64, (shift, bits): (u32, u32)| (key >> shift) as usize & ((1 << bits) - 1);
    let mut counts = DIGITS.map(|(_, bits)| vec![0; 1 << bits]);
    for key in &keys {
        for (counts, place) in counts.iter_mut().zip(DIGITS) {
            counts[digit(*key, place)] += 1;
        }
    }
    let mut other = vec![0; keys.len()];
    for (counts, place) in counts.into_iter().zip(DIGITS) {
        let mut end = 0;
        let mut ends: Vec<usize> = counts
            .into_iter()
            .map(|count: usize| {
                end += count;
                end - count
            })
            .collect();
        for key in &keys {
            let to = &mut ends[digit(*key, place)];
            other[*to] = *key;
            *to += 1;
        }
        std::mem::swap(&mut keys, &mut other);
    }
    keys
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
