//! All targets in turn: a worker each, what it found, what killed it, and the summary.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::arguments::Arguments;
use crate::random::seed_of;
use crate::targets::{self, Attack};
use crate::watchdog;
use crate::worker::{Done, PLACE, Said};

/// Executions of a target whose inputs are bytes, where nothing else is said.
const EXECUTIONS: u64 = 20_000;
/// Seconds that a target has in one round of a campaign by the clock.
const ROUND_SECONDS: f64 = 20.0;
/// A target that kills so many workers is left alone.
const MOST_DEATHS: usize = 40;
/// Addresses of a worker, for what the allocator does not see.
const ADDRESS_KIB: u64 = 6 << 20;
/// Lines of what a dead worker said that are kept.
const LAST_LINES: usize = 3;

/// What came of one target.
#[derive(Debug, Default, Serialize)]
struct Tally {
    target: String,
    executions: u64,
    accepted: u64,
    seconds: f64,
    /// Of the inputs; the same for the same seed and number of executions, unless a worker died.
    digest: String,
    /// By kind: panic, abort, hang, allocation, promise.
    failures: BTreeMap<String, usize>,
    /// Failures that say the same are one, with the seed of the first.
    found: Vec<Finding>,
    #[serde(skip)]
    next: u64,
    #[serde(skip)]
    n_deaths: usize,
}

#[derive(Debug, Serialize)]
struct Finding {
    kind: String,
    what: String,
    times: usize,
    seed: String,
    input: PathBuf,
}

#[derive(Serialize)]
struct Summary<'a> {
    seed: u64,
    executions: u64,
    failures: usize,
    targets: &'a [Tally],
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    if arguments.list {
        targets::TARGETS.iter().for_each(|attack| println!("{:16}{}", attack.name, attack.what));
        return Ok(ExitCode::SUCCESS);
    }
    let folder = scratch_folder()?;
    if let Some(path) = &arguments.reproduce {
        return reproduce(arguments, path, folder.path());
    }
    let attacks: Vec<&Attack> = match arguments.target.is_empty() {
        true => targets::TARGETS.iter().filter(|attack| !attack.is_drill).collect(),
        false => arguments.target.iter().map(|name| targets::find(name)).collect::<Result<_, _>>()?,
    };
    let mut tallies: Vec<Tally> =
        attacks.iter().map(|attack| Tally { target: attack.name.to_owned(), ..Tally::default() }).collect();
    match arguments.minutes {
        None => {
            for (attack, tally) in attacks.iter().zip(&mut tallies) {
                let executions = arguments.executions.unwrap_or(EXECUTIONS).div_ceil(attack.cost);
                while tally.next < executions && tally.n_deaths < MOST_DEATHS {
                    let amount = Amount::Executions(executions - tally.next);
                    send(arguments, attack, tally, amount, folder.path())?;
                }
                println!("{}", line(tally));
            }
        }
        Some(minutes) => rounds(arguments, &attacks, &mut tallies, 60.0 * minutes, folder.path())?,
    }
    finish(arguments, &tallies)
}

