//! Policies asked of a model: which can be scored, and by what.

use super::Model;
use crate::Result;
use crate::effect::{Asked, PolicySupport, Question, Scorer, Support};
use crate::policy::PolicySet;

/// A question that a model can answer.
pub struct Answer<'m> {
    /// The policies.
    pub asked: Asked,
    /// Their effects.
    pub scorer: Box<dyn Scorer + 'm>,
    /// How well the training data support each policy asked for.
    pub support: Vec<PolicySupport>,
    /// For each policy asked for, the share on atoms never seen: its own, or that of the policy compared with where
    /// that is larger.
    pub unseen_share: Vec<f64>,
}

impl Answer<'_> {
    /// The names of the policies asked for.
    pub fn names(&self) -> Vec<String> {
        self.asked.targets.iter().map(|target| self.asked.policies.name(*target).to_owned()).collect()
    }

    /// The name of the policy compared with.
    pub fn against(&self) -> &str {
        self.asked.policies.name(self.asked.against)
    }
}

impl Model {
    /// Gets ready to score policies of `policies`, which holds the model's own and perhaps others.
    ///
    /// Without a policy to compare with, the model's control is. A policy on atoms that were never seen is an error
    /// that lists them, unless `allow_unseen`.
    #[doc(hidden)]
    pub fn ask(&self, policies: &PolicySet, question: &Question, allow_unseen: bool) -> Result<Answer<'_>> {
        let mut question = question.clone();
        question.against = question.against.or_else(|| self.manifest.control.clone());
        let asked = question.ask(policies, self.is_factorial())?;
        let with_against: Vec<usize> = std::iter::once(asked.against).chain(asked.targets.clone()).collect();
        let mut support = self.support(&asked.policies, &with_against);
        if !allow_unseen {
            support.iter().try_for_each(PolicySupport::require_seen)?;
        }
        let against = support.remove(0);
        let scorer = self.effects.prepare(&asked.policies, &asked.targets, asked.against)?;
        let unseen_share = support.iter().map(|own| own.unseen_share.max(against.unseen_share)).collect();
        Ok(Answer { asked, scorer, support, unseen_share })
    }

    /// Whether training had rows of the policy of that name.
    pub(crate) fn has_rows_of(&self, name: &str) -> bool {
        self.manifest.policies.index(name).is_some_and(|own| self.manifest.policy_rows[own] > 0)
    }

    /// Whether each policy of a set that holds the model's own has only atoms that can be scored.
    pub(crate) fn knows(&self, policies: &PolicySet) -> Vec<bool> {
        let embeds =
            |context: &str, action: &str| self.effects.embeds(context, action, policies.attributes());
        let (policies, own) = (&self.weighted(policies), self.weighted(&self.manifest.policies));
        let support = Support::new(&own, &self.manifest.policy_rows);
        (0..policies.len()).map(|policy| support.is_known(policies, policy, embeds)).collect()
    }

    /// How well the training data support some policies of a set that holds the model's own.
    pub fn support(&self, policies: &PolicySet, of: &[usize]) -> Vec<PolicySupport> {
        let embeds =
            |context: &str, action: &str| self.effects.embeds(context, action, policies.attributes());
        let (policies, own) = (&self.weighted(policies), self.weighted(&self.manifest.policies));
        let support = Support::new(&own, &self.manifest.policy_rows);
        of.iter().map(|policy| support.of(policies, *policy, embeds)).collect()
    }
}
