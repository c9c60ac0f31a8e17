//! The policies that may be proposed: a base with few contexts changed, to actions that were seen often enough there.

use std::collections::BTreeMap;

use super::distribution::{Distribution, apart, mixes, named, of_policy, words};
use super::params::ValidDesignParams;
use crate::effect::Support;
use crate::policy::PolicySet;
use crate::{Error, Kind, Result};

/// The policies around a base.
pub(super) struct Space<'a> {
    /// The model's policies, under the weights that hold where no row is meant.
    pub(super) policies: &'a PolicySet,
    pub(super) base: usize,
    contexts: Vec<Choices>,
    /// Policies that were run, with what they do in every context.
    run: Vec<(usize, Vec<Distribution>)>,
    /// The distance of each of them from the base.
    from_base: Vec<f64>,
    edits: usize,
    within: f64,
}

/// What can be done in a context.
struct Choices {
    own: Distribution,
    /// Whether the base may stay as it is here.
    may_stay: bool,
    options: Vec<Distribution>,
}

/// A policy of the space: the contexts that are changed, ascending, and which option each takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(pub(super) Vec<(u32, u32)>);

impl<'a> Space<'a> {
    /// The space around a policy of `policies`; it is an error where nothing is in it.
    pub(super) fn new(
        policies: &'a PolicySet,
        support: &Support<'_>,
        base: usize,
        params: &ValidDesignParams,
        grid: &[f64],
    ) -> Result<Self> {
        let allowed = Allowed::new(policies, &params.given.allow)?;
        let min_rows = params.given.min_rows;
        let own = of_policy(policies, base);
        let mut contexts = Vec::with_capacity(own.len());
        // How many actions other than the base's are left after each constraint.
        let (mut n_known, mut n_seen) = (0, 0);
        for (context, own) in own.into_iter().enumerate() {
            let name = &policies.contexts()[context];
            let is_seen =
                |action: u32| support.atom_rows(name, &policies.actions()[action as usize]) >= min_rows;
            let known: Vec<u32> = (0..policies.actions().len() as u32)
                .filter(|action| policies.atom_index(name, &policies.actions()[*action as usize]).is_some())
                .collect();
            let seen: Vec<u32> = known.iter().copied().filter(|action| is_seen(*action)).collect();
            let may: Vec<u32> = seen.iter().copied().filter(|action| allowed.is(context, *action)).collect();
            let others =
                |of: &[u32]| of.iter().filter(|action| own.iter().all(|(mine, _)| mine != *action)).count();
            n_known += others(&known);
            n_seen += others(&seen);
            let has_weight = policies.weights()[context] > 0.0;
            let may_stay = !has_weight || own.iter().all(|(action, _)| may.contains(action));
            let mut options = if has_weight { mixes(&may, grid) } else { Vec::new() };
            options.retain(|option| apart(option, &own) > 1e-9);
            if !may_stay && options.is_empty() {
                let error = Error::usage(format!(
                    "`{}` takes {} here, which is not allowed or was seen in fewer than {min_rows} rows, and nothing else may \
                     be taken",
                    policies.name(base),
                    words(&named(policies, &own))
                ));
                return Err(error.at(format!("context `{name}`")).hint(
                    "allow more actions there (‹allow›), ask for fewer rows (‹min_rows›), or start ‹from› another policy",
                ));
            }
            contexts.push(Choices { own, may_stay, options });
        }
        let must: Vec<&String> = policies
            .contexts()
            .iter()
            .zip(&contexts)
            .filter(|(_, own)| !own.may_stay)
            .map(|(name, _)| name)
            .collect();
        if must.len() > params.edits {
            let names: Vec<String> = must.iter().take(4).map(|name| format!("`{name}`")).collect();
            let what = format!(
                "`{}` must change in {} contexts ({}{}), and `edits` is {}",
                policies.name(base),
                must.len(),
                names.join(", "),
                if must.len() > 4 { ", …" } else { "" },
                params.edits
            );
            return Err(Error::usage(what).hint(
                "there it takes actions that are not allowed or were seldom seen: raise ‹edits›, or start ‹from› another policy",
            ));
        }
        if contexts.iter().all(|own| own.options.is_empty()) {
            return Err(nothing_left(n_known, n_seen, min_rows));
        }
        let is_run = |policy: &usize| support.policy_rows(policies.name(*policy)) > 0;
        let run: Vec<(usize, Vec<Distribution>)> =
            (0..policies.len()).filter(is_run).map(|policy| (policy, of_policy(policies, policy))).collect();
        let from_base = run.iter().map(|(policy, _)| policies.distance(*policy, base)).collect();
        Ok(Self {
            policies,
            base,
            contexts,
            run,
            from_base,
            edits: params.edits,
            within: params.given.within,
        })
    }

