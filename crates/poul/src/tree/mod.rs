//! Trees on binned features: what forests and boosted trees have in common.
//!
//! | file | subject |
//! |---|---|
//! | `cuts` | features as bytes |
//! | `grown` | a tree when it is grown: where rows fall, and what a model file keeps |

mod cuts;
mod grown;

pub(crate) use cuts::{Cuts, MISSING};
pub(crate) use grown::{MOST_FEATURES, MOST_NODES, Tree, TreeParts};
