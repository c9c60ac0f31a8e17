//! Which nuisance models were chosen where the choice was left to the data, for the model file and for notes.

use serde::{Deserialize, Serialize};

use crate::effect::OutcomeColumn;
use crate::nuisance::{NuisanceChoice, OutcomeFit, PropensityFit};

/// What `outcome_model = "auto"` chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenNuisances {
    /// For each outcome that was not predicted by the user.
    pub outcomes: Vec<ChosenOutcomeModel>,
    /// For the propensity, where it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propensity: Option<NuisanceChoice>,
}

/// The model of one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenOutcomeModel {
    /// The outcome's name.
    pub outcome: String,
    /// What predicts it.
    pub choice: NuisanceChoice,
}

impl ChosenNuisances {
    /// None where nothing was left to choose.
    pub(super) fn new(
        outcomes: &[OutcomeColumn<'_>],
        outcome: &OutcomeFit,
        propensity: Option<&PropensityFit>,
    ) -> Option<Self> {
        let chosen = outcomes.iter().zip(&outcome.choices).filter_map(|(column, choice)| {
            Some(ChosenOutcomeModel { outcome: column.name.to_owned(), choice: choice.clone()? })
        });
        let propensity = propensity.and_then(|fit| fit.choice.clone());
        let chosen = Self { outcomes: chosen.collect(), propensity };
        (!chosen.outcomes.is_empty() || chosen.propensity.is_some()).then_some(chosen)
    }

    /// In plain words.
    pub(super) fn notes(&self) -> Vec<String> {
        let of_outcome =
            |own: &ChosenOutcomeModel| own.choice.sentence(&format!("outcome model of `{}`", own.outcome));
        let propensity = self.propensity.iter().map(|choice| choice.sentence("propensity"));
        self.outcomes.iter().map(of_outcome).chain(propensity).collect()
    }
}
