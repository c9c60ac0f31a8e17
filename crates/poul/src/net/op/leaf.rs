//! Where a tape begins: features, constants, weights, and what the shared part has computed.

use super::Op;
use crate::net::layout::Weight;
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// The features of the rows at hand, as the row source gives them.
    pub fn features(&mut self) -> Var {
        let (n_values, n_cols) = (self.setting.features.len(), self.setting.n_features);
        if !self.require(n_cols > 0, || "this part of the network has no features".to_owned()) {
            return self.nothing();
        }
        self.push_bare(Op::Features, (n_values / n_cols, n_cols), false)
    }

    /// Matrix `number` of those that the shared part handed over with [`share`](Self::share).
    pub fn shared(&mut self, number: usize) -> Var {
        let shape = self.setting.shared.and_then(|shared| {
            let node = &shared.graph.nodes[shared.graph.shared.get(number)?.index()];
            Some((node.n_rows, node.n_cols, node.tracked))
        });
        match shape {
            Some((n_rows, n_cols, tracked)) => self.push_bare(Op::Shared(number), (n_rows, n_cols), tracked),
            None => {
                self.fail(format!("the shared part has no matrix number {number}"));
                self.nothing()
            }
        }
    }

    /// A matrix of weights.
    pub fn weight(&mut self, weight: Weight) -> Var {
        match self.setting.layout.segments().get(weight.0) {
            Some(segment) => self.push_bare(Op::Weight(weight), (segment.n_rows, segment.n_cols), true),
            None => {
                self.fail("a weight of another network");
                self.nothing()
            }
        }
    }

    /// A constant matrix, given row by row.
    pub fn constant(&mut self, n_rows: usize, n_cols: usize, values: &[f32]) -> Var {
        if !self.require(values.len() == n_rows * n_cols, || {
            format!("{} values for a constant of {n_rows} × {n_cols}", values.len())
        }) {
            return self.nothing();
        }
        self.push(Op::Constant, (n_rows, n_cols), false, |_, y, _| y.copy_from_slice(values))
    }

    /// A constant column, one number per row; `batch.pick(&outcome)` gives those of a batch.
    pub fn column(&mut self, values: impl IntoIterator<Item = f32>) -> Var {
        let n_rows = self.stage_values(values);
        self.push_bare(Op::Constant, (n_rows, 1), false)
    }

    /// A constant matrix of the chosen rows of a row-major table with `n_cols` columns.
    pub(crate) fn table_rows(&mut self, table: &[f32], n_cols: usize, rows: &[u32]) -> Var {
        let n_table = table.len() / n_cols.max(1);
        if !self.require(rows.iter().all(|row| (*row as usize) < n_table), || {
            format!("a row beyond the {n_table} of a table")
        }) {
            return self.nothing();
        }
        self.push(Op::Constant, (rows.len(), n_cols), false, |_, y, _| {
            for (y, row) in y.chunks_exact_mut(n_cols).zip(rows) {
                y.copy_from_slice(&table[*row as usize * n_cols..][..n_cols]);
            }
        })
    }

    /// What a failed tape gives out.
    pub(in crate::net) fn nothing(&self) -> Var {
        Var::from_index(u32::MAX)
    }
}
