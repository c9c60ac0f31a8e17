//! The update of a member's weights from its shards' gradients: sum, clip, AdamW and average, in one pass.
//!
//! The arena is cut into fixed chunks that run in parallel; within a chunk, gradients are added in the order shared
//! part, shard 0, shard 1, …, so the sum has the same bits on any number of threads.

use std::ops::Range;

use rayon::iter::Either;
use rayon::prelude::*;

use super::gradients::Gradients;
use super::kernel::adam::{AdamStep, adam, average, sum_of_squares};
use super::kernel::elementwise::{add, sum};
use super::layout::Layout;
use super::member::{Member, Shard};
use super::optimizer::Adam;
use super::workspace::Workspace;

/// Values that one task updates.
const CHUNK: usize = 16_384;
/// Values that are summed and used while they are in the nearest cache.
const BLOCK: usize = 1024;

impl Member {
    /// Moves the weights by one step; `step` counts from 1.
    pub(super) fn update(&mut self, layout: &Layout, optimizer: &Adam, step: u64) {
        for (segment, n_updates) in self.n_updates.iter_mut().enumerate() {
            *n_updates += u64::from(is_written(&self.shared, &self.shards, segment));
        }
        let gradient_scale = match optimizer.params.clip_norm {
            Some(limit) => (f64::from(limit) / self.reduce(layout)).min(1.0) as f32,
            None => 1.0,
        };
        let is_reduced = optimizer.params.clip_norm.is_some();
        let decay =
            optimizer.params.average.map(|decay| decay.min((1.0 + step as f32) / (10.0 + step as f32)));
        let Self { weights, first, second, average: mean, n_updates, shared, shards, reduced, .. } = self;
        let n_chunks = weights.len().div_ceil(CHUNK);
        let means = match decay {
            Some(_) => Either::Left(mean.par_chunks_mut(CHUNK).map(Some)),
            None => Either::Right((0..n_chunks).into_par_iter().map(|_| None)),
        };
        let arenas = weights.par_chunks_mut(CHUNK).zip(first.par_chunks_mut(CHUNK));
        let arenas = arenas.zip(second.par_chunks_mut(CHUNK)).zip(means);
        arenas.enumerate().for_each(|(chunk, (((weights, first), second), mean))| {
            let start = chunk * CHUNK;
            let mut sums = [0.0; BLOCK];
            for (segment, part) in layout.parts(start..start + weights.len()) {
                let rule = adam_step(layout, optimizer, segment, n_updates[segment], gradient_scale);
                let Some(step) = rule.filter(|_| is_written(shared, shards, segment)) else {
                    continue;
                };
                for from in part.clone().step_by(BLOCK) {
                    let block = from..(from + BLOCK).min(part.end);
                    let local = block.start - start..block.end - start;
                    let gradient = if is_reduced {
                        &reduced[block]
                    } else {
                        let sums = &mut sums[..block.len()];
                        sum_block(shared, shards, segment, block, sums);
                        sums
                    };
                    let (weights, first) = (&mut weights[local.clone()], &mut first[local.clone()]);
                    adam(step, gradient, weights, first, &mut second[local]);
                }
            }
            if let (Some(mean), Some(decay)) = (mean, decay) {
                average(1.0 - decay, weights, mean);
            }
        });
    }

    /// Sums the gradients of all shards; gives the length of the sum.
    fn reduce(&mut self, layout: &Layout) -> f64 {
        self.reduced.resize(layout.n_values(), 0.0);
        self.norms.resize(layout.n_values().div_ceil(CHUNK), 0.0);
        let (shared, shards) = (&self.shared, &self.shards);
        let chunks = self.reduced.par_chunks_mut(CHUNK).zip(self.norms.par_iter_mut()).enumerate();
        chunks.for_each(|(chunk, (reduced, norm))| {
            let start = chunk * CHUNK;
            *norm = 0.0;
            for (segment, part) in layout.parts(start..start + reduced.len()) {
                if is_written(shared, shards, segment) {
                    let sums = &mut reduced[part.start - start..part.end - start];
                    sum_block(shared, shards, segment, part, sums);
                    *norm += sum_of_squares(sums);
                }
            }
        });
        self.norms.iter().sum::<f64>().sqrt()
    }
}

/// The constants of a segment's step; nothing where it is frozen or was never reached.
fn adam_step(
    layout: &Layout,
    optimizer: &Adam,
    segment: usize,
    n_updates: u64,
    gradient_scale: f32,
) -> Option<AdamStep> {
    let (segment, params) = (&layout.segments()[segment], &optimizer.params);
    let rule = optimizer.rule(segment.group);
    let rate = f64::from(params.learning_rate) * f64::from(rule.rate_factor);
    if rate == 0.0 || n_updates == 0 {
        return None;
    }
    // Beyond this many updates the corrections are 1 to the last bit.
    let t = n_updates.min(1 << 30) as i32;
    let correction1 = 1.0 - f64::from(params.beta1).powi(t);
    let correction2 = (1.0 - f64::from(params.beta2).powi(t)).sqrt();
    let decay = if segment.decays { f64::from(rule.weight_decay * optimizer.decay_factor) } else { 0.0 };
    Some(AdamStep {
        rate: (rate * correction2 / correction1) as f32,
        epsilon: (f64::from(params.epsilon) * correction2) as f32,
        shrink: (1.0 - rate * decay) as f32,
        beta1: params.beta1,
        beta2: params.beta2,
        gradient_scale,
    })
}

/// Adds up a stretch of the gradient of a segment that some source has reached.
fn sum_block(shared: &Workspace, shards: &[Shard], segment: usize, range: Range<usize>, sums: &mut [f32]) {
    let written = sources(shared, shards).filter(|source| source.written[segment]);
    let mut gradients = written.map(|source| &source.weights[range.clone()]);
    match (gradients.next(), gradients.next()) {
        (Some(first), Some(second)) => sum(first, second, sums),
        (Some(only), None) => sums.copy_from_slice(only),
        (None, _) => sums.fill(0.0),
    }
    gradients.for_each(|gradient| add(gradient, sums));
}

/// Whether the step has a gradient for a segment.
fn is_written(shared: &Workspace, shards: &[Shard], segment: usize) -> bool {
    sources(shared, shards).any(|source| source.written[segment])
}

/// In the order in which they are added.
fn sources<'m>(shared: &'m Workspace, shards: &'m [Shard]) -> impl Iterator<Item = &'m Gradients> {
    std::iter::once(&shared.gradients).chain(shards.iter().map(|shard| &shard.workspace.gradients))
}
