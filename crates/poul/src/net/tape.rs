//! The tape: matrices computed as they are written down, and their gradients by walking back.
//!
//! A network is a function that calls the methods of a [`Tape`]; each computes its matrix at once into a buffer that
//! the next step reuses, so steps after the first allocate nothing. A mistake (shapes that do not fit, an index out
//! of range) makes the tape fail: later calls do nothing, and whoever runs the tape returns the first mistake.

use super::gradients::Gradients;
use super::kernel::elementwise::Unary;
use super::layout::Weight;
use super::op::Op;
use super::workspace::{Setting, Workspace};
use crate::{Error, Result, Seed};

/// A matrix on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(u32);

impl Var {
    /// What a failed tape gives out.
    const NOTHING: Self = Self(u32::MAX);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// Nodes and values.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    values: Vec<Vec<f32>>,
    /// What a gradient needs besides the values.
    pub(super) extras: Vec<Vec<f32>>,
    pub(super) indices: Vec<Vec<u32>>,
    pub(super) shared: Vec<Var>,
    losses: Vec<Var>,
    failure: Option<Error>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    /// Whether a gradient is wanted.
    pub(super) tracked: bool,
}

impl Graph {
    pub(super) fn value<'v>(&'v self, setting: &Setting<'v>, var: Var) -> &'v [f32] {
        match self.nodes[var.index()].op {
            Op::Weight(Weight(segment)) => &setting.weights[setting.layout.segments()[segment].range()],
            Op::Features => setting.features,
            Op::Shared(number) => match setting.shared {
                Some(shared) => &shared.graph.values[shared.graph.shared[number].index()],
                None => &[],
            },
            _ => &self.values[var.index()],
        }
    }
}

/// Reads the inputs of an operation.
pub(super) struct Inputs<'v> {
    pub(super) graph: &'v Graph,
    pub(super) setting: Setting<'v>,
}

impl<'v> Inputs<'v> {
    pub(super) fn value(&self, var: Var) -> &'v [f32] {
        self.graph.value(&self.setting, var)
    }

    pub(super) fn weight(&self, Weight(segment): Weight) -> &'v [f32] {
        &self.setting.weights[self.setting.layout.segments()[segment].range()]
    }

    pub(super) fn node(&self, var: Var) -> &'v Node {
        &self.graph.nodes[var.index()]
    }
}

/// Records a computation: each call computes its matrix at once; gradients come by walking back.
pub struct Tape<'t> {
    pub(super) setting: Setting<'t>,
    pub(super) graph: &'t mut Graph,
    pub(super) gradients: &'t mut Gradients,
}

impl<'t> Tape<'t> {
    /// An empty tape over the buffers of `workspace`.
    pub(super) fn start(workspace: &'t mut Workspace, setting: Setting<'t>) -> Self {
        let Workspace { graph, gradients } = workspace;
        graph.nodes.clear();
        graph.shared.clear();
        graph.losses.clear();
        graph.failure = None;
        gradients.clear(setting.layout);
        Self { setting, graph, gradients }
    }

    /// The tape as it was left.
    pub(super) fn resume(workspace: &'t mut Workspace, setting: Setting<'t>) -> Self {
        Self { setting, graph: &mut workspace.graph, gradients: &mut workspace.gradients }
    }

    /// Rows and columns of a matrix.
    pub fn shape(&self, var: Var) -> (usize, usize) {
        self.graph.nodes.get(var.index()).map_or((0, 0), |node| (node.n_rows, node.n_cols))
    }

    /// The values of a matrix, row by row; nothing on a failed tape.
    pub fn value(&self, var: Var) -> &[f32] {
        if var.index() >= self.graph.nodes.len() { &[] } else { self.graph.value(&self.setting, var) }
    }

    /// Whether dropout is on and gradients are wanted.
    pub(crate) fn is_training(&self) -> bool {
        self.setting.training
    }

    /// The random stream of this member, step and part (shared, or rows): the same for every shard.
    pub(crate) fn stream(&self) -> Seed {
        self.setting.stream
    }

