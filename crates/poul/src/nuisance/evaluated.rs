//! m̂ and π of rows on which effects are evaluated, fitted on these rows out of fold: what the doubly robust score needs.

use super::{
    Folds, ObservedRows, OutcomeLoss, OutcomeParams, OutcomeProblem, PropensityFit, PropensityParams,
    cross_fit_ridge, fit_outcome,
};
use crate::data::Design;
use crate::{Result, Run};

const FOLDS: usize = 5;

/// The nuisances of some rows.
#[derive(Clone, Debug)]
pub struct EvaluatedNuisances {
    /// m̂ of each outcome, out of fold, in its own units. None where the user's own is given, without features, or with fewer
    /// units than folds.
    pub predictions: Vec<Option<Vec<f64>>>,
    /// π(t|x); none in an observational design with neither features nor propensity columns.
    pub propensity: Option<PropensityFit>,
}

/// Fits them. m̂ is a ridge of the encoded features where assignment was random, within strata or not: there it only
/// sharpens. In an observational design m̂ and π are networks, since averages rest on them.
pub fn evaluated_nuisances(rows: &ObservedRows<'_>, run: Run<'_>) -> Result<EvaluatedNuisances> {
    let run = run.child("evaluated rows");
    let (n_rows, cluster) = (rows.n_rows(), rows.cluster);
    let folds = Folds::deal(n_rows, cluster, FOLDS, run.seed);
    let x = rows.x.filter(|_| folds.check(n_rows).is_ok());
    let rows = &ObservedRows { x, ..rows.clone() };
    let weight = rows.single_weight();
    let weight = weight.as_deref();
    let params = PropensityParams::default().check()?;
    let propensity = rows.fit_propensity(weight, &folds, &params, run)?;
    let wanted: Vec<usize> =
        (0..rows.outcomes.len()).filter(|outcome| rows.outcomes[*outcome].prediction.is_none()).collect();
    let mut predictions = vec![None; rows.outcomes.len()];
    let Some(x) = x.filter(|_| propensity.is_some() && !wanted.is_empty()) else {
        return Ok(EvaluatedNuisances { predictions, propensity });
    };
    let outcomes: Vec<&[f64]> = wanted.iter().map(|outcome| rows.outcomes[*outcome].values).collect();
    let fitted: Vec<Vec<f64>> = if rows.design == Design::Observational {
        let n_outcomes = outcomes.len();
        let values: Vec<f32> =
            (0..n_rows).flat_map(|row| outcomes.iter().map(move |values| values[row] as f32)).collect();
        let losses = vec![OutcomeLoss::Squared; n_outcomes];
        let problem = OutcomeProblem { weight, cluster, ..OutcomeProblem::new(x, &values, &losses) };
        let params = OutcomeParams::default().check()?;
        let fit = fit_outcome(&problem, &folds, &params, run.child("outcome model"))?;
        let column = |outcome| fit.predicted.iter().skip(outcome).step_by(n_outcomes);
        (0..n_outcomes).map(|outcome| column(outcome).map(|value| f64::from(*value)).collect()).collect()
    } else {
        let weight: Option<Vec<f64>> =
            weight.map(|weight| weight.iter().map(|weight| f64::from(*weight)).collect());
        cross_fit_ridge(x, &outcomes, weight.as_deref(), &folds, run.progress)?.predicted
    };
    wanted.into_iter().zip(fitted).for_each(|(outcome, values)| predictions[outcome] = Some(values));
    Ok(EvaluatedNuisances { predictions, propensity })
}
