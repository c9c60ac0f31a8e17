//! An evenly spaced sample of a table's rows, encoded by a model, with everything that has a role.

use std::sync::Arc;

use crate::data::{Columns, Design, Encoder, Labels, Propensity, RowReader, Source};
use crate::effect::{GivenPropensity, OutcomeColumn, TrainingData};
use crate::net::{DenseRows, RowSource};
use crate::policy::{Assigner, Exposure, ExposureRows, PolicySet};
use crate::{Error, Kind, Progress, Result};

/// Most rows of a sample.
const MOST_ROWS: usize = 20_000;
/// Most numbers in a table of rows × features or rows × policies.
const MOST_CELLS: usize = 1 << 26;

/// Some rows of a table.
pub struct SampleRows {
    /// The number of each row in the source, from 0.
    pub rows: Vec<u64>,
    /// Encoded features, row after row.
    pub x: Vec<f32>,
    /// How many numbers an encoded row has.
    pub width: usize,
    /// The policy of each row.
    pub policy: Vec<u32>,
    /// Sample weights.
    pub weight: Option<Vec<f64>>,
    outcome_names: Vec<String>,
    outcomes: Vec<Vec<f64>>,
    predictions: Vec<(usize, Vec<f64>)>,
    cluster: Option<Vec<u32>>,
    stratum: Option<Vec<u32>>,
    stratum_labels: Vec<Arc<str>>,
    propensity_columns: Vec<Propensity>,
    propensity: Vec<Vec<f32>>,
    populations: Vec<(String, Vec<bool>)>,
    exposure: Option<ExposureRows>,
    design: Design,
}

impl SampleRows {
    /// Reads a table and keeps at most 20,000 rows, fewer where they are wide, or where policies are many and their
    /// chances differ by row.
    ///
    /// The features of `columns` must begin with those of `encoder`: see [`Encoder::columns_for`].
    pub fn read(
        source: &Source,
        columns: &Columns,
        encoder: &Encoder,
        exposure: Option<&Exposure>,
        policies: &PolicySet,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let width = encoder.width();
        // Where π differs by row it is a table of rows × policies.
        let is_table = columns.design == Design::Observational || !columns.propensity.is_empty();
        let widest = width.max(if is_table { policies.len() } else { 1 }).max(1);
        let most = MOST_ROWS.min(MOST_CELLS / widest).max(1);
        let n_features = encoder.features().count();
        let mut sample = Self::empty(columns, width);
        sample.exposure = exposure.map(|_| ExposureRows::default());
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(policies, columns);
        let (mut n_seen, mut stride) = (0, 1);
        let mut encoded = Vec::new();
        progress.start("Sampling rows", "rows", source.n_rows());
        while let Some(batch) = reader.next_batch()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let labels: Vec<&Labels> =
                (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
            let policy = assigner.assign(&batch.treatment, &labels, &batch.rows)?;
            let kept: Vec<usize> =
                (0..batch.n_rows()).filter(|row| (n_seen + row).is_multiple_of(stride)).collect();
            n_seen += batch.n_rows();
            progress.advance(batch.n_rows() as u64);
            if kept.is_empty() {
                continue;
            }
            encoded.resize(batch.n_rows() * width, 0.0);
            encoder.encode(&batch.features[..n_features], &mut encoded)?;
            kept.iter().for_each(|row| sample.x.extend_from_slice(&encoded[row * width..][..width]));
            append(&mut sample.rows, &batch.rows, &kept);
            append(&mut sample.policy, &policy, &kept);
            append_all(&mut sample.outcomes, &batch.outcomes, &kept);
            append_all(&mut sample.propensity, &batch.propensity, &kept);
            for ((_, all), (_, values)) in sample.predictions.iter_mut().zip(&batch.predictions) {
                append(all, values, &kept);
            }
            for ((_, all), values) in sample.populations.iter_mut().zip(&batch.populations) {
                append(all, values, &kept);
            }
            if let (Some(exposure), Some(all)) = (exposure, &mut sample.exposure) {
                all.append(&exposure.rows(&batch.exposure).some(&kept));
            }
            append_optional(&mut sample.weight, &batch.weight, &kept);
            append_optional(&mut sample.cluster, &batch.cluster, &kept);
            append_optional(&mut sample.stratum, &batch.stratum, &kept);
            while sample.rows.len() > 2 * most {
                stride *= 2;
                let even: Vec<usize> = (0..sample.rows.len()).step_by(2).collect();
                sample.keep(&even);
            }
        }
        progress.finish();
        let n_kept = sample.rows.len();
        if n_kept > most {
            sample.keep(&(0..most).map(|i| i * n_kept / most).collect::<Vec<_>>());
        }
        let (_, _, strata) = reader.into_labels();
        sample.stratum_labels = strata.names().to_vec();
        Ok(sample)
    }

