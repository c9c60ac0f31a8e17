//! The validation R-loss: the loss of held-out rows by predictions g(x)ᵀ(h(T) − e_h(x)) of members that have not seen
//! them.
//!
//! Each member holds out rows of its own, so their losses are those of single networks, while the mean of all is what
//! counts: E(r − p̄)² = E(r − p)² − (1 − 1/M)·Var(p over members). The second term needs no outcome, and is taken from
//! rows that any member may have seen. Without it training would stop when one network is at its best, too early for
//! many.

use super::held_out::HeldOutParts;
use super::objective::Training;
use super::phases::TrainingPhase;
use crate::Result;
use crate::net::{Batch, Layout, Network, RowSource, Tape, Var, predict};
use crate::nuisance::SomeRows;

/// Of the rows held out, one in so many tells how far members are apart.
const ROWS_PER_SPREAD: usize = 12;
/// Fewer are not worth a guess.
const FEWEST_SPREAD: usize = 512;

/// What members hold out: by member its rows, and rows that all members predict.
pub(super) struct Validation {
    pub(super) rows: Vec<Vec<u32>>,
    pub(super) spread: Vec<u32>,
}

impl Validation {
    /// Of the members `first`, `first` + 1, … in a phase.
    pub(super) fn new(parts: &HeldOutParts, first: usize, n_members: usize, phase: &TrainingPhase) -> Self {
        let rows: Vec<Vec<u32>> =
            (first..first + n_members).map(|member| parts.rows(member, phase)).collect();
        let n_rows: usize = rows.iter().map(Vec::len).sum();
        let step = ROWS_PER_SPREAD.min(n_rows / FEWEST_SPREAD).max(1);
        let spread = match n_members {
            1 => Vec::new(),
            _ => rows.iter().flatten().copied().step_by(step).collect(),
        };
        Self { rows, spread }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.iter().all(Vec::is_empty)
    }
}

/// The R-loss of an ensemble on the rows that its members hold out, summed over outcomes: mean squared error in standard
/// units, or mean negative log-likelihood. Rows count by their noise as they do in training.
pub(super) fn r_loss(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    validation: &Validation,
) -> Result<f64> {
    let n_outcomes = training.network.g.len();
    let weight_of = |row: usize| training.weight.map_or(1.0, |weight| f64::from(weight[row]));
    let (mut total, mut mass) = (0.0, 0.0);
    for (weights, rows) in members.iter().zip(&validation.rows) {
        let predicted = predictions(training, layout, &[weights], x, rows)?;
        for (predicted, row) in predicted.chunks(n_outcomes).zip(rows) {
            let row = *row as usize;
            mass += weight_of(row);
            total += weight_of(row) * training.loss_of(row, predicted);
        }
    }
    let loss = total / f64::max(mass, f64::MIN_POSITIVE);
    if members.len() < 2 || validation.spread.is_empty() {
        return Ok(loss);
    }
    let rows = &validation.spread;
    let (mut sum, mut squares) = (vec![0.0; rows.len() * n_outcomes], vec![0.0; rows.len() * n_outcomes]);
    for weights in members {
        let predicted = predictions(training, layout, &[weights], x, rows)?;
        for ((sum, square), predicted) in sum.iter_mut().zip(&mut squares).zip(predicted) {
            *sum += predicted;
            *square += predicted * predicted;
        }
    }
    let n = members.len() as f64;
    let (mut total, mut mass) = (0.0, 0.0);
    for (place, row) in rows.iter().enumerate() {
        let row = *row as usize;
        let own = place * n_outcomes..(place + 1) * n_outcomes;
        let gained =
            sum[own.clone()].iter().zip(&squares[own]).enumerate().map(|(outcome, (sum, square))| {
                // (1 − 1/M) times the unbiased variance over members.
                let spread = (square - sum * sum / n).max(0.0) / n;
                training.curvature_of(row * n_outcomes + outcome, sum / n) * spread
            });
        mass += weight_of(row);
        total += weight_of(row) * gained.sum::<f64>();
    }
    Ok(loss - total / f64::max(mass, f64::MIN_POSITIVE))
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
    let held_out = Predicted { training, rows };
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
struct Predicted<'a> {
    training: &'a Training<'a>,
    rows: &'a [u32],
}

impl Network for Predicted<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.training.share(tape);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let rows: Vec<u32> = batch.rows.iter().map(|row| self.rows[*row as usize]).collect();
        self.training.predicted(tape, &rows)
    }
}
