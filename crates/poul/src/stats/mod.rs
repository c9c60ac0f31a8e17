//! Arithmetic that several stages need.
//!
//! | file | subject |
//! |---|---|
//! | `cholesky` | the factor of a positive definite matrix |
//! | `on_simplex` | the least of a quadratic function of weights that sum to 1 |
//! | `simplex` | the least value of a function of a few variables |

mod cholesky;
mod on_simplex;
mod simplex;

pub(crate) use cholesky::{Cholesky, dot};
pub(crate) use on_simplex::least_on_simplex;
pub(crate) use simplex::minimise;
