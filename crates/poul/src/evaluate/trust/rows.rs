//! An evenly spaced sample of a table's rows, encoded by a model.

use std::ops::Deref;

use crate::data::{Batch, Columns, Encoder, RowReader, Source, Table};
use crate::effect::TrainingData;
use crate::net::{DenseRows, RowSource};
use crate::nuisance::PropensityOrigin;
use crate::policy::{Assigner, Exposure, ExposureRows, PolicySet};
use crate::{Progress, Result};

/// Most rows of a sample.
const MOST_ROWS: usize = 20_000;
/// Most numbers in a table of rows × features or rows × policies.
const MOST_CELLS: usize = 1 << 26;

/// Some rows of a table.
pub(crate) struct SampleRows {
    /// Everything that has a role, with the policy of each row.
    pub table: Table,
    /// Encoded features, row after row.
    pub x: Vec<f32>,
    /// How many numbers an encoded row has.
    pub width: usize,
    exposure: Option<ExposureRows>,
}

impl SampleRows {
    /// Reads a table and keeps at most 20,000 rows, fewer where they are wide, or where policies are many and their
    /// chances differ by row.
    ///
    /// The features of `columns` must begin with those of `encoder`: see [`Encoder::columns_for`].
    pub(crate) fn read(
        source: &Source,
        columns: &Columns,
        encoder: &Encoder,
        exposure: Option<&Exposure>,
        policies: &PolicySet,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let width = encoder.width();
        // Where π differs by row it is a table of rows × policies.
        let origin = PropensityOrigin::of(columns.design, !columns.propensity.is_empty());
        let is_table = matches!(origin, PropensityOrigin::Columns | PropensityOrigin::Learned);
        let widest = width.max(if is_table { policies.len() } else { 1 }).max(1);
        let most = MOST_ROWS.min(MOST_CELLS / widest).max(1);
        let n_features = encoder.features().count();
        let mut assigner = Assigner::new(policies, columns);
        let (mut n_seen, mut stride) = (0, 1);
        let (mut x, mut encoded) = (Vec::new(), Vec::new());
        let each = |table: &mut Table, batch: &Batch, reader: &RowReader| {
            while table.n_rows() > 2 * most {
                stride *= 2;
                let even: Vec<u32> = (0..table.n_rows() as u32).step_by(2).collect();
                keep(table, &mut x, width, &even);
            }
            let policy = assigner.assign_batch(batch, reader)?;
            let is_kept = |row: &u32| (n_seen + *row as usize).is_multiple_of(stride);
            let kept: Vec<u32> = (0..batch.n_rows() as u32).filter(is_kept).collect();
            n_seen += batch.n_rows();
            if !kept.is_empty() {
                encoded.resize(batch.n_rows() * width, 0.0);
                encoder.encode(&batch.features[..n_features], &mut encoded)?;
            }
            for row in kept.iter().map(|row| *row as usize) {
                x.extend_from_slice(&encoded[row * width..][..width]);
                table.policy.push(policy[row]);
            }
            Ok(Some(kept))
        };
        let mut table = Table::read(source, columns, "Sampling rows", each, progress)?;
        while table.n_rows() > 2 * most {
            let even: Vec<u32> = (0..table.n_rows() as u32).step_by(2).collect();
            keep(&mut table, &mut x, width, &even);
        }
        let n_kept = table.n_rows();
        if n_kept > most {
            let spaced: Vec<u32> = (0..most).map(|i| (i * n_kept / most) as u32).collect();
            keep(&mut table, &mut x, width, &spaced);
        }
        let exposure = exposure.map(|exposure| exposure.rows(&table.exposure));
        Ok(Self { table, x, width, exposure })
    }

    /// Encoded features as a source of rows.
    pub(crate) fn features(&self) -> Result<DenseRows<'_>> {
        DenseRows::new(&self.x, self.width)
    }

    /// How much each row meets every context, where rows have exposures of their own.
    pub(crate) fn exposure(&self) -> Option<&ExposureRows> {
        self.exposure.as_ref()
    }

    /// The rows in the form that learners take them.
    pub(crate) fn training_data<'a>(
        &'a self,
        x: &'a dyn RowSource,
        policies: &'a PolicySet,
        control: Option<usize>,
    ) -> Result<TrainingData<'a>> {
        TrainingData::of(&self.table, x, policies, &self.table.policy, self.table.design, control)
    }
}

impl Deref for SampleRows {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

fn keep(table: &mut Table, x: &mut Vec<f32>, width: usize, rows: &[u32]) {
    *x = rows.iter().flat_map(|row| x[*row as usize * width..][..width].to_vec()).collect();
    *table = table.take(rows);
}
