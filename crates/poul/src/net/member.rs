//! One member of an ensemble: its weights, the state of its optimiser, and the buffers of its tapes.

use rayon::prelude::*;

use super::batch::{Batch, Network};
use super::kernel::elementwise::add;
use super::layout::Layout;
use super::tape::Tape;
use super::workspace::{Setting, Workspace};
use crate::{Result, Seed};

/// Everything a member needs for a step. Memory is touched only by the member's own tasks.
pub(super) struct Member {
    pub(super) seed: Seed,
    pub(super) weights: Vec<f32>,
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// The running average of the weights; empty where none is kept.
    pub(super) average: Vec<f32>,
    /// Updates of each segment so far: a segment that a step does not reach is left alone.
    pub(super) n_updates: Vec<u64>,
    pub(super) shared: Workspace,
    pub(super) shards: Vec<Shard>,
    /// The sum of all shards' gradients, where it is needed before the update.
    pub(super) reduced: Vec<f32>,
    pub(super) norms: Vec<f64>,
    loss: Result<f64>,
}

/// Part of the rows of a batch; those that a small batch does not need are empty.
pub(super) struct Shard {
    pub(super) workspace: Workspace,
    loss: Result<f64>,
}

/// One batch, as all members see it.
#[derive(Clone, Copy)]
pub(super) struct StepRows<'s> {
    pub(super) rows: &'s [u32],
    pub(super) features: &'s [f32],
    pub(super) n_features: usize,
    pub(super) n_shard_rows: usize,
}

impl Member {
    pub(super) fn new(layout: &Layout, seed: Seed, has_average: bool) -> Self {
        let weights = layout.init(seed.child("weights"));
        let zeros = vec![0.0; weights.len()];
        Self {
            seed: seed.child("dropout"),
            first: zeros.clone(),
            second: zeros,
            average: if has_average { weights.clone() } else { Vec::new() },
            weights,
            n_updates: vec![0; layout.segments().len()],
            shared: Workspace::default(),
            shards: Vec::new(),
            reduced: Vec::new(),
            norms: Vec::new(),
            loss: Ok(0.0),
        }
    }

    /// Makes room for a batch of so many shards.
    pub(super) fn reserve_shards(&mut self, n_shards: usize) {
        while self.shards.len() < n_shards {
            self.shards.push(Shard { workspace: Workspace::default(), loss: Ok(0.0) });
        }
    }

    /// Runs the part that all rows share.
    pub(super) fn forward_shared(
        &mut self,
        network: &dyn Network,
        layout: &Layout,
        member: usize,
        step: u64,
    ) {
        let stream = self.seed.child("shared").index(step);
        let setting = Setting { stream, ..Setting::training(layout, &self.weights) };
        let mut tape = Tape::start(&mut self.shared, setting);
        network.shared(&mut tape, member);
        self.loss = tape.seed_losses();
    }

    /// Runs the rows, there and back, shard by shard in any order.
    pub(super) fn run_rows(
        &mut self,
        network: &dyn Network,
        layout: &Layout,
        member: usize,
        step: u64,
        batch: StepRows<'_>,
    ) {
        if self.loss.is_err() {
            return;
        }
        let (weights, shared, stream) = (&self.weights, &self.shared, self.seed.child("rows").index(step));
        self.shards.par_iter_mut().with_max_len(1).enumerate().for_each(|(shard_idx, shard)| {
            let first_row = (shard_idx * batch.n_shard_rows).min(batch.rows.len());
            let after = (first_row + batch.n_shard_rows).min(batch.rows.len());
            let setting = Setting {
                features: &batch.features[first_row * batch.n_features..after * batch.n_features],
                n_features: batch.n_features,
                shared: Some(shared),
                stream,
                first_row,
                ..Setting::training(layout, weights)
            };
            let mut tape = Tape::start(&mut shard.workspace, setting);
            if first_row == after {
                shard.loss = Ok(0.0);
                return;
            }
            let rows = Batch { member, rows: &batch.rows[first_row..after], batch_rows: batch.rows };
            let loss = network.rows(&mut tape, &rows);
            shard.loss = tape.finish(loss);
            if shard.loss.is_ok() {
                tape.backward();
            }
        });
    }

    /// The loss of the step, finite or not.
    pub(super) fn take_loss(&mut self) -> Result<f64> {
        let mut total = std::mem::replace(&mut self.loss, Ok(0.0))?;
        for shard in &mut self.shards {
            total += std::mem::replace(&mut shard.loss, Ok(0.0))?;
        }
        Ok(total)
    }

    /// Brings the gradients of shared matrices together, in the order of the shards, and walks back from them.
    pub(super) fn backward_shared(&mut self, layout: &Layout) {
        let mut tape = Tape::resume(&mut self.shared, Setting::training(layout, &self.weights));
        for number in 0..tape.graph.shared.len() {
            let target = tape.graph.shared[number];
            for shard in &self.shards {
                for gradient in shard.workspace.shared_gradients(number) {
                    if let Some((slot, _)) = tape.gradients.zeroed(tape.graph, &tape.setting, target) {
                        add(gradient, slot);
                    }
                }
            }
        }
        tape.backward();
    }
}
