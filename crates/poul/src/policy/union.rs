//! Two sets as one: a new policy file beside the policies that were run.

use std::path::Path;

use super::builder::PolicySetBuilder;
use super::distance::SAME_MIXTURE;
use super::set::PolicySet;
use super::weights::ContextWeights;
use super::{json_form, read};
use crate::{Error, Kind, Result};

/// Weights that differ by less than this were rounded when they were written.
const SAME_WEIGHT: f64 = 1e-9;

impl PolicySet {
    /// The policies of both sets, under this set's contexts and weights.
    ///
    /// A set that declares weights must declare these ones. One that declares none takes ours: its policies may
    /// name some of our contexts only if `*` covers the others. A policy of both sets must be the same in both.
    pub fn union(&self, other: &PolicySet) -> Result<PolicySet> {
        self.check_contexts_of(other)?;
        let mut builder = self.to_builder();
        builder.attributes(self.attributes.merge(&other.attributes)?);
        for policy_idx in 0..other.len() {
            let name = other.name(policy_idx);
            if let Some(own_idx) = self.index(name) {
                self.check_same_policy(own_idx, other, policy_idx)?;
                continue;
            }
            for (context, action, probability) in other.rows(policy_idx) {
                builder.add(name, context, action, probability);
            }
            for (action, probability) in other.rest.get(&(policy_idx as u32)).into_iter().flatten() {
                builder.add(name, "*", action, *probability);
            }
        }
        builder.build()
    }

    /// Reads another policy file, and its weights if it has any, as policies over this set's contexts.
    ///
    /// As [`read`](Self::read) and [`union`](Self::union) in one, except that a file may also consist of
    /// policies that name no context but `*`.
    pub fn read_beside(&self, path: &Path, contexts: Option<&Path>) -> Result<PolicySet> {
        self.beside(read::builder(path, contexts)?).map_err(|error| error.file(path))
    }

    /// As [`read_beside`](Self::read_beside), of the human form in JSON; `file` is named in errors.
    pub fn from_json_beside(&self, text: &str, file: &Path) -> Result<PolicySet> {
        self.beside(json_form::builder(text, file)?).map_err(|error| error.file(file))
    }

    fn beside(&self, mut builder: PolicySetBuilder) -> Result<PolicySet> {
        if builder.weights.is_none() {
            let ours = self.contexts.iter().zip(&self.weights).map(|(name, weight)| (name.clone(), *weight));
            builder.replace_weights(&ContextWeights::from_map(&ours.collect()));
            builder.weights_apart = false;
        }
        self.union(&builder.build()?)
    }

    fn check_contexts_of(&self, other: &PolicySet) -> Result<()> {
        let listed = || self.contexts.iter().map(String::as_str);
        if let Some(unknown) =
            other.contexts.iter().find(|context| self.contexts.binary_search(context).is_err())
        {
            return Err(Error::unknown(
                Kind::Input,
                "context",
                unknown,
                "contexts of the policies that were run",
                listed(),
            ));
        }
        if !other.weights_declared {
            return Ok(());
        }
        let hint = "use the same contexts and weights as the policies that were run, or leave them out of the new file";
        if let Some(missing) =
            self.contexts.iter().find(|context| other.contexts.binary_search(context).is_err())
        {
            let what =
                format!("context `{missing}` of the policies that were run is missing from the new ones");
            return Err(Error::input(what).hint(hint));
        }
        // Both lists are sorted and each contains the other: they are the same.
        for (context, (ours, theirs)) in self.contexts.iter().zip(self.weights.iter().zip(&other.weights)) {
            if (ours - theirs).abs() > SAME_WEIGHT {
                let what = format!(
                    "context `{context}` weighs {theirs} here and {ours} in the policies that were run"
                );
                return Err(Error::input(what).hint(hint));
            }
        }
        Ok(())
    }

    /// Compares by probability, not by mass, in every context that the other set names.
    fn check_same_policy(&self, own_idx: usize, other: &PolicySet, other_idx: usize) -> Result<()> {
        let (ours, theirs) = (self.by_context(own_idx), other.by_context(other_idx));
        let rest = other.rest.get(&(other_idx as u32));
        for (context, ours) in self.contexts.iter().zip(ours) {
            let theirs: Vec<(&str, f64)> = match (other.contexts.binary_search(context), rest) {
                (Ok(found), _) => theirs[found].clone(),
                (Err(_), Some(rest)) => rest.iter().map(|(action, p)| (action.as_str(), *p)).collect(),
                (Err(_), None) => Vec::new(),
            };
            let same = ours.len() == theirs.len()
                && ours.iter().zip(&theirs).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < SAME_MIXTURE);
            if !same {
                let what = format!(
                    "the policy differs in context `{context}` from the one of that name that was run"
                );
                let error = Error::input(what).at(format!("policy `{}`", self.name(own_idx)));
                return Err(error.hint("give the new policy another name, or make the two the same"));
            }
        }
        Ok(())
    }
}