    fn empty(columns: &Columns, width: usize) -> Self {
        let populations = columns.populations.iter().map(|filter| (filter.text().to_owned(), Vec::new()));
        Self {
            rows: Vec::new(),
            x: Vec::new(),
            width,
            policy: Vec::new(),
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            outcome_names: columns.outcomes.clone(),
            outcomes: vec![Vec::new(); columns.outcomes.len()],
            predictions: columns.predictions.iter().map(|own| (own.outcome_idx, Vec::new())).collect(),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            stratum: columns.stratum.as_ref().map(|_| Vec::new()),
            stratum_labels: Vec::new(),
            propensity_columns: columns.propensity.clone(),
            propensity: vec![Vec::new(); columns.propensity.len()],
            populations: populations.collect(),
            exposure: None,
            design: columns.design,
        }
    }

    fn keep(&mut self, rows: &[usize]) {
        let width = self.width;
        self.x = rows.iter().flat_map(|row| self.x[row * width..][..width].to_vec()).collect();
        pick(&mut self.rows, rows);
        pick(&mut self.policy, rows);
        self.outcomes.iter_mut().for_each(|values| pick(values, rows));
        self.propensity.iter_mut().for_each(|values| pick(values, rows));
        self.predictions.iter_mut().for_each(|(_, values)| pick(values, rows));
        self.populations.iter_mut().for_each(|(_, values)| pick(values, rows));
        self.exposure = self.exposure.take().map(|exposure| exposure.some(rows));
        self.weight.iter_mut().for_each(|values| pick(values, rows));
        self.cluster.iter_mut().for_each(|values| pick(values, rows));
        self.stratum.iter_mut().for_each(|values| pick(values, rows));
    }

    /// Encoded features as a source of rows.
    pub fn features(&self) -> Result<DenseRows<'_>> {
        DenseRows::new(&self.x, self.width)
    }

    /// How much each row meets every context, where rows have exposures of their own.
    pub fn exposure(&self) -> Option<&ExposureRows> {
        self.exposure.as_ref()
    }

    /// The rows in the form that learners take them.
    pub fn training_data<'a>(
        &'a self,
        x: &'a dyn RowSource,
        policies: &'a PolicySet,
        control: Option<usize>,
    ) -> Result<TrainingData<'a>> {
        let prediction = |outcome: usize| {
            let own = self.predictions.iter().find(|(of, _)| *of == outcome);
            own.map(|(_, values)| values.as_slice())
        };
        let outcomes = self.outcome_names.iter().zip(&self.outcomes).enumerate();
        let outcomes =
            outcomes.map(|(idx, (name, values))| OutcomeColumn { name, values, prediction: prediction(idx) });
        let mut data = TrainingData::new(x, policies, &self.policy, outcomes.collect());
        for (column, values) in self.propensity_columns.iter().zip(&self.propensity) {
            let policy = policies.index(&column.policy).ok_or_else(|| {
                let known = policies.names().iter().map(String::as_str);
                Error::unknown(Kind::Input, "policy", &column.policy, "policies", known)
                    .at(format!("propensity column `{}`", column.column))
            })?;
            data.propensity.push(GivenPropensity { policy, column: &column.column, values });
        }
        data.weight = self.weight.as_deref();
        data.cluster = self.cluster.as_deref();
        data.stratum = self.stratum.as_deref();
        data.stratum_labels = &self.stratum_labels;
        data.populations =
            self.populations.iter().map(|(text, rows)| (text.as_str(), rows.as_slice())).collect();
        (data.design, data.control, data.rows) = (self.design, control, Some(self.rows.as_slice()));
        Ok(data)
    }
}

fn append<T: Copy>(all: &mut Vec<T>, values: &[T], rows: &[usize]) {
    all.extend(rows.iter().map(|row| values[*row]));
}

fn append_all<T: Copy>(all: &mut [Vec<T>], values: &[Vec<T>], rows: &[usize]) {
    all.iter_mut().zip(values).for_each(|(all, values)| append(all, values, rows));
}

fn append_optional<T: Copy>(all: &mut Option<Vec<T>>, values: &Option<Vec<T>>, rows: &[usize]) {
    if let (Some(all), Some(values)) = (all, values) {
        append(all, values, rows);
    }
}

fn pick<T: Copy>(values: &mut Vec<T>, rows: &[usize]) {
    *values = rows.iter().map(|row| values[*row]).collect();
}
