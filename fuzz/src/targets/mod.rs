//! What is attacked, a file each: a target makes up an input from a seed and hands an input to the library.

mod checkpoint;
mod config;
mod door;
mod drill;
mod expression;
mod model;
mod policy;
mod table;
mod weights;

use std::path::Path;

use crate::execution::Ended;
use crate::random::Random;

/// Something that takes inputs.
pub(crate) trait Target {
    /// An input, the same for the same numbers.
    fn generate(&mut self, random: &mut Random) -> Vec<u8>;

    /// Hands an input to the library. An error is a promise that was broken.
    fn run(&mut self, input: &[u8]) -> Result<Ended, String>;
}

/// A target as the command line knows it.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Bytes that an execution may take.
    pub(crate) memory: usize,
    /// An execution counts as so many of bytes: a campaign by number gives each target about the same time.
    pub(crate) cost: u64,
    /// Whether it fails on purpose, to show that failures are found.
    pub(crate) is_drill: bool,
    /// Makes it ready, with a folder for its files.
    pub(crate) open: fn(&Path) -> Result<Box<dyn Target>, String>,
}

const MIB: usize = 1 << 20;

pub(crate) const TARGETS: &[Attack] = &[
    attack("model", "model files: read, asked, scored, certified, written again", 64 * MIB, 4, model::open),
    attack("checkpoint", "what a fit that was stopped left: gone on from", 256 * MIB, 200, checkpoint::open),
    attack("policy-toml", "policy files in TOML", 64 * MIB, 1, policy::toml),
    attack("policy-json", "policy files in JSON", 64 * MIB, 1, policy::json),
    attack("policy-csv", "policy files in the long form", 64 * MIB, 1, policy::csv),
    attack("policy-parquet", "policy files in the long form, as Parquet", 64 * MIB, 2, policy::parquet),
    attack("weights", "weights of contexts and exposure logs", 64 * MIB, 1, weights::open),
    attack("config", "poul.toml", 64 * MIB, 1, config::open),
    attack(
        "parquet",
        "tables in Parquet, in every compression: read and encoded",
        256 * MIB,
        8,
        table::parquet,
    ),
    attack("arrow-file", "tables in Arrow files, in every compression", 256 * MIB, 8, table::arrow_file),
    attack(
        "arrow-stream",
        "tables in Arrow streams, in every compression",
        256 * MIB,
        8,
        table::arrow_stream,
    ),
    attack("csv", "tables in CSV", 256 * MIB, 8, table::csv),
    attack("csv-gz", "tables in CSV, compressed", 256 * MIB, 8, table::csv_gz),
    attack("expression", "population expressions, on rows", 64 * MIB, 1, expression::open),
    attack(
        "door",
        "generated experiments: fitted, scored, evaluated, saved and loaded",
        512 * MIB,
        400,
        door::open,
    ),
    Attack {
        is_drill: true,
        ..attack("drill", "fails in every way, to show that it is found", 16 * MIB, 1, drill::open)
    },
];

const fn attack(
    name: &'static str,
    what: &'static str,
    memory: usize,
    cost: u64,
    open: fn(&Path) -> Result<Box<dyn Target>, String>,
) -> Attack {
    Attack { name, what, memory, cost, is_drill: false, open }
}

/// The target of that name.
pub(crate) fn find(name: &str) -> Result<&'static Attack, String> {
    TARGETS.iter().find(|attack| attack.name == name).ok_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|attack| attack.name).collect();
        format!("there is no target `{name}`; there are {}", known.join(", "))
    })
}
