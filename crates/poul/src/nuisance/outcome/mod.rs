//! The outcome model m(x) ≈ E[Y | X = x] (stage 1 of Algorithm 1 in the paper), cross-fitted.
//!
//! An [`OutcomeProblem`] and [`Folds`](super::Folds) go into [`fit_outcome`], which gives m of every row, out of fold,
//! and the [`OutcomeModels`] for new rows. Outcomes that the user predicts are passed through.
//!
//! | file | subject |
//! |---|---|
//! | `params`, `problem` | what can be set; what m is fitted to |
//! | `cross_fit`, `fold_rows` | from a problem to predictions; which rows a fold's model sees |
//! | `networks`, `network`, `model` | by networks: of all folds, their form, one fold's |
//! | `boosted`, `linear` | by boosted trees; by a ridge |
//! | `auto` | by what predicts best out of fold |
//! | `stored`, `remembered` | models for new rows and files; fits that are not fitted twice |

mod auto;
mod boosted;
mod cross_fit;
mod fold_rows;
mod linear;
mod model;
mod network;
mod networks;
pub(super) mod params;
pub(super) mod problem;
mod remembered;
mod stored;

pub use cross_fit::{OutcomeFit, cross_fit, fit_outcome};
pub use model::OutcomeModel;
pub use params::{OutcomeKind, OutcomeLoss, OutcomeParams, ValidOutcomeParams};
pub use problem::{ExtraRows, OutcomeProblem};
pub use stored::{OutcomeManifest, OutcomeModels};
