//! Each row by its own policy against what was assigned on average: what can be measured however few rows a policy has.

use super::measure::Compared;
use super::nuisances::Nuisances;
use crate::effect::{AssignedTable, PolicyColumn};
use crate::evaluate::{AssignedResult, AssignedRows, ValidParams, assigned};
use crate::model::Model;
use crate::net::RowSource;
use crate::nuisance::Propensity;
use crate::{Progress, Result, Seed};

/// The contrasts of each outcome by effects at hand, where every policy that was assigned has them.
pub(super) fn by_columns(
    compared: &Compared<'_>,
    nuisances: &Nuisances,
    seed: Seed,
) -> Vec<Option<Vec<f64>>> {
    let n_outcomes = compared.rows.outcomes.len();
    let Some(propensity) = &nuisances.propensity else { return vec![None; n_outcomes] };
    let is_scored = vec![true; compared.policies.len()];
    let table = table(compared, propensity, &is_scored, seed);
    let of_outcome = |outcome: usize| {
        let own = compared.effects.iter().filter(|own| own.outcome.is_none_or(|only| only == outcome));
        let columns: Vec<PolicyColumn<'_>> =
            own.map(|own| PolicyColumn { policy: own.policy, effects: own.values }).collect();
        if columns.is_empty() { None } else { table.by_columns(&columns) }
    };
    (0..n_outcomes).map(of_outcome).collect()
}

/// The contrasts of each outcome by a model. `outcomes` are their places among the model's; `is_scored` marks the policies
/// that it can score.
pub(super) fn by_model(
    model: &Model,
    compared: &Compared<'_>,
    nuisances: &Nuisances,
    (outcomes, is_scored): (&[usize], &[bool]),
    x: &dyn RowSource,
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Vec<Option<Vec<f64>>>> {
    let Some(propensity) = &nuisances.propensity else { return Ok(vec![None; outcomes.len()]) };
    let table = table(compared, propensity, is_scored, params.bootstrap.seed);
    let contrasts = table.by_model(model.effects(), x, progress)?;
    Ok(outcomes.iter().map(|outcome| contrasts.get(*outcome).cloned()).collect())
}

/// The metrics of each outcome whose contrasts are known. m̂ is the user's, or fitted, or else the mean of all rows.
pub(super) fn measured(
    compared: &Compared<'_>,
    nuisances: &Nuisances,
    contrasts: &[Option<Vec<f64>>],
    is_seen: Option<&[bool]>,
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Vec<AssignedResult>> {
    let mut results = Vec::new();
    for (place, (outcome, contrast)) in compared.outcomes().iter().zip(contrasts).enumerate() {
        let Some(contrast) = contrast else { continue };
        let fitted = nuisances.predictions[place].as_deref();
        let residual: Vec<f64> = match outcome.prediction.or(fitted) {
            Some(expected) => outcome.values.iter().zip(expected).map(|(y, m)| y - m).collect(),
            None => outcome.values.to_vec(),
        };
        let rows = AssignedRows {
            residual: &residual,
            contrast,
            policy: &compared.rows.policy,
            is_seen,
            weight: compared.rows.weight.as_deref(),
            cluster: compared.rows.cluster.as_deref(),
        };
        let readings = assigned(&rows, &params.bootstrap, progress)?;
        let named =
            readings.into_iter().map(|own| AssignedResult { outcome: outcome.name.to_owned(), ..own.result });
        results.extend(named);
    }
    Ok(results)
}

fn table<'a>(
    compared: &'a Compared<'_>,
    propensity: &'a Propensity,
    is_scored: &'a [bool],
    seed: Seed,
) -> AssignedTable<'a> {
    let Compared { rows, policies, against, .. } = compared;
    AssignedTable { policies, policy: &rows.policy, propensity, is_scored, against: *against, seed }
}
