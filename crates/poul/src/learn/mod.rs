//! Learners: what turns a table into effects.
//!
//! | folder or file | subject |
//! |---|---|
//! | `registry` | what a learner is to the rest of the library, and all of them by name |
//! | `poul` | the method |
//! | `rival` | the methods that it is compared with |
//! | `stack` | a convex combination of learners |

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub mod poul;
#[doc(hidden)]
pub mod rival;
#[doc(hidden)]
pub mod stack;

mod registry;

pub(crate) use registry::learns_from_auxiliary;
pub use registry::{DEFAULT_LEARNER, LEARNERS, Learner, learner};
