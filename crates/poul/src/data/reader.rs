//! The rows that count, as plain vectors by role.

use std::path::PathBuf;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_select::filter::FilterBuilder;
use rayon::prelude::*;

use super::batches::Located;
use super::labels::Labels;
use super::prefetch::Prefetch;
use super::reader_check::{OutcomeCheck, Place, all_weights_zero, nothing_left};
use super::roles::Columns;
use super::source::{Source, places};
use super::values::numbers;
use crate::{Error, Result};

/// Bytes of decoded columns in a batch, about.
const BATCH_BYTES: usize = 32 << 20;
const MAX_BATCH_ROWS: usize = 1 << 16;
const MIN_BATCH_ROWS: usize = 1 << 8;

/// Goes through a source once and gives the rows of the population, checked.
///
/// Decoding runs ahead in threads of its own. The first thing wrong ends the reading; what can only be known at the
/// end (no rows left, all weights zero, an outcome that is null throughout) comes as the last item.
pub struct RowReader {
    columns: Columns,
    paths: Vec<PathBuf>,
    batches: Prefetch,
    treatment_labels: Vec<Labels>,
    cluster_labels: Labels,
    stratum_labels: Labels,
    outcome_checks: Vec<OutcomeCheck>,
    any_weight: bool,
    is_part: bool,
    n_read: u64,
    n_kept: u64,
    done: bool,
}

/// Some rows of the population, in the order of the source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The number of each row in the source, from 0.
    pub rows: Vec<u64>,
    /// The features, in the order of [`Columns::features`].
    pub features: Vec<ArrayRef>,
    /// For each treatment column, codes into [`RowReader::labels`].
    pub treatment: Vec<Vec<u32>>,
    /// For each outcome, and then for each auxiliary one, its values, all finite.
    pub outcomes: Vec<Vec<f64>>,
    /// Weights, finite and ≥ 0.
    pub weight: Option<Vec<f64>>,
    /// Codes into [`RowReader::cluster_labels`].
    pub cluster: Option<Vec<u32>>,
    /// Codes into [`RowReader::stratum_labels`].
    pub stratum: Option<Vec<u32>>,
    /// For each of [`Columns::propensity`], probabilities from 0 to 1.
    pub propensity: Vec<Vec<f32>>,
    /// For each of [`Columns::predictions`], the outcome's index and finite predictions.
    pub predictions: Vec<(usize, Vec<f64>)>,
    /// For each of [`Columns::exposure`], numbers that are finite and not below 0.
    pub exposure: Vec<Vec<f32>>,
    /// For each of [`Columns::populations`], whether each row is part of it.
    pub populations: Vec<Vec<bool>>,
    /// For each of [`Columns::effects`], numbers; NaN where there is none.
    pub effects: Vec<Vec<f64>>,
    /// The columns that rows are grouped by, as they are.
    pub by: Vec<ArrayRef>,
    /// The time column as it is.
    pub time: Option<ArrayRef>,
    /// The id columns as they are.
    pub ids: Vec<ArrayRef>,
}

impl Batch {
    /// How many rows it has.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }
}

impl RowReader {
    /// Starts reading the columns that have a role.
    pub fn new(source: &Source, columns: &Columns) -> Result<Self> {
        let needed = columns.needed();
        let row_bytes = source.decoded_row_bytes(&needed).max(1);
        let batch_rows = (BATCH_BYTES / row_bytes).clamp(MIN_BATCH_ROWS, MAX_BATCH_ROWS);
        Ok(Self {
            batches: Prefetch::start(source, &needed, batch_rows)?,
            paths: source.paths(),
            treatment_labels: vec![Labels::new(); columns.treatment.len()],
            cluster_labels: Labels::new(),
            stratum_labels: Labels::new(),
            outcome_checks: columns
                .outcomes
                .iter()
                .chain(&columns.auxiliary)
                .map(|name| OutcomeCheck::new(name))
                .collect(),
            columns: columns.clone(),
            any_weight: false,
            is_part: source.is_part(),
            n_read: 0,
            n_kept: 0,
            done: false,
        })
    }

