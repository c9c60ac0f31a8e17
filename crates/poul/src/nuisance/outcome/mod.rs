//! The outcome model m(x) ≈ E[Y | X = x] (stage 1 of Algorithm 1 in the paper), cross-fitted.
//!
//! An [`OutcomeProblem`] and [`Folds`](super::Folds) go into [`fit_outcome`], which gives m of every row, out of fold,
//! and the [`OutcomeModels`] for new rows. Outcomes that the user predicts are passed through.

mod cross_fit;
mod model;
mod network;
pub(super) mod params;
pub(super) mod problem;
mod remembered;
mod stored;

pub use cross_fit::{OutcomeFit, cross_fit, fit_outcome};
pub use model::OutcomeModel;
pub use params::{OutcomeKind, OutcomeLoss, OutcomeParams, ValidOutcomeParams};
pub use problem::{ExtraRows, OutcomeProblem};
pub use stored::{OutcomeManifest, OutcomeModels};
