//! Candidates as policies of a set, and what they are worth, each looked at once.

use std::collections::BTreeMap;

use super::space::{Candidate, Refusal, Space};
use super::users::Users;
use super::valuation::{Valuation, Valued};
use crate::policy::PolicySet;
use crate::{Error, Progress, Result};

/// Candidates that are valued together; bounds memory.
const TOGETHER: usize = 2048;

/// What was found of every candidate that was looked at.
pub(super) struct Candidates<'a> {
    pub(super) space: &'a Space<'a>,
    pub(super) valuation: &'a Valuation<'a>,
    pub(super) incumbent: &'a str,
    pub(super) users: Option<&'a Users<'a>>,
    known: BTreeMap<Candidate, Judged>,
}

/// A candidate, judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) score: f64,
    pub(super) is_affordable: bool,
    pub(super) refusal: Option<Refusal>,
    /// Whether every context is as it may be.
    is_allowed: bool,
}

impl Judged {
    /// Whether it can be proposed.
    pub(super) fn is_good(&self) -> bool {
        self.is_affordable && self.refusal.is_none() && self.is_allowed
    }
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        space: &'a Space<'a>,
        valuation: &'a Valuation<'a>,
        incumbent: &'a str,
        users: Option<&'a Users<'a>>,
    ) -> Self {
        Self { space, valuation, incumbent, users, known: BTreeMap::new() }
    }

    /// Judges those that were not yet.
    pub(super) fn judge(&mut self, candidates: &[Candidate], progress: &dyn Progress) -> Result<()> {
        let mut new: Vec<&Candidate> =
            candidates.iter().filter(|own| !self.known.contains_key(*own)).collect();
        new.sort();
        new.dedup();
        for part in new.chunks(TOGETHER) {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let (policies, targets) = self.policies(part)?;
            let valued = self.valuation.of(&policies, &targets, Some(self.incumbent), self.users)?;
            for (candidate, own) in part.iter().zip(valued) {
                let judged = Judged {
                    score: own.score,
                    is_affordable: own.is_affordable,
                    refusal: self.space.refusal(candidate),
                    is_allowed: self.space.is_allowed(candidate),
                };
                self.known.insert((*candidate).clone(), judged);
            }
            progress.advance(part.len() as u64);
        }
        Ok(())
    }

    pub(super) fn of(&self, candidate: &Candidate) -> Option<&Judged> {
        self.known.get(candidate)
    }

    /// All that were looked at.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Candidate, &Judged)> {
        self.known.iter()
    }

    /// The best of some that are known, and of equals the first.
    pub(super) fn best<'c>(&self, of: impl Iterator<Item = &'c Candidate>) -> Option<(&'c Candidate, f64)> {
        let good = of.filter_map(|own| {
            self.of(own).filter(|judged| judged.is_good()).map(|judged| (own, judged.score))
        });
        good.fold(None, |best: Option<(&Candidate, f64)>, own| match best {
            Some(best) if best.1 >= own.1 => Some(best),
            _ => Some(own),
        })
    }

    /// The value of candidates in full.
    pub(super) fn valued(&self, candidates: &[&Candidate]) -> Result<Vec<Valued>> {
        let (policies, targets) = self.policies(candidates)?;
        self.valuation.of(&policies, &targets, Some(self.incumbent), self.users)
    }

    /// The covariance of the values of candidates.
    pub(super) fn covariance(&self, candidates: &[&Candidate]) -> Result<Vec<f64>> {
        let (policies, targets) = self.policies(candidates)?;
        self.valuation.covariance(&policies, &targets)
    }

    /// The model's policies with the candidates, and where these are.
    fn policies(&self, candidates: &[&Candidate]) -> Result<(PolicySet, Vec<usize>)> {
        let own = &self.valuation.model.manifest().policies;
        let mut prefix = "candidate ".to_owned();
        while own.names().iter().any(|name| name.starts_with(&prefix)) {
            prefix.push('_');
        }
        let names: Vec<String> = (0..candidates.len()).map(|number| format!("{prefix}{number:06}")).collect();
        let named: Vec<(&str, &Candidate)> =
            names.iter().map(String::as_str).zip(candidates.iter().copied()).collect();
        let all = own.union(&self.space.as_policies(&named, own)?)?;
        let targets = names.iter().map(|name| all.require(name)).collect::<Result<Vec<usize>>>()?;
        Ok((all, targets))
    }
}

impl Space<'_> {
    /// Candidates as policies under these names, with the attributes of a set.
    pub(super) fn as_policies(&self, named: &[(&str, &Candidate)], like: &PolicySet) -> Result<PolicySet> {
        let mut builder = PolicySet::builder();
        for (name, candidate) in named {
            for (context, context_name) in self.policies.contexts().iter().enumerate() {
                for (action, probability) in self.at(candidate, context) {
                    builder.add(name, context_name, &self.policies.actions()[*action as usize], *probability);
                }
            }
        }
        builder.attributes(like.attributes().clone());
        builder.build()
    }
}
