//! Progress of one learner among several: its stages carry its name.

use crate::{Checkpoint, Memory, Progress};

/// Passes everything on, with a name before each stage and warning.
pub(crate) struct Named<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) name: String,
    /// What learners on the same rows share.
    pub(crate) memory: Option<&'a Memory>,
}

impl Progress for Named<'_> {
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        self.progress.start(&format!("{}: {stage}", self.name), unit, total);
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
        self.progress.warn(&format!("{}: {text}", self.name));
    }

    fn cancelled(&self) -> bool {
        self.progress.cancelled()
    }

    /// None: learners of one comparison train networks of the same streams.
    fn checkpoint(&self) -> Option<&Checkpoint> {
        None
    }

    fn memory(&self) -> Option<&Memory> {
        self.memory
    }
}