    /// Makes the tape fail; the first mistake stays.
    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        self.graph.failure.get_or_insert_with(|| Error::other(what));
    }

    /// Hands a matrix of the shared part to the rows, as number 0, 1, … in the order of the calls.
    pub fn share(&mut self, var: Var) {
        // Weights and features are not in the tape's own buffers.
        let own = self.unary(Unary::Affine(1.0, 0.0), var);
        if self.graph.failure.is_none() {
            self.graph.shared.push(own);
        }
    }

    /// Adds a 1 × 1 matrix to the loss; in the shared part, once per step.
    pub fn add_loss(&mut self, loss: Var) {
        let shape = self.shape(loss);
        if self.require(shape == (1, 1), || format!("a loss of {} × {}; it must be 1 × 1", shape.0, shape.1))
        {
            self.graph.losses.push(loss);
        }
    }

    /// Checks a precondition of an operation; says whether the tape is whole.
    pub(super) fn require(&mut self, condition: bool, what: impl FnOnce() -> String) -> bool {
        if !condition && self.graph.failure.is_none() {
            self.graph.failure = Some(Error::other(what()));
        }
        self.graph.failure.is_none()
    }

    /// Appends a node and lets `compute` fill its values and extras.
    pub(super) fn push(
        &mut self,
        op: Op,
        (n_rows, n_cols): (usize, usize),
        tracked: bool,
        compute: impl FnOnce(&Inputs<'_>, &mut [f32], &mut Vec<f32>),
    ) -> Var {
        let index = self.graph.nodes.len();
        if !self.require(n_cols > 0, || "a matrix without columns".to_owned()) {
            return Var::NOTHING;
        }
        self.reserve(index);
        let mut values = std::mem::take(&mut self.graph.values[index]);
        let mut extras = std::mem::take(&mut self.graph.extras[index]);
        values.resize(n_rows * n_cols, 0.0);
        compute(&Inputs { graph: self.graph, setting: self.setting }, &mut values, &mut extras);
        self.graph.values[index] = values;
        self.graph.extras[index] = extras;
        self.push_bare(op, (n_rows, n_cols), tracked)
    }

    /// Appends a node whose values are elsewhere.
    pub(super) fn push_bare(&mut self, op: Op, (n_rows, n_cols): (usize, usize), tracked: bool) -> Var {
        if self.graph.failure.is_some() {
            return Var::NOTHING;
        }
        let index = self.graph.nodes.len();
        self.reserve(index);
        let tracked = tracked && self.setting.training;
        self.graph.nodes.push(Node { op, n_rows, n_cols, tracked });
        Var(index as u32)
    }

    /// Keeps numbers for the node that is about to be appended; gives the largest and how many.
    pub(super) fn stage_indices(&mut self, indices: impl IntoIterator<Item = u32>) -> (Option<u32>, usize) {
        let index = self.graph.nodes.len();
        self.reserve(index);
        let staged = &mut self.graph.indices[index];
        staged.clear();
        staged.extend(indices);
        (staged.iter().max().copied(), staged.len())
    }

    /// Keeps values for the node that is about to be appended; gives how many.
    pub(super) fn stage_values(&mut self, values: impl IntoIterator<Item = f32>) -> usize {
        let index = self.graph.nodes.len();
        self.reserve(index);
        let staged = &mut self.graph.values[index];
        staged.clear();
        staged.extend(values);
        staged.len()
    }

    /// Whether any of the matrices wants a gradient.
    pub(super) fn tracks(&self, vars: &[Var]) -> bool {
        vars.iter().any(|var| self.graph.nodes.get(var.index()).is_some_and(|node| node.tracked))
    }

    /// The first mistake, if any.
    pub(super) fn check(&mut self) -> Result<()> {
        self.graph.failure.take().map_or(Ok(()), Err)
    }

    /// Ends the forward part: checks the tape, seeds the gradient of every loss, and sums the losses.
    pub(super) fn finish(&mut self, loss: Var) -> Result<f64> {
        self.add_loss(loss);
        self.seed_losses()
    }

    /// [`finish`](Self::finish) for a part that may have no loss of its own.
    pub(super) fn seed_losses(&mut self) -> Result<f64> {
        self.check()?;
        let mut total = 0.0;
        for number in 0..self.graph.losses.len() {
            let loss = self.graph.losses[number];
            total += f64::from(self.graph.value(&self.setting, loss)[0]);
            if let Some((slot, _)) = self.gradients.zeroed(self.graph, &self.setting, loss) {
                slot[0] += 1.0;
            }
        }
        Ok(total)
    }

    /// Walks back from wherever a gradient was seeded.
    pub(super) fn backward(&mut self) {
        for index in (0..self.graph.nodes.len()).rev() {
            if let Some(mut gradient) = self.gradients.take(index) {
                let inputs = Inputs { graph: self.graph, setting: self.setting };
                super::op::backward(&inputs, self.gradients, index, &mut gradient);
                self.gradients.put_back(index, gradient);
            }
        }
    }

    fn reserve(&mut self, index: usize) {
        if self.graph.values.len() <= index {
            self.graph.values.resize_with(index + 1, Vec::new);
            self.graph.extras.resize_with(index + 1, Vec::new);
            self.graph.indices.resize_with(index + 1, Vec::new);
        }
    }
}
