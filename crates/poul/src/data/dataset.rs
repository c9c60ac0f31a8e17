//! The rows of a population in the form that training and evaluation take them.

use std::ops::Deref;

use super::budget::Budget;
use super::encoder::{Encoder, ValidEncoderParams};
use super::matrix::{Matrix, MatrixBuilder};
use super::reader::{Batch, RowReader};
use super::roles::Columns;
use super::source::Source;
use super::table::Table;
use crate::{Error, Progress, Result};

/// Encoded features and everything else that has a role, row by row in the order of the source.
///
/// Features may be on disk (see [`Matrix`]); the other columns are in memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dataset {
    /// Encoded features.
    pub x: Matrix,
    /// Everything else.
    pub table: Table,
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
        source.fingerprint()?;
        let mut x = MatrixBuilder::new(encoder.width(), source.n_rows(), budget)?;
        let encode = |_: &mut Table, batch: &Batch, _: &RowReader| {
            x.append(batch.n_rows(), |out| encoder.encode(&batch.features, out))?;
            Ok(None)
        };
        let table = Table::read(source, columns, "Encoding features", encode, progress)?;
        source.require_unchanged()?;
        Ok(Self { x: x.finish()?, table })
    }

    /// Fits an encoder in a first pass and encodes the rows in a second.
    pub fn read_and_fit(
        source: &Source,
        columns: &Columns,
        params: &ValidEncoderParams,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<(Self, Encoder)> {
        // Two passes over a table that is being written would not see the same rows.
        source.fingerprint()?;
        let encoder = Encoder::fit(source, columns, params, progress)?;
        source.require_unchanged()?;
        budget.require(source.n_rows().unwrap_or(0), encoder.width())?;
        encoder.notes().iter().for_each(|note| progress.warn(note));
        let dataset = Self::read(source, columns, &encoder, budget, progress)?;
        Ok((dataset, encoder))
    }
}

impl Deref for Dataset {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
