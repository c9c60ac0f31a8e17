//! Losses: scale · Σ wᵢ·ℓᵢ, a 1 × 1 matrix.
//!
//! A batch is computed in shards whose losses are added, so a mean over the batch has `scale` = 1 / rows of the whole
//! batch (`batch.scale()`), not of the shard. Weights are a column, one per row, through which no gradient flows.

use super::{Back, Op};
use crate::net::kernel::rowwise::softmax;
use crate::net::tape::{Tape, Var};

impl Tape<'_> {
    /// ℓ = Σ_j (prediction_j − target_j)², over the columns of a row.
    pub fn squared_loss(&mut self, prediction: Var, target: Var, weights: Option<Var>, scale: f32) -> Var {
        let (shape, other) = (self.shape(prediction), self.shape(target));
        if !self.fits("squared loss", shape, other, weights) {
            return self.nothing();
        }
        let tracked = self.tracks(&[prediction, target]);
        let op = Op::SquaredLoss { prediction, target, weights, scale };
        self.push(op, (1, 1), tracked, |inputs, y, _| {
            let weights = weights.map(|weights| inputs.value(weights));
            let terms = inputs.value(prediction).iter().zip(inputs.value(target)).enumerate();
            let total: f64 = terms
                .map(|(i, (prediction, target))| {
                    let error = f64::from(prediction - target);
                    weight_of(weights, i / shape.1) * error * error
                })
                .sum();
            y[0] = (f64::from(scale) * total) as f32;
        })
    }

    /// ℓ = ln(1 + eᶻ) − target·z, the negative log-likelihood of a 0/1 target (or a share) given the logit z.
    pub fn logistic_loss(&mut self, logit: Var, target: Var, weights: Option<Var>, scale: f32) -> Var {
        let (shape, other) = (self.shape(logit), self.shape(target));
        if !self.fits("logistic loss", shape, other, weights) {
            return self.nothing();
        }
        let op = Op::LogisticLoss { logit, target, weights, scale };
        self.push(op, (1, 1), self.tracks(&[logit]), |inputs, y, _| {
            let weights = weights.map(|weights| inputs.value(weights));
            let terms = inputs.value(logit).iter().zip(inputs.value(target)).enumerate();
            let total: f64 = terms
                .map(|(i, (logit, target))| {
                    let (z, target) = (f64::from(*logit), f64::from(*target));
                    weight_of(weights, i / shape.1) * (z.max(0.0) + (-z.abs()).exp().ln_1p() - target * z)
                })
                .sum();
            y[0] = (f64::from(scale) * total) as f32;
        })
    }

    /// ℓ = −ln softmax(logits) of each row's label.
    pub fn cross_entropy(
        &mut self,
        logits: Var,
        labels: impl IntoIterator<Item = u32>,
        weights: Option<Var>,
        scale: f32,
    ) -> Var {
        let (n_rows, n_cols) = self.shape(logits);
        let (top, n_labels) = self.stage_indices(labels);
        let whole = n_labels == n_rows && top.is_none_or(|top| (top as usize) < n_cols);
        if !self.require(whole, || {
            let top = top.unwrap_or_default();
            format!("cross-entropy of {n_rows} × {n_cols} logits with {n_labels} labels up to {top}")
        }) || !self.fits("cross-entropy", (n_rows, n_cols), (n_rows, n_cols), weights)
        {
            return self.nothing();
        }
        let index = self.graph.nodes.len();
        let op = Op::CrossEntropy { logits, weights, scale };
        self.push(op, (1, 1), self.tracks(&[logits]), |inputs, y, extras| {
            let (logits, labels) = (inputs.value(logits), &inputs.graph.indices[index]);
            let weights = weights.map(|weights| inputs.value(weights));
            // The probabilities are kept for the gradient; the log-sums lie behind them.
            extras.resize(n_rows * (n_cols + 1), 0.0);
            let (probabilities, log_sums) = extras.split_at_mut(n_rows * n_cols);
            softmax(n_cols, logits, probabilities, log_sums);
            let rows = logits.chunks_exact(n_cols).zip(labels).zip(log_sums).enumerate();
            let total: f64 = rows
                .map(|(i, ((logits, label), log_sum))| {
                    weight_of(weights, i) * f64::from(*log_sum - logits[*label as usize])
                })
                .sum();
            y[0] = (f64::from(scale) * total) as f32;
        })
    }

    fn fits(
        &mut self,
        what: &str,
        shape: (usize, usize),
        other: (usize, usize),
        weights: Option<Var>,
    ) -> bool {
        let weight_shape = weights.map(|weights| self.shape(weights));
        let whole = shape == other && weight_shape.is_none_or(|weights| weights == (shape.0, 1));
        self.require(whole, || format!("{what} of {shape:?} and {other:?} with weights {weight_shape:?}"))
    }
}

impl Back<'_, '_> {
    pub(super) fn squared_loss(
        &mut self,
        (prediction, target): (Var, Var),
        weights: Option<Var>,
        scale: f32,
    ) {
        let (predictions, targets) = (self.value(prediction), self.value(target));
        let weights = weights.map(|weights| self.value(weights));
        for (var, sign) in [(prediction, 2.0), (target, -2.0)] {
            if let Some((slot, n_cols)) = self.zeroed(var) {
                for (i, slot) in slot.iter_mut().enumerate() {
                    let weight = weight_of(weights, i / n_cols) as f32;
                    *slot += sign * scale * weight * (predictions[i] - targets[i]);
                }
            }
        }
    }

    pub(super) fn logistic_loss(&mut self, logit: Var, target: Var, weights: Option<Var>, scale: f32) {
        let (logits, targets) = (self.value(logit), self.value(target));
        let weights = weights.map(|weights| self.value(weights));
        if let Some((slot, n_cols)) = self.zeroed(logit) {
            for (i, slot) in slot.iter_mut().enumerate() {
                let probability = 1.0 / (1.0 + (-f64::from(logits[i])).exp());
                let weight = weight_of(weights, i / n_cols);
                *slot += scale * (weight * (probability - f64::from(targets[i]))) as f32;
            }
        }
    }

    pub(super) fn cross_entropy(&mut self, logits: Var, weights: Option<Var>, scale: f32) {
        let (probabilities, labels) = (self.extras(), self.indices());
        let weights = weights.map(|weights| self.value(weights));
        if let Some((slot, n_cols)) = self.zeroed(logits) {
            let rows = slot.chunks_exact_mut(n_cols).zip(probabilities.chunks_exact(n_cols)).zip(labels);
            for (i, ((slot, probabilities), label)) in rows.enumerate() {
                let factor = scale * weight_of(weights, i) as f32;
                slot.iter_mut().zip(probabilities).for_each(|(slot, p)| *slot += factor * p);
                slot[*label as usize] -= factor;
            }
        }
    }
}

fn weight_of(weights: Option<&[f32]>, row_idx: usize) -> f64 {
    weights.map_or(1.0, |weights| f64::from(weights[row_idx]))
}
