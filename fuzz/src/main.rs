//! Attacks on everything that POUL reads: files made up from seeds, each handed to the library as a front end would.
//!
//! | file | subject |
//! |---|---|
//! | `arguments` | the command line |
//! | `campaign` | all targets in turn: workers, their deaths, what they found, the summary |
//! | `worker` | a process of its own, which a target may abort |
//! | `execution` | one input handed to one target, and what counts as a failure |
//! | `allocator` | memory counted and limited, by execution |
//! | `watchdog` | executions that do not end |
//! | `random` | numbers by seed |
//! | `corpus` | the valid inputs that mutation starts from, made by code |
//! | `front_door` | fitting, as the targets do it |
//! | `short`, `config` | the library's tests' smallest settings; the command line's reading of `poul.toml` |
//! | `mutate/` | from a valid input to one that is nearly valid |
//! | `targets/` | what is attacked, a file each |

mod allocator;
mod arguments;
mod campaign;
#[path = "../../crates/poul-cli/src/config.rs"]
mod config;
mod corpus;
mod execution;
mod front_door;
mod mutate;
mod random;
#[path = "../../crates/poul/tests/all/short.rs"]
mod short;
mod targets;
mod watchdog;
mod worker;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let done = match arguments.worker {
        true => worker::work(&arguments),
        false => campaign::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
