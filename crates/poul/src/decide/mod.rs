//! Decisions that rest on effects.
//!
//! | folder | subject |
//! |---|---|
//! | `allocate` | which policy each user should have, under limits |
//! | `users` | from a model and a table of users to an allocation, and what it is worth |
//! | `design` | which policies to run next |

pub mod allocate;
pub mod design;
pub mod users;
