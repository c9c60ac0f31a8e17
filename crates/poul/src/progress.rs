//! How long work reports on itself, is stopped and goes on later, without the library knowing about terminals.

use crate::{Checkpoint, Memory};

/// Listens to long work. All methods have defaults that do nothing.
pub trait Progress: Sync {
    /// A stage begins; `total` is its length in `unit`s (rows, steps, draws) where known.
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        let _ = (stage, unit, total);
    }

    /// `n` more units are done.
    fn advance(&self, n: u64) {
        let _ = n;
    }

    /// A short remark on where the stage stands, such as the current loss.
    fn remark(&self, text: &str) {
        let _ = text;
    }

    /// The stage is over.
    fn finish(&self) {}

    /// Something the user should know although it is not an error.
    fn warn(&self, text: &str) {
        let _ = text;
    }

    /// Whether the work should stop as soon as it can.
    fn cancelled(&self) -> bool {
        false
    }

    /// Where the work leaves its state, to go on from after it was stopped; nowhere by default.
    fn checkpoint(&self) -> Option<&Checkpoint> {
        None
    }

    /// Where the work finds what other work has fitted before it; nowhere by default.
    fn memory(&self) -> Option<&Memory> {
        None
    }
}

/// Listens to nothing.
pub struct Silent;

impl Progress for Silent {}

/// A listener, and a checkpoint for the work it listens to.
pub(crate) struct Resumable<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) checkpoint: &'a Checkpoint,
}

impl Progress for Resumable<'_> {
    fn start(&self, stage: &str, unit: &str, total: Option<u64>) {
        self.progress.start(stage, unit, total);
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

    fn checkpoint(&self) -> Option<&Checkpoint> {
        Some(self.checkpoint)
    }

    fn memory(&self) -> Option<&Memory> {
        self.progress.memory()
    }
}

/// Progress of one learner among several: passes everything on, with a name before each stage and warning.
pub(crate) struct Named<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) name: String,
    /// What learners on the same rows share.
    pub(crate) memory: Option<&'a Memory>,
    /// None where learners train networks of the same streams.
    pub(crate) checkpoint: Option<&'a Checkpoint>,
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

    fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint
    }

    fn memory(&self) -> Option<&Memory> {
        self.memory
    }
}
