//! Categories that fitting never saw, counted while rows are encoded.

use super::{Code, Encoder};

/// How many cells of each feature held a category that fitting never saw.
///
/// Where fitting lumped rare levels together, a new one joins them and is not counted: it cannot be told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    pub(super) counts: Vec<u64>,
    pub(super) n_rows: u64,
}

impl Unseen {
    /// A line for each feature with such cells: what they count as, and how many there are.
    pub(crate) fn notes(&self, encoder: &Encoder) -> Vec<String> {
        let features = encoder.features.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        let note = |(feature, count): (&super::FeatureEncoder, &u64)| {
            let share = 100.0 * *count as f64 / self.n_rows as f64;
            format!(
                "column `{}`: {count} of {} rows ({share:.1} %) have a value that training never saw: it is ignored",
                feature.feature.name, self.n_rows,
            )
        };
        features.map(note).collect()
    }

    pub(super) fn add(&mut self, counts: &[u64], n_rows: usize) {
        self.counts.resize(counts.len(), 0);
        self.counts.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        self.n_rows += n_rows as u64;
    }
}

impl Code {
    /// Whether a level that is none of the known ones was never seen in fitting.
    pub(super) fn knows_all_levels(&self) -> bool {
        matches!(self, Self::Levels(levels) if !levels.other && !levels.levels.is_empty())
    }
}
