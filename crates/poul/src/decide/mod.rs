//! Decisions that rest on effects.
//!
//! | folder | subject |
//! |---|---|
//! | `allocate` | which policy each user should have, under limits |

pub mod allocate;
