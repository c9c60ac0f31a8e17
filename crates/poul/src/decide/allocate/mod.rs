//! Which policy each user should have.
//!
//! Maximise Σ_i v_i(k_i) over one option k_i for each user i, under limits Σ_i a_i(k_i) ≤ b: budgets, rates, caps and floors on the
//! users of a policy, for all users or for a group.
//!
//! | file | subject |
//! |---|---|
//! | `problem` | limits and groups |
//! | `options`, `builder`, `keep` | what users can be given, and what of it can be of use |
//! | `hull`, `order`, `path` | one budget: hulls, their steps by slope, the best value for every amount |
//! | `one_budget` | a budget for all or one for each group, by paths |
//! | `relax`, `linear`, `sample` | several limits: the linear program in which users may be divided, and its prices |
//! | `round`, `search`, `repair` | one option for each user from there |
//! | `few_policies` | which policies to use where only few may be |
//! | `table` | sums over all users, and prices as a user meets them |
//! | `solve`, `solution`, `infeasible` | the whole; what comes out; what to say where nothing does |

mod builder;
mod few_policies;
mod hull;
mod infeasible;
mod keep;
mod linear;
mod one_budget;
mod options;
mod order;
mod path;
mod problem;
mod relax;
mod repair;
mod round;
mod sample;
mod search;
mod solution;
mod solve;
mod table;

pub use builder::OptionsBuilder;
pub use few_policies::{FewPolicies, choose_policies};
pub use keep::Keep;
pub use options::Options;
pub use path::{Allocation, Path, Point};
pub use problem::{Adds, Limit, Problem};
pub use solution::{Fractional, Kept, Solution};
pub use solve::solve;
