//! From a model and a new table to the next model: what the two must share, and what of the old one is kept.

use std::borrow::Cow;

use super::Model;
use super::fit::FitRequest;
use crate::checkpoint::hash;
use crate::policy::PolicySet;
use crate::{Error, Result};

/// Refuses a model that training cannot start from.
pub(super) fn check(saved: &Model, request: &FitRequest<'_>) -> Result<()> {
    let manifest = &saved.manifest;
    let place = "warm start";
    if manifest.learner != request.learner {
        let what =
            format!("the saved model is of the learner `{}`, not `{}`", manifest.learner, request.learner);
        return Err(Error::usage(what)
            .at(place)
            .hint(format!("use the same learner: ‹learner={}›", manifest.learner)));
    }
    if !saved.effects.starts_training() {
        let what = format!("the learner `{}` cannot start from a model", manifest.learner);
        return Err(Error::usage(what)
            .at(place)
            .hint("leave out the model to start from: it learns at once"));
    }
    let outcomes: Vec<&str> = manifest.outcomes.iter().map(|outcome| outcome.name.as_str()).collect();
    let experiment = request.experiment;
    if experiment.columns().outcomes != outcomes {
        let (saved, ours) = (outcomes.join(","), experiment.columns().outcomes.join(","));
        let what = format!("the saved model is of the outcomes {saved}, not {ours}");
        return Err(Error::usage(what)
            .at(place)
            .hint(format!("name them in this order, ‹outcome={saved}›, or fit without a saved model")));
    }
    let is_exposed =
        !experiment.columns().exposure.is_empty() || !experiment.policies().exposure().is_empty();
    if manifest.exposure.is_some() || is_exposed {
        let error = Error::usage("a model with exposures of rows cannot be trained on yet");
        return Err(error.at(place).hint("fit afresh on all rows"));
    }
    if let Some(preset) = &request.settings.preset {
        let what = format!("the settings are those of the saved model, not of the preset `{preset}`");
        return Err(Error::usage(what).at(place).hint("leave out the preset, or fit afresh"));
    }
    Ok(())
}

/// The policies of the new table and, where they are over the same contexts, those of the saved model too, which it
/// still knows; a note where they are not.
pub(super) fn policies<'p>(
    saved: Option<&Model>,
    new: &'p PolicySet,
) -> Result<(Cow<'p, PolicySet>, Vec<String>)> {
    let Some(saved) = saved else { return Ok((Cow::Borrowed(new), Vec::new())) };
    let old = &saved.manifest.policies;
    if old.contexts() != new.contexts() {
        let note = "the contexts changed: the policies of the saved model are not listed in the new one";
        return Ok((Cow::Borrowed(new), vec![note.to_owned()]));
    }
    let both = new.union(old).map_err(|error| error.at("warm start"))?;
    Ok((Cow::Owned(both), Vec::new()))
}

/// How many rows of all tables each policy had.
pub(super) fn policy_rows(saved: Option<&Model>, policies: &PolicySet, new: &[u64]) -> Vec<u64> {
    let mut rows = new.to_vec();
    if let Some(saved) = saved {
        let old = saved.manifest.policies.names().iter().zip(&saved.manifest.policy_rows);
        for (name, n_rows) in old {
            if let Some(policy) = policies.index(name) {
                rows[policy] += n_rows;
            }
        }
    }
    rows
}

/// One number for everything in a model.
pub(super) fn digest(saved: &Model) -> Result<String> {
    let mut bytes = saved.manifest.to_text()?.into_bytes();
    for tensor in saved.effects.tensors() {
        tensor.values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    Ok(format!("{:016x}", hash(&bytes)))
}
