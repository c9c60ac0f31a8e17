//! The whole of Algorithm 2: outcomes in standard units, nuisances out of fold, then g and h on the residuals.

use super::fit::{Fitted, Problem, fit};
use super::nuisances::{Residuals, fit_pi, folds, notes, out_of_fold};
use super::params::{ModelParams, Params, TrainingParams, ValidParams};
use super::phases::phases;
use super::poul::Poul;
use super::preset;
use super::warm_start::WarmStart;
use crate::effect::{EffectModel, Phase, Settings, Tensors, Trained, ValidTrainingData};
use crate::nuisance::PropensityModels;
use crate::{Progress, Result, Seed};

/// The learner's name.
pub const NAME: &str = "poul";

/// Completes settings with defaults; refuses unknown names and values out of range.
pub fn settle(settings: &Settings) -> Result<Settings> {
    let params = params(settings)?;
    Settings::of(settings.preset.clone(), &params.model, &params.training)
}

/// Learns effects.
pub fn train(
    data: &ValidTrainingData<'_>,
    settings: &Settings,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Trained> {
    let params = params(settings)?;
    let phases = phases(data, &params.training)?;
    let names: Vec<String> = data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect();
    let start =
        data.start.map(|saved| WarmStart::new(saved, &names, data.x.n_cols(), &params)).transpose()?;
    let seed = seed.child("poul");
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let weight = weight.as_deref();
    let folds = folds(data, params.training.folds, seed);
    let Residuals { mut values, mut scales, outcome } = out_of_fold(data, weight, &folds, seed, progress)?;
    if let Some(start) = &start {
        change_units(&mut values, &scales, start.scales());
        scales = start.scales().to_vec();
    }
    let propensity = fit_pi(data, weight, &folds, seed, progress)?;
    let problem = Problem {
        x: data.x,
        policies: data.policies,
        policy: data.policy,
        residual: &values,
        weight,
        cluster: data.cluster,
        propensity: &propensity.propensity,
        phases: &phases,
        start: start.as_ref(),
    };
    let Fitted { space, weights, history: effects } =
        fit(&problem, &params, seed.child("effects"), progress)?;

    let mut history = Vec::new();
    for (fold, model) in outcome.models.folds().iter().enumerate() {
        let name = format!("outcome model, fold {}", fold + 1);
        history.push(Phase { name, epochs: model.history().to_vec(), best: Some(model.best_epoch()) });
    }
    for (fold, (epochs, best)) in propensity.models.iter().flat_map(PropensityModels::histories).enumerate() {
        let name = format!("propensity, fold {}", fold + 1);
        history.push(Phase { name, epochs: epochs.to_vec(), best: Some(best) });
    }
    history.extend(effects);
    let poul = Poul::new(names, scales, data.x.n_cols(), space, &params, weights)?;
    Ok(Trained { effects: Box::new(poul), history, notes: notes(data, &outcome, &propensity) })
}

/// Reads a model back.
pub fn load(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    Ok(Box::new(Poul::from_parts(manifest.clone(), tensors)?))
}

/// What was given, over the defaults of the preset.
fn params(settings: &Settings) -> Result<ValidParams> {
    let defaults = preset::defaults(settings.preset.as_deref())?;
    let (model, training): (ModelParams, TrainingParams) = match settings.preset {
        None => settings.read()?,
        Some(_) => settings.over(&Settings::of(None, &defaults.model, &defaults.training)?).read()?,
    };
    Params { model, training }.check()
}

/// From the units of `scales` to those of `others`; row-major, one column per outcome.
fn change_units(values: &mut [f32], scales: &[f64], others: &[f64]) {
    let factors: Vec<f32> = scales.iter().zip(others).map(|(own, other)| (own / other) as f32).collect();
    for row in values.chunks_exact_mut(factors.len().max(1)) {
        row.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
    }
}
