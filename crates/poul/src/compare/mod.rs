//! Learners side by side: the same rows, the same validation, the same draws of the test rows.
//!
//! [`compare`] trains every [`Entrant`] with every seed on the training rows, measures it on the test rows, and gives each
//! metric an interval and, by the same bootstrap draws, its difference to a reference learner. Nothing is chosen by the
//! test rows: where a learner takes part under several settings, the one of least validation R-loss is selected.
//!
//! | file | subject |
//! |---|---|
//! | `preparation` | an experiment made ready once for all learners |
//! | `split` | which rows are tested on |
//! | `part` | a table and parts of its rows |
//! | `validation` | the R-loss that settings are chosen by |
//! | `entrant` | a learner under settings, by a schedule of epochs |
//! | `test_rows` | the rows that learners are tested on |
//! | `assigned` | the same rows by their own policies, for arms that are thin |
//! | `truth` | true effects, where they are known |
//! | `run` | the whole, resumable |
//! | `summary` | readings of all seeds as estimates and differences |
//! | `result` | what was found |

mod assigned;
mod entrant;
mod part;
mod preparation;
mod result;
mod run;
mod split;
mod summary;
mod test_rows;
mod truth;
mod validation;

pub use entrant::{Entrant, Schedule, default_learners};
pub use preparation::Preparation;
pub use result::{AssignedCell, Cell, Comparison, Estimate, Failure, LearnerResult, Population};
pub use run::{ComparisonRequest, compare};
pub use split::Split;

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use split::TestTable;

pub(crate) use part::Part;
pub(crate) use preparation::Prepared;
