//! An encoded table as a source of rows, wherever its rows are kept.

use super::batch::RowSource;
use crate::Error;
use crate::data::Matrix;

impl RowSource for Matrix {
    fn n_rows(&self) -> usize {
        self.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.width()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        self.copy_rows(rows, out);
    }

    fn window_rows(&self) -> Option<usize> {
        self.window_rows()
    }

    fn failure(&self) -> Option<Error> {
        self.failure()
    }
}
