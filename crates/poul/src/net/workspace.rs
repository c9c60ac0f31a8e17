//! What a tape writes to and reads from: buffers that outlive a step, and the setting of the step.

use super::gradients::Gradients;
use super::layout::Layout;
use super::op::Op;
use super::tape::{Graph, Tape, Var};
use crate::{Result, Seed};

/// The buffers of a tape, kept between steps.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) graph: Graph,
    pub(super) gradients: Gradients,
}

impl Workspace {
    /// The loss that `build` computes at `weights`, with its gradient left in [`gradient`](Self::gradient).
    pub fn loss_and_gradient(
        &mut self,
        layout: &Layout,
        weights: &[f32],
        build: impl FnOnce(&mut Tape<'_>) -> Var,
    ) -> Result<f64> {
        let mut tape = Tape::start(self, Setting::training(layout, weights));
        let loss = build(&mut tape);
        let loss = tape.finish(loss)?;
        tape.backward();
        self.gradients.fill_gaps(layout);
        Ok(loss)
    }

    /// The gradient of the last loss, laid out as the weights are.
    pub fn gradient(&self) -> &[f32] {
        &self.gradients.weights
    }

    /// What came back to matrix `number` of the shared part, wherever the tape used it.
    pub(super) fn shared_gradients(&self, number: usize) -> impl Iterator<Item = &[f32]> {
        let uses = self.graph.nodes.iter().enumerate();
        uses.filter(move |(_, node)| matches!(node.op, Op::Shared(other) if other == number))
            .filter_map(|(index, _)| self.gradients.of(Var::from_index(index as u32)))
    }

    /// The matrix that `build` computes at `weights`, without dropout and without gradients.
    pub fn value(
        &mut self,
        layout: &Layout,
        weights: &[f32],
        build: impl FnOnce(&mut Tape<'_>) -> Var,
    ) -> Result<Vec<f32>> {
        let setting = Setting { training: false, ..Setting::training(layout, weights) };
        let mut tape = Tape::start(self, setting);
        let var = build(&mut tape);
        tape.check()?;
        Ok(tape.value(var).to_vec())
    }
}

/// What a tape reads besides its own buffers.
#[derive(Clone, Copy)]
pub(super) struct Setting<'t> {
    pub(super) layout: &'t Layout,
    pub(super) weights: &'t [f32],
    /// The features of the rows at hand, and how many columns they have.
    pub(super) features: &'t [f32],
    pub(super) n_features: usize,
    /// What the part of the network that all rows share has computed.
    pub(super) shared: Option<&'t Workspace>,
    pub(super) training: bool,
    /// Where dropout masks come from.
    pub(super) stream: Seed,
    /// Position of the first row in the batch.
    pub(super) first_row: usize,
}

impl<'t> Setting<'t> {
    pub(super) fn training(layout: &'t Layout, weights: &'t [f32]) -> Self {
        Self {
            layout,
            weights,
            features: &[],
            n_features: 0,
            shared: None,
            training: true,
            stream: Seed::new(0),
            first_row: 0,
        }
    }
}
