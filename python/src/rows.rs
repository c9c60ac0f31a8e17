//! The rows of a table with what they got, what happened and what was predicted, as columns.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use poul::data::{Columns, Labels, RowReader, Source, numbers};
use poul::policy::{Assigner, PolicySet};
use poul::{Error, Progress, Result};

/// The table as columns.
pub(crate) struct Rows {
    pub(crate) arm: Vec<u32>,
    pub(crate) outcomes: Vec<Vec<f64>>,
    /// Columns of effects or true effects, by name.
    pub(crate) scores: BTreeMap<String, Vec<f64>>,
    pub(crate) weight: Option<Vec<f64>>,
    pub(crate) cluster: Option<Vec<u32>>,
    pub(crate) predictions: BTreeMap<usize, Vec<f64>>,
}

impl Rows {
    /// Reads the rows. The first `n_features` features are handed to `encode`, the others are columns of effects.
    pub(crate) fn read(
        source: &Source,
        columns: &Columns,
        policies: &PolicySet,
        n_features: usize,
        mut encode: impl FnMut(&[ArrayRef]) -> Result<()>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let effects = &columns.features[n_features..];
        let mut rows = Self {
            arm: Vec::new(),
            outcomes: vec![Vec::new(); columns.outcomes.len()],
            scores: effects.iter().map(|feature| (feature.name.clone(), Vec::new())).collect(),
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            predictions: BTreeMap::new(),
        };
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(policies, columns);
        progress.start(if n_features > 0 { "Scoring" } else { "Reading effects" }, "rows", source.n_rows());
        while let Some(batch) = reader.next_batch()? {
            let labels: Vec<&Labels> =
                (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
            rows.arm.extend(assigner.assign(&batch.treatment, &labels, &batch.rows)?);
            for (all, values) in rows.outcomes.iter_mut().zip(&batch.outcomes) {
                all.extend_from_slice(values);
            }
            encode(&batch.features[..n_features])?;
            for (feature, array) in effects.iter().zip(&batch.features[n_features..]) {
                let place = || format!("column `{}`", feature.name);
                let values = numbers(array.as_ref())
                    .ok_or_else(|| Error::input("effects must be numbers").at(place()))?;
                if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                    let error = Error::input("the effect is null or not finite").at(place());
                    let error = error.at(format!("row {}", batch.rows[row] + 1));
                    return Err(error
                        .hint(format!("leave such rows out: population=\"{} is not null\"", feature.name)));
                }
                rows.scores.entry(feature.name.clone()).or_default().extend(values);
            }
            if let (Some(all), Some(values)) = (&mut rows.weight, &batch.weight) {
                all.extend_from_slice(values);
            }
            if let (Some(all), Some(values)) = (&mut rows.cluster, &batch.cluster) {
                all.extend_from_slice(values);
            }
            for (outcome, values) in &batch.predictions {
                rows.predictions.entry(*outcome).or_default().extend_from_slice(values);
            }
            progress.advance(batch.n_rows() as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        progress.finish();
        Ok(rows)
    }
}
