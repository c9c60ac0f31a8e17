//! An evaluation of rows that are never in one place: every part of them is summed up by itself, and sums merge.
//!
//! Two passes. The [`Outline`] of all rows says how large arms are and how effects are distributed, from which follows where effects
//! are cut into buckets; the [`Sums`] hold everything that numbers are read off. Who adds what, in which order, in how many parts
//! does not matter: counts are whole, and sums are kept to twice the precision in which they are read.
//!
//! | numbers | how |
//! |---|---|
//! | `ate`, `ate_predicted`, `calibration_slope`, `r_loss`, `r_score`, their errors, average effects | exact: polynomials of sums |
//! | `auuc`, `qini`, `rate_autoc`, `rate_qini`, the curve | the functions of `metric`, on buckets as tied rows; with a bound |
//!
//! Everything else of an evaluation needs all rows at once, or an outcome model fitted on them: it is not here.
//!
//! | file | subject |
//! |---|---|
//! | `part` | rows with their effects, as both passes take them |
//! | `outline`, `sketch` | the first pass; how effects are distributed |
//! | `plan` | what follows from it for the second |
//! | `sums`, `powers`, `buckets` | the second pass; sums of powers, of rows with about the same effect |
//! | `metrics`, `averages`, `bounds`, `result` | what they amount to |

mod averages;
mod bounds;
mod buckets;
mod metrics;
mod outline;
mod part;
mod plan;
mod powers;
mod result;
mod sketch;
mod sums;
#[cfg(test)]
mod tests;

pub use outline::Outline;
pub(super) use part::{Part, Shape};
pub(super) use plan::Plan;
pub(super) use result::{Known, evaluation};
pub use result::{RankingBounds, SummedEvaluation, SummedResult};
pub use sums::Sums;
