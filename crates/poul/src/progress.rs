//! How long work reports on itself and is stopped, without the library knowing about terminals.

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
}

/// Listens to nothing.
pub struct Silent;

impl Progress for Silent {}

/// Progress of one learner among several: passes everything on, with a name before each stage and warning.
pub(crate) struct Named<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) name: String,
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
}
