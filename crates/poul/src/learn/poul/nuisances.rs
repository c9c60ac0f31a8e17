//! The settings of stage 1, and what is said of it (Sec. 2.2 of the paper).

use super::params::{OutcomeTraining, Params};
use crate::Result;
use crate::effect::ValidTrainingData;
use crate::net::Schedule;
use crate::nuisance::{
    OutcomeFit, OutcomeKind, OutcomeParams, PropensityFit, PropensityKind, PropensityParams,
    ValidOutcomeParams, ValidPropensityParams,
};

/// The settings of m for so many rows, in range.
pub(super) fn outcome_params(params: &Params, n_rows: usize) -> Result<ValidOutcomeParams> {
    outcome_settings(params, n_rows).check()
}

/// The settings of m.
pub(super) fn outcome_settings(params: &Params, n_rows: usize) -> OutcomeParams {
    let (kind, hidden) = (params.model.outcome_model, params.model.outcome_hidden.clone());
    let own = OutcomeParams { kind, hidden, ..OutcomeParams::default() };
    let (model, training) = (&params.model, &params.training);
    match training.outcome_training {
        OutcomeTraining::Own => own,
        OutcomeTraining::AsEffects => OutcomeParams {
            dropout: model.dropout,
            learning_rate: training.learning_rate,
            weight_decay: training.decay_g,
            average: training.average,
            members: model.members,
            schedule: Schedule { epochs: training.all_epochs(), ..training.schedule(n_rows) },
            ..own
        },
    }
}

/// The settings of π where it is learned: by the same kind of model as m.
pub(super) fn propensity_params(params: &Params) -> Result<ValidPropensityParams> {
    let kind = match params.model.outcome_model {
        OutcomeKind::Mlp | OutcomeKind::Dragonnet => PropensityKind::Network,
        OutcomeKind::Boosted => PropensityKind::Boosted,
        OutcomeKind::Auto => PropensityKind::Auto,
    };
    PropensityParams { kind, clip: params.training.clip, ..PropensityParams::default() }.check()
}

/// What the user should know of both.
pub(super) fn notes(
    data: &ValidTrainingData<'_>,
    outcome: &OutcomeFit,
    propensity: Option<&PropensityFit>,
    clip: f32,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (column, _) in data.outcomes.iter().zip(&outcome.r2).filter(|(_, r2)| **r2 <= 0.0) {
        notes.push(format!("the outcome model does not predict `{}`", column.name));
    }
    notes.extend(propensity.and_then(|fit| fit.report.clipping_note(clip, data.n_rows())));
    notes
}
