//! Settings of a stack: its members, their own settings, and how they are weighed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::NAME;
use crate::effect::Settings;
use crate::learn::{Learner, learner};
use crate::{Error, Result};

/// The members where none are named.
const DEFAULT_MEMBERS: [&str; 4] = ["causal-forest", "constant", "poul", "s-learner"];

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelParams {
    /// The members, in any order. Default: poul, s-learner, causal-forest, constant; at least two.
    pub(super) of: Vec<String>,
    /// Which loss weighs them. Default `auto`: the doubly robust one where nobody randomised and overlap is poor.
    pub(super) loss: StackLoss,
    /// What effects of rows lie around. Default `auto`: `anchored` where somebody randomised, else `members`.
    pub(super) level: Level,
    /// Settings of members by name, as they would be given to each alone. Default: none, their defaults.
    pub(super) learners: BTreeMap<String, Settings>,
}

/// `[training]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TrainingParams {
    /// Folds that members are weighed by. Default 4; 2 to 100.
    pub(super) folds: usize,
}

/// A loss of out-of-fold effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StackLoss {
    /// By the design and the overlap of its arms.
    #[default]
    Auto,
    /// The R-loss: rows count by how open their assignment was.
    R,
    /// The squared distance from doubly robust scores: all rows count the same.
    DoublyRobust,
}

/// What effects of rows lie around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// `anchored` where somebody randomised, so that averages are right whatever the model; `members` where averages rest on
    /// models anyway, of which the out-of-fold loss knows the best.
    #[default]
    Auto,
    /// The averages of policies by `poul`, where it is a member and has them.
    Anchored,
    /// What members make of it.
    Members,
}

impl Default for ModelParams {
    fn default() -> Self {
        Self {
            of: DEFAULT_MEMBERS.map(str::to_owned).to_vec(),
            loss: StackLoss::default(),
            level: Level::default(),
            learners: BTreeMap::new(),
        }
    }
}

impl Default for TrainingParams {
    fn default() -> Self {
        Self { folds: 4 }
    }
}

/// Settings that were checked.
pub(super) struct Params {
    pub(super) model: ModelParams,
    pub(super) training: TrainingParams,
    /// The members in order of names, with their settings complete.
    pub(super) members: Vec<(&'static Learner, Settings)>,
}

/// Completes settings with defaults; refuses unknown names and values out of range.
pub(super) fn settle(settings: &Settings) -> Result<Settings> {
    let params = read(settings)?;
    Settings::of(None, &params.model, &params.training)
}

/// Reads and checks settings.
pub(super) fn read(settings: &Settings) -> Result<Params> {
    let hint = "presets of members stand under [learners.NAME]";
    settings.require_no_preset(NAME).map_err(|error| error.hint(hint))?;
    let (mut model, training): (ModelParams, TrainingParams) = settings.read()?;
    if !(2..=100).contains(&training.folds) {
        return Err(Error::usage("`training.folds` is out of range").hint("it must be 2 to 100"));
    }
    model.of.sort();
    let place = || "`of` under [model]";
    if let Some(twice) = model.of.windows(2).find(|pair| pair[0] == pair[1]) {
        let error = Error::usage(format!("`{}` is named twice", twice[0])).at(place());
        return Err(error.hint("name each member once"));
    }
    if model.of.len() < 2 {
        let error = Error::usage("a stack needs at least two members").at(place());
        return Err(error.hint("name them: ‹of=poul,s-learner,constant›"));
    }
    if model.of.iter().any(|name| name == NAME) {
        let error = Error::usage(format!("`{NAME}` cannot be a member of itself")).at(place());
        return Err(error.hint("name the members of the inner stack instead"));
    }
    if let Some(name) = model.learners.keys().find(|name| !model.of.contains(name)) {
        let error =
            Error::usage(format!("`{name}` is not a member of the stack")).at("`learners` under [model]");
        return Err(error.hint("add it to `of`, or leave its settings out"));
    }
    let mut members = Vec::with_capacity(model.of.len());
    for name in &model.of {
        let learner = learner(name).map_err(|error| error.at(place()))?;
        let given = model.learners.get(name).cloned().unwrap_or_default();
        let settings = (learner.settle)(&given).map_err(|error| error.within(format!("member `{name}`")))?;
        members.push((learner, settings));
    }
    Ok(Params { model, training, members })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(model: serde_json::Value) -> Result<Settings> {
        let model = model.as_object().cloned().unwrap_or_default();
        settle(&Settings { model, ..Settings::default() })
    }

    #[test]
    fn members_are_in_order_and_mistakes_are_named() {
        let own = settled(json!({ "of": ["ridge", "constant"] })).unwrap();
        assert_eq!(own.model["of"], json!(["constant", "ridge"]));
        assert_eq!(own, settled(json!({ "of": ["constant", "ridge"] })).unwrap());
        assert_eq!(settle(&own).unwrap(), own);
        let message = |model| settled(model).unwrap_err().to_string();
        assert_eq!(
            message(json!({ "of": ["ridge", "ridge"] })),
            "`of` under [model]: `ridge` is named twice"
        );
        assert_eq!(
            message(json!({ "of": ["ridge"] })),
            "`of` under [model]: a stack needs at least two members"
        );
        assert_eq!(
            message(json!({ "of": ["ridge", "stack"] })),
            "`of` under [model]: `stack` cannot be a member of itself"
        );
        assert!(message(json!({ "of": ["ridge", "rigde"] })).contains("`rigde`"));
        assert!(message(json!({ "learners": { "ridge": {} } })).contains("`ridge` is not a member"));
        let wrong = json!({ "of": ["ridge", "constant"], "learners": { "ridge": { "model": { "x": 1 } } } });
        assert!(message(wrong).contains("member `ridge`"));
        assert!(message(json!({ "loss": "t" })).starts_with("`loss` is \"t\": must be "));
    }
}
