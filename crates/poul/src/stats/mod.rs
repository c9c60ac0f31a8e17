//! Arithmetic that several stages need.
//!
//! | file | subject |
//! |---|---|
//! | `cholesky` | the factor of a positive definite matrix |
//! | `chi_square` | the upper tail of χ² |
//! | `eigen` | eigenvectors of small symmetric matrices, the largest singular value of any |
//! | `exact` | sums that do not depend on the order of their terms |
//! | `normal`, `student` | quantiles and tails |
//! | `normal_gain` | the normal distribution function, and what a normal gain is worth if it may be declined |
//! | `quantile` | quantiles of a sample |
//! | `on_simplex` | the least of a quadratic function of weights that sum to 1 |
//! | `simplex` | the least value of a function of a few variables |

pub(crate) mod chi_square;
mod cholesky;
mod eigen;
mod exact;
mod normal;
mod normal_gain;
mod on_simplex;
mod quantile;
mod simplex;
mod student;

pub(crate) use cholesky::{Cholesky, dot, semidefinite_factor};
pub(crate) use eigen::{SymmetricEigen, TopSingular};
pub(crate) use exact::Exact;
pub use normal::normal_quantile;
pub(crate) use normal_gain::{expected_gain, normal_below};
pub(crate) use on_simplex::least_on_simplex;
pub(crate) use quantile::quantile;
pub(crate) use simplex::minimise;
pub use student::student_quantile;
pub(crate) use student::student_tails;
