//! Which members of the ensemble are trained together, on which rows: all on all rows, or each on half of them.
//!
//! Halves are of clusters (or rows), without replacement; members 2k and 2k + 1 get the two halves of one split. Given x,
//! the effects a and b of such a pair come from different units, so that (a − b)²/4 is unbiased for the variance of their
//! mean (a + b)/2, whatever the estimator, as far as each half is alike. Pairs of other splits share the same rows: their
//! mean varies no more than one pair's, and the mean of (a − b)²/4 over pairs errs on the side of caution. What all members
//! share is not in it: m̂ and π̂, to which effects are orthogonal, and the rows held out for early stopping and for the
//! size of effects. Nor is bias: half of the rows are shrunk as if there were no others.

use super::fit::Problem;
use super::held_out::HeldOutParts;
use super::params::{MemberRows, ValidParams};
use crate::Seed;
use crate::nuisance::Folds;

/// Members that are trained side by side on the same rows.
pub(super) struct Team {
    /// The first member, counted over all teams.
    pub(super) first: usize,
    pub(super) n_members: usize,
    /// Rows that any of its members learns from.
    pub(super) rows: Vec<u32>,
    /// The root of its random streams.
    pub(super) seed: Seed,
    /// What progress and history add to the name of a phase.
    pub(super) suffix: String,
    /// The share of all rows that it has.
    pub(super) share: f32,
}

/// The teams that share out the rows.
pub(super) fn teams(
    problem: &Problem<'_>,
    parts: &HeldOutParts,
    params: &ValidParams,
    seed: Seed,
) -> Vec<Team> {
    let all = 0..problem.x.n_rows() as u32;
    let n_members = params.model.members;
    if params.training.member_rows == MemberRows::All {
        // What one member alone holds out need not be read.
        let is_read = |row: &u32| n_members > 1 || !parts.holds_out(0, *row);
        let rows = all.filter(is_read).collect();
        return vec![Team { first: 0, n_members, rows, seed, suffix: String::new(), share: 1.0 }];
    }
    let mut teams = Vec::with_capacity(n_members);
    for pair in 0..n_members / 2 {
        let pair_seed = seed.child("halves").index(pair as u64);
        let halves = Folds::deal(problem.x.n_rows(), problem.cluster, 2, pair_seed);
        for half in 0..2 {
            let first = 2 * pair + half as usize;
            teams.push(Team {
                first,
                n_members: 1,
                rows: all
                    .clone()
                    .filter(|row| halves.of_row[*row as usize] == half && !parts.holds_out(first, *row))
                    .collect(),
                seed: seed.child("member").index(first as u64),
                suffix: format!(", member {} of {n_members}", first + 1),
                share: 0.5,
            });
        }
    }
    teams
}
