//! Candidates that are proposed, with all that is known of them.

use super::distribution::words;
use super::params::{By, ValidDesignParams};
use super::power::users_needed;
use super::result::{Base, Effect, Improvement, Noise, Proposal};
use super::space::{Candidate, Space};
use super::users::Users;
use super::valuation::{Valuation, Valued, move_to};
use crate::Result;
use crate::effect::{AverageEstimate, Averages, Support};
use crate::model::{CertificateParams, Model};
use crate::policy::{ContextChange, PolicySet};
use crate::stats::normal_below;

/// What proposals are told by.
pub(super) struct Facts<'a> {
    pub(super) model: &'a Model,
    pub(super) valuation: &'a Valuation<'a>,
    pub(super) space: &'a Space<'a>,
    pub(super) params: &'a ValidDesignParams,
    pub(super) noise: &'a [Noise],
    /// The best policy that was run.
    pub(super) incumbent: &'a str,
}

/// Proposals under their names.
pub(super) struct Named {
    pub(super) candidates: Vec<Candidate>,
    pub(super) names: Vec<String>,
    /// The model's policies and the proposals.
    pub(super) all: PolicySet,
    pub(super) targets: Vec<usize>,
    /// Control and the proposals: the file to run.
    pub(super) file: PolicySet,
}

impl Named {
    /// Names that no policy of the model has: `proposal_1`, and so on.
    pub(super) fn new(facts: &Facts<'_>, candidates: Vec<Candidate>) -> Result<Self> {
        let own = &facts.model.manifest().policies;
        let free = (1..).map(|number| format!("proposal_{number}")).filter(|name| own.index(name).is_none());
        let names: Vec<String> = free.take(candidates.len()).collect();
        let named: Vec<(&str, &Candidate)> = names.iter().map(String::as_str).zip(&candidates).collect();
        let all = own.union(&facts.space.as_policies(&named, own)?)?;
        let targets = names.iter().map(|name| all.require(name)).collect::<Result<Vec<usize>>>()?;
        let mut builder = PolicySet::builder();
        for (context, weight) in own.contexts().iter().zip(own.weights()) {
            builder.weight(context, *weight);
        }
        let control = all.require(facts.valuation.control)?;
        for policy in targets.iter().copied().chain([control]) {
            for (context, actions) in own.contexts().iter().zip(all.by_context(policy)) {
                for (action, probability) in actions {
                    builder.add(all.name(policy), context, action, probability);
                }
            }
        }
        own.exposure().iter().for_each(|(context, column)| {
            builder.exposure(context, column);
        });
        builder.attributes(own.attributes().clone());
        let file = builder.build()?;
        Ok(Self { candidates, names, all, targets, file })
    }
}

impl Facts<'_> {
    /// The averages of the proposals against control, over all users.
    pub(super) fn averages(&self, named: &Named, users: &mut Option<Users<'_>>) -> Result<Vec<Averages>> {
        self.averages_against(named, self.valuation.control, users)
    }

    fn averages_against(
        &self,
        named: &Named,
        against: &str,
        users: &mut Option<Users<'_>>,
    ) -> Result<Vec<Averages>> {
        let against = named.all.require(against)?;
        let mut averages = self.valuation.averages(&named.all, &named.targets, against, false)?;
        if let Some(users) = users {
            move_to(&mut averages, users.means_of_all(self.model, &named.all, &named.targets, against)?);
        }
        Ok(averages)
    }

    fn effects(&self, own: &[AverageEstimate]) -> Vec<Effect> {
        let of = |(estimate, noise): (&AverageEstimate, &Noise)| Effect {
            outcome: noise.outcome.clone(),
            effect: estimate.effect,
            se: estimate.se,
            interval: estimate.interval(self.params.given.level),
            users_needed: users_needed(estimate.effect, noise.deviation),
        };
        own.iter().zip(self.noise).map(of).collect()
    }
}

/// The policy that is changed.
pub(super) fn base_of(facts: &Facts<'_>, support: &Support<'_>, valued: &Valued) -> Base {
    let policy = facts.space.policies.name(facts.space.base).to_owned();
    let rows = support.policy_rows(&policy);
    Base { policy, rows, effects: facts.effects(&valued.effects), value: valued.net.effect }
}

/// Every proposal with what is known of it.
pub(super) fn proposals(
    facts: &Facts<'_>,
    named: &Named,
    averages: &[Averages],
    users: &mut Option<Users<'_>>,
) -> Result<Vec<Proposal>> {
    let Facts { model, valuation, space, params, noise, incumbent } = facts;
    let base = space.policies.name(space.base);
    let over = facts.averages_against(named, base, users)?;
    let base_place = named.all.require(base)?;
    let valued = valuation.valued(averages, named.targets.len());
    let over_incumbent = match valuation.by {
        By::Improvement => Some(facts.averages_against(named, incumbent, users)?),
        By::Value | By::Lower => None,
    };
    let judged = valuation.scores(averages, over_incumbent.as_deref(), named.targets.len());
    let level = params.given.level;
    let certificate = CertificateParams { min_rows: params.given.min_rows, nearest: 1, level }.check()?;
    let weighted = model.weighted(&named.all);
    let own_weighted = model.weighted(&model.manifest().policies);
    let support = Support::new(&own_weighted, &model.manifest().policy_rows);
    let deviations: Vec<f64> = noise.iter().map(|own| own.deviation).collect();
    let deviation = valuation.net_deviation(&deviations);
    let mut found = Vec::with_capacity(named.targets.len());
    for (place, target) in named.targets.iter().enumerate() {
        let changes = weighted.diff(base_place, *target).contexts;
        let gain: Vec<AverageEstimate> = over.iter().map(|own| own.estimates[place]).collect();
        let gain = valuation.net(&gain);
        let certified = model.certify(&named.all, *target, &certificate)?;
        let nearest = space.nearest(&named.candidates[place]);
        let nearest_name = nearest.map(|(policy, _)| space.policies.name(policy).to_owned());
        let atoms = support.atoms(&weighted, *target);
        found.push(Proposal {
            policy: named.names[place].clone(),
            words: changes.iter().map(in_words).collect(),
            changes,
            effects: facts.effects(&valued[place].effects),
            value: valued[place].net.effect,
            score: judged[place],
            improvement: Improvement {
                over: base.to_owned(),
                value: gain.effect,
                se: gain.se,
                interval: gain.interval(level),
                chance: if gain.se > 0.0 {
                    normal_below(gain.effect / gain.se)
                } else {
                    f64::from(u8::from(gain.effect > 0.0))
                },
                users_needed: users_needed(gain.effect, deviation),
            },
            distance: nearest.map_or(f64::NAN, |(_, distance)| distance),
            nearest_rows: nearest_name.as_ref().map_or(0, |name| support.policy_rows(name)),
            nearest: nearest_name,
            standing: certified.standing,
            verdict: certified.verdict,
            fewest_rows: atoms.iter().map(|atom| atom.rows).min().unwrap_or(0),
        });
    }
    Ok(found)
}

/// `peak_beijing: none -> upgrade`.
fn in_words(change: &ContextChange) -> String {
    format!("{}: {} -> {}", change.context, words(&change.from), words(&change.to))
}
