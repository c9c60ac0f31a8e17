//! From a table and a model, or from a table with columns of effects, to an [`Evaluation`](crate::evaluate::Evaluation):
//! what `poul evaluate` finds.
//!
//! An [`EvaluationRequest`] is checked once; [`evaluate_model`] and [`evaluate_columns`] read the rows, predict or read their
//! effects, and put together metrics, average effects by the doubly robust score, who gains, the checks of
//! [`trust`](super::trust) and where the numbers come from. The other rooms of an evaluation know no files.
//!
//! | file | subject |
//! |---|---|
//! | `request` | what is asked, checked |
//! | `effect_columns` | which column holds the effect of which policy on which outcome |
//! | `group_columns` | the columns that averages are grouped by |
//! | `by_columns` | effects that anyone predicted |
//! | `by_model` | effects that a model predicts |
//! | `in_parts` | a model on rows that are never in one place |
//! | `of_model` | a model measured with all defaults |
//! | `fitted_roles` | the roles that a model was fitted with, in another table |
//! | `chosen` | the policies that are compared |
//! | `predicted` | a model's effects, batch after batch |
//! | `sampled` | rows with their features as they are, for who gains |
//! | `nuisances` | m̂ and π of the rows |
//! | `measure` | averages and metrics |
//! | `assigned` | each row by its own policy, for arms that are thin |
//! | `trust` | the checks, the places of policies, the effects of atoms |
//! | `provenance` | where the numbers come from |
//! | `valued` | rows on which rules that give policies are valued |

mod assigned;
mod by_columns;
mod by_model;
mod chosen;
mod effect_columns;
mod fitted_roles;
mod group_columns;
mod in_parts;
mod measure;
mod nuisances;
mod of_model;
mod predicted;
mod provenance;
mod request;
mod sampled;
mod trust;
mod valued;

pub use by_columns::evaluate_columns;
pub use by_model::evaluate_model;
pub use effect_columns::EffectColumn;
pub use fitted_roles::fitted_roles;
pub use in_parts::{InParts, SummedInParts};
pub use request::{EvaluationRequest, ValidEvaluationRequest};
pub(crate) use valued::{ValuedRows, ValuedSource};
