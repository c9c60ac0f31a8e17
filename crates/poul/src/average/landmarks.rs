//! The policies whose averages carry all others: every one that was run, or as many as span the kernel best.
//!
//! They are taken one by one, each time the one of which the others tell least: the pivots of a Cholesky factor of the
//! kernel (Fine and Scheinberg 2001). Policies that are told by others to rounding are left out, such as aliases.

use super::described::Described;
use super::kernel::{Kernel, Likeness};

/// What is left of a policy's variance, in units of the largest, below which the others tell all of it.
const TOLD: f64 = 1e-7;
/// Candidates, those with the most rows.
const MOST_CANDIDATES: usize = 2048;

/// At most `most` of `candidates`, the first the best spread; in the order of policies.
pub(super) fn landmarks(
    policies: &Described<'_>,
    candidates: &[usize],
    rows: &[usize],
    kernel: &Kernel,
    most: usize,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|arm| std::cmp::Reverse(rows[*arm]));
    order.truncate(MOST_CANDIDATES);
    let candidates: Vec<usize> = order.into_iter().map(|arm| candidates[arm]).collect();
    let mut left = Likeness::own(policies, &candidates).kernel(kernel);
    let largest = left.iter().copied().fold(0.0, f64::max);
    let mut chosen: Vec<usize> = Vec::new();
    // By pivot, the column of the factor.
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while chosen.len() < most.min(candidates.len()) {
        let next = (0..left.len()).fold(0, |best, other| if left[other] > left[best] { other } else { best });
        if left[next] <= TOLD * largest {
            break;
        }
        let root = left[next].sqrt();
        let own = Likeness::new(policies, &[candidates[next]], &candidates).kernel(kernel);
        let explained = |place: usize| columns.iter().map(|column| column[next] * column[place]).sum::<f64>();
        let column: Vec<f64> =
            own.iter().enumerate().map(|(place, k)| (k - explained(place)) / root).collect();
        left.iter_mut().zip(&column).for_each(|(left, value)| *left -= value * value);
        left[next] = 0.0;
        columns.push(column);
        chosen.push(candidates[next]);
    }
    chosen.sort_unstable();
    chosen
}
