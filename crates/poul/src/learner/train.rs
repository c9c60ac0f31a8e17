//! The whole of Algorithm 2: outcomes in standard units, nuisances out of fold, then g and h on the residuals.

use super::fit::{Problem, fit};
use super::nuisances::{Residuals, fit_pi, folds, notes, out_of_fold, outcome_params, propensity_params};
use super::params::{ModelParams, Params, TrainingParams, ValidParams};
use super::poul::Poul;
use crate::effect::{EffectModel, Phase, Settings, Tensors, Trained, ValidTrainingData};
use crate::nuisance::PropensityModels;
use crate::{Error, Progress, Result, Seed};

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
    let seed = seed.child("poul");
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let weight = weight.as_deref();
    let folds = folds(data, params.training.folds, seed);
    let Residuals { values: residual, scales, outcome } =
        out_of_fold(data, weight, &folds, &outcome_params(&params)?, seed, progress)?;
    let propensity = fit_pi(data, weight, &folds, &propensity_params(&params)?, seed, progress)?;
    let problem = Problem {
        x: data.x,
        policies: data.policies,
        policy: data.policy,
        residual: &residual,
        weight,
        cluster: data.cluster,
        propensity: &propensity.propensity,
    };
    let (space, trained) = fit(&problem, &params, seed.child("effects"), progress)?;

    let mut history = Vec::new();
    for (fold, model) in outcome.models.folds().iter().enumerate() {
        let name = format!("outcome model, fold {}", fold + 1);
        history.push(Phase { name, epochs: model.history().to_vec(), best: Some(model.best_epoch()) });
    }
    for (fold, (epochs, best)) in propensity.models.iter().flat_map(PropensityModels::histories).enumerate() {
        let name = format!("propensity, fold {}", fold + 1);
        history.push(Phase { name, epochs: epochs.to_vec(), best: Some(best) });
    }
    history.push(Phase { name: "effects".into(), epochs: trained.history, best: Some(trained.best) });
    let names = data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect();
    let poul = Poul::new(names, scales, data.x.n_cols(), space, &params, trained.weights)?;
    Ok(Trained {
        effects: Box::new(poul),
        history,
        notes: notes(data, &outcome, &propensity, params.training.clip),
    })
}

/// Reads a model back.
pub fn load(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    Ok(Box::new(Poul::from_parts(manifest.clone(), tensors)?))
}

fn params(settings: &Settings) -> Result<ValidParams> {
    if let Some(preset) = &settings.preset {
        return Err(Error::usage(format!("the learner `{NAME}` has no preset `{preset}`")));
    }
    let (model, training): (ModelParams, TrainingParams) = settings.read()?;
    Params { model, training }.check()
}
