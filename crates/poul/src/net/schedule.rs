//! How long to train: batches, passes and epochs, and how decay counts in them.

use serde::{Deserialize, Serialize};

use super::resume::Standing;
use crate::{Error, Result};

/// Steps of the longest pass for which decay is taken as it is given: 32,768 rows by 512.
const DECAY_STEPS: f32 = 64.0;

/// How long to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Rows of a batch. Default 512; at least 1.
    pub batch_rows: usize,
    /// Most epochs. Default 60; at least 1.
    pub epochs: usize,
    /// Epochs without a better validation loss before training ends. Default 8; 0: all epochs are run and the last
    /// state is kept.
    pub patience: usize,
    /// Fewest steps of an epoch. Where the rows make fewer batches, an epoch is as many passes over them as it takes:
    /// a small table needs as many steps as a large one, and one step is too few to judge by. Default 20; at least 1.
    pub min_steps: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { batch_rows: 512, epochs: 60, patience: 8, min_steps: 20 }
    }
}

impl Schedule {
    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<()> {
        let settings =
            [("batch_rows", self.batch_rows), ("epochs", self.epochs), ("min_steps", self.min_steps)];
        match settings.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(Error::usage(format!("`{name}` is 0")).hint("it must be at least 1")),
            None => Ok(()),
        }
    }

    /// Most rows that training on `n_rows` goes through: the length of a progress bar.
    pub(crate) fn most_rows(&self, n_rows: usize) -> u64 {
        (self.epochs as u64).saturating_mul(n_rows as u64 * self.passes(n_rows) as u64)
    }

    /// Rows that a run has gone through.
    pub(super) fn rows_until(&self, at: &Standing, n_rows: usize) -> u64 {
        let (n_passes, n_steps) = (self.passes(n_rows), self.steps(n_rows));
        let of_steps = |n_steps: usize| n_rows.min(n_steps * self.batch_rows);
        let passes = (at.epoch * n_passes + at.n_steps / n_steps) * of_steps(n_steps);
        (passes + of_steps(at.n_steps % n_steps)) as u64
    }

    /// Passes over the rows that make an epoch.
    pub(super) fn passes(&self, n_rows: usize) -> usize {
        self.min_steps.div_ceil(self.steps(n_rows))
    }

    /// What decay per step is multiplied by, so that a long pass over the rows shrinks weights as much however long it is.
    ///
    /// Twice the rows bear twice the evidence, against which decay per pass stays the same. Decay per step would weigh
    /// on a large table as heavily as on a small one: weights would be held back though the rows could place them. The
    /// other way round, more decay where passes are short, was worse: few steps are a restraint of their own.
    pub(super) fn decay_factor(&self, n_rows: usize) -> f32 {
        (DECAY_STEPS / self.steps(n_rows) as f32).min(1.0)
    }

    /// Steps of one pass. A remnant of a few rows would be a step of pure noise: it is left out, and who is in it
    /// changes with every pass.
    pub(super) fn steps(&self, n_rows: usize) -> usize {
        let remnant = n_rows % self.batch_rows;
        (n_rows / self.batch_rows + usize::from(remnant * 4 >= self.batch_rows)).max(1)
    }
}
