//! Uplift estimation for combinatorial treatments.
//!
//! A *policy* says, for each *context*, how *actions* are chosen. POUL represents a policy by the mixture it
//! induces over (context, action) *atoms*, so that effects carry over to policies that were rare or never run.
//! The modules follow the pipeline: [`data`] → [`policy`] → [`check`] → `net` → … → [`evaluate`] → [`assess`];
//! [`simulate`] makes experiments whose truth is known.
//!
//! The library never prints, never reads a clock, and never panics on input: everything wrong with a file or a
//! setting comes back as one [`Error`], which says what, where, and what to do about it.

pub mod assess;
pub mod check;
pub mod compare;
pub mod data;
pub mod decide;
pub mod effect;
pub mod evaluate;
pub mod learn;
pub mod model;
pub mod net;
pub mod nuisance;
pub mod policy;
pub mod simulate;
pub mod stats;
pub mod tune;
pub mod validate;

mod average;
mod checkpoint;
mod command_line;
mod dispatch;
mod error;
mod lock;
mod memory;
mod output;
mod progress;
mod seed;
mod spelling;
mod threads;
mod tree;

pub use checkpoint::Checkpoint;
pub use command_line::{command_line, quoted_word};
pub use error::{Error, Kind, Result, nearest_name, row_name};
pub use lock::OutputLock;
pub use memory::Memory;
pub use output::{AtomicFile, is_standard_output};
pub use progress::{Progress, Silent};
pub use seed::{Rng, Seed};
pub use spelling::{counted, plainly, spelled};
pub use threads::most_threads;
