//! Training: every member of an ensemble takes a step on the same batch, split into shards of
//! at most so many rows.
//!
//! A step is: features gathered (once for all members) beside the shared parts; members × shards there and back; the
//! shared parts back; the update. Nothing depends on how many threads there are, so neither do the bits.

use rayon::prelude::*;

use super::batch::{Network, RowSource, check_rows};
use super::layout::{Group, Layout};
use super::member::{Member, StepRows};
use super::optimizer::{Adam, GroupRule};
use crate::{Error, Result, Seed};

/// Settings of a [`Trainer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainerParams {
    /// Networks trained side by side, each with its own start and dropout. Default 1; at least 1.
    pub n_members: usize,
    /// Most rows of a shard, the part of a batch that one thread computes: a batch is split evenly into as few as that
    /// allows, whatever the number of threads. Part of the result: fewer rows suit more cores, make products slower,
    /// and change the last bits. Default 256; at least 1.
    pub shard_rows: usize,
}

impl Default for TrainerParams {
    fn default() -> Self {
        Self { n_members: 1, shard_rows: 256 }
    }
}

/// Members, their optimiser and the step they have reached.
pub struct Trainer {
    pub(super) layout: Layout,
    pub(super) optimizer: Adam,
    pub(super) members: Vec<Member>,
    pub(super) n_steps: u64,
    shard_rows: usize,
    features: Vec<f32>,
    losses: Vec<f64>,
}

impl Trainer {
    /// Members at their start; member k starts from `seed.index(k)`, however many there are.
    pub fn new(layout: Layout, optimizer: Adam, params: TrainerParams, seed: Seed) -> Result<Self> {
        let TrainerParams { n_members, shard_rows } = params;
        if n_members == 0 {
            return Err(Error::usage("`n_members` is 0").hint("it must be at least 1"));
        }
        if shard_rows == 0 {
            return Err(Error::usage("`shard_rows` is 0").hint("it must be at least 1"));
        }
        let has_average = optimizer.params.average.is_some();
        let member = |index| Member::new(&layout, seed.index(index as u64), has_average);
        let members = (0..n_members).map(member).collect();
        let (features, losses) = (Vec::new(), Vec::new());
        Ok(Self { layout, optimizer, members, n_steps: 0, shard_rows, features, losses })
    }

    /// One step on the rows of a batch; gives each member's loss before the step.
    ///
    /// Nothing is updated if a loss is not finite or the network is put together wrongly.
    pub fn step(&mut self, source: &dyn RowSource, rows: &[u32], network: &dyn Network) -> Result<&[f64]> {
        let step = self.n_steps + 1;
        let Some(loss) = self.try_step(source, rows, network)? else { return Ok(&self.losses) };
        let error = Error::other(format!("training diverged: the loss is {loss} at step {step}"));
        Err(error.hint("lower the learning rate, clip gradients, or look for extreme values in the features"))
    }

    /// As [`step`](Self::step); a loss that is not finite is given back and nothing was updated.
    pub(super) fn try_step(
        &mut self,
        source: &dyn RowSource,
        rows: &[u32],
        network: &dyn Network,
    ) -> Result<Option<f64>> {
        check_rows(rows, source)?;
        let Self { layout, optimizer, members, n_steps, shard_rows, features, losses } = self;
        let (layout, step) = (&*layout, *n_steps + 1);
        let n_features = source.n_cols();
        let n_shards = rows.len().div_ceil(*shard_rows).max(1);
        let n_shard_rows = rows.len().div_ceil(n_shards).max(1);
        members.iter_mut().for_each(|member| member.reserve_shards(n_shards));
        features.resize(rows.len() * n_features, 0.0);
        rayon::join(
            || {
                features
                    .par_chunks_mut((n_shard_rows * n_features).max(1))
                    .zip(rows.par_chunks(n_shard_rows))
                    .for_each(|(features, rows)| source.copy_rows(rows, features));
            },
            || {
                members
                    .par_iter_mut()
                    .enumerate()
                    .for_each(|(index, member)| member.forward_shared(network, layout, index, step));
            },
        );
        let batch = StepRows { rows, features, n_features, n_shard_rows };
        members
            .par_iter_mut()
            .with_max_len(1)
            .enumerate()
            .for_each(|(index, member)| member.run_rows(network, layout, index, step, batch));
        losses.clear();
        for member in &mut *members {
            losses.push(member.take_loss()?);
        }
        if let Some(loss) = losses.iter().find(|loss| !loss.is_finite()) {
            return Ok(Some(*loss));
        }
        members.par_iter_mut().with_max_len(1).try_for_each(|member| {
            member.backward_shared(layout);
            network.carry(layout, &mut member.weights, rows)?;
            member.update(layout, optimizer, step);
            Ok(())
        })?;
        *n_steps = step;
        Ok(None)
    }

    /// Each member's loss before the last step.
    pub(super) fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// Puts every member at these weights, with nothing remembered of earlier gradients: a warm start, the next phase.
    pub(crate) fn start_from(&mut self, weights: &[Vec<f32>]) -> Result<()> {
        let n_values = self.layout.n_values();
        if weights.len() != self.members.len() || weights.iter().any(|weights| weights.len() != n_values) {
            return Err(Error::other("weights of another network or ensemble"));
        }
        for (member, weights) in self.members.iter_mut().zip(weights) {
            member.weights.copy_from_slice(weights);
            if !member.average.is_empty() {
                member.average.copy_from_slice(weights);
            }
            member.first.fill(0.0);
            member.second.fill(0.0);
            member.n_updates.fill(0);
        }
        Ok(())
    }

    /// Steps taken.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Networks trained side by side.
    pub(crate) fn n_members(&self) -> usize {
        self.members.len()
    }

    /// Where each weight lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights of a member as the last step left them.
    pub fn weights(&self, member: usize) -> &[f32] {
        &self.members[member].weights
    }

    /// The running average of a member's weights, or the weights where no average is kept: what to predict with.
    pub fn averaged_weights(&self, member: usize) -> &[f32] {
        let member = &self.members[member];
        if member.average.is_empty() { &member.weights } else { &member.average }
    }

    /// Changes the rule of a group from the next step on: freezing, alternation.
    pub fn set_group_rule(&mut self, group: Group, rule: GroupRule) {
        self.optimizer.set_rule(group, rule);
    }
}
