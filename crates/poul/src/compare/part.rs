//! A table that is read and encoded once, and parts of its rows in the form that learners take.

use std::ops::Deref;

use rand::seq::SliceRandom;

use crate::data::{Budget, Columns, Dataset, Design, Encoder, Source, Table, pick};
use crate::effect::TrainingData;
use crate::net::RowSource;
use crate::nuisance::{ObservedRows, SomeRows, StratumTable};
use crate::policy::{Assigner, Exposure, ExposureRows, PolicySet};
use crate::{Error, Kind, Progress, Result, Seed};

/// Encoded rows with the policy of each.
pub(crate) struct EncodedTable {
    pub(crate) dataset: Dataset,
    /// How exposure columns become weights of contexts, and these weights, where rows have their own.
    pub(crate) exposure: Option<(Exposure, ExposureRows)>,
}

impl EncodedTable {
    /// Reads the rows; the features of `columns` are those of the encoder. `exposure` is that of the training table; without
    /// it these rows tell it.
    pub(crate) fn read(
        source: &Source,
        columns: &Columns,
        encoder: &Encoder,
        policies: &PolicySet,
        exposure: Option<&Exposure>,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let dataset = Dataset::read(source, columns, encoder, budget, progress);
        let mut dataset = dataset.map_err(|error| in_file(error, source))?;
        let policy = Assigner::new(policies, columns).assign_table(&dataset);
        dataset.table.policy = policy.map_err(|error| in_file(error, source))?;
        let exposure = match exposure {
            Some(exposure) => Some(exposure.clone()),
            None => {
                let found = Exposure::fit(columns, &dataset.exposure, dataset.weight.as_deref());
                found.map_err(|error| in_file(error, source))?
            }
        };
        let exposure = exposure.map(|exposure| {
            let rows = exposure.rows(&dataset.exposure);
            exposure.note(rows.n_unexposed()).iter().for_each(|note| progress.warn(note));
            (exposure, rows)
        });
        Ok(Self { dataset, exposure })
    }

    /// What is left of a budget beside the features of this table.
    pub(crate) fn left_of(&self, budget: &Budget) -> Budget {
        let mut left = budget.clone();
        left.bytes = left.bytes.saturating_sub(self.dataset.x.memory_bytes()).max(1);
        left
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.dataset.n_rows()
    }

    /// The encoded features, with exposures where rows have their own.
    pub(crate) fn x(&self) -> &dyn RowSource {
        self
    }

    /// The encoded features alone.
    pub(crate) fn features(&self) -> &dyn RowSource {
        &self.dataset.x
    }

    /// Some of the rows, by number.
    pub(crate) fn part(&self, rows: Vec<u32>) -> Part {
        let mut table = self.dataset.take(&rows);
        table.cluster = table.cluster.map(|codes| renumbered(&codes));
        Part { rows, table }
    }

    /// Marks a share of the units (clusters, or rows) among `rows`, at random.
    pub(crate) fn draw_units(&self, rows: &[u32], share: f64, seed: Seed) -> Vec<bool> {
        let unit: Vec<u32> = match &self.dataset.cluster {
            Some(cluster) => renumbered(&pick(cluster, rows)),
            None => (0..rows.len() as u32).collect(),
        };
        let n_units = unit.iter().max().map_or(0, |last| *last as usize + 1);
        let mut order: Vec<u32> = (0..n_units as u32).collect();
        order.shuffle(&mut seed.rng());
        let n_drawn = (share * n_units as f64).round() as usize;
        let mut is_drawn = vec![false; n_units];
        order.iter().take(n_drawn).for_each(|unit| is_drawn[*unit as usize] = true);
        unit.iter().map(|unit| is_drawn[*unit as usize]).collect()
    }
}

impl RowSource for EncodedTable {
    fn n_rows(&self) -> usize {
        self.dataset.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.dataset.x.n_cols()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        self.dataset.x.copy_rows(rows, out);
    }

    fn exposure(&self, row: usize) -> Option<&[f32]> {
        self.exposure.as_ref().map(|(_, rows)| rows.row(row))
    }

    fn window_rows(&self) -> Option<usize> {
        self.dataset.x.window_rows()
    }

    fn failure(&self) -> Option<Error> {
        self.dataset.x.failure()
    }
}

/// Some rows of an [`EncodedTable`]; clusters are numbered without gaps.
pub(crate) struct Part {
    /// Their numbers in the table.
    pub(crate) rows: Vec<u32>,
    pub(crate) table: Table,
}

impl Deref for Part {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// What all parts of an experiment share.
pub(crate) struct Setting {
    pub(crate) policies: PolicySet,
    pub(crate) control: usize,
    pub(crate) design: Design,
    pub(crate) strata_table: Option<StratumTable>,
}

impl Part {
    /// The features of these rows.
    pub(crate) fn x<'a>(&'a self, all: &'a dyn RowSource) -> SomeRows<'a> {
        SomeRows { x: all, rows: &self.rows }
    }

    /// What a first stage is given; `x` are the features of these rows.
    pub(crate) fn observed<'a>(&'a self, x: &'a dyn RowSource, setting: &'a Setting) -> ObservedRows<'a> {
        ObservedRows {
            x: Some(x),
            design: setting.design,
            stratum_table: setting.strata_table.as_ref(),
            ..ObservedRows::of(&self.table, setting.policies.names())
        }
    }

    /// What a learner is given; `x` are the features of these rows.
    pub(crate) fn training_data<'a>(
        &'a self,
        x: &'a dyn RowSource,
        setting: &'a Setting,
    ) -> Result<TrainingData<'a>> {
        let (policies, control) = (&setting.policies, Some(setting.control));
        let data = TrainingData::of(&self.table, x, policies, &self.table.policy, setting.design, control)?;
        Ok(TrainingData { stratum_table: setting.strata_table.as_ref(), ..data })
    }
}

/// Names the table in an error about its rows.
pub(crate) fn in_file(error: Error, source: &Source) -> Error {
    match source.files().first() {
        Some(file) if error.kind() == Kind::Input => error.file(file),
        _ => error,
    }
}

/// Codes 0, 1, … in the order of the old ones, without gaps.
fn renumbered(codes: &[u32]) -> Vec<u32> {
    let largest = codes.iter().max().map_or(0, |last| *last as usize + 1);
    let mut number = vec![0_u32; largest];
    codes.iter().for_each(|code| number[*code as usize] = 1);
    let mut n_codes = 0;
    for slot in &mut number {
        (*slot, n_codes) = (n_codes, n_codes + *slot);
    }
    codes.iter().map(|code| number[*code as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lose_their_gaps_and_keep_their_order() {
        assert_eq!(renumbered(&[7, 2, 7, 4]), [2, 0, 2, 1]);
        assert_eq!(renumbered(&[]), [] as [u32; 0]);
    }
}
