//! Average effects of policies over the training population, with their intervals: of policies that were run and of
//! others.

use serde::Serialize;

use super::Model;
use crate::effect::{PolicySupport, Question};
use crate::policy::PolicySet;
use crate::{Error, Result};

/// The average effect of one policy on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelAverage {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// The average effect over the training population.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval at the level asked for.
    pub interval: [f64; 2],
    /// Training rows that got the policy.
    pub rows: u64,
}

impl Model {
    /// The average effects of policies of `policies`, which holds the model's own and perhaps others; outcomes first.
    ///
    /// Learners that do not know how sure their averages are have none, which is an error.
    pub fn averages(
        &self,
        policies: &PolicySet,
        question: &Question,
        level: f64,
        allow_unseen: bool,
    ) -> Result<Vec<ModelAverage>> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::usage(format!("an interval of level {level}"))
                .hint("a level lies between 0 and 1, such as 0.9"));
        }
        let mut question = question.clone();
        question.against = question.against.or_else(|| self.manifest.control.clone());
        let asked = question.ask(policies, self.is_factorial())?;
        let support = self.support(&asked.policies, &asked.targets);
        if !allow_unseen {
            support.iter().try_for_each(PolicySupport::require_seen)?;
        }
        let found = self.effects.averages(&asked.policies, &asked.targets, asked.against, false)?;
        let found = found.ok_or_else(|| {
            let learner = &self.manifest.learner;
            let error =
                Error::usage(format!("this model (`{learner}`) does not know how sure its averages are"));
            error.hint("fit it with the learner `poul` of this version, or evaluate it on rows with outcomes")
        })?;
        let against = asked.policies.name(asked.against);
        let averages = self.effects.outcomes().iter().zip(&found).flat_map(|(outcome, found)| {
            support.iter().zip(&found.estimates).map(move |(policy, own)| ModelAverage {
                outcome: outcome.clone(),
                policy: policy.policy.clone(),
                against: against.to_owned(),
                effect: own.effect,
                se: own.se,
                interval: own.interval(level),
                rows: policy.rows,
            })
        });
        Ok(averages.collect())
    }
}
