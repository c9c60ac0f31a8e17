//! The validation R-loss: the loss of held-out rows by the mean of the members' predictions g(x)ᵀ(h(T) − e_h(x)).

use super::objective::Training;
use crate::Result;
use crate::net::{Batch, Layout, Network, RowSource, Tape, Var, predict};
use crate::nuisance::SomeRows;

/// The R-loss of an ensemble on some rows, summed over outcomes: mean squared error in standard units, or mean negative
/// log-likelihood. Rows count by their noise as they do in training.
pub(super) fn r_loss(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<f64> {
    let n_outcomes = training.network.g.len();
    let predicted = predictions(training, layout, members, x, rows)?;
    let (mut total, mut mass) = (0.0, 0.0);
    for (predicted, row) in predicted.chunks(n_outcomes).zip(rows) {
        let row = *row as usize;
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[row]));
        mass += weight;
        total += weight * training.loss_of(row, predicted);
    }
    Ok(total / mass.max(f64::MIN_POSITIVE))
}

/// The mean over members of g(x)ᵀ(h(T) − e_h(x)) of some rows, one column per outcome.
pub(super) fn predictions(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<Vec<f64>> {
    let n_outcomes = training.network.g.len();
    let held_out = HeldOut { training, rows };
    let some = SomeRows { x, rows };
    let mut predicted = vec![0.0_f64; rows.len() * n_outcomes];
    for weights in members {
        let values = predict(layout, weights, &held_out, &some, n_outcomes, 0)?;
        let share = 1.0 / members.len() as f64;
        predicted.iter_mut().zip(values).for_each(|(sum, value)| *sum += share * f64::from(value));
    }
    Ok(predicted)
}

/// Predictions for some rows of the data, which the source counts from 0.
struct HeldOut<'a> {
    training: &'a Training<'a>,
    rows: &'a [u32],
}

impl Network for HeldOut<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.training.share(tape);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let rows: Vec<u32> = batch.rows.iter().map(|row| self.rows[*row as usize]).collect();
        self.training.predicted(tape, &rows)
    }
}
