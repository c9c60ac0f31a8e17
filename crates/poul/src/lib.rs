//! Uplift estimation for combinatorial treatments.
//!
//! A *policy* says, for each *context*, how *actions* are chosen. POUL represents a policy by the mixture it
//! induces over (context, action) *atoms*, so that effects carry over to policies that were rare or never run.
//!
//! ```standalone_crate
//! # let folder = tempfile::tempdir().unwrap();
//! # std::env::set_current_dir(folder.path()).unwrap();
//! # let row = |row: usize| {
//! #     let (age, treated) = (18 + row * 37 % 50, row % 2 == 1);
//! #     let spend = age as f64 / 10.0 + if treated { age as f64 / 50.0 } else { 0.0 } + (row * 7 % 11) as f64 / 10.0;
//! #     format!("{},{age},{spend}\n", if treated { "coupon" } else { "control" })
//! # };
//! # std::fs::write("users.csv", "policy,age,spend\n".to_owned() + &(0..200).map(row).collect::<String>()).unwrap();
//! use poul::{Experiment, Model, Roles, Silent, Source};
//!
//! let users = Source::open("users.csv")?; // CSV, Parquet or Arrow; a file, a folder or a glob
//! let roles = Roles { treatment: Some("policy".into()), outcome: vec!["spend".into()], ..Roles::default() };
//! let experiment = Experiment::open(&users, &roles, None, &Silent)?;
//! let model = Model::fit(&experiment).learner("ridge").seed(7).run(&Silent)?; // by default the method, `poul`
//! model.save("model.poul")?;
//!
//! let model = Model::load("model.poul")?;
//! let scored = model.effect(&users).policy(["coupon"]).write("effects.csv", &Silent)?; // an effect for each user
//! println!("{} users, {} against {}", scored.rows, scored.policies.join(", "), scored.against);
//! # assert!(std::fs::read_to_string("effects.csv").unwrap().lines().count() == 201);
//! # Ok::<(), poul::Error>(())
//! ```
//!
//! `model.evaluate(&test, &Silent)` then says how good these effects are, and how far to trust them.
//!
//! [`Experiment`] finds columns and policies, [`Model`] is fitted, scores, is evaluated and certifies; three programs in
//! `examples/` go on from here. The modules follow the pipeline: [`data`] → [`policy`] → [`check`] → [`experiment`] → … →
//! [`model`] → [`evaluate`]; [`compare`] and [`tune`] set learners side by side, [`decide`] rests decisions on effects, and
//! [`simulate`] makes experiments whose truth is known.
//!
//! The library never prints, never reads a clock, and never panics on input: everything wrong with a file or a
//! setting comes back as one [`Error`], which says what, where, and what to do about it.

pub mod check;
pub mod compare;
pub mod data;
pub mod decide;
pub mod effect;
pub mod evaluate;
pub mod experiment;
pub mod learn;
pub mod model;
pub mod policy;
pub mod simulate;
pub mod tune;

// No part of the interface: benchmarks and tests look into them.
#[doc(hidden)]
pub mod net;
#[doc(hidden)]
pub mod nuisance;
#[doc(hidden)]
pub mod stats;

mod average;
mod checkpoint;
mod command_line;
mod dispatch;
mod error;
mod lock;
mod memory;
mod output;
mod progress;
mod run;
mod seed;
mod spelling;
mod stored;
mod threads;
mod tree;
mod wire;

pub use checkpoint::Checkpoint;
pub use data::{Roles, Source};
pub use error::{Error, Kind, Result};
pub use experiment::{Experiment, Policies};
pub use model::Model;
pub use progress::{Progress, Silent};
pub use seed::Seed;

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use command_line::{command_line, quoted_word};
#[doc(hidden)]
pub use error::{nearest_name, row_name};
#[doc(hidden)]
pub use lock::OutputLock;
#[doc(hidden)]
pub use memory::Memory;
#[doc(hidden)]
pub use output::{AtomicFile, is_standard_output};
#[doc(hidden)]
pub use run::Run;
#[doc(hidden)]
pub use seed::Rng;
#[doc(hidden)]
pub use spelling::{counted, plainly, spelled};
#[doc(hidden)]
pub use threads::most_threads;
