//! Outcomes less what the outcome model expects, in standard units.

use super::fit_outcome;
use super::observed::StackedBaseline;
use super::{
    Folds, ObservedRows, OutcomeColumn, OutcomeFit, OutcomeLoss, OutcomeProblem, ValidOutcomeParams,
};
use crate::{Error, Result, Run};

/// Y − m̂(X), out of fold, and the models.
pub(crate) struct Residuals {
    /// Row-major, one column per outcome, in standard units.
    pub values: Vec<f32>,
    /// The mean of each outcome.
    pub means: Vec<f64>,
    /// The standard deviation of each outcome, its unit.
    pub scales: Vec<f64>,
    /// m.
    pub outcome: OutcomeFit,
}

impl Residuals {
    /// What comes out is in the order given, but for the models.
    pub(super) fn fit(
        rows: &ObservedRows<'_>,
        weight: Option<&[f32]>,
        folds: &Folds,
        (params, loss): (&ValidOutcomeParams, OutcomeLoss),
        by_name: bool,
        run: Run<'_>,
    ) -> Result<Self> {
        let mut order: Vec<usize> = (0..rows.outcomes.len()).collect();
        if by_name {
            order.sort_by_key(|idx| rows.outcomes[*idx].name);
        }
        let scaled = Scaled::new(rows, &order, loss);
        let x = rows.x.ok_or_else(|| Error::usage("an outcome model needs features"))?;
        let losses = vec![loss; order.len()];
        let given: Vec<(usize, &[f32])> =
            scaled.given.iter().map(|(outcome, values)| (*outcome, values.as_slice())).collect();
        let baseline = StackedBaseline::new(&rows.baseline);
        let problem = OutcomeProblem {
            weight,
            cluster: rows.cluster,
            given: &given,
            policy: Some(rows.policy),
            extra: baseline.as_ref().map(|baseline| baseline.rows(&scaled.baseline)),
            ..OutcomeProblem::new(x, &scaled.values, &losses)
        };
        let outcome = fit_outcome(&problem, folds, params, run.child("outcome model"))?;
        let values = scaled.values.iter().zip(&outcome.predicted).map(|(y, m)| y - m).collect();
        let own = Self { values, means: scaled.means, scales: scaled.scales, outcome };
        Ok(if order.is_sorted() { own } else { own.in_order(&order) })
    }

    /// Undoes an order of outcomes.
    fn in_order(mut self, order: &[usize]) -> Self {
        let place = |idx: usize| order.iter().position(|own| *own == idx).unwrap_or(idx);
        let places: Vec<usize> = (0..order.len()).map(place).collect();
        for values in [&mut self.values, &mut self.outcome.predicted] {
            for row in values.chunks_exact_mut(places.len()) {
                let own: Vec<f32> = places.iter().map(|place| row[*place]).collect();
                row.copy_from_slice(&own);
            }
        }
        for values in [&mut self.means, &mut self.scales, &mut self.outcome.r2] {
            *values = places.iter().map(|place| values[*place]).collect();
        }
        if !self.outcome.choices.is_empty() {
            self.outcome.choices = places.iter().map(|place| self.outcome.choices[*place].clone()).collect();
        }
        self
    }

    /// The user's own predictions of other rows, in the units of these.
    pub(crate) fn given(&self, outcomes: &[OutcomeColumn<'_>]) -> Vec<(usize, Vec<f32>)> {
        let of = |(idx, outcome): (usize, &OutcomeColumn<'_>)| {
            let units = |value: &f64| ((value - self.means[idx]) / self.scales[idx]) as f32;
            Some((idx, outcome.prediction?.iter().map(units).collect()))
        };
        outcomes.iter().enumerate().filter_map(of).collect()
    }
}

/// Outcomes in standard units, row-major: the experiment's units, for baseline rows too.
struct Scaled {
    values: Vec<f32>,
    /// The outcomes of all baseline rows.
    baseline: Vec<f32>,
    /// The user's own predictions in the same units, by outcome.
    given: Vec<(usize, Vec<f32>)>,
    means: Vec<f64>,
    scales: Vec<f64>,
}

impl Scaled {
    /// A 0/1 outcome keeps its units under the logistic loss.
    fn new(rows: &ObservedRows<'_>, order: &[usize], loss: OutcomeLoss) -> Self {
        let (n_rows, n_outcomes) = (rows.n_rows(), order.len());
        let n_baseline: usize = rows.baseline.iter().map(|part| part.x.n_rows()).sum();
        let mut scaled = Self {
            values: vec![0.0; n_rows * n_outcomes],
            baseline: vec![0.0; n_baseline * n_outcomes],
            given: Vec::new(),
            means: Vec::new(),
            scales: Vec::new(),
        };
        for (place, idx) in order.iter().enumerate() {
            let outcome = &rows.outcomes[*idx];
            let (mean, sd) = match loss {
                OutcomeLoss::Squared => moments(outcome.values, rows.weight),
                OutcomeLoss::Logistic => (0.0, 1.0),
            };
            let units = |value: f64| ((value - mean) / sd) as f32;
            let column = scaled.values.iter_mut().skip(place).step_by(n_outcomes);
            column.zip(outcome.values).for_each(|(scaled, value)| *scaled = units(*value));
            let column = scaled.baseline.iter_mut().skip(place).step_by(n_outcomes);
            let values = rows.baseline.iter().flat_map(|part| part.outcomes[*idx]);
            column.zip(values).for_each(|(scaled, value)| *scaled = units(*value));
            if let Some(prediction) = outcome.prediction {
                scaled.given.push((place, prediction.iter().map(|value| units(*value)).collect()));
            }
            scaled.means.push(mean);
            scaled.scales.push(sd);
        }
        scaled
    }
}

/// Weighted mean and standard deviation; 1 where that is zero.
fn moments(values: &[f64], weight: Option<&[f64]>) -> (f64, f64) {
    let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let total: f64 = (0..values.len()).map(weight_of).sum();
    let mean = values.iter().enumerate().map(|(row, value)| weight_of(row) * value).sum::<f64>() / total;
    let squares: f64 =
        values.iter().enumerate().map(|(row, value)| weight_of(row) * (value - mean).powi(2)).sum();
    let sd = (squares / total).sqrt();
    (mean, if sd > 0.0 { sd } else { 1.0 })
}