    pub(super) fn n_contexts(&self) -> usize {
        self.contexts.len()
    }

    pub(super) fn n_options(&self, context: usize) -> usize {
        self.contexts[context].options.len()
    }

    pub(super) fn edits(&self) -> usize {
        self.edits
    }

    /// How many policies there are with at least one and at most so many changes, the distance aside.
    pub(super) fn size(&self) -> f64 {
        // Coefficients of Π_s (stays + options·z).
        let mut by_edits = vec![0.0; self.edits + 1];
        by_edits[0] = 1.0;
        for own in &self.contexts {
            for edits in (0..=self.edits).rev() {
                let stays = if own.may_stay { by_edits[edits] } else { 0.0 };
                let before = if edits > 0 { by_edits[edits - 1] } else { 0.0 };
                by_edits[edits] = stays + before * own.options.len() as f64;
            }
        }
        by_edits[1..].iter().sum()
    }

    /// Every candidate, for spaces that are small.
    pub(super) fn all(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut open = vec![(0, Candidate::default())];
        while let Some((context, candidate)) = open.pop() {
            if context == self.contexts.len() {
                if !candidate.0.is_empty() {
                    found.push(candidate);
                }
                continue;
            }
            if candidate.0.len() < self.edits {
                for option in 0..self.n_options(context) {
                    open.push((context + 1, candidate.with(context, option)));
                }
            }
            if self.contexts[context].may_stay {
                open.push((context + 1, candidate));
            }
        }
        found.sort();
        found
    }

    /// Whether the base was changed wherever it must be.
    pub(super) fn is_allowed(&self, candidate: &Candidate) -> bool {
        let changed = |context: usize| candidate.option(context).is_some();
        !candidate.0.is_empty()
            && self.contexts.iter().enumerate().all(|(context, own)| own.may_stay || changed(context))
    }

    /// The contexts that must change.
    pub(super) fn must_change(&self) -> Vec<usize> {
        (0..self.contexts.len()).filter(|context| !self.contexts[*context].may_stay).collect()
    }

    /// What a candidate does in a context.
    pub(super) fn at(&self, candidate: &Candidate, context: usize) -> &Distribution {
        let own = &self.contexts[context];
        candidate.option(context).map_or(&own.own, |option| &own.options[option])
    }

    /// The action that is most likely where a candidate changes something: what makes two candidates differ for a person.
    pub(super) fn gist(&self, candidate: &Candidate) -> Vec<(u32, u32)> {
        let most = |own: &Distribution| {
            own.iter().fold((0, -1.0), |most, (action, p)| if *p > most.1 { (*action, *p) } else { most }).0
        };
        candidate
            .0
            .iter()
            .map(|(context, _)| (*context, most(self.at(candidate, *context as usize))))
            .collect()
    }

