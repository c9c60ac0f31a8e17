//! m by whatever predicts best: a ridge, networks, boosted trees, or a convex combination of them, for each outcome.

use crate::nuisance::NuisanceModel;
use crate::nuisance::boosted::room;
use crate::nuisance::choice::{ChoiceLoss, NuisanceChoice, OutOfFold};
use crate::{Error, Result};

use super::boosted::fit_boosted;
use super::cross_fit::{Fitted, Task};
use super::linear::fit_lines;
use super::networks::fit_networks;
use super::params::{OutcomeKind, OutcomeLoss, OutcomeParams};
use super::stored::{Blend, OutcomeModels};

/// Fits all and chooses.
pub(super) fn fit_auto(task: &Task<'_>) -> Result<Fitted> {
    let Task { folds, fitted, pool, .. } = *task;
    if folds.n_folds < 2 {
        let error = Error::usage(
            "the outcome model `auto` is chosen by out-of-fold loss, which one fold does not have",
        );
        return Err(
            error.hint("set `training.folds` to 2 or more, or name a model: `mlp`, `dragonnet` or `boosted`")
        );
    }
    // The very networks that `mlp` would be.
    let networks = OutcomeParams { kind: OutcomeKind::Mlp, ..task.params.clone() };
    let networks = fit_networks(&Task { params: &networks, ..*task })?;
    if fitted.is_empty() {
        return Ok(networks);
    }
    let (of_lines, lines) = fit_lines(task)?;
    let (boosted, left_out) = match room(pool.x, pool.x.n_rows()) {
        Ok(()) => (Some(fit_boosted(task)?), None),
        Err(why) => (None, Some(format!("boosted trees left out: {why}"))),
    };
    let mut parts: Vec<(NuisanceModel, &[f32])> =
        vec![(NuisanceModel::Ridge, &of_lines), (NuisanceModel::Network, &networks.predicted)];
    parts.extend(boosted.as_ref().map(|own| (NuisanceModel::Boosted, own.predicted.as_slice())));
    let choices: Vec<NuisanceChoice> =
        (0..fitted.len()).map(|place| choose(task, place, &parts, left_out.clone())).collect();
    let mut predicted = vec![0.0; networks.predicted.len()];
    for (model, values) in &parts {
        let weights: Vec<f32> = choices.iter().map(|choice| choice.weight(*model) as f32).collect();
        for (sums, values) in predicted.chunks_mut(weights.len()).zip(values.chunks(weights.len())) {
            let own = sums.iter_mut().zip(values).zip(&weights);
            own.for_each(|((sum, value), weight)| *sum += weight * value);
        }
    }
    let weights_of = |model| choices.iter().map(|choice| choice.weight(model) as f32).collect::<Vec<f32>>();
    let blend = Blend {
        ridge: weights_of(NuisanceModel::Ridge),
        network: weights_of(NuisanceModel::Network),
        boosted: weights_of(NuisanceModel::Boosted),
    };
    // What has no weight anywhere need not be kept.
    let is_used = |weights: &[f32]| weights.iter().any(|weight| *weight > 0.0);
    let OutcomeModels { n_outcomes, fitted, shape, networks, .. } = networks.models;
    let models = OutcomeModels {
        n_outcomes,
        fitted,
        shape,
        networks: if is_used(&blend.network) { networks } else { Vec::new() },
        boosted: boosted.and_then(|own| own.models.boosted).filter(|_| is_used(&blend.boosted)),
        lines: Some(lines).filter(|_| is_used(&blend.ridge)),
        blend: Some(blend),
    };
    Ok(Fitted { predicted, choices, models: models.of_kind(OutcomeKind::Auto) })
}

/// What is best for one of the fitted outcomes.
fn choose(
    task: &Task<'_>,
    place: usize,
    parts: &[(NuisanceModel, &[f32])],
    left_out: Option<String>,
) -> NuisanceChoice {
    let Task { problem, fitted, .. } = *task;
    let column = |values: &[f32], width: usize, place: usize| -> Vec<f32> {
        values.iter().skip(place).step_by(width).copied().collect()
    };
    let outcome = column(problem.outcomes, problem.losses.len(), fitted[place]);
    let weight = |row: usize| problem.weight.map_or(1.0, |weight| f64::from(weight[row]));
    let mass: f64 = (0..outcome.len()).map(weight).sum();
    let mean = |value: &dyn Fn(f64) -> f64| {
        outcome.iter().enumerate().map(|(row, own)| weight(row) * value(f64::from(*own))).sum::<f64>() / mass
    };
    let centre = mean(&|own| own);
    let (by, constant) = match problem.losses[fitted[place]] {
        OutcomeLoss::Squared => (ChoiceLoss::Squared, mean(&|own| (own - centre).powi(2))),
        OutcomeLoss::Logistic => {
            let p = centre.clamp(1e-7, 1.0 - 1e-7);
            (ChoiceLoss::Log, -(p * p.ln() + (1.0 - p) * (1.0 - p).ln()))
        }
    };
    let predicted =
        parts.iter().map(|(model, values)| (*model, column(values, fitted.len(), place))).collect();
    let rows = OutOfFold {
        predicted,
        outcome: Some(outcome),
        constant,
        by,
        weight: problem.weight,
        cluster: problem.cluster,
    };
    rows.choose(left_out)
}
