//! Policies: for each context, how actions are chosen; and the mixture over atoms that this induces.
//!
//! A policy t is a set of distributions Π_t(·|s), one per context s. With context weights w(s) that sum to 1 it
//! induces the mixture α_t(s,a) = w(s)Π_t(a|s) over the *atoms* (s, a) (Sec. 2.1 of the paper). Everything the
//! method learns about a policy it learns through α_t, so two files that induce the same mixtures are the same
//! [`PolicySet`], to the last bit, whatever the order of their lines.
//!
//! Files come in four forms, all read by [`PolicySet::read`]:
//!
//! - `.toml`, the human form, and `.json`, the same tree:
//!
//!   ```toml
//!   [contexts]                       # w(s), normalised; without this table: uniform over the contexts named
//!   peak_beijing = 3
//!   offpeak_shanghai = 1
//!   [policies.control]
//!   "*" = "none"                     # every context not named
//!   [policies.T2]
//!   "*" = "none"
//!   peak_beijing = "upgrade"
//!   offpeak_shanghai = { upgrade = 0.5, none = 0.5 }
//!   [attributes.actions.upgrade]     # optional: what is known of an action or a context
//!   price = 12.5
//!   ```
//! - `.csv`, `.csv.gz` and `.parquet`, the long form: columns `policy`, `context`, `action` and, optionally,
//!   `probability`; context weights come from a second file with columns `context` and `weight`.
//!
//! A context may be a table of a `weight` and an `exposure`, the column that says how much each row meets it: see
//! [`Exposure`].
//!
//! The factorial form needs no file: [`PolicySet::factorial`].

mod assignment;
mod attributes;
mod builder;
mod canonical;
mod contexts;
mod diff;
mod distance;
mod exposure;
mod factorial;
mod human_form;
mod json_form;
mod long_form;
mod manifest;
mod read;
mod set;
mod table;
mod toml_form;
mod union;
mod weights;
mod write;

pub use attributes::{AttributeValue, Attributes};
pub use builder::PolicySetBuilder;
pub use diff::{ContextChange, Diff};
pub(crate) use factorial::combination_name;
pub use set::{Atom, Mixture, PolicySet};
pub use weights::ContextWeights;

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use assignment::Assigner;
#[doc(hidden)]
pub use exposure::{Exposure, ExposureRows};
#[doc(hidden)]
pub use weights::exposure_weights;
