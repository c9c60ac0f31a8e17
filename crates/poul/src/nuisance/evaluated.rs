//! m̂ and π of rows on which effects are evaluated, fitted on these rows out of fold: what the doubly robust score needs.

use std::sync::Arc;

use super::{
    Assignment, Folds, KnownDesign, OutcomeLoss, OutcomeParams, OutcomeProblem, PropensityColumn,
    PropensityFit, PropensityParams, cross_fit_ridge, fit_outcome, fit_propensity,
};
use crate::data::Design;
use crate::net::RowSource;
use crate::{Progress, Result, Seed};

const FOLDS: usize = 5;

/// Rows with what they got and what happened.
#[derive(Clone, Copy)]
pub struct EvaluatedRows<'a> {
    /// Encoded features, where there are any.
    pub x: Option<&'a dyn RowSource>,
    /// Who was given what; weights and clusters too.
    pub assignment: Assignment<'a>,
    /// How that came about.
    pub design: Design,
    /// Stratum of each row, and the strata that it has the codes of.
    pub stratum: Option<(&'a [u32], &'a [Arc<str>])>,
    /// The user's own propensities; they win over the design.
    pub propensity: &'a [PropensityColumn<'a>],
    /// The outcomes whose m̂ is wanted.
    pub outcomes: &'a [&'a [f64]],
}

/// The nuisances of some rows.
#[derive(Clone, Debug)]
pub struct EvaluatedNuisances {
    /// m̂ of each outcome, out of fold; none without features, or with fewer units than folds.
    pub predictions: Option<Vec<Vec<f64>>>,
    /// π(t|x); none in an observational design with neither features nor propensity columns.
    pub propensity: Option<PropensityFit>,
}

/// Fits them. m̂ is a ridge of the encoded features where assignment was random, within strata or not: there it only
/// sharpens. In an observational design m̂ and π are networks, since averages rest on them.
pub fn evaluated_nuisances(
    rows: &EvaluatedRows<'_>,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<EvaluatedNuisances> {
    let seed = seed.child("evaluated rows");
    let Assignment { weight, cluster, policy, .. } = rows.assignment;
    let n_rows = policy.len();
    let folds = Folds::deal(n_rows, cluster, FOLDS, seed);
    let x = rows.x.filter(|_| folds.check(n_rows).is_ok());
    let known = KnownDesign {
        design: rows.design,
        columns: rows.propensity,
        stratum: rows.stratum,
        table: None,
        features: x.map(|x| (x, &folds)),
    };
    let design = known.assignment()?;
    let params = PropensityParams::default().check()?;
    let fit = |design| fit_propensity(&rows.assignment, &design, &params, seed.child("propensity"), progress);
    let propensity = design.map(fit).transpose()?;
    let Some(x) = x.filter(|_| propensity.is_some() && !rows.outcomes.is_empty()) else {
        return Ok(EvaluatedNuisances { predictions: None, propensity });
    };
    let predictions = if rows.design == Design::Observational {
        let n_outcomes = rows.outcomes.len();
        let outcomes: Vec<f32> =
            (0..n_rows).flat_map(|row| rows.outcomes.iter().map(move |values| values[row] as f32)).collect();
        let losses = vec![OutcomeLoss::Squared; n_outcomes];
        let problem = OutcomeProblem { weight, cluster, ..OutcomeProblem::new(x, &outcomes, &losses) };
        let params = OutcomeParams::default().check()?;
        let fit = fit_outcome(&problem, &folds, &params, seed.child("outcome model"), progress)?;
        let column = |outcome| fit.predicted.iter().skip(outcome).step_by(n_outcomes);
        (0..n_outcomes).map(|outcome| column(outcome).map(|value| f64::from(*value)).collect()).collect()
    } else {
        let weight: Option<Vec<f64>> =
            weight.map(|weight| weight.iter().map(|weight| f64::from(*weight)).collect());
        cross_fit_ridge(x, rows.outcomes, weight.as_deref(), &folds, progress)?.predicted
    };
    Ok(EvaluatedNuisances { predictions: Some(predictions), propensity })
}
