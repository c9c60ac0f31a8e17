//! The rows of a population in the form that training and evaluation take them.

use arrow_array::ArrayRef;

use super::budget::Budget;
use super::encoder::{Encoder, ValidEncoderParams};
use super::labels::Labels;
use super::matrix::{Matrix, MatrixBuilder};
use super::reader::{Batch, RowReader};
use super::roles::{Columns, Propensity};
use super::source::Source;
use crate::{Error, Progress, Result};

/// Encoded features and everything else that has a role, row by row in the order of the source.
///
/// Features may be on disk (see [`Matrix`]); the other columns are in memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dataset {
    /// The number of each row in the source, from 0.
    pub rows: Vec<u64>,
    /// Encoded features.
    pub x: Matrix,
    /// The names of the treatment columns.
    pub treatment_names: Vec<String>,
    /// For each treatment column, codes into `treatment_labels`.
    pub treatment: Vec<Vec<u32>>,
    /// For each treatment column, its labels in the order of their first appearance.
    pub treatment_labels: Vec<Labels>,
    /// The names of the outcomes.
    pub outcome_names: Vec<String>,
    /// For each outcome, its values, all finite.
    pub outcomes: Vec<Vec<f64>>,
    /// The names of the outcomes that are only there to teach.
    pub auxiliary_names: Vec<String>,
    /// For each of them, its values, all finite.
    pub auxiliary: Vec<Vec<f64>>,
    /// Weights, finite and ≥ 0, not all 0.
    pub weight: Option<Vec<f64>>,
    /// Codes into `cluster_labels`.
    pub cluster: Option<Vec<u32>>,
    /// Clusters in the order of their first appearance.
    pub cluster_labels: Labels,
    /// Codes into `stratum_labels`.
    pub stratum: Option<Vec<u32>>,
    /// Strata in the order of their first appearance.
    pub stratum_labels: Labels,
    /// The propensity columns and the policies they are of.
    pub propensity_columns: Vec<Propensity>,
    /// For each propensity column, its probabilities.
    pub propensity: Vec<Vec<f32>>,
    /// The user's own predictions: the outcome's index and the values.
    pub predictions: Vec<(usize, Vec<f64>)>,
    /// How much rows meet contexts: for each exposure column, its numbers.
    pub exposure: Vec<Vec<f32>>,
    /// Parts of the rows by expression, and whether each row is part of them.
    pub populations: Vec<(String, Vec<bool>)>,
    /// The time column, in the pieces in which it was read.
    pub time: Vec<ArrayRef>,
    /// For each id column, its pieces.
    pub ids: Vec<Vec<ArrayRef>>,
}

impl Dataset {
    /// Reads and encodes the rows of the population in one pass.
    ///
    /// The features of `columns` must be those of `encoder`: see [`Encoder::columns_for`].
    pub fn read(
        source: &Source,
        columns: &Columns,
        encoder: &Encoder,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Self> {
        if encoder.features().ne(&columns.features) {
            return Err(Error::other("the columns' features are not the encoder's"));
        }
        let fingerprint = source.fingerprint()?;
        let mut reader = RowReader::new(source, columns)?;
        let mut x = MatrixBuilder::new(encoder.width(), source.n_rows(), budget)?;
        let mut parts = Parts::new(columns);
        progress.start("Encoding features", "rows", source.n_rows());
        let mut n_reported = 0;
        while let Some(batch) = reader.next_batch()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            x.append(batch.n_rows(), |out| encoder.encode(&batch.features, out))?;
            parts.append(batch);
            progress.advance(reader.n_read() - n_reported);
            n_reported = reader.n_read();
        }
        progress.finish();
        unchanged(source, &fingerprint)?;
        let (treatment_labels, cluster_labels, stratum_labels) = reader.into_labels();
        let auxiliary = parts.outcomes.split_off(columns.outcomes.len());
        Ok(Self {
            rows: parts.rows,
            x: x.finish()?,
            treatment_names: columns.treatment.clone(),
            treatment: parts.treatment,
            treatment_labels,
            outcome_names: columns.outcomes.clone(),
            outcomes: parts.outcomes,
            auxiliary_names: columns.auxiliary.clone(),
            auxiliary,
            weight: parts.weight,
            cluster: parts.cluster,
            cluster_labels,
            stratum: parts.stratum,
            stratum_labels,
            propensity_columns: columns.propensity.clone(),
            propensity: parts.propensity,
            predictions: parts.predictions,
            exposure: parts.exposure,
            populations: parts.populations,
            time: parts.time,
            ids: parts.ids,
        })
    }

