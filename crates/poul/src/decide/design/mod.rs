//! The policies to run next, by what a model knows of averages (METHODS 4, "Design").
//!
//! The space is a base policy with a few contexts changed, to actions that were seen often enough there, near something that
//! was run ([`DesignParams`]). Every policy of it has an average effect with an error, run or not; the best is sought by
//! expected value, lower bound or expected improvement. [`DesignParams::learn`] finds instead the batch that teaches most
//! about all good candidates, and [`DesignParams::rows`] what an experiment of so many users could tell.
//!
//! | file | subject |
//! |---|---|
//! | `params` | the settings |
//! | `allowed` | which actions may be taken where |
//! | `base` | the policy that is changed |
//! | `distribution` | what a policy does in one context |
//! | `space` | the policies that may be proposed |
//! | `users` | whose average it is |
//! | `valuation` | what policies are worth, and how sure that is |
//! | `candidates` | policies of the space that were looked at |
//! | `search` | all of them, or the promising ones |
//! | `choose` | good policies that differ |
//! | `learn` | what teaches most |
//! | `power` | how many users tell an effect |
//! | `normal` | the normal distribution |
//! | `proposals` | policies that are proposed, with what is known of them |
//! | `result` | what is found |
//! | `words` | the same in a sentence |
//! | `run` | the whole |

mod allowed;
mod base;
mod candidates;
mod choose;
mod distribution;
mod learn;
mod params;
mod power;
mod proposals;
mod result;
mod run;
mod search;
mod space;
mod users;
mod valuation;
mod words;

pub use params::{By, DesignParams, ValidDesignParams};
pub use result::{
    Arm, Base, Design, Detectable, Effect, Improvement, Learn, Noise, Pair, Plan, PlannedPolicy, Population,
    Proposal, Search,
};
pub use run::design;
pub use users::Users;
