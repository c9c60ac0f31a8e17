//! Rows taken, mixed, multiplied and rearranged; among them z(t) = Σ α_t(s, a)·φ(s, a) (paper, eq. 2).

use std::sync::Arc;

use super::{Back, Op};
use crate::net::kernel::elementwise::{add, add_scaled};
use crate::net::kernel::rowwise::{add_scaled_rows, row_dots};
use crate::net::sparse::SparseRows;
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// Rows of x by number: `tape.gather(h, batch.pick(&policy))` is h of each row's policy.
    pub fn gather(&mut self, x: Var, rows: impl IntoIterator<Item = u32>) -> Var {
        let (n_source, n_cols) = self.shape(x);
        let (top, n_rows) = self.stage_indices(rows);
        if !self.require(top.is_none_or(|top| (top as usize) < n_source), || {
            format!("row {} of a matrix with {n_source} rows", top.unwrap_or_default())
        }) {
            return self.nothing();
        }
        let index = self.graph.nodes.len();
        self.push(Op::Gather { x }, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, _| {
            let x = inputs.value(x);
            for (y, row) in y.chunks_exact_mut(n_cols).zip(&inputs.graph.indices[index]) {
                y.copy_from_slice(&x[*row as usize * n_cols..][..n_cols]);
            }
        })
    }

    /// Mixtures of the rows of `table`: each sparse row weights them.
    pub fn mix(&mut self, rows: &Arc<SparseRows>, table: Var) -> Var {
        self.mixture(rows, table, None::<[u32; 0]>)
    }

    /// [`mix`](Self::mix) for some of the sparse rows, by number.
    pub fn mix_selected(
        &mut self,
        rows: &Arc<SparseRows>,
        table: Var,
        selected: impl IntoIterator<Item = u32>,
    ) -> Var {
        self.mixture(rows, table, Some(selected))
    }

    fn mixture(
        &mut self,
        rows: &Arc<SparseRows>,
        table: Var,
        selected: Option<impl IntoIterator<Item = u32>>,
    ) -> Var {
        let (n_table, n_cols) = self.shape(table);
        let is_selected = selected.is_some();
        let (top, n_selected) =
            selected.map_or((None, rows.n_rows()), |selected| self.stage_indices(selected));
        let fits = rows.n_cols() == n_table && top.is_none_or(|top| (top as usize) < rows.n_rows());
        if !self.require(fits, || {
            let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
            format!("mixtures by {n_rows} × {n_cols} of a table with {n_table} rows")
        }) {
            return self.nothing();
        }
        let index = self.graph.nodes.len();
        let op = Op::Mix { rows: Arc::clone(rows), table, selected: is_selected };
        self.push(op, (n_selected, n_cols), self.tracks(&[table]), |inputs, y, _| {
            let (table, indices) = (inputs.value(table), &inputs.graph.indices[index]);
            y.fill(0.0);
            for (i, y) in y.chunks_exact_mut(n_cols).enumerate() {
                let row_idx = if is_selected { indices[i] as usize } else { i };
                for (column, value) in rows.row(row_idx) {
                    add_scaled(value, &table[column * n_cols..][..n_cols], y);
                }
            }
        })
    }

    /// The dot product of each row of a with the same row of b: a column.
    pub fn row_dot(&mut self, a: Var, b: Var) -> Var {
        let (shape, shape_b) = (self.shape(a), self.shape(b));
        if !self.require(shape == shape_b, || format!("row products of {shape:?} and {shape_b:?}")) {
            return self.nothing();
        }
        self.push(Op::RowDot { a, b }, (shape.0, 1), self.tracks(&[a, b]), |inputs, y, _| {
            row_dots(shape.1, inputs.value(a), inputs.value(b), y);
        })
    }

    /// Matrices side by side.
    pub fn concat(&mut self, parts: &[Var]) -> Var {
        let n_rows = parts.first().map_or(0, |part| self.shape(*part).0);
        let even = !parts.is_empty() && parts.iter().all(|part| self.shape(*part).0 == n_rows);
        if !self.require(even, || "matrices of different heights side by side".to_owned()) {
            return self.nothing();
        }
        let n_cols = parts.iter().map(|part| self.shape(*part).1).sum();
        self.stage_indices(parts.iter().map(|part| part.index() as u32));
        self.push(Op::Concat, (n_rows, n_cols), self.tracks(parts), |inputs, y, _| {
            let mut first = 0;
            for part in parts {
                let width = inputs.node(*part).n_cols;
                for (y, x) in y.chunks_exact_mut(n_cols).zip(inputs.value(*part).chunks_exact(width)) {
                    y[first..first + width].copy_from_slice(x);
                }
                first += width;
            }
        })
    }

    /// The columns first, first + 1, … of x, `width` of them.
    pub fn slice_cols(&mut self, x: Var, first: usize, width: usize) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        if !self.require(first + width <= n_cols, || {
            format!("columns {first} to {} of a matrix with {n_cols}", first + width)
        }) {
            return self.nothing();
        }
        self.push(Op::SliceCols { x, first }, (n_rows, width), self.tracks(&[x]), |inputs, y, _| {
            for (y, x) in y.chunks_exact_mut(width).zip(inputs.value(x).chunks_exact(n_cols)) {
                y.copy_from_slice(&x[first..first + width]);
            }
        })
    }

    /// Rows for columns.
    pub fn transpose(&mut self, x: Var) -> Var {
        let (n_rows, n_cols) = self.shape(x);
        if !self.require(n_rows > 0, || "the transpose of a matrix without rows".to_owned()) {
            return self.nothing();
        }
        self.push(Op::Transpose { x }, (n_cols, n_rows), self.tracks(&[x]), |inputs, y, _| {
            for (i, x) in inputs.value(x).chunks_exact(n_cols).enumerate() {
                x.iter().enumerate().for_each(|(j, x)| y[j * n_rows + i] = *x);
            }
        })
    }

    /// The same values, row by row, in another shape.
    pub fn reshape(&mut self, x: Var, n_rows: usize, n_cols: usize) -> Var {
        let shape = self.shape(x);
        if !self.require(shape.0 * shape.1 == n_rows * n_cols, || {
            format!("a matrix of {} × {} as {n_rows} × {n_cols}", shape.0, shape.1)
        }) {
            return self.nothing();
        }
        self.push(Op::Reshape { x }, (n_rows, n_cols), self.tracks(&[x]), |inputs, y, _| {
            y.copy_from_slice(inputs.value(x));
        })
    }
}

