//! Average effects by the doubly robust score: of every policy, by group, at once, under hidden confounding, and what rules
//! that give policies are worth.

mod claim;
mod effects;
mod estimate;
pub(super) mod groups;
mod hidden;
mod refinement;
mod score;
mod simultaneous;
mod tails;
mod units;
mod worth;

pub use effects::{Assigned, BY_PREDICTED_EFFECT, average_effects};
pub(super) use simultaneous::p_value;
pub(crate) use simultaneous::{max_t_quantile, sidak_quantile};
pub(crate) use worth::{Choice, Rule, WorthParams, worth, worth_band};
pub use worth::{Estimated, OutcomeWorth, RuleWorth};
