//! Training phases: stage 2 on one population after the other (the (i, j) epochs of App. C of the paper).

use serde::{Deserialize, Serialize};

use super::params::TrainingParams;
use crate::effect::ValidTrainingData;
use crate::net::Schedule;
use crate::{Error, Result};

/// One phase of training.
///
/// A phase starts from the weights that the one before it kept, with a fresh optimiser, and stops early by the
/// validation rows of its own population.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseParams {
    /// The rows it trains on, by an expression like that of `population`. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<String>,
    /// Most passes over the rows. Default 80; at least 1.
    pub epochs: usize,
}

impl Default for PhaseParams {
    fn default() -> Self {
        Self { population: None, epochs: TrainingParams::default().epochs }
    }
}

/// A phase and its rows.
pub(super) struct TrainingPhase {
    /// What progress and errors call it.
    pub(super) title: String,
    /// What the history calls it.
    pub(super) name: String,
    pub(super) schedule: Schedule,
    /// Whether each row belongs to it; all do without a mask.
    mask: Option<Vec<bool>>,
}

impl TrainingPhase {
    /// Those of `rows` that belong to the phase.
    pub(super) fn select(&self, rows: &[u32]) -> Vec<u32> {
        let belongs = |row: &u32| self.mask.as_ref().is_none_or(|mask| mask[*row as usize]);
        rows.iter().copied().filter(belongs).collect()
    }
}

/// The phases that the settings ask for, one where they ask for none; each has rows of two policies.
pub(super) fn phases(data: &ValidTrainingData<'_>, params: &TrainingParams) -> Result<Vec<TrainingPhase>> {
    let asked = match params.phases.as_slice() {
        [] => &[PhaseParams { population: None, epochs: params.epochs }],
        phases => phases,
    };
    let n_phases = asked.len();
    let mut phases = Vec::with_capacity(n_phases);
    for (index, PhaseParams { population, epochs }) in asked.iter().enumerate() {
        let (title, name) = match n_phases {
            1 => ("Learning effects".to_owned(), "effects".to_owned()),
            _ => {
                let number = index + 1;
                (
                    format!("Learning effects, phase {number} of {n_phases}"),
                    format!("effects, phase {number}"),
                )
            }
        };
        let place = || format!("phase {}", index + 1);
        let mask = population.as_ref().map(|text| mask(data, text).map_err(|error| error.within(place())));
        let schedule = Schedule { epochs: *epochs, ..params.schedule(data.n_rows()) };
        phases.push(TrainingPhase { title, name, schedule, mask: mask.transpose()? });
    }
    Ok(phases)
}

/// Whether each row belongs to a population, which must have rows of two policies.
fn mask(data: &ValidTrainingData<'_>, text: &str) -> Result<Vec<bool>> {
    let Some((_, mask)) = data.populations.iter().find(|(known, _)| *known == text) else {
        return Err(Error::other(format!("the rows of the population `{text}` were not marked")));
    };
    let counts = |row: usize| mask[row] && data.weight.is_none_or(|weight| weight[row] > 0.0);
    let mut policies = (0..mask.len()).filter(|row| counts(*row)).map(|row| data.policy[row]);
    let Some(first) = policies.next() else {
        let error = Error::input(format!("no row belongs to the population `{text}`"));
        return Err(error.hint("correct the expression under `phases`, or leave the phase out"));
    };
    if policies.all(|policy| policy == first) {
        let name = data.policies.name(first as usize);
        let what = format!("every row of the population `{text}` has the policy `{name}`");
        return Err(Error::input(what)
            .hint("effects need two policies: a phase trains on all rows of its population"));
    }
    Ok(mask.to_vec())
}
