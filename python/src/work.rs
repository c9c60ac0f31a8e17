//! Long work: on threads of its own while the calling thread relays progress and listens to Ctrl-C.
//!
//! Python is called from the calling thread only, between waits of a twentieth of a second in which the interpreter is
//! free for others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use poul::{Error, Progress, Result};
use pyo3::prelude::*;

use crate::failure::{internal, is_guarded, raise};
use crate::spelling::with_arguments;

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// The name of every thread that works here.
const THREAD: &str = "poul";

/// Does `work` on `threads` threads (all cores where there is no number), telling `listener` how it goes: an object with
/// the methods of the library's `Progress`.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    listener: &Bound<'_, PyAny>,
    work: impl FnOnce(&dyn Progress) -> Result<T> + Send,
) -> PyResult<T> {
    let relay = Relay::default();
    let mut stop: Option<PyErr> = None;
    let done = std::thread::scope(|scope| {
        let body = || {
            let done = catch_unwind(AssertUnwindSafe(|| pool(threads)?.install(|| work(&relay))));
            relay.end();
            done.unwrap_or_else(|panic| Err(internal(panic.as_ref())))
        };
        let worker = std::thread::Builder::new().name(THREAD.to_owned()).spawn_scoped(scope, body);
        let worker =
            worker.map_err(|error| Error::other(format!("cannot start a thread: {error}")).source(error))?;
        loop {
            let is_over = py.detach(|| relay.wait());
            // After the first exception, which is the one to raise, the work is only waited for.
            if stop.is_none() {
                let told = relay.tell(listener).and_then(|()| py.check_signals());
                stop = told.err();
                relay.cancelled.store(stop.is_some(), Ordering::Relaxed);
            }
            if is_over {
                break;
            }
        }
        // What the work drops may need the interpreter.
        py.detach(|| worker.join()).unwrap_or_else(|panic| Err(internal(panic.as_ref())))
    });
    match (stop, done) {
        (Some(stop), _) => Err(stop),
        (None, done) => done.map_err(|error| raise(py, &error)),
    }
}

/// Panics that become exceptions are not told on stderr too; `RUST_BACKTRACE` shows them.
pub(crate) fn silence_own_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(THREAD) && !is_guarded() {
            others(panic);
        }
    }));
}

fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool> {
    if threads == Some(0) {
        return Err(Error::usage("threads must be at least 1"));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0).min(poul::most_threads()))
        .thread_name(|_| THREAD.to_owned())
        .build();
    pool.map_err(|error| Error::other(format!("cannot start threads: {error}")))
}

/// What the work says, until it is told.
#[derive(Default)]
struct Relay {
    cancelled: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    news: Vec<News>,
    is_over: bool,
}

enum News {
    Start(String, String, Option<u64>),
    Advance(u64),
    Remark(String),
    Finish,
    Warn(String),
}

impl Relay {
    /// Waits a moment; whether the work is over.
    fn wait(&self) -> bool {
        let Ok(state) = self.state.lock() else { return true };
        let waited = self.ended.wait_timeout_while(state, BETWEEN_LOOKS, |state| !state.is_over);
        waited.map_or(true, |(state, _)| state.is_over)
    }

    fn end(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_over = true;
        }
        self.ended.notify_all();
    }

    fn tell(&self, listener: &Bound<'_, PyAny>) -> PyResult<()> {
        let news = self.state.lock().map(|mut state| std::mem::take(&mut state.news)).unwrap_or_default();
        for one in news {
            match one {
                News::Start(stage, unit, total) => listener.call_method1("start", (stage, unit, total)),
                News::Advance(n) => listener.call_method1("advance", (n,)),
                News::Remark(text) => listener.call_method1("remark", (text,)),
                News::Finish => listener.call_method0("finish"),
                News::Warn(text) => listener.call_method1("warn", (text,)),
            }?;
        }
        Ok(())
    }

    fn push(&self, one: News) {
        if let Ok(mut state) = self.state.lock() {
            match (state.news.last_mut(), one) {
                (Some(News::Advance(sum)), News::Advance(n)) => *sum += n,
                (Some(News::Remark(last)), News::Remark(text)) => *last = text,
                (_, one) => state.news.push(one),
            }
        }
    }
}

impl Progress for Relay {
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        self.push(News::Start(stage.to_owned(), unit.to_owned(), total));
    }

    fn advance(&self, n: u64) {
        self.push(News::Advance(n));
    }

    fn remark(&self, text: &str) {
        self.push(News::Remark(text.to_owned()));
    }

    fn finish(&self) {
        self.push(News::Finish);
    }

    fn warn(&self, text: &str) {
        self.push(News::Warn(with_arguments(text)));
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
