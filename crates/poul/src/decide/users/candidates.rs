//! The policies that users may get, the control first, ready to be scored.

use super::request::AllocationRequest;
use crate::effect::{Question, Scorer};
use crate::model::{Answer, Model};
use crate::policy::PolicySet;
use crate::{Error, Kind, Progress, Result};

/// The options of a user by number: 0 is the control, k the k-th policy that is scored against it.
pub(super) struct Candidates<'m> {
    /// The names, the control's first.
    pub(super) names: Vec<String>,
    /// The outcomes, in the order of the scorer.
    pub(super) outcomes: &'m [String],
    /// The effects of all but the control against it.
    pub(super) scorer: Box<dyn Scorer + 'm>,
    /// The policies, among them the candidates.
    pub(super) policies: PolicySet,
}

impl<'m> Candidates<'m> {
    /// Finds the candidates in `policies`, which holds the model's own and perhaps others.
    pub(super) fn choose(
        model: &'m Model,
        policies: &PolicySet,
        request: &AllocationRequest,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let control = request.control.clone().or_else(|| model.manifest().control.clone());
        let Some(control) = control else {
            return Err(Error::usage("no policy is the control, which costs and brings nothing")
                .hint("name it: ‹control=NAME›"));
        };
        let named: Vec<String> = request.policy.iter().filter(|name| **name != control).cloned().collect();
        if named.is_empty() && !request.policy.is_empty() {
            return Err(Error::usage("the control is the only policy to choose from")
                .hint("name others: ‹policy=NAME›"));
        }
        let wanted = match named.is_empty() {
            false => named,
            true => scorable(model, policies, &control, request.allow_unseen, progress)?,
        };
        let question = Question { policies: wanted, against: Some(control) };
        let answer = model.ask(policies, &question, request.allow_unseen)?;
        answer.scorer.notes().iter().for_each(|note| progress.warn(note));
        let names = std::iter::once(answer.against().to_owned()).chain(answer.names()).collect();
        let Answer { asked, scorer, .. } = answer;
        Ok(Self { names, outcomes: model.effects().outcomes(), scorer, policies: asked.policies })
    }

    /// The option with a name; `setting` says where it was named.
    pub(super) fn option(&self, name: &str, setting: &str) -> Result<usize> {
        self.names.iter().position(|own| own == name).ok_or_else(|| {
            let known = self.names.iter().map(String::as_str);
            Error::unknown(Kind::Usage, "policy", name, "policies to choose from", known).at(setting)
        })
    }

    /// The place of an outcome; `setting` says where it was named.
    pub(super) fn outcome(&self, name: &str, setting: &str) -> Result<usize> {
        self.outcomes.iter().position(|own| own == name).ok_or_else(|| {
            let known = self.outcomes.iter().map(String::as_str);
            Error::unknown(Kind::Usage, "outcome", name, "outcomes of the model", known).at(setting)
        })
    }
}

/// Every policy but the control whose atoms training has seen. What is left out is said.
fn scorable(
    model: &Model,
    policies: &PolicySet,
    control: &str,
    allow_unseen: bool,
    progress: &dyn Progress,
) -> Result<Vec<String>> {
    let is_known = model.knows(policies);
    let mut wanted = Vec::with_capacity(is_known.len());
    let mut left_out = Vec::new();
    for (name, is_known) in policies.names().iter().zip(is_known).filter(|(name, _)| *name != control) {
        match is_known || allow_unseen {
            true => wanted.push(name.clone()),
            false => left_out.push(format!("`{name}`")),
        }
    }
    if !left_out.is_empty() {
        progress.warn(&format!(
            "no candidate, since training never saw all that it does: {}",
            left_out.join(", ")
        ));
    }
    if wanted.is_empty() {
        return Err(Error::input("there is no policy to choose beside the control")
            .hint("define some, ‹policies=FILE›, or see ‹allow_unseen›"));
    }
    Ok(wanted)
}