    /// Fits an encoder in a first pass and encodes the rows in a second.
    pub fn read_and_fit(
        source: &Source,
        columns: &Columns,
        params: &ValidEncoderParams,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<(Self, Encoder)> {
        let fingerprint = source.fingerprint()?;
        let encoder = Encoder::fit(source, columns, params, progress)?;
        unchanged(source, &fingerprint)?;
        budget.require(source.n_rows().unwrap_or(0), encoder.width())?;
        encoder.notes().iter().for_each(|note| progress.warn(note));
        let dataset = Self::read(source, columns, &encoder, budget, progress)?;
        Ok((dataset, encoder))
    }

    /// How many rows it has.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }
}

/// Two passes over a table that is being written would not see the same rows.
fn unchanged(source: &Source, fingerprint: &str) -> Result<()> {
    if source.fingerprint()? == fingerprint {
        return Ok(());
    }
    Err(Error::input("the data changed while they were read").hint("run again once they are written"))
}

/// The columns other than features, as they grow.
struct Parts {
    rows: Vec<u64>,
    treatment: Vec<Vec<u32>>,
    outcomes: Vec<Vec<f64>>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
    stratum: Option<Vec<u32>>,
    propensity: Vec<Vec<f32>>,
    predictions: Vec<(usize, Vec<f64>)>,
    exposure: Vec<Vec<f32>>,
    populations: Vec<(String, Vec<bool>)>,
    time: Vec<ArrayRef>,
    ids: Vec<Vec<ArrayRef>>,
}

impl Parts {
    fn new(columns: &Columns) -> Self {
        let predictions = columns.predictions.iter().map(|prediction| (prediction.outcome_idx, Vec::new()));
        let populations = columns.populations.iter().map(|filter| (filter.text().to_owned(), Vec::new()));
        Self {
            rows: Vec::new(),
            treatment: vec![Vec::new(); columns.treatment.len()],
            outcomes: vec![Vec::new(); columns.outcomes.len() + columns.auxiliary.len()],
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            stratum: columns.stratum.as_ref().map(|_| Vec::new()),
            propensity: vec![Vec::new(); columns.propensity.len()],
            predictions: predictions.collect(),
            exposure: vec![Vec::new(); columns.exposure.len()],
            populations: populations.collect(),
            time: Vec::new(),
            ids: vec![Vec::new(); columns.ids.len()],
        }
    }

    fn append(&mut self, batch: Batch) {
        fn extend<T>(whole: &mut Option<Vec<T>>, part: Option<Vec<T>>) {
            if let (Some(whole), Some(part)) = (whole, part) {
                whole.extend(part);
            }
        }
        fn extend_each<T>(whole: &mut [Vec<T>], parts: Vec<Vec<T>>) {
            whole.iter_mut().zip(parts).for_each(|(whole, part)| whole.extend(part));
        }
        self.rows.extend(batch.rows);
        extend_each(&mut self.treatment, batch.treatment);
        extend_each(&mut self.outcomes, batch.outcomes);
        extend_each(&mut self.propensity, batch.propensity);
        extend_each(&mut self.exposure, batch.exposure);
        extend(&mut self.weight, batch.weight);
        extend(&mut self.cluster, batch.cluster);
        extend(&mut self.stratum, batch.stratum);
        for ((_, whole), (_, part)) in self.predictions.iter_mut().zip(batch.predictions) {
            whole.extend(part);
        }
        for ((_, whole), part) in self.populations.iter_mut().zip(batch.populations) {
            whole.extend(part);
        }
        self.time.extend(batch.time);
        self.ids.iter_mut().zip(batch.ids).for_each(|(whole, part)| whole.push(part));
    }
}