    /// The next rows, `None` after the last.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        if self.done {
            return Ok(None);
        }
        let next = self.advance();
        self.done = !matches!(next, Ok(Some(_)));
        next
    }

    /// The labels seen so far in a treatment column.
    pub fn labels(&self, treatment_idx: usize) -> &Labels {
        &self.treatment_labels[treatment_idx]
    }

    /// The labels seen so far in the cluster column.
    pub fn cluster_labels(&self) -> &Labels {
        &self.cluster_labels
    }

    /// The labels seen so far in the stratum column.
    pub fn stratum_labels(&self) -> &Labels {
        &self.stratum_labels
    }

    /// How many rows of the source were read so far, whether they count or not.
    pub fn n_read(&self) -> u64 {
        self.n_read
    }

    /// All labels, at the end: of each treatment column, of clusters, of strata.
    pub(crate) fn into_labels(self) -> (Vec<Labels>, Labels, Labels) {
        (self.treatment_labels, self.cluster_labels, self.stratum_labels)
    }

    fn advance(&mut self) -> Result<Option<Batch>> {
        loop {
            let Some(located) = self.batches.next().transpose()? else {
                self.finish()?;
                return Ok(None);
            };
            self.n_read += located.batch.num_rows() as u64;
            let Some((kept, rows)) = self.select(&located)? else { continue };
            self.n_kept += rows.len() as u64;
            return self.extract(&located, &kept, rows).map(Some);
        }
    }

    /// The rows of the population and their numbers; `None` where there are none.
    fn select(&self, located: &Located) -> Result<Option<(RecordBatch, Vec<u64>)>> {
        let batch = &located.batch;
        let all_rows = located.first_row..located.first_row + batch.num_rows() as u64;
        let Some(filter) = &self.columns.population else {
            return Ok(Some((batch.clone(), all_rows.collect())));
        };
        let mask = filter.mask(batch)?;
        let rows: Vec<u64> = all_rows.zip(&mask).filter(|(_, kept)| **kept).map(|(row, _)| row).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        if rows.len() == mask.len() {
            return Ok(Some((batch.clone(), rows)));
        }
        let predicate = FilterBuilder::new(&BooleanArray::from(mask)).optimize().build();
        let failed = |error| Error::other(format!("cannot filter rows: {error}"));
        let arrays: Vec<ArrayRef> = batch
            .columns()
            .par_iter()
            .map(|column| predicate.filter(column).map_err(failed))
            .collect::<Result<_>>()?;
        let kept = RecordBatch::try_new(batch.schema(), arrays).map_err(failed)?;
        Ok(Some((kept, rows)))
    }

    fn extract(&mut self, located: &Located, batch: &RecordBatch, rows: Vec<u64>) -> Result<Batch> {
        let path = self.paths.get(located.file_idx).cloned().unwrap_or_default();
        let first_in_source = located.first_row;
        let row_in_file = |kept: usize| rows[kept] - first_in_source + located.first_row_in_file;
        let place = Place { path: &path, row_in_file: &row_in_file };
        let schema = batch.schema();
        let places = places(&schema);
        let column = |name: &str| {
            let found = places.get(name).map(|place| batch.column(*place).clone());
            found.ok_or_else(|| Error::other(format!("column `{name}` was not read")))
        };
        let number_column = |name: &str| {
            let array = column(name)?;
            numbers(&array).ok_or_else(|| Error::other(format!("column `{name}` is not numeric")))
        };
        let code_column = |role: &str, name: &str, labels: &mut Labels| {
            labels.codes_of(&column(name)?).map_err(|row| place.null_label(role, name, row))
        };
        let columns = &self.columns;
        let mut treatment = Vec::with_capacity(columns.treatment.len());
        for (name, labels) in columns.treatment.iter().zip(&mut self.treatment_labels) {
            treatment.push(code_column("treatment", name, labels)?);
        }
        let cluster = columns.cluster.as_ref();
        let cluster =
            cluster.map(|name| code_column("cluster", name, &mut self.cluster_labels)).transpose()?;
        let stratum = columns.stratum.as_ref();
        let stratum =
            stratum.map(|name| code_column("stratum", name, &mut self.stratum_labels)).transpose()?;
        let mut outcomes = Vec::with_capacity(self.outcome_checks.len());
        for (name, check) in columns.outcomes.iter().chain(&columns.auxiliary).zip(&mut self.outcome_checks) {
            let values = number_column(name)?;
            check.check(&values, &place)?;
            outcomes.push(values);
        }
        let weight = columns.weight.as_ref().map(|name| number_column(name)).transpose()?;
        if let (Some(values), Some(name)) = (&weight, &columns.weight) {
            place.check_weights(name, values)?;
            self.any_weight |= values.iter().any(|value| *value > 0.0);
        }
        let mut propensity = Vec::with_capacity(columns.propensity.len());
        for part in &columns.propensity {
            let values = number_column(&part.column)?;
            place.check_probabilities(&part.column, &values)?;
            propensity.push(values.into_iter().map(|value| value as f32).collect());
        }
        let mut predictions = Vec::with_capacity(columns.predictions.len());
        for part in &columns.predictions {
            let values = number_column(&part.column)?;
            place.check_finite("prediction", &part.column, &values)?;
            predictions.push((part.outcome_idx, values));
        }
        let mut exposure = Vec::with_capacity(columns.exposure.len());
        for part in &columns.exposure {
            let values = number_column(&part.column)?;
            place.check_exposure(&part.column, &values)?;
            exposure.push(values.into_iter().map(|value| value as f32).collect());
        }
        let features =
            columns.features.iter().map(|feature| column(&feature.name)).collect::<Result<Vec<_>>>()?;
        let checked = columns.features.par_iter().zip(&features);
        let found = checked.map(|(feature, cells)| place.check_feature(&feature.name, cells));
        // The first column that is wrong, whichever thread found its own first.
        found.collect::<Vec<_>>().into_iter().collect::<Result<()>>()?;
        let populations =
            columns.populations.iter().map(|filter| filter.mask(batch)).collect::<Result<_>>()?;
        let effects = columns.effects.iter().map(|name| number_column(name)).collect::<Result<_>>()?;
        let by = columns.by.iter().map(|feature| column(&feature.name)).collect::<Result<_>>()?;
        let time = columns.time.as_ref().map(|name| column(name)).transpose()?;
        let ids = columns.ids.iter().map(|name| column(name)).collect::<Result<_>>()?;
        Ok(Batch {
            features,
            treatment,
            outcomes,
            weight,
            cluster,
            stratum,
            propensity,
            predictions,
            exposure,
            populations,
            effects,
            by,
            time,
            ids,
            rows,
        })
    }

    /// What can only be known once all rows were seen.
    fn finish(&mut self) -> Result<()> {
        if self.is_part {
            return self.outcome_checks.iter_mut().try_for_each(OutcomeCheck::finish_part);
        }
        if self.n_kept == 0 {
            return Err(nothing_left(&self.paths, self.columns.population.as_ref(), self.n_read));
        }
        for check in &mut self.outcome_checks {
            check.finish(&self.paths)?;
        }
        match &self.columns.weight {
            Some(name) if !self.any_weight => Err(all_weights_zero(&self.paths, name)),
            _ => Ok(()),
        }
    }
}

impl Iterator for RowReader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
