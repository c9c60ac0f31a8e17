//! The buffers that a walk back over the tape fills: one per node, and one arena for all weights.

use super::layout::{Layout, Weight};
use super::op::Op;
use super::tape::{Graph, Var};
use super::workspace::Setting;

/// Gradients of one tape. The first contribution to a buffer overwrites what an earlier step left there.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    nodes: Vec<Vec<f32>>,
    reached: Vec<bool>,
    /// Laid out as the weights are; meaningful where `written`.
    pub(super) weights: Vec<f32>,
    /// By segment.
    pub(super) written: Vec<bool>,
}

impl Gradients {
    pub(super) fn clear(&mut self, layout: &Layout) {
        self.reached.fill(false);
        self.weights.resize(layout.n_values(), 0.0);
        self.written.resize(layout.segments().len(), false);
        self.written.fill(false);
    }

    /// The buffer for the gradient of `var`, and whether to add to it; nothing if no gradient is wanted.
    pub(super) fn slot(
        &mut self,
        graph: &Graph,
        setting: &Setting<'_>,
        var: Var,
    ) -> Option<(&mut [f32], bool)> {
        let node = &graph.nodes[var.index()];
        if !node.tracked {
            return None;
        }
        if let Op::Weight(weight) = node.op {
            return Some(self.weight_slot(setting.layout, weight));
        }
        let index = var.index();
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, Vec::new);
            self.reached.resize(index + 1, false);
        }
        let accumulate = std::mem::replace(&mut self.reached[index], true);
        self.nodes[index].resize(node.n_rows * node.n_cols, 0.0);
        Some((&mut self.nodes[index], accumulate))
    }

    /// The buffer for the gradient of `var`, zero if nothing has been added yet; and the shape's columns.
    pub(super) fn zeroed(
        &mut self,
        graph: &Graph,
        setting: &Setting<'_>,
        var: Var,
    ) -> Option<(&mut [f32], usize)> {
        let n_cols = graph.nodes[var.index()].n_cols;
        let (slot, accumulate) = self.slot(graph, setting, var)?;
        if !accumulate {
            slot.fill(0.0);
        }
        Some((slot, n_cols))
    }

    /// The stretch of the arena for a matrix of weights, and whether to add to it.
    pub(super) fn weight_slot(&mut self, layout: &Layout, Weight(segment): Weight) -> (&mut [f32], bool) {
        let accumulate = std::mem::replace(&mut self.written[segment], true);
        (&mut self.weights[layout.segments()[segment].range()], accumulate)
    }

    /// What has reached node `index`; put it back afterwards, so that the buffer is reused.
    pub(super) fn take(&mut self, index: usize) -> Option<Vec<f32>> {
        let reached = self.reached.get(index).copied().unwrap_or(false);
        reached.then(|| std::mem::take(&mut self.nodes[index]))
    }

    pub(super) fn put_back(&mut self, index: usize, gradient: Vec<f32>) {
        self.nodes[index] = gradient;
    }

    /// What has reached `var`, if anything.
    pub(super) fn of(&self, var: Var) -> Option<&[f32]> {
        let reached = self.reached.get(var.index()).copied().unwrap_or(false);
        reached.then(|| self.nodes[var.index()].as_slice())
    }

    /// Zeroes the gradient of weights that nothing reached.
    pub(super) fn fill_gaps(&mut self, layout: &Layout) {
        for (segment, written) in layout.segments().iter().zip(&self.written) {
            if !written {
                self.weights[segment.range()].fill(0.0);
            }
        }
    }
}
