//! Arithmetic that several stages need.
//!
//! | file | subject |
//! |---|---|
//! | `cholesky` | the factor of a positive definite matrix |
//! | `simplex` | the least value of a function of a few variables |

mod cholesky;
mod simplex;

pub(crate) use cholesky::{Cholesky, dot};
pub(crate) use simplex::minimise;
