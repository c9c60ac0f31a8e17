//! A model's effects on the rows of a table, batch after batch.

use arrow_array::{Array, ArrayRef};

use super::chosen::Chosen;
use crate::data::{Batch, Budget, Columns, Matrix, MatrixBuilder, RowReader, Source, Table, Unseen};
use crate::effect::{ExposedRows, Scores};
use crate::model::Model;
use crate::net::{DenseRows, RowSource};
use crate::policy::{Assigner, ExposureRows};
use crate::{Progress, Result};

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

/// Effects as they are predicted.
pub(super) struct Predicted<'a> {
    model: &'a Model,
    chosen: &'a Chosen<'a>,
    /// The place of each outcome among the model's.
    outcomes: Vec<usize>,
    /// For each outcome and target a column.
    values: Vec<Vec<f64>>,
    /// The features of the last batch as numbers.
    encoded: Vec<f32>,
    /// How much the rows so far meet each context, where the model goes by it.
    pub(super) exposed: Option<ExposureRows>,
    /// Categories that training did not have.
    pub(super) unseen: Unseen,
}

impl<'a> Predicted<'a> {
    pub(super) fn new(model: &'a Model, chosen: &'a Chosen<'a>, outcomes: Vec<usize>) -> Self {
        let values = vec![Vec::new(); outcomes.len() * chosen.asked.targets.len()];
        let exposed = model.manifest().exposure.as_ref().map(|_| ExposureRows::default());
        Self { model, chosen, outcomes, values, encoded: Vec::new(), exposed, unseen: Unseen::default() }
    }

    /// Reads the rows of a table with their policies and encoded features, and scores them; `also` is given every batch.
    pub(super) fn read(
        &mut self,
        source: &Source,
        columns: &Columns,
        budget: &Budget,
        mut also: impl FnMut(&Batch) -> Result<()>,
        progress: &dyn Progress,
    ) -> Result<(Table, Matrix)> {
        let width = self.model.manifest().encoder.width();
        let mut x = MatrixBuilder::new(width, source.n_rows(), budget)?;
        let mut assigner = Assigner::new(&self.chosen.asked.policies, columns);
        let each = |table: &mut Table, batch: &Batch, reader: &RowReader| {
            table.policy.extend(assigner.assign_batch(batch, reader)?);
            self.add(&batch.features, &batch.exposure)?;
            also(batch)?;
            x.append(self.encoded.len() / width.max(1), |rows| {
                rows.copy_from_slice(&self.encoded);
                Ok(())
            })?;
            Ok(None)
        };
        let rows = Table::read(source, columns, "Scoring", each, progress);
        Ok((rows.map_err(|error| source.locate(error))?, x.finish()?))
    }

    /// Scores the next batch.
    pub(super) fn add(&mut self, features: &[ArrayRef], exposure: &[Vec<f32>]) -> Result<()> {
        let encoder = &self.model.manifest().encoder;
        let (width, n_rows) = (encoder.width(), features.first().map_or(0, Array::len));
        self.encoded.resize(n_rows * width, 0.0);
        encoder.encode_counting(features, &mut self.encoded, &mut self.unseen)?;
        let exposed = self.model.manifest().exposure.as_ref().map(|own| own.rows(exposure));
        if let (Some(all), Some(rows)) = (&mut self.exposed, &exposed) {
            all.append(rows);
        }
        let n_targets = self.chosen.asked.targets.len();
        let Some(scorer) = &self.chosen.scorer else { return Ok(()) };
        let block_rows = (BLOCK_PAIRS / n_targets).max(64);
        for (number, block) in self.encoded.chunks(block_rows * width).enumerate() {
            let x = DenseRows::new(block, width)?;
            let first = number * block_rows;
            let exposed = exposed.as_ref().map(|rows| rows.part(first, first + x.n_rows()));
            let x = ExposedRows { x: &x, exposure: exposed.as_ref() };
            let Scores { mean, .. } = scorer.score(&x, false)?;
            for (outcome, columns) in self.outcomes.iter().zip(self.values.chunks_mut(n_targets)) {
                for (target, column) in columns.iter_mut().enumerate() {
                    let own = mean[*outcome].iter().skip(target).step_by(n_targets);
                    column.extend(own.map(|effect| f64::from(*effect)));
                }
            }
        }
        Ok(())
    }

    /// Policy, outcome and effects.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, usize, &[f64])> {
        let targets = &self.chosen.asked.targets;
        self.values
            .iter()
            .enumerate()
            .map(|(place, values)| (targets[place % targets.len()], place / targets.len(), values.as_slice()))
    }
}
