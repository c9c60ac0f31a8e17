//! What long work is handed down: its random numbers, who listens, and where it leaves and finds results.

use crate::{Checkpoint, Memory, Progress, Seed};

/// One piece of work among others. Copy it with another seed, listener or memory for a part of the work.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The stream that all its random numbers come from.
    pub seed: Seed,
    /// Who is told how far it is, and may stop it.
    pub progress: &'a dyn Progress,
    /// Where it leaves its state, to go on from after it was stopped; nowhere if none.
    pub checkpoint: Option<&'a Checkpoint>,
    /// Where it finds what other work has fitted before it; nowhere if none.
    pub memory: Option<&'a Memory>,
}

impl<'a> Run<'a> {
    /// Work that leaves nothing behind and shares nothing.
    pub fn new(seed: Seed, progress: &'a dyn Progress) -> Self {
        Self { seed, progress, checkpoint: None, memory: None }
    }

    /// The same with the stream called `name` below its own.
    #[must_use]
    pub(crate) fn child(self, name: &str) -> Self {
        Self { seed: self.seed.child(name), ..self }
    }

    /// The same with the stream number `index` below its own.
    #[must_use]
    pub(crate) fn index(self, index: u64) -> Self {
        Self { seed: self.seed.index(index), ..self }
    }

    /// The same for another listener.
    #[must_use]
    pub(crate) fn told<'b>(self, progress: &'b dyn Progress) -> Run<'b>
    where
        'a: 'b,
    {
        Run { progress, ..self }
    }
}
