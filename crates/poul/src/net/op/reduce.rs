//! Sums and means.

use super::{Back, Op};
use crate::net::kernel::elementwise::add;
use crate::net::kernel::rowwise::{col_sums, row_sums};
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// The sum of all elements: 1 × 1.
    pub fn sum(&mut self, x: Var) -> Var {
        self.scaled_sum(x, 1.0)
    }

    /// The mean of all elements: 1 × 1.
    pub fn mean(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        self.scaled_sum(x, 1.0 / (n_rows * n_cols).max(1) as f32)
    }

    /// The sum of each row: a column.
    pub fn row_sums(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        self.push(Op::RowSums { x }, (n_rows, 1), self.tracks(&[x]), |inputs, y, _| {
            row_sums(n_cols, inputs.value(x), y);
        })
    }

    /// The sum of each column: a row.
    pub fn col_sums(&mut self, x: Var) -> Var {
        let (_, n_cols) = self.shape(x);
        self.push(Op::ColSums { x }, (1, n_cols), self.tracks(&[x]), |inputs, y, _| {
            col_sums(inputs.value(x), y, false);
        })
    }

    fn scaled_sum(&mut self, x: Var, factor: f32) -> Var {
        self.push(Op::Sum { x, factor }, (1, 1), self.tracks(&[x]), |inputs, y, _| {
            let total: f64 = inputs.value(x).iter().map(|x| f64::from(*x)).sum();
            y[0] = (total * f64::from(factor)) as f32;
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn sum(&mut self, x: Var, factor: f32, dy: &[f32]) {
        if let Some((dx, _)) = self.zeroed(x) {
            let share = factor * dy[0];
            dx.iter_mut().for_each(|dx| *dx += share);
        }
    }

    pub(super) fn row_sums(&mut self, x: Var, dy: &[f32]) {
        if let Some((dx, n_cols)) = self.zeroed(x) {
            for (dx, dy) in dx.chunks_exact_mut(n_cols).zip(dy) {
                dx.iter_mut().for_each(|dx| *dx += dy);
            }
        }
    }

    pub(super) fn col_sums(&mut self, x: Var, dy: &[f32]) {
        if let Some((dx, n_cols)) = self.zeroed(x) {
            dx.chunks_exact_mut(n_cols).for_each(|dx| add(dy, dx));
        }
    }
}
