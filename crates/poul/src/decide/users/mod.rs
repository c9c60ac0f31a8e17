//! From a model and a table of users to an allocation: what `poul allocate` does around the solver.
//!
//! An [`AllocationRequest`] is checked once. Users are scored in blocks; of each only the options that can be of use are kept
//! ([`allocate`](super::allocate)). A second pass scores them again and writes what they get, so that memory does not hold what
//! only a table needs. Where users have outcomes, the allocation is valued by them, on rows that the model has not seen.
//!
//! | file | subject |
//! |---|---|
//! | `request`, `limits`, `groups` | what is asked, checked; limits; those of groups, from a table |
//! | `candidates` | the policies that users may get |
//! | `inputs` | model, users and their columns; the training table is refused |
//! | `scored` | users with what every policy would do for them, block after block |
//! | `terms` | the request in numbers: values, loads, who may have what |
//! | `gathered` | what is kept of users until all were seen |
//! | `run`, `frozen` | the whole: by limits, or by prices that were found before |
//! | `given`, `table` | who gets what, added up and written |
//! | `prices` | prices as a file |
//! | `curve` | what budgets bring |
//! | `worth`, `joined` | what it is worth by outcomes; an allocation read from a file |
//! | `result` | what is told |

mod candidates;
mod curve;
mod frozen;
mod gathered;
mod given;
mod groups;
mod inputs;
mod joined;
mod limits;
mod prices;
mod request;
mod result;
mod run;
mod scored;
mod table;
mod terms;
mod worth;

pub use curve::write_curve;
pub use frozen::allocate_by_prices;
pub use inputs::AllocationInputs;
pub use joined::{WorthRequest, value_allocation};
pub use limits::AskedLimit;
pub use prices::{Price, Prices};
pub use request::{AllocationRequest, ValidAllocationRequest};
pub use result::{Allocation, AllocationWorth, Constraint, CurvePoint, PolicyShare};
pub use run::{Allocated, allocate};
pub use table::{Batches, Target};
