//! Nuisances: what the outcome and the treatment look like without any effect, estimated out of fold so that effects
//! are learned from residuals (Sec. 2.2 of the paper, Algorithm 2).

mod boosted;
mod choice;
mod classes;
mod common_support;
mod evaluated;
mod first_stage;
mod folds;
mod observed;
mod outcome;
mod propensity;
mod residuals;
mod ridge;
mod rows;

pub use boosted::BoostedParams;
pub use choice::{ChoiceLoss, NuisanceCandidate, NuisanceChoice, NuisanceModel};
pub use common_support::CommonSupport;
pub use evaluated::{EvaluatedNuisances, evaluated_nuisances};
pub(crate) use first_stage::{FirstStage, Needs};
pub use folds::Folds;
pub use observed::{BaselineRows, ObservedRows, OutcomeColumn};
pub use outcome::{
    ExtraRows, OutcomeFit, OutcomeKind, OutcomeLoss, OutcomeManifest, OutcomeModel, OutcomeModels,
    OutcomeParams, OutcomeProblem, ValidOutcomeParams, cross_fit, fit_outcome,
};
pub use propensity::{
    AbsentPolicies, Assignment, AssignmentDesign, PolicyOverlap, Propensity, PropensityColumn, PropensityFit,
    PropensityKind, PropensityManifest, PropensityModels, PropensityOrigin, PropensityParams,
    PropensityReport, StratumTable, ValidPropensityParams, fit_propensity,
};
pub(crate) use residuals::Residuals;
pub use ridge::{RidgeFit, cross_fit_ridge};
pub(crate) use rows::{SomeRows, StackedRows};