    /// The nearest policy that was run and its distance.
    pub(super) fn nearest(&self, candidate: &Candidate) -> Option<(usize, f64)> {
        let distances = self.run.iter().zip(&self.from_base).map(|((policy, does), from_base)| {
            let moved: f64 = candidate
                .0
                .iter()
                .map(|(context, _)| {
                    let context = *context as usize;
                    let now = apart(self.at(candidate, context), &does[context]);
                    self.policies.weights()[context]
                        * (now - apart(&self.contexts[context].own, &does[context]))
                })
                .sum();
            (*policy, (from_base + moved).max(0.0))
        });
        distances.fold(None, |best: Option<(usize, f64)>, own| match best {
            Some(best) if best.1 <= own.1 => Some(best),
            _ => Some(own),
        })
    }

    /// Why a candidate is not new and near, if it is not.
    pub(super) fn refusal(&self, candidate: &Candidate) -> Option<Refusal> {
        match self.nearest(candidate) {
            Some((_, distance)) if distance < 1e-9 => Some(Refusal::WasRun),
            Some((_, distance)) if distance <= self.within + 1e-9 => None,
            _ => Some(Refusal::TooFar),
        }
    }
}

/// Why a candidate is not proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It was run already.
    WasRun,
    /// Nothing that was run is near.
    TooFar,
}

impl Candidate {
    pub(super) fn option(&self, context: usize) -> Option<usize> {
        let place = self.0.binary_search_by_key(&(context as u32), |(own, _)| *own).ok()?;
        Some(self.0[place].1 as usize)
    }

    /// With another change.
    pub(super) fn with(&self, context: usize, option: usize) -> Self {
        let mut changes = self.0.clone();
        match changes.binary_search_by_key(&(context as u32), |(own, _)| *own) {
            Ok(place) => changes[place].1 = option as u32,
            Err(place) => changes.insert(place, (context as u32, option as u32)),
        }
        Self(changes)
    }

    /// Without the change of a context.
    pub(super) fn without(&self, context: usize) -> Self {
        Self(self.0.iter().copied().filter(|(own, _)| *own as usize != context).collect())
    }
}

/// Which actions may be taken where.
struct Allowed {
    by_context: Vec<Option<Vec<u32>>>,
}

impl Allowed {
    fn new(policies: &PolicySet, given: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let mut by_context = vec![None; policies.contexts().len()];
        let action = |name: &String| {
            policies.actions().iter().position(|own| own == name).map(|place| place as u32).ok_or_else(|| {
                let known = policies.actions().iter().map(String::as_str);
                Error::unknown(Kind::Usage, "action", name, "actions of the policies", known).at("allow")
            })
        };
        // What stands for all contexts comes first, so that those that are named have their own.
        let order = given
            .iter()
            .filter(|(name, _)| *name == "*")
            .chain(given.iter().filter(|(name, _)| *name != "*"));
        for (name, actions) in order {
            let actions = actions.iter().map(action).collect::<Result<Vec<u32>>>()?;
            if name == "*" {
                by_context.fill(Some(actions));
                continue;
            }
            let place = policies.contexts().iter().position(|own| own == name).ok_or_else(|| {
                let known = policies.contexts().iter().map(String::as_str);
                Error::unknown(Kind::Usage, "context", name, "contexts", known).at("allow")
            })?;
            by_context[place] = Some(actions);
        }
        Ok(Self { by_context })
    }

    fn is(&self, context: usize, action: u32) -> bool {
        self.by_context[context].as_ref().is_none_or(|own| own.contains(&action))
    }
}

fn nothing_left(n_known: usize, n_seen: usize, min_rows: u64) -> Error {
    if n_known == 0 {
        return Error::input("the policies that were run all do the same")
            .hint("there is nothing to change a policy to: run policies that differ first");
    }
    if n_seen == 0 {
        let what = format!("no other action was seen in {min_rows} training rows in any context");
        return Error::usage(what).hint("ask for fewer rows: ‹min_rows=20›");
    }
    Error::usage("the actions that are allowed leave nothing to change").hint("allow others: ‹allow›")
}
