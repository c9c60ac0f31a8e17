//! Experiments whose truth is known: tables to learn from, policies, and the true effect of every policy.
//!
//! A [`Simulation`] is checked and [`run`] into a folder: `train.parquet`, `test.parquet`, `policies.toml`,
//! `truth.parquet`, `tiers.csv`, `world.toml` and a `README.md` that says what the columns are and what to try. One seed is one
//! random world; the same seed gives the same bytes on any number of threads, and a longer table begins with the
//! rows of a shorter one. [`run_again`] runs other policies in the same world, on new users.
//!
//! ```
//! use poul::simulate::{Simulation, run};
//! # let folder = std::env::temp_dir().join("poul-simulate-doc");
//! let simulation = Simulation { rows: 100, features: Some(30), ..Simulation::default() };
//! let summary = run(&simulation.check()?, &folder, &poul::Silent)?;
//! assert_eq!(summary.policies[..3], ["control", "T1", "T2"]);
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), poul::Error>(())
//! ```

mod again;
mod averages;
mod delivery;
mod features;
mod functional;
mod long_tail;
mod observational;
mod params;
mod policies;
mod readme;
mod recombine;
mod ride_hailing;
mod run;
mod scenario;
mod stratified;
mod surface;
mod synthetic;
mod truth;
mod world;
#[cfg(test)]
mod world_tests;

pub use again::{Again, run_again};
pub use params::{Simulation, Valid};
pub use run::{Summary, run};
pub use scenario::scenarios;
