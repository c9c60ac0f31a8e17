//! The validation R-loss: the loss of held-out rows by predictions g(x)ᵀ(h(T) − e_h(x)) of members that have not seen
//! them.
//!
//! Each member holds out rows of its own, so their losses are those of single networks, while the mean of all is what
//! counts: E(r − p̄)² = E(r − p)² − (1 − 1/M)·Var(p over members). The second term needs no outcome, and is taken from
//! rows that any member may have seen. Without it training would stop when one network is at its best, too early for
//! many.

use super::held_out::HeldOutParts;
use super::objective::{Target, Training};
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
///
/// Of several outcomes with squared errors, each is taken at the size that suits it best, from 0 to as predicted: effects
/// are brought to size after training, so that an outcome of noise, whose predictions soon are too large, must not stop
/// the others.
pub(super) fn r_loss(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    validation: &Validation,
) -> Result<f64> {
    let n_outcomes = training.network.g.len();
    let weight_of = |row: usize| training.weight.map_or(1.0, |weight| f64::from(weight[row]));
    let mut sums = vec![OutcomeLoss::default(); n_outcomes];
    let mut mass = 0.0;
    for (weights, rows) in members.iter().zip(&validation.rows) {
        let predicted = predictions(training, layout, &[weights], x, rows)?;
        for (predicted, row) in predicted.chunks(n_outcomes).zip(rows) {
            let row = *row as usize;
            mass += weight_of(row);
            for (outcome, (sums, predicted)) in sums.iter_mut().zip(predicted).enumerate() {
                let place = row * n_outcomes + outcome;
                sums.loss += weight_of(row) * training.loss_of(place, *predicted);
                sums.at_zero += weight_of(row) * training.loss_of(place, 0.0);
                sums.square += weight_of(row) * training.by_noise(place) * predicted * predicted;
            }
        }
    }
    let mass = f64::max(mass, f64::MIN_POSITIVE);
    for sums in &mut sums {
        *sums =
            OutcomeLoss { loss: sums.loss / mass, at_zero: sums.at_zero / mass, square: sums.square / mass };
    }
    if members.len() > 1 && !validation.spread.is_empty() {
        let gained = gained_by_mean(training, layout, members, x, &validation.spread)?;
        for (sums, gained) in sums.iter_mut().zip(gained) {
            sums.loss -= gained;
            sums.square -= gained;
        }
    }
    let is_sized = n_outcomes > 1 && training.is_sized && matches!(training.target, Target::Residual(_));
    Ok(sums.iter().map(|sums| if is_sized { sums.at_best_size() } else { sums.loss }).sum())
}

/// Mean losses of an outcome: of the ensemble's predictions, of none, and their mean square.
#[derive(Clone, Default)]
struct OutcomeLoss {
    loss: f64,
    at_zero: f64,
    square: f64,
}

impl OutcomeLoss {
    /// The squared loss of predictions times the factor from 0 to 1 that suits them best.
    fn at_best_size(&self) -> f64 {
        // loss = at_zero − 2·product + square.
        let product = 0.5 * (self.at_zero + self.square - self.loss);
        if product <= 0.0 {
            return self.at_zero;
        }
        if product >= self.square {
            return self.loss;
        }
        self.at_zero - product * product / self.square
    }
}

/// How much smaller the loss of the mean over members is than the mean of theirs, by outcome.
fn gained_by_mean(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<Vec<f64>> {
    let n_outcomes = training.network.g.len();
    let (mut sum, mut squares) = (vec![0.0; rows.len() * n_outcomes], vec![0.0; rows.len() * n_outcomes]);
    for weights in members {
        let predicted = predictions(training, layout, &[weights], x, rows)?;
        for ((sum, square), predicted) in sum.iter_mut().zip(&mut squares).zip(predicted) {
            *sum += predicted;
            *square += predicted * predicted;
        }
    }
    let n = members.len() as f64;
    let (mut gained, mut mass) = (vec![0.0; n_outcomes], 0.0);
    for (place, row) in rows.iter().enumerate() {
        let row = *row as usize;
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[row]));
        mass += weight;
        for (outcome, gained) in gained.iter_mut().enumerate() {
            let own = place * n_outcomes + outcome;
            // (1 − 1/M) times the unbiased variance over members.
            let spread = (squares[own] - sum[own] * sum[own] / n).max(0.0) / n;
            *gained += weight * training.curvature_of(row * n_outcomes + outcome, sum[own] / n) * spread;
        }
    }
    Ok(gained.into_iter().map(|gained| gained / f64::max(mass, f64::MIN_POSITIVE)).collect())
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

#[cfg(test)]
mod tests {
    use super::OutcomeLoss;

    #[test]
    fn an_outcome_counts_at_the_size_that_suits_it() {
        let residual = [1.0, -0.5, 2.0, 0.3];
        for predicted in [[0.5, -0.4, 0.8, 0.1], [3.0, -2.0, 5.0, 2.0], [-1.0, 0.2, -1.0, 0.0], [0.0; 4]] {
            let mean = |term: &dyn Fn(f64, f64) -> f64| {
                residual.iter().zip(predicted).map(|(r, p)| term(*r, p)).sum::<f64>() / 4.0
            };
            let loss_at = |size: f64| mean(&|r, p| (r - size * p).powi(2));
            let sums = OutcomeLoss { loss: loss_at(1.0), at_zero: loss_at(0.0), square: mean(&|_, p| p * p) };
            let best = (0..=1_000).map(|step| loss_at(f64::from(step) / 1e3)).fold(f64::INFINITY, f64::min);
            assert!((sums.at_best_size() - best).abs() < 1e-5, "{} beside {best}", sums.at_best_size());
        }
    }
}
