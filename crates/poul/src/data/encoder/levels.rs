//! Text features: one-hot over frequent levels.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

use super::params::EncoderParams;
use crate::data::values::{Texts, dictionary_keys};

/// Levels counted at a time. Any level in more than 1 / `CAPACITY` of the rows is found (Misra & Gries).
const CAPACITY: usize = 1 << 16;

/// The code of a level that has no column of its own.
pub(super) const OTHER: u32 = u32::MAX - 1;
/// The code of a missing cell.
pub(super) const MISSING: u32 = u32::MAX;

/// How a text feature is encoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LevelCode {
    /// Levels with a column of their own, the most frequent first.
    pub(super) levels: Vec<String>,
    /// Whether other levels have a column: only if fitting saw any.
    pub(super) other: bool,
    /// Whether missing cells have a column: only if fitting saw any.
    pub(super) missing: bool,
}

impl LevelCode {
    /// For each cell the place of its level, [`OTHER`] or [`MISSING`]; `None` if the column is not text.
    pub(super) fn codes(&self, array: &ArrayRef) -> Option<Vec<u32>> {
        if array.data_type().is_null() {
            return Some(vec![MISSING; array.len()]);
        }
        let known: HashMap<&str, u32> = self.levels.iter().map(String::as_str).zip(0..).collect();
        let code = |text: Option<&str>| match text {
            None => MISSING,
            Some(text) => known.get(text).copied().unwrap_or(OTHER),
        };
        if let DataType::Dictionary(..) = array.data_type() {
            let values = Texts::of(array.as_any_dictionary().values())?;
            let codes: Vec<u32> = (0..values.len()).map(|idx| code(values.get(idx))).collect();
            return Some(
                dictionary_keys(array).into_iter().map(|key| key.map_or(MISSING, |key| codes[key])).collect(),
            );
        }
        let texts = Texts::of(array)?;
        Some((0..texts.len()).map(|row| code(texts.get(row))).collect())
    }
}

/// What fitting gathers about a text feature.
#[derive(Clone, Debug, Default)]
pub(super) struct LevelFit {
    // Counted and sorted at the end: its order cannot reach a result.
    counts: HashMap<Box<str>, u64>,
    n_rows: u64,
    n_missing: u64,
    pruned: bool,
}

impl LevelFit {
    /// `None` if the column is not text.
    pub(super) fn add(&mut self, array: &ArrayRef) -> Option<()> {
        self.n_rows += array.len() as u64;
        if let DataType::Dictionary(..) = array.data_type() {
            let values = Texts::of(array.as_any_dictionary().values())?;
            let mut counts = vec![0_u64; values.len()];
            for key in dictionary_keys(array) {
                match key {
                    Some(key) => counts[key] += 1,
                    None => self.n_missing += 1,
                }
            }
            for (idx, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                self.count(values.get(idx).unwrap_or_default(), count);
            }
            return Some(());
        }
        let texts = Texts::of(array)?;
        for row in 0..texts.len() {
            match texts.get(row) {
                Some(text) => self.count(text, 1),
                None => self.n_missing += 1,
            }
        }
        Some(())
    }

    fn count(&mut self, text: &str, n: u64) {
        if let Some(count) = self.counts.get_mut(text) {
            *count += n;
            return;
        }
        self.counts.insert(text.into(), n);
        if self.counts.len() > 2 * CAPACITY {
            self.prune();
        }
    }

    /// Takes the count of the first level beyond capacity off every level and forgets those that have none left.
    fn prune(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, cut, _) = counts.select_nth_unstable_by(CAPACITY, |a, b| b.cmp(a));
        let cut = *cut;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(cut);
            *count > 0
        });
        self.pruned = true;
    }

    /// The code, and a note if something is lost.
    pub(super) fn finish(self, params: &EncoderParams) -> (LevelCode, Option<String>) {
        let n_present = self.n_rows - self.n_missing;
        let missing = self.n_missing > 0;
        if n_present == 0 {
            return (LevelCode::default(), Some("is missing in every row".into()));
        }
        let enough = params.min_level_rows.min((self.n_rows / 100).max(1));
        let n_distinct = self.counts.len();
        let mut counted: Vec<(Box<str>, u64)> =
            self.counts.into_iter().filter(|(_, n)| *n >= enough).collect();
        counted.sort_unstable_by(|(a, n_a), (b, n_b)| n_b.cmp(n_a).then_with(|| a.cmp(b)));
        counted.truncate(params.max_levels);
        let n_named: u64 = counted.iter().map(|(_, n)| n).sum();
        // After pruning counts are lower bounds, and some level was forgotten: there are others.
        let other = n_named < n_present || self.pruned;
        let levels: Vec<String> = counted.into_iter().map(|(level, _)| level.into()).collect();
        if levels.is_empty() {
            let note = format!("has no level in {enough} rows or more");
            return (LevelCode { missing, ..LevelCode::default() }, Some(note));
        }
        if levels.len() == 1 && !other {
            let note = (!missing).then(|| "is constant".into());
            return (LevelCode { missing, ..LevelCode::default() }, note);
        }
        let share = 100.0 * (n_present.saturating_sub(n_named)) as f64 / n_present as f64;
        let note = (share > 50.0).then(|| {
            let distinct = if self.pruned { format!("more than {CAPACITY}") } else { n_distinct.to_string() };
            format!("has {distinct} levels: {share:.0} % of rows are `other`")
        });
        (LevelCode { levels, other, missing }, note)
    }
}