/// Every target for a while, again and again, until the time is over.
fn rounds(
    arguments: &Arguments,
    attacks: &[&Attack],
    tallies: &mut [Tally],
    seconds: f64,
    folder: &Path,
) -> Result<(), String> {
    let start = Instant::now();
    let left = || seconds - start.elapsed().as_secs_f64();
    let turn = ROUND_SECONDS.min(seconds / attacks.len() as f64);
    while left() > 0.0 {
        for (attack, tally) in attacks.iter().zip(&mut *tallies) {
            if left() > 0.0 && tally.n_deaths < MOST_DEATHS {
                send(arguments, attack, tally, Amount::Seconds(turn.min(left())), folder)?;
                println!("{}", line(tally));
            }
        }
        if tallies.iter().all(|tally| tally.n_deaths >= MOST_DEATHS) {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Amount {
    Executions(u64),
    Seconds(f64),
}

/// One worker, to its end.
fn send(
    arguments: &Arguments,
    attack: &Attack,
    tally: &mut Tally,
    amount: Amount,
    folder: &Path,
) -> Result<(), String> {
    let start = Instant::now();
    let mut command = worker(arguments, attack, folder)?;
    command.args(["--first", &tally.next.to_string()]);
    match amount {
        Amount::Executions(n) => command.args(["--executions", &n.to_string()]),
        Amount::Seconds(seconds) => command.args(["--seconds", &seconds.to_string()]),
    };
    let _ = std::fs::remove_file(folder.join(PLACE));
    let life = live(command, folder)?;
    tally.seconds += start.elapsed().as_secs_f64();
    for (seed, kind, what) in life.faults {
        count(arguments, tally, seed, &kind, what);
    }
    if let Some(done) = life.done {
        tally.next += done.executions;
        tally.executions += done.executions;
        tally.accepted += done.accepted;
        tally.digest = format!("{:016x}", done.digest);
        return Ok(());
    }
    // It died: the execution that it was at did that.
    let place = std::fs::read(folder.join(PLACE)).ok().and_then(|bytes| bytes.first_chunk().copied());
    let Some(number) = place.map(u64::from_le_bytes) else {
        return Err(format!("{}: the worker died before its first execution: {}", attack.name, life.last));
    };
    let seed = seed_of(arguments.seed, attack.name, number);
    let mut command = worker(arguments, attack, folder)?;
    let path = arguments.crashes.join(format!("{}-{seed:016x}", attack.name));
    std::fs::create_dir_all(&arguments.crashes).map_err(|error| error.to_string())?;
    command.args(["--first", &number.to_string()]).arg("--write-input").arg(&path);
    if live(command, folder)?.code != Some(0) {
        eprintln!("{}: the input of seed {seed:016x} could not be written", attack.name);
    }
    tally.executions += number + 1 - tally.next;
    tally.next = number + 1;
    tally.n_deaths += 1;
    count(arguments, tally, seed, life.kind, life.last);
    if tally.n_deaths == MOST_DEATHS {
        eprintln!("{}: {MOST_DEATHS} workers died; it is left alone from here on", attack.name);
    }
    Ok(())
}

/// Notes a failure; those that differ in numbers alone are one.
fn count(arguments: &Arguments, tally: &mut Tally, seed: u64, kind: &str, what: String) {
    *tally.failures.entry(kind.to_owned()).or_default() += 1;
    if let Some(known) =
        tally.found.iter_mut().find(|known| known.kind == kind && alike(&known.what) == alike(&what))
    {
        known.times += 1;
        return;
    }
    let seed = format!("{seed:016x}");
    let input = arguments.crashes.join(format!("{}-{seed}", tally.target));
    eprintln!("FOUND {}: {kind}: {what}\n  fuzz --reproduce {}", tally.target, input.display());
    tally.found.push(Finding { kind: kind.to_owned(), what, times: 1, seed, input });
}

/// A text without its numbers and what stands in quotes, and not too long.
fn alike(text: &str) -> String {
    let words = text.split('`').step_by(2).flat_map(|part| part.chars().filter(|c| !c.is_ascii_digit()));
    words.take(160).collect()
}

/// How a worker ended.
struct Life {
    faults: Vec<(u64, String, String)>,
    /// None where it died.
    done: Option<Done>,
    code: Option<i32>,
    kind: &'static str,
    /// The last words of one that died.
    last: String,
}

fn live(mut command: Command, folder: &Path) -> Result<Life, String> {
    let failed = |error: std::io::Error| format!("cannot start a worker: {error}");
    let words = folder.join("words");
    command.stderr(std::fs::File::create(&words).map_err(failed)?).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (mut faults, mut done) = (Vec::new(), None);
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok))
    {
        match serde_json::from_str(&line) {
            Ok(Said::Fault { seed, kind, what }) => faults.push((seed, kind, what)),
            Ok(Said::Done(said)) => done = Some(said),
            Err(_) => eprintln!("{line}"),
        }
    }
    let status = child.wait().map_err(failed)?;
    let text = String::from_utf8_lossy(&std::fs::read(&words).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
    let kind = match status.code() {
        Some(code) if code == i32::from(watchdog::EXIT_CODE) => "hang",
        _ if last.contains("memory allocation of") => "allocation",
        _ => "abort",
    };
    Ok(Life {
        faults,
        done,
        code: status.code(),
        kind,
        last: if last.is_empty() { status.to_string() } else { last },
    })
}

/// This program as a worker, under a limit of addresses where a shell can set one.
fn worker(arguments: &Arguments, attack: &Attack, folder: &Path) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = match cfg!(unix) && !arguments.no_address_limit {
        true => {
            let mut shell = Command::new("sh");
            let limited = format!("ulimit -c 0; ulimit -v {ADDRESS_KIB}; exec \"$0\" \"$@\"");
            shell.args(["-c", &limited]).arg(program);
            shell
        }
        false => Command::new(program),
    };
    // One thread: what is found must not depend on how many there are, and a campaign takes one core.
    command.env("RAYON_NUM_THREADS", "1").env("TMPDIR", folder).env_remove("RUST_BACKTRACE");
    command.args(["--worker", "--target", attack.name, "--seed", &arguments.seed.to_string()]);
    command.arg("--crashes").arg(&arguments.crashes).arg("--scratch").arg(folder);
    Ok(command)
}

fn reproduce(arguments: &Arguments, path: &Path, folder: &Path) -> Result<ExitCode, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let target = match arguments.target.as_slice() {
        [target] => target.clone(),
        _ => name.rsplit_once('-').map(|(target, _)| target.to_owned()).unwrap_or_default(),
    };
    let attack = targets::find(&target)?;
    let mut command = worker(arguments, attack, folder)?;
    command.arg("--reproduce").arg(path);
    let life = live(command, folder)?;
    let said = match (life.faults.first(), &life.done) {
        (Some((_, kind, what)), _) => format!("{kind}: {what}"),
        (None, None) => format!("{}: {}", life.kind, life.last),
        (None, Some(done)) => {
            println!("{target}: {}", if done.accepted == 1 { "accepted" } else { "refused" });
            return Ok(ExitCode::SUCCESS);
        }
    };
    println!("{target}: {said}");
    Ok(ExitCode::FAILURE)
}

