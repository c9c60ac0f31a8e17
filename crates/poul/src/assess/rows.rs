//! The rows of a table with what they got, what happened and what was predicted, as columns.

use std::collections::BTreeMap;

use crate::data::{Columns, Labels, RawColumn, RowReader, Source, numbers};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result};
use arrow_array::ArrayRef;

/// The table as columns.
pub(super) struct Rows {
    pub(super) arm: Vec<u32>,
    pub(super) outcomes: Vec<Vec<f64>>,
    pub(super) scores: BTreeMap<String, Vec<f64>>,
    pub(super) weight: Option<Vec<f64>>,
    pub(super) cluster: Option<Vec<u32>>,
    pub(super) stratum: Option<Vec<u32>>,
    pub(super) stratum_labels: Labels,
    /// The user's own propensities, by column.
    pub(super) propensity: Vec<Vec<f32>>,
    /// The columns that rows are grouped by.
    pub(super) by: Vec<RawColumn>,
    /// The number of each row in its source.
    pub(super) number: Vec<u64>,
    predictions: BTreeMap<usize, Vec<f64>>,
}

impl Rows {
    /// Reads the rows. The first `n_features` features and the exposures are handed to `encode`, the last `n_by` are what rows are grouped
    /// by, those between are columns of effects.
    pub(super) fn read(
        source: &Source,
        columns: &Columns,
        policies: &PolicySet,
        n_features: usize,
        n_by: usize,
        mut encode: impl FnMut(&[ArrayRef], &[Vec<f32>]) -> Result<()>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let (effects, by) =
            columns.features[n_features..].split_at(columns.features.len() - n_features - n_by);
        let stage = if n_features > 0 { "Scoring" } else { "Reading effects" };
        let mut rows = Self {
            arm: Vec::new(),
            outcomes: vec![Vec::new(); columns.outcomes.len()],
            scores: effects.iter().map(|feature| (feature.name.clone(), Vec::new())).collect(),
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            stratum: columns.stratum.as_ref().map(|_| Vec::new()),
            stratum_labels: Labels::new(),
            propensity: vec![Vec::new(); columns.propensity.len()],
            by: by.iter().map(|feature| RawColumn::new(feature.name.as_str(), feature.kind)).collect(),
            number: Vec::new(),
            predictions: BTreeMap::new(),
        };
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(policies, columns);
        progress.start(stage, "rows", source.n_rows());
        while let Some(batch) = reader.next_batch()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let labels: Vec<&Labels> =
                (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
            rows.arm.extend(assigner.assign(&batch.treatment, &labels, &batch.rows)?);
            for (all, values) in rows.outcomes.iter_mut().zip(&batch.outcomes) {
                all.extend_from_slice(values);
            }
            encode(&batch.features[..n_features], &batch.exposure)?;
            for (feature, array) in effects.iter().zip(&batch.features[n_features..]) {
                let Some(values) = numbers(array.as_ref()) else {
                    return Err(
                        Error::input("effects must be numbers").at(format!("column `{}`", feature.name))
                    );
                };
                if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                    return Err(Error::input("the predicted effect is null or not finite")
                        .at_row(batch.rows[row])
                        .at(format!("column `{}`", feature.name))
                        .hint(format!("leave such rows out: ‹population={} is not null›", feature.name)));
                }
                if let Some(all) = rows.scores.get_mut(&feature.name) {
                    all.extend_from_slice(&values);
                }
            }
            for (column, array) in rows.by.iter_mut().zip(&batch.features[n_features + effects.len()..]) {
                column.append(array.as_ref(), None)?;
            }
            for (all, values) in rows.propensity.iter_mut().zip(&batch.propensity) {
                all.extend_from_slice(values);
            }
            if let (Some(all), Some(values)) = (&mut rows.stratum, &batch.stratum) {
                all.extend_from_slice(values);
            }
            rows.number.extend_from_slice(&batch.rows);
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
        }
        rows.stratum_labels = reader.stratum_labels().clone();
        progress.finish();
        Ok(rows)
    }

    /// How many rows each policy has.
    pub(super) fn policy_rows(&self, n_policies: usize) -> Vec<u64> {
        let mut counts = vec![0; n_policies];
        self.arm.iter().for_each(|arm| counts[*arm as usize] += 1);
        counts
    }

    pub(super) fn prediction(&self, outcome: usize) -> Option<&[f64]> {
        self.predictions.get(&outcome).map(Vec::as_slice)
    }
}
