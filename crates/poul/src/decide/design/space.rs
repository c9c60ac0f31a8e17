//! The policies that may be proposed: a base with few contexts changed, to actions that were seen often enough there.

use super::allowed::Allowed;
use super::distribution::{Distribution, apart, mixes, named, of_policy, words};
use super::params::ValidDesignParams;
use crate::effect::Support;
use crate::policy::PolicySet;
use crate::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::super::params::DesignParams;
    use super::*;

    fn set() -> PolicySet {
        let mut builder = PolicySet::builder();
        builder.weight("s1", 3.0).weight("s2", 2.0).weight("s3", 1.0).weight("never", 0.0);
        for (name, does) in [("control", "nnn"), ("a", "unn"), ("b", "ncu"), ("thin", "gnn")] {
            for (context, action) in ["s1", "s2", "s3"].iter().zip(does.chars()) {
                builder.add(name, context, &action.to_string(), 1.0);
            }
            builder.add(name, "never", "n", 1.0);
        }
        builder.build().unwrap()
    }

    fn rows(set: &PolicySet) -> Vec<u64> {
        set.names().iter().map(|name| if name == "thin" { 7 } else { 300 }).collect()
    }

    fn space<'a>(
        set: &'a PolicySet,
        rows: &'a [u64],
        base: &str,
        change: impl Fn(&mut DesignParams),
    ) -> Result<Space<'a>> {
        let mut params =
            DesignParams { maximize: Some("y".to_owned()), within: 2.0, ..DesignParams::default() };
        change(&mut params);
        let params = params.check()?;
        let support = Support::new(set, rows);
        Space::new(set, &support, set.require(base)?, &params, &params.grid(false))
    }

    #[test]
    fn every_candidate_is_listed_once_and_counted() {
        let set = set();
        let rows = rows(&set);
        for edits in 1..=3 {
            let space = space(&set, &rows, "control", |own| own.edits = edits).unwrap();
            let all = space.all();
            assert_eq!(all.len() as f64, space.size());
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(
                all.iter().all(|own| (1..=edits as usize).contains(&own.0.len()) && space.is_allowed(own))
            );
        }
        // Two actions in each of three contexts: the other one, and three mixes.
        let space = space(&set, &rows, "control", |own| own.edits = 1).unwrap();
        assert_eq!(space.size(), 12.0);
    }

    #[test]
    fn distances_are_those_of_the_policies() {
        let set = set();
        let rows = rows(&set);
        let space = space(&set, &rows, "a", |_| {}).unwrap();
        for candidate in space.all() {
            let all = set.union(&space.as_policies(&[("new", &candidate)], &set).unwrap()).unwrap();
            let new = all.require("new").unwrap();
            let nearest = all.nearest_among(new, (0..all.len()).filter(|other| *other != new), 1)[0];
            let (_, distance) = space.nearest(&candidate).unwrap();
            assert!((distance - nearest.1).abs() < 1e-12);
            assert_eq!(space.refusal(&candidate) == Some(Refusal::WasRun), distance < 1e-9);
        }
    }

    #[test]
    fn what_is_not_allowed_or_seldom_seen_must_change() {
        let set = set();
        let rows = rows(&set);
        let thin = space(&set, &rows, "thin", |own| own.edits = 1).unwrap();
        // Contexts are in the order of their names: `never`, `s1`, …
        assert!(thin.all().iter().all(|own| own.option(1).is_some()));
        let only = |own: &mut DesignParams| {
            own.allow.insert("*".to_owned(), vec!["n".to_owned()]);
        };
        let error = space(&set, &rows, "control", only).err().unwrap();
        assert!(error.to_string().contains("allowed"), "{error}");
        let rare = space(&set, &rows, "control", |own| own.min_rows = 100_000).err().unwrap();
        assert!(rare.to_string().contains("100000 rows"), "{rare}");
        let far = |own: &mut DesignParams| {
            own.edits = 1;
            own.allow
                .extend([("s2".to_owned(), vec!["n".to_owned()]), ("s3".to_owned(), vec!["n".to_owned()])]);
        };
        assert!(
            space(&set, &rows, "b", far).err().unwrap().to_string().contains("must change in 2 contexts")
        );
    }
}
