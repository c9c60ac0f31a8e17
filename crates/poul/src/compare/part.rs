//! A table that is read and encoded once, and parts of its rows in the form that learners take.

use rand::seq::SliceRandom;

use crate::data::{Budget, Columns, Dataset, Design, Encoder, Labels, Source};
use crate::effect::TrainingData;
use crate::net::RowSource;
use crate::nuisance::{ObservedRows, OutcomeColumn, PropensityColumn, SomeRows, StratumTable};
use crate::policy::{Assigner, Exposure, ExposureRows, PolicySet};
use crate::{Error, Kind, Progress, Result, Seed};

/// Rows with the policy of each.
pub(crate) struct Table {
    pub(crate) dataset: Dataset,
    pub(crate) policy: Vec<u32>,
    /// How exposure columns become weights of contexts, and these weights, where rows have their own.
    pub(crate) exposure: Option<(Exposure, ExposureRows)>,
}

impl Table {
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
        let dataset = dataset.map_err(|error| in_file(error, source))?;
        let labels: Vec<&Labels> = dataset.treatment_labels.iter().collect();
        let policy = Assigner::new(policies, columns).assign(&dataset.treatment, &labels, &dataset.rows);
        let policy = policy.map_err(|error| in_file(error, source))?;
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
        Ok(Self { dataset, policy, exposure })
    }

    /// What is left of a budget beside the features of this table.
    pub(crate) fn left_of(&self, budget: &Budget) -> Budget {
        let mut left = budget.clone();
        left.bytes = left.bytes.saturating_sub(self.dataset.x.memory_bytes()).max(1);
        left
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.policy.len()
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
        let data = &self.dataset;
        let floats = |values: &Vec<f64>| pick(values, &rows);
        Part {
            policy: pick(&self.policy, &rows),
            outcomes: data.outcomes.iter().map(floats).collect(),
            auxiliary: data.auxiliary.iter().map(floats).collect(),
            predictions: data.predictions.iter().map(|(of, values)| (*of, pick(values, &rows))).collect(),
            weight: data.weight.as_ref().map(floats),
            cluster: data.cluster.as_ref().map(|codes| renumbered(&pick(codes, &rows))),
            stratum: data.stratum.as_ref().map(|codes| pick(codes, &rows)),
            propensity: data.propensity.iter().map(|values| pick(values, &rows)).collect(),
            populations: data
                .populations
                .iter()
                .map(|(text, mask)| (text.clone(), pick(mask, &rows)))
                .collect(),
            numbers: pick(&data.rows, &rows),
            rows,
        }
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

impl RowSource for Table {
    fn n_rows(&self) -> usize {
        self.policy.len()
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

/// Some rows of a [`Table`].
pub(crate) struct Part {
    /// Their numbers in the table.
    pub(crate) rows: Vec<u32>,
    pub(crate) policy: Vec<u32>,
    pub(crate) outcomes: Vec<Vec<f64>>,
    pub(crate) auxiliary: Vec<Vec<f64>>,
    pub(crate) predictions: Vec<(usize, Vec<f64>)>,
    pub(crate) weight: Option<Vec<f64>>,
    pub(crate) cluster: Option<Vec<u32>>,
    pub(crate) stratum: Option<Vec<u32>>,
    pub(crate) propensity: Vec<Vec<f32>>,
    pub(crate) populations: Vec<(String, Vec<bool>)>,
    /// Their numbers in the source.
    pub(crate) numbers: Vec<u64>,
}

/// What all parts of an experiment share.
pub(crate) struct Setting<'a> {
    pub(crate) policies: &'a PolicySet,
    pub(crate) control: usize,
    pub(crate) design: Design,
    pub(crate) strata_table: Option<StratumTable>,
}

impl Part {
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn weight_of(&self, row: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[row])
    }

    /// The features of these rows.
    pub(crate) fn x<'a>(&'a self, all: &'a dyn RowSource) -> SomeRows<'a> {
        SomeRows { x: all, rows: &self.rows }
    }

    /// What a first stage is given; `x` are the features of these rows.
    pub(crate) fn observed<'a>(
        &'a self,
        table: &'a Table,
        x: &'a dyn RowSource,
        setting: &'a Setting<'a>,
    ) -> ObservedRows<'a> {
        let data = &table.dataset;
        let of = |outcome: usize| self.predictions.iter().find(|(of, _)| *of == outcome);
        let outcomes = data.outcome_names.iter().zip(&self.outcomes).enumerate();
        let outcomes = outcomes.map(|(idx, (name, values))| OutcomeColumn {
            name,
            values,
            prediction: of(idx).map(|(_, values)| values.as_slice()),
        });
        let propensity = data.propensity_columns.iter().zip(&self.propensity);
        let propensity = propensity.map(|(own, values)| PropensityColumn {
            column: &own.column,
            policy: &own.policy,
            values,
        });
        ObservedRows {
            x: Some(x),
            outcomes: outcomes.collect(),
            weight: self.weight.as_deref(),
            cluster: self.cluster.as_deref(),
            numbers: Some(&self.numbers),
            design: setting.design,
            stratum: self.stratum.as_deref().map(|stratum| (stratum, data.stratum_labels.names())),
            stratum_table: setting.strata_table.as_ref(),
            propensity: propensity.collect(),
            ..ObservedRows::new(setting.policies.names(), &self.policy)
        }
    }

    /// What a learner is given; `x` are the features of these rows.
    pub(crate) fn training_data<'a>(
        &'a self,
        table: &'a Table,
        x: &'a dyn RowSource,
        setting: &'a Setting<'a>,
    ) -> Result<TrainingData<'a>> {
        let control = Some(setting.control);
        let mut data =
            TrainingData::of(&table.dataset, x, setting.policies, &self.policy, setting.design, control)?;
        for (idx, outcome) in data.outcomes.iter_mut().enumerate() {
            outcome.values = &self.outcomes[idx];
            let own = self.predictions.iter().find(|(of, _)| *of == idx);
            outcome.prediction = own.map(|(_, values)| values.as_slice());
        }
        for (outcome, values) in data.auxiliary.iter_mut().zip(&self.auxiliary) {
            outcome.values = values;
        }
        for (given, values) in data.propensity.iter_mut().zip(&self.propensity) {
            given.values = values;
        }
        data.weight = self.weight.as_deref();
        data.cluster = self.cluster.as_deref();
        data.stratum = self.stratum.as_deref();
        data.stratum_table = setting.strata_table.as_ref();
        data.populations =
            self.populations.iter().map(|(text, mask)| (text.as_str(), mask.as_slice())).collect();
        data.rows = Some(&self.numbers);
        Ok(data)
    }
}

/// Names the table in an error about its rows.
pub(crate) fn in_file(error: Error, source: &Source) -> Error {
    match source.files().first() {
        Some(file) if error.kind() == Kind::Input => error.file(file),
        _ => error,
    }
}

pub(crate) fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| values[*row as usize]).collect()
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