impl Back<'_, '_> {
    pub(super) fn gather(&mut self, x: Var, dy: &[f32]) {
        let rows = self.indices();
        if let Some((dx, n_cols)) = self.zeroed(x) {
            for (dy, row) in dy.chunks_exact(n_cols).zip(rows) {
                add(dy, &mut dx[*row as usize * n_cols..][..n_cols]);
            }
        }
    }

    pub(super) fn mix(&mut self, rows: &SparseRows, table: Var, selected: bool, dy: &[f32]) {
        let indices = self.indices();
        if let Some((dtable, n_cols)) = self.zeroed(table) {
            for (i, dy) in dy.chunks_exact(n_cols).enumerate() {
                let row_idx = if selected { indices[i] as usize } else { i };
                for (column, value) in rows.row(row_idx) {
                    add_scaled(value, dy, &mut dtable[column * n_cols..][..n_cols]);
                }
            }
        }
    }

    pub(super) fn row_dot(&mut self, a: Var, b: Var, dy: &[f32]) {
        let (a_values, b_values) = (self.value(a), self.value(b));
        if let Some((da, n_cols)) = self.zeroed(a) {
            add_scaled_rows(n_cols, dy, b_values, da);
        }
        if let Some((db, n_cols)) = self.zeroed(b) {
            add_scaled_rows(n_cols, dy, a_values, db);
        }
    }

    pub(super) fn concat(&mut self, dy: &[f32]) {
        let n_cols = self.inputs.graph.nodes[self.index].n_cols;
        let mut first = 0;
        for part in self.indices() {
            let part = Var::from_index(*part);
            let width = self.inputs.node(part).n_cols;
            if let Some((dx, _)) = self.zeroed(part) {
                for (dx, dy) in dx.chunks_exact_mut(width).zip(dy.chunks_exact(n_cols)) {
                    add(&dy[first..first + width], dx);
                }
            }
            first += width;
        }
    }

    pub(super) fn slice_cols(&mut self, x: Var, first: usize, dy: &[f32]) {
        let width = self.inputs.graph.nodes[self.index].n_cols;
        if let Some((dx, n_cols)) = self.zeroed(x) {
            for (dx, dy) in dx.chunks_exact_mut(n_cols).zip(dy.chunks_exact(width)) {
                add(dy, &mut dx[first..first + width]);
            }
        }
    }

    pub(super) fn transpose(&mut self, x: Var, dy: &[f32]) {
        if let Some((dx, n_cols)) = self.zeroed(x) {
            let n_rows = dy.len() / n_cols;
            for (i, dx) in dx.chunks_exact_mut(n_cols).enumerate() {
                dx.iter_mut().enumerate().for_each(|(j, dx)| *dx += dy[j * n_rows + i]);
            }
        }
    }

    pub(super) fn reshape(&mut self, x: Var, dy: &[f32]) {
        if let Some((dx, _)) = self.zeroed(x) {
            add(dy, dx);
        }
    }
}
