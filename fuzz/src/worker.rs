//! A process of its own, which a target may abort: it runs executions, and leaves the seed of the one it is at in a file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::execution::{Ended, execute, note_panics};
use crate::random::{Random, seed_of};
use crate::targets::{self, Attack};
use crate::watchdog;

/// The file in the worker's folder that says where it is: the number of the execution.
pub(crate) const PLACE: &str = "place";
/// As much as the library's own threads have.
const STACK_BYTES: usize = 2 << 20;
/// A panic that comes again and again ends the worker.
const MOST_FAULTS: usize = 200;

/// What a worker says on its stdout, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    Fault { seed: u64, kind: String, what: String },
    Done(Done),
}

/// The end of a worker that was not killed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) executions: u64,
    /// Inputs that were taken as valid.
    pub(crate) accepted: u64,
    /// Over all inputs: the same for the same seed.
    pub(crate) digest: u64,
}

pub(crate) fn work(arguments: &Arguments) -> Result<ExitCode, String> {
    let name = arguments.target.first().ok_or("a worker has one target")?;
    let attack = targets::find(name)?;
    let arguments = arguments.clone();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let thread = thread.spawn(move || run(&arguments, attack)).map_err(|error| error.to_string())?;
    thread.join().map_err(|_| "the worker itself panicked".to_owned())?
}

fn run(arguments: &Arguments, attack: &Attack) -> Result<ExitCode, String> {
    let mut target = (attack.open)(&arguments.scratch)?;
    if let Some(path) = &arguments.write_input {
        let seed = seed_of(arguments.seed, attack.name, arguments.first);
        let input = target.generate(&mut Random::new(seed));
        std::fs::write(path, input).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    note_panics();
    watchdog::start();
    if let Some(path) = &arguments.reproduce {
        let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut done = Done { executions: 1, ..Done::default() };
        match execute(target.as_mut(), &input, attack.memory) {
            Ok(ended) => done.accepted = u64::from(ended == Ended::Accepted),
            Err(fault) => say(&Said::Fault { seed: 0, kind: fault.kind.to_owned(), what: fault.what })?,
        }
        say(&Said::Done(done))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut place = Place::open(&arguments.scratch)?;
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let most = arguments.executions.unwrap_or(u64::MAX);
    let (mut done, mut n_faults) = (Done::default(), 0);
    for number in arguments.first.. {
        if done.executions >= most
            || until.is_some_and(|until| Instant::now() >= until)
            || n_faults >= MOST_FAULTS
        {
            break;
        }
        place.write(number)?;
        let seed = seed_of(arguments.seed, attack.name, number);
        let input = target.generate(&mut Random::new(seed));
        done.executions += 1;
        done.digest = done.digest.rotate_left(5) ^ digest(&input);
        match execute(target.as_mut(), &input, attack.memory) {
            Ok(ended) => done.accepted += u64::from(ended == Ended::Accepted),
            Err(fault) => {
                n_faults += 1;
                save(&arguments.crashes, attack.name, seed, &input)?;
                say(&Said::Fault { seed, kind: fault.kind.to_owned(), what: fault.what })?;
            }
        }
    }
    say(&Said::Done(done))?;
    Ok(ExitCode::SUCCESS)
}

/// Where a worker is, for whoever finds it dead.
struct Place(File);

impl Place {
    fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join(PLACE);
        File::create(&path).map(Self).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn write(&mut self, number: u64) -> Result<(), String> {
        let written = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.write_all(&number.to_le_bytes()));
        written.map_err(|error| format!("the place of the worker: {error}"))
    }
}

/// Keeps an input under the name of its target and seed.
pub(crate) fn save(folder: &Path, target: &str, seed: u64, input: &[u8]) -> Result<(), String> {
    let path = folder.join(format!("{target}-{seed:016x}"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, input))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn say(said: &Said) -> Result<(), String> {
    let line = serde_json::to_string(said).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
