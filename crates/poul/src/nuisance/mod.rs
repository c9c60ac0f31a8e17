//! Nuisances: what the outcome and the treatment look like without any effect, estimated out of fold so that effects
//! are learned from residuals (Sec. 2.2 of the paper, Algorithm 2).

mod folds;
mod outcome;
mod propensity;

pub use folds::Folds;
pub(crate) use outcome::SomeRows;
pub use outcome::{OutcomeModel, OutcomeParams, cross_fit};
pub use propensity::Propensity;
