//! Averages and metrics of effects on the rows of a table.

use super::nuisances::Nuisances;
use crate::data::Table;
use crate::evaluate::{
    Assigned, AverageEffect, Effects, Evaluation, Outcome, Scored, ValidParams, average_effects, evaluate,
};
use crate::net::RowSource;
use crate::nuisance::ObservedRows;
use crate::policy::PolicySet;
use crate::{Progress, Result};

/// Rows with their effects, and what is compared.
pub(super) struct Compared<'a> {
    pub(super) rows: &'a Table,
    pub(super) policies: &'a PolicySet,
    pub(super) against: usize,
    pub(super) effects: &'a [Effects<'a>],
}

impl<'a> Compared<'a> {
    /// Average effects; none where propensities cannot be known. `x` are the encoded features, where there is a model.
    pub(super) fn averages(
        &self,
        nuisances: &Nuisances,
        x: Option<&dyn RowSource>,
        params: &ValidParams,
    ) -> Result<Vec<AverageEffect>> {
        let Some(propensity) = nuisances.propensity.as_ref().filter(|_| !self.effects.is_empty()) else {
            return Ok(Vec::new());
        };
        // Metrics keep to what the user gave; averages are sharpened by what was fitted too.
        let mut outcomes = self.outcomes();
        for (outcome, fitted) in outcomes.iter_mut().zip(&nuisances.predictions) {
            outcome.prediction = outcome.prediction.or(fitted.as_deref());
        }
        let assigned = Assigned { propensity, design: self.rows.design, x };
        average_effects(&self.scored(&outcomes), &assigned, &self.rows.by, params)
    }

    /// Every metric of policies that are compared one by one, where there are any.
    pub(super) fn metrics(&self, params: &ValidParams, progress: &dyn Progress) -> Result<Evaluation> {
        if self.effects.is_empty() {
            let (rows, level) = (self.rows.n_rows(), params.bootstrap.level);
            return Ok(Evaluation { rows, level, ..Evaluation::default() });
        }
        evaluate(&self.scored(&self.outcomes()), params, progress)
    }

    pub(super) fn outcomes(&self) -> Vec<Outcome<'a>> {
        ObservedRows::outcomes_of(self.rows)
    }

    pub(super) fn scored<'o>(&self, outcomes: &'o [Outcome<'o>]) -> Scored<'o>
    where
        'a: 'o,
    {
        Scored {
            outcomes,
            policies: self.policies.names(),
            arm: &self.rows.policy,
            against: self.against,
            effects: self.effects,
            weight: self.rows.weight.as_deref(),
            cluster: self.rows.cluster.as_deref(),
            propensity: None,
        }
    }
}
