//! Encoded rows together with how much each meets every context.

use crate::Error;
use crate::net::RowSource;
use crate::policy::ExposureRows;

/// Encoded features, and w_i(s) of each row where rows differ in it.
#[derive(Clone, Copy)]
pub struct ExposedRows<'a> {
    /// The features.
    pub x: &'a dyn RowSource,
    /// The exposures, of as many rows; none where contexts weigh the same for every row.
    pub exposure: Option<&'a ExposureRows>,
}

impl RowSource for ExposedRows<'_> {
    fn n_rows(&self) -> usize {
        self.x.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.x.n_cols()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        self.x.copy_rows(rows, out);
    }

    fn exposure(&self, row: usize) -> Option<&[f32]> {
        self.exposure.map(|exposure| exposure.row(row))
    }

    fn window_rows(&self) -> Option<usize> {
        self.x.window_rows()
    }

    fn failure(&self) -> Option<Error> {
        self.x.failure()
    }
}
