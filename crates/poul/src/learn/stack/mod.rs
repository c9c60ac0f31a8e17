//! The learner `stack`: a convex combination of other learners, τ(x; t1, t0) = Σ_l β_l·τ_l(x; t1, t0), by out-of-fold loss.
//!
//! Rows are dealt into folds, every member is fitted without each of them, and β minimises for each outcome
//! ν·Σ_l β_l·L_l + (1 − ν)·L(Σ_l β_l·τ_l) over the simplex, L being the R-loss Σ w·(Y − m̂(X) − τ(X; T) + Σ_t π̂(t|X)·τ(X; t))²
//! of rows that members have not seen, or the doubly robust one: Q-aggregation (Dai, Rigollet and Zhang 2012), which pays
//! for weight on a member as much as for the combination, where plain stacking (Nie and Wager 2021) pays for the latter
//! alone. Then members are fitted on all rows. Where `poul` is one of them and assignment was random, effects of rows lie around its
//! averages of policies: members are combined in how rows differ, the level is `poul`'s.
//!
//! | file | subject |
//! |---|---|
//! | `params` | settings, checked |
//! | `train` | the whole |
//! | `out_of_fold` | what members say of rows they have not seen |
//! | `level` | members around the averages of one |
//! | `moments` | the losses as quadratic functions of β |
//! | `fitted` | what comes out: storing, scoring |

mod fitted;
mod level;
mod moments;
mod out_of_fold;
mod params;
mod train;

pub use fitted::{OutcomeWeights, StackSummary, StackedMember};

use crate::learn::Learner;

/// The learner's name.
pub const NAME: &str = "stack";

/// A convex combination of learners.
pub(crate) const STACK: Learner = Learner {
    name: NAME,
    summary: "a convex combination of learners by out-of-fold loss",
    settle: params::settle,
    train: train::train,
    load: fitted::load,
};
