//! What outcomes learn from each other: g of an outcome that is told is Σ_j L_kj·g_j over all that are learned (see
//! `calibration`), some of which may be there to teach only.
//!
//! Outcomes are learned in the order of their names, so that the order in which they are given changes nothing.

use serde::{Deserialize, Serialize};

use super::calibration::Slopes;
use super::params::{Loss, Params};
use crate::effect::{OutcomeColumn, ValidTrainingData};
use crate::{Error, Result};

/// Loadings of the outcomes that are told on those that are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SharedGains {
    /// The names of the outcomes that are learned, in order.
    pub(super) learned: Vec<String>,
    /// The standard deviation of each, the unit that it is learned in.
    pub(super) scales: Vec<f64>,
    /// By outcome that is told, what it takes of g of each that is learned, in standard units.
    pub(super) loadings: Vec<Vec<f64>>,
}

impl SharedGains {
    /// Whether the parts fit together, as they do unless a file was damaged.
    pub(super) fn is_consistent(&self, n_outcomes: usize) -> bool {
        let n_learned = self.learned.len();
        let is_sound = |own: &Vec<f64>| own.len() == n_learned && own.iter().all(|value| value.is_finite());
        n_learned >= n_outcomes
            && self.scales.len() == n_learned
            && self.scales.iter().all(|scale| *scale > 0.0 && scale.is_finite())
            && self.loadings.len() == n_outcomes
            && self.loadings.iter().all(is_sound)
    }

    /// What an outcome takes of each, its own among them: by how much its effect on a row moves for each unit of the effect
    /// on the other.
    pub(super) fn taken(&self, outcome: usize, name: &str) -> Vec<Taken<'_>> {
        let unit = self.learned.iter().position(|own| own == name).map_or(1.0, |place| self.scales[place]);
        let parts = self.learned.iter().zip(&self.scales).zip(&self.loadings[outcome]);
        parts.map(|((name, scale), loading)| Taken { name, per_unit: loading * unit / scale }).collect()
    }
}

/// What is taken of one outcome.
pub(super) struct Taken<'a> {
    pub(super) name: &'a str,
    pub(super) per_unit: f64,
}

/// The rows with their outcomes in the order that they are learned in.
pub(super) struct Arranged<'a> {
    pub(super) data: ValidTrainingData<'a>,
    /// Where each outcome that is told lies among those that are learned.
    pub(super) told: Vec<usize>,
}

impl<'a> Arranged<'a> {
    /// By name, with those that are there to teach only; as they are where outcomes have nothing to share.
    pub(super) fn new(data: &ValidTrainingData<'a>, params: &Params) -> Result<Self> {
        let can_share = params.model.loss == Loss::Squared && params.model.shared_treatment_net;
        if !data.auxiliary.is_empty() && !can_share {
            let what = "auxiliary outcomes need the squared loss and one policy embedding for all outcomes";
            return Err(Error::usage(what).hint(
                "leave ‹auxiliary› out, or set `model.loss = \"squared\"` and `model.shared_treatment_net = true`",
            ));
        }
        let all: Vec<OutcomeColumn<'a>> = data.outcomes.iter().chain(&data.auxiliary).copied().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        if can_share {
            order.sort_by_key(|idx| all[*idx].name);
        }
        let place = |outcome: usize| order.iter().position(|idx| *idx == outcome).unwrap_or(outcome);
        let told = (0..data.outcomes.len()).map(place).collect();
        Ok(Self { data: data.with_outcomes(&order), told })
    }

    /// Whether what is told is what is learned, in the same order.
    fn is_plain(&self) -> bool {
        self.told.len() == self.data.outcomes.len() && self.told.is_sorted()
    }

    /// Of values by outcome that is learned, those of outcomes that are told.
    pub(super) fn of_told<T: Clone>(&self, values: &[T]) -> Vec<T> {
        self.told.iter().filter_map(|place| values.get(*place).cloned()).collect()
    }

    /// What is taken, where effects lie around averages, and the slopes that are left to apply to the outcomes that are told.
    /// None where every outcome has its own g alone.
    pub(super) fn shared(
        &self,
        slopes: &[Slopes],
        scales: &[f64],
        is_anchored: bool,
    ) -> (Option<SharedGains>, Vec<Slopes>) {
        let takes = is_anchored && slopes.iter().any(|own| !own.loadings.is_empty());
        let mut left = self.of_told(slopes);
        if self.is_plain() && !takes {
            return (None, left);
        }
        let of_outcome = |place: &usize| match slopes.get(*place) {
            Some(own) if takes => own.loadings.clone(),
            _ => (0..scales.len()).map(|idx| f64::from(u8::from(idx == *place))).collect(),
        };
        if takes {
            left.iter_mut().for_each(|own| own.rows = 1.0);
        }
        let shared = SharedGains {
            learned: self.data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
            scales: scales.to_vec(),
            loadings: self.told.iter().map(of_outcome).collect(),
        };
        (Some(shared), left)
    }
}
