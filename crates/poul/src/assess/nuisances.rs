//! m̂ and π of the evaluated rows, for average effects and for what was assigned.

use super::measure::Compared;
use super::rows::Rows;
use crate::net::RowSource;
use crate::nuisance::{EvaluatedNuisances, ObservedRows, Propensity, PropensityColumn, evaluated_nuisances};
use crate::{Progress, Result, Seed};

/// What average effects, and metrics of each row's own policy, need beside predicted effects.
pub(super) struct Nuisances {
    /// m̂ by outcome, where it was fitted.
    pub(super) predictions: Vec<Option<Vec<f64>>>,
    /// π(t|x); none where it cannot be known.
    pub(super) propensity: Option<Propensity>,
}

impl Nuisances {
    /// By outcome, the m̂ that averages are taken with, of the rows with these numbers: the user's own, or what was fitted.
    pub(super) fn expected(&self, rows: &Rows, numbers: &[u64]) -> Vec<Option<Vec<f64>>> {
        // Both are in the order of the source.
        let mut places = rows.number.iter().enumerate();
        let place = |number: &u64| places.find(|(_, own)| *own == number).map(|(place, _)| place);
        let places: Vec<usize> = numbers.iter().filter_map(place).collect();
        let of = |(outcome, fitted): (usize, &Option<Vec<f64>>)| {
            let values = rows.prediction(outcome).or(fitted.as_deref())?;
            let values = (places.len() == numbers.len()).then_some(values)?;
            Some(places.iter().map(|place| values[*place]).collect())
        };
        self.predictions.iter().enumerate().map(of).collect()
    }

    /// By the design of the columns; `x` are the encoded features, where there is a model.
    pub(super) fn of(
        compared: &Compared<'_>,
        x: Option<&dyn RowSource>,
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let Compared { rows: table, columns, policies, .. } = compared;
        let propensity = columns.propensity.iter().zip(&table.propensity);
        let propensity = propensity.map(|(part, values)| PropensityColumn {
            column: &part.column,
            policy: &part.policy,
            values,
        });
        let rows = ObservedRows {
            x,
            outcomes: compared.outcomes(),
            weight: table.weight.as_deref(),
            cluster: table.cluster.as_deref(),
            numbers: Some(&table.number),
            design: columns.design,
            stratum: table.stratum.as_deref().map(|stratum| (stratum, table.stratum_labels.names())),
            propensity: propensity.collect(),
            ..ObservedRows::new(policies.names(), &table.arm)
        };
        let EvaluatedNuisances { predictions, propensity } = evaluated_nuisances(&rows, seed, progress)?;
        let Some(fit) = propensity else {
            progress.warn(
                "no average effects: an observational design needs a model, or columns of probabilities (‹propensity›)",
            );
            return Ok(Self { predictions, propensity: None });
        };
        if fit.report.clipped_own_rows > 0 {
            let share = 100.0 * fit.report.clipped_own_rows as f64 / table.arm.len() as f64;
            progress.warn(&format!(
                "{share:.1} % of the rows had next to no chance of the policy that they have: its average leaves them out"
            ));
        }
        Ok(Self { predictions, propensity: Some(fit.propensity) })
    }
}
