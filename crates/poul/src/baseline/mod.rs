//! Rivals.

mod ridge;
mod s_learner;

pub use ridge::{Ridge, fit_ridge};
pub use s_learner::{SLearner, fit_s_learner};
