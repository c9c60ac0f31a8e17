//! Executions that do not end: the process ends instead, with a code of its own.
//!
//! Time is the processor's where the system tells it, so that a busy machine makes no hangs; work that waits for ever is found by the
//! clock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The exit code of a worker whose execution hung.
pub(crate) const EXIT_CODE: u8 = 75;
/// Seconds of the processor that an execution may take.
pub(crate) const MOST_SECONDS: f64 = 10.0;
/// Seconds of the clock.
const MOST_WAIT: f64 = 60.0;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Linux counts in hundredths of a second for whoever reads `/proc`.
const TICKS_A_SECOND: f64 = 100.0;

/// The number of the execution that goes on; even between two.
static BEAT: AtomicU64 = AtomicU64::new(0);

/// An execution begins, or ends.
pub(crate) fn beat() {
    BEAT.fetch_add(1, Relaxed);
}

/// Looks at the executions from now on.
pub(crate) fn start() {
    let _ = std::thread::spawn(|| {
        let mut seen = (0, Instant::now(), cpu_seconds());
        loop {
            std::thread::sleep(LOOK_EVERY);
            let beat = BEAT.load(Relaxed);
            if beat != seen.0 || beat.is_multiple_of(2) {
                seen = (beat, Instant::now(), cpu_seconds());
                continue;
            }
            let waited = seen.1.elapsed().as_secs_f64();
            let worked = match (cpu_seconds(), seen.2) {
                (Some(now), Some(then)) => now - then,
                _ => waited,
            };
            if worked > MOST_SECONDS || waited > MOST_WAIT {
                eprintln!("hang: {worked:.1} s of work, {waited:.1} s by the clock");
                std::process::exit(i32::from(EXIT_CODE));
            }
        }
    });
}

/// What this process has worked, user and system.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |idx: usize| fields.get(idx).and_then(|ticks| ticks.parse::<f64>().ok());
    Some((ticks(11)? + ticks(12)?) / TICKS_A_SECOND)
}
