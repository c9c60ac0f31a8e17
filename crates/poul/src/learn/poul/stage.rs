//! The outcome model's machinery at other work, reported under the name of that work.

use crate::Progress;

/// Passes progress on, with the stage's name in place of the outcome model's.
pub(super) struct Stage<'p> {
    pub(super) name: &'static str,
    pub(super) progress: &'p dyn Progress,
}

impl Progress for Stage<'_> {
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        let fold = stage.strip_prefix("Outcome model").unwrap_or_default();
        self.progress.start(&format!("{}{fold}", self.name), unit, total);
    }

    fn advance(&self, n: u64) {
        self.progress.advance(n);
    }

    fn remark(&self, text: &str) {
        self.progress.remark(text);
    }

    fn finish(&self) {
        self.progress.finish();
    }

    fn warn(&self, text: &str) {
        self.progress.warn(text);
    }

    fn cancelled(&self) -> bool {
        self.progress.cancelled()
    }
}
