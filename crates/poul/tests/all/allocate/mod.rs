//! Allocations: the path of one budget, several limits, few policies.

mod few_policies;
mod limits;
mod path;
mod world;
