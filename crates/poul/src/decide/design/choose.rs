//! Which of the good candidates to propose together: the best by itself, then each time the one that adds most to the
//! expected best of all (greedy, by joint draws), so that a batch is not the same policy five times.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_distr::StandardNormal;

use super::candidates::Candidates;
use super::space::Candidate;
use crate::stats::Cholesky;
use crate::{Result, Seed};

/// Candidates that a batch is chosen from.
const POOL: usize = 128;
/// Joint draws.
const DRAWS: usize = 512;

/// The best candidate of each kind, the best first. Two are of a kind where the same contexts change to the same likeliest
/// action.
pub(super) fn pool(candidates: &Candidates<'_>) -> Vec<Candidate> {
    let mut best: BTreeMap<Vec<(u32, u32)>, (&Candidate, f64)> = BTreeMap::new();
    for (candidate, judged) in candidates.all().filter(|(_, judged)| judged.is_good()) {
        let of_kind = best.entry(candidates.space.gist(candidate)).or_insert((candidate, judged.score));
        if judged.score > of_kind.1 {
            *of_kind = (candidate, judged.score);
        }
    }
    let mut pool: Vec<(&Candidate, f64)> = best.into_values().collect();
    pool.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    pool.into_iter().take(POOL).map(|(own, _)| own.clone()).collect()
}

/// At most `n` places of the pool.
pub(super) fn batch(
    candidates: &Candidates<'_>,
    pool: &[Candidate],
    n: usize,
    seed: Seed,
) -> Result<Vec<usize>> {
    let mut chosen: Vec<usize> = (0..pool.len().min(1)).collect();
    if n <= 1 || pool.len() <= 1 {
        return Ok(chosen);
    }
    let places: Vec<&Candidate> = pool.iter().collect();
    let means: Vec<f64> = candidates.valued(&places)?.iter().map(|own| own.net.effect).collect();
    let draws = joint_draws(&means, candidates.covariance(&places)?, seed);
    let m = pool.len();
    let mut best: Vec<f64> = draws.chunks_exact(m).map(|draw| draw[0]).collect();
    while chosen.len() < n.min(m) {
        let gain = |place: usize| -> f64 {
            draws.chunks_exact(m).zip(&best).map(|(draw, best)| (draw[place] - best).max(0.0)).sum()
        };
        let open = (0..m).filter(|place| !chosen.contains(place)).map(|place| (place, gain(place)));
        let next = open.fold(None, |most: Option<(usize, f64)>, own| match most {
            Some(most) if most.1 >= own.1 => Some(most),
            _ => Some(own),
        });
        let Some((next, _)) = next else { break };
        chosen.push(next);
        best.iter_mut().zip(draws.chunks_exact(m)).for_each(|(best, draw)| *best = best.max(draw[next]));
    }
    Ok(chosen)
}

/// Draws of all values together, draw after draw.
fn joint_draws(means: &[f64], covariance: Vec<f64>, seed: Seed) -> Vec<f64> {
    let n = means.len();
    let largest = (0..n).map(|own| covariance[own * n + own]).fold(0.0, f64::max);
    let lifted = |jitter: f64| {
        let mut lifted = covariance.clone();
        (0..n).for_each(|own| lifted[own * n + own] += jitter * largest + f64::MIN_POSITIVE);
        Cholesky::new(lifted, n)
    };
    // Policies that are nearly the same leave a matrix that rounding makes indefinite.
    let factor = [1e-9, 1e-7, 1e-5, 1e-3].into_iter().find_map(lifted).map(Cholesky::into_factor);
    let mut rng = seed.child("draws").rng();
    let mut draws = Vec::with_capacity(DRAWS * n);
    for _ in 0..DRAWS {
        let z: Vec<f64> = (0..n).map(|_| rng.sample(StandardNormal)).collect();
        for (own, mean) in means.iter().enumerate() {
            let deviation = match &factor {
                Some(factor) => factor[own * n..][..=own].iter().zip(&z).map(|(l, z)| l * z).sum::<f64>(),
                None => covariance[own * n + own].max(0.0).sqrt() * z[own],
            };
            draws.push(mean + deviation);
        }
    }
    draws
}
