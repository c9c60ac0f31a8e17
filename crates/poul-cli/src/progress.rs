//! Progress on stderr: a bar on a terminal; otherwise a plain line per stage, and one every half minute in a long stage.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use poul::Progress;

/// How often a long stage says where it stands where there are no bars.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Shows the library's stages to a person.
pub(crate) struct Terminal {
    quiet: bool,
    bars: bool,
    stage: Mutex<Option<Stage>>,
}

struct Stage {
    name: String,
    unit: String,
    bar: ProgressBar,
    start: Instant,
    last_line: Instant,
    remark: String,
}

impl Terminal {
    /// `quiet` silences everything but errors.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, bars: !quiet && std::io::stderr().is_terminal(), stage: Mutex::new(None) }
    }

    /// A line of talk that is not data.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        if !self.quiet {
            // Nobody may be listening any more: `2>&1 | head`.
            let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
        }
    }

    fn with_stage(&self, act: impl FnOnce(&mut Option<Stage>)) {
        // A poisoned lock means another thread failed while drawing; the drawing is then the least concern.
        if let Ok(mut stage) = self.stage.lock() {
            act(&mut stage);
        }
    }
}

impl Stage {
    /// Where it stands: done, rate, time left, remark.
    fn line(&self) -> String {
        let (done, seconds) = (self.bar.position(), self.start.elapsed().as_secs_f64());
        let rate = done as f64 / seconds.max(1e-9);
        let mut line = format!("{}: {} ", self.name, poul_report::number::count(done));
        if let Some(total) = self.bar.length() {
            let left = total.saturating_sub(done) as f64 / rate.max(1e-9);
            let (total, left) = (poul_report::number::count(total), poul_report::number::duration(left));
            line += &format!("of {total} {}, at most {left} left", self.unit);
        } else {
            line += &self.unit;
        }
        line += &format!(", {} {}/s", poul_report::number::rate(rate), self.unit);
        if self.remark.is_empty() { line } else { format!("{line}, {}", self.remark) }
    }
}

impl Progress for Terminal {
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        let target = if self.bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        bar.set_draw_target(target);
        let template = match total {
            Some(_) => "{prefix} [{bar:30}] {percent:>3} %  {human_pos} {unit}  {per_sec}  eta {eta}  {msg}",
            None => "{prefix} {spinner} {human_pos} {unit}  {per_sec}  {msg}",
        };
        let template = template.replace("{unit}", unit);
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(stage.to_string());
        let (name, unit) = (stage.to_string(), unit.to_string());
        let now = Instant::now();
        let stage = Stage { name, unit, bar, start: now, last_line: now, remark: String::new() };
        self.with_stage(|current| *current = Some(stage));
    }

    fn advance(&self, n: u64) {
        self.with_stage(|stage| {
            if let Some(stage) = stage {
                stage.bar.inc(n);
                if !self.bars && stage.last_line.elapsed() >= BETWEEN_LINES {
                    stage.last_line = Instant::now();
                    self.say(stage.line());
                }
            }
        });
    }

    fn remark(&self, text: &str) {
        self.with_stage(|stage| {
            if let Some(stage) = stage {
                stage.bar.set_message(text.to_string());
                stage.remark = text.to_string();
            }
        });
    }

    fn finish(&self) {
        self.with_stage(|stage| {
            if let Some(stage) = stage.take() {
                stage.bar.finish_and_clear();
                let seconds = stage.start.elapsed().as_secs_f64();
                let (done, unit) = (poul_report::number::count(stage.bar.position()), &stage.unit);
                let remark = if stage.remark.is_empty() { "" } else { ", " };
                self.say(format!("{}: {done} {unit} in {seconds:.1} s{remark}{}", stage.name, stage.remark));
            }
        });
    }

    fn cancelled(&self) -> bool {
        crate::interrupt::asked()
    }

    fn warn(&self, text: &str) {
        let line = format!("warning: {}", crate::spelling::with_flags(text));
        let mut shown = false;
        self.with_stage(|stage| {
            if let (true, Some(stage)) = (self.bars, stage) {
                stage.bar.println(&line);
                shown = true;
            }
        });
        if !shown {
            self.say(line);
        }
    }
}
