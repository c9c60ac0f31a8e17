//! Rows brought to a common scale: softmax, unit length, layer normalisation.

use super::{Back, Op};
use crate::net::kernel::rowwise::{
    softmax, softmax_gradient, standard_rows, standard_rows_gradient, unit_rows, unit_rows_gradient,
};
use crate::net::layout::LayerNorm;
use crate::net::tape::{Tape, Var};

/// Rows shorter than this are not stretched to length 1.
const SHORTEST: f32 = 1e-12;
/// Added to the variance of a row.
const VARIANCE_FLOOR: f32 = 1e-5;

impl Tape<'_> {
    /// Softmax of each row.
    pub fn softmax(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        self.push(Op::Softmax { x }, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, extras| {
            extras.resize(n_rows, 0.0);
            softmax(n_cols, inputs.value(x), y, extras);
        })
    }

    /// Each row divided by its Euclidean length.
    pub fn unit_rows(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        self.push(Op::UnitRows { x }, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, extras| {
            extras.resize(n_rows, 0.0);
            unit_rows(n_cols, SHORTEST, inputs.value(x), y, extras);
        })
    }

    /// Each row less its mean, divided by its standard deviation.
    pub fn standard_rows(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        self.push(Op::StandardRows { x }, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, extras| {
            extras.resize(n_rows, 0.0);
            standard_rows(n_cols, VARIANCE_FLOOR, inputs.value(x), y, extras);
        })
    }

    /// Layer normalisation (Ba et al. 2016): standard rows, times a gain, plus a shift.
    pub fn layer_norm(&mut self, x: Var, layer: LayerNorm) -> Var {
        let (gain, shift) = (self.weight(layer.gain), self.weight(layer.shift));
        let standard = self.standard_rows(x);
        let scaled = self.mul(standard, gain);
        self.add(scaled, shift)
    }
}

impl Back<'_, '_> {
    pub(super) fn softmax(&mut self, x: Var, dy: &[f32]) {
        let y = self.output();
        if let Some((dx, n_cols)) = self.zeroed(x) {
            softmax_gradient(n_cols, y, dy, dx);
        }
    }

    pub(super) fn unit_rows(&mut self, x: Var, dy: &[f32]) {
        let (y, inverses) = (self.output(), self.extras());
        if let Some((dx, n_cols)) = self.zeroed(x) {
            unit_rows_gradient(n_cols, y, inverses, dy, dx);
        }
    }

    pub(super) fn standard_rows(&mut self, x: Var, dy: &[f32]) {
        let (y, inverses) = (self.output(), self.extras());
        if let Some((dx, n_cols)) = self.zeroed(x) {
            standard_rows_gradient(n_cols, y, inverses, dy, dx);
        }
    }
}
