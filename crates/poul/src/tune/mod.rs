//! Search for settings by validation R-loss: a grid or random points, perhaps by successive halving.
//!
//! Every trial trains on the same rows and is judged on the same held-out rows, with nuisances that were fitted once
//! ([`Preparation`](crate::compare::Preparation)). Test rows play no part.
//!
//! | file | subject |
//! |---|---|
//! | `space` | what is searched: choices and ranges by name of setting |
//! | `points` | the grid of a space, and random points of it |
//! | `defaults` | the space of a learner where none is given; the paper's grids |
//! | `halving` | which trials go on, and with how much data or how many epochs |
//! | `run` | the search, resumable |

mod defaults;
mod halving;
mod points;
mod run;
mod space;

pub use defaults::{PRESETS, Preset, default_space, preset};
pub use halving::{Halving, Resource};
pub use points::Search;
pub use run::{Trial, TuneRequest, Tuning, tune};
pub use space::{Dimension, Point, Scale, Space};