fn line(tally: &Tally) -> String {
    let Tally { target, executions, accepted, seconds, failures, .. } = tally;
    let failed: Vec<String> = failures.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let failed = if failed.is_empty() { "no failure".to_owned() } else { failed.join(", ") };
    let rate = *executions as f64 / seconds.max(1e-9);
    format!("{target:16}{executions:>12} executions, {accepted:>10} accepted, {rate:>8.0}/s: {failed}")
}

fn finish(arguments: &Arguments, tallies: &[Tally]) -> Result<ExitCode, String> {
    let executions = tallies.iter().map(|tally| tally.executions).sum();
    let failures = tallies.iter().flat_map(|tally| tally.failures.values()).sum();
    println!(
        "{executions} executions of {} targets from seed {}: {failures} failures",
        tallies.len(),
        arguments.seed
    );
    for (tally, finding) in
        tallies.iter().flat_map(|tally| tally.found.iter().map(move |found| (tally, found)))
    {
        let Finding { kind, what, times, input, .. } = finding;
        println!("  {} {kind} ×{times}: {what}\n    {}", tally.target, input.display());
    }
    if let Some(path) = &arguments.json {
        let summary = Summary { seed: arguments.seed, executions, failures, targets: tallies };
        let text = serde_json::to_string_pretty(&summary).map_err(|error| error.to_string())?;
        match path.as_os_str() == "-" {
            true => println!("{text}"),
            false => std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?,
        }
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// In memory, where the system has files there.
fn scratch_folder() -> Result<tempfile::TempDir, String> {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()),
        false => tempfile::tempdir(),
    };
    made.map_err(|error| format!("cannot make a folder for the workers: {error}"))
}
