//! What policies are worth by a model: average effects with their errors, net of prices, and whether budgets hold.

use super::params::{By, ValidDesignParams};
use super::users::Users;
use crate::effect::{AverageEstimate, Averages};
use crate::model::Model;
use crate::policy::PolicySet;
use crate::stats::expected_gain;
use crate::{Error, Kind, Result};

/// How policies are valued.
pub(super) struct Valuation<'a> {
    pub(super) model: &'a Model,
    pub(super) control: &'a str,
    /// The place of the outcome that is maximised.
    pub(super) outcome: usize,
    /// What a unit of each outcome costs.
    prices: Vec<f64>,
    budgets: Vec<Option<f64>>,
    pub(super) level: f64,
    pub(super) by: By,
}

/// What is known of one policy.
#[derive(Clone, Debug)]
pub(super) struct Valued {
    /// Its average effect against control, by outcome.
    pub(super) effects: Vec<AverageEstimate>,
    /// The same less prices.
    pub(super) net: AverageEstimate,
    /// What it is judged by.
    pub(super) score: f64,
    /// Whether it keeps to the budgets.
    pub(super) is_affordable: bool,
}

impl<'a> Valuation<'a> {
    /// Checks outcomes and control against the model.
    pub(super) fn new(model: &'a Model, params: &ValidDesignParams) -> Result<Self> {
        let given = &params.given;
        let outcomes = model.effects().outcomes();
        let place = |name: &String, at: &str| {
            outcomes.iter().position(|own| own == name).ok_or_else(|| {
                let known = outcomes.iter().map(String::as_str);
                Error::unknown(Kind::Usage, "outcome", name, "outcomes of the model", known).at(at.to_owned())
            })
        };
        let outcome = given.maximize.as_ref().map_or(Ok(0), |name| place(name, "maximize"))?;
        let mut prices = vec![0.0; outcomes.len()];
        for (name, price) in &given.price {
            prices[place(name, "price")?] = *price;
        }
        let mut budgets = vec![None; outcomes.len()];
        for (name, limit) in &given.budget {
            budgets[place(name, "budget")?] = Some(*limit);
        }
        let control = model.manifest().control.as_deref().ok_or_else(|| {
            Error::usage("the model has no control to compare policies with")
                .hint("fit it with ‹control=NAME›")
        })?;
        Ok(Self { model, control, outcome, prices, budgets, level: given.level, by: given.by })
    }

    /// Values some policies of a set that holds the model's own; `incumbent` is the one that improvements are over.
    pub(super) fn of(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        incumbent: Option<&str>,
        users: Option<&Users<'_>>,
    ) -> Result<Vec<Valued>> {
        let control = policies.require(self.control)?;
        let mut averages = self.averages(policies, targets, control, false)?;
        if let Some(users) = users {
            move_to(&mut averages, users.means(self.model, policies, targets, control)?);
        }
        let mut valued = self.valued(&averages, targets.len());
        if let (By::Improvement, Some(incumbent)) = (self.by, incumbent) {
            let incumbent = policies.require(incumbent)?;
            let mut over = self.averages(policies, targets, incumbent, false)?;
            if let Some(users) = users {
                move_to(&mut over, users.means(self.model, policies, targets, incumbent)?);
            }
            let scores = self.scores(&averages, Some(&over), targets.len());
            valued.iter_mut().zip(scores).for_each(|(own, score)| own.score = score);
        }
        Ok(valued)
    }

    /// Averages by outcome, an error where the model does not know how sure they are.
    pub(super) fn averages(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        joint: bool,
    ) -> Result<Vec<Averages>> {
        let found = self.model.effects().averages(policies, targets, against, joint)?;
        found.ok_or_else(|| {
            let learner = &self.model.manifest().learner;
            let what = format!("this model (`{learner}`) does not know how sure its averages are");
            Error::usage(what)
                .hint("fit it with the learner `poul`, calibrated (the default) and with the default loss")
        })
    }

    /// What some policies are judged by, where their averages are known already.
    pub(super) fn scores(
        &self,
        averages: &[Averages],
        over_incumbent: Option<&[Averages]>,
        n_targets: usize,
    ) -> Vec<f64> {
        match (self.by, over_incumbent) {
            (By::Improvement, Some(over)) => (0..n_targets)
                .map(|target| {
                    let gain = self.net(&of_target(over, target));
                    expected_gain(gain.effect, gain.se)
                })
                .collect(),
            _ => self.valued(averages, n_targets).iter().map(|own| own.score).collect(),
        }
    }

    /// From averages over all users, or over those of training.
    pub(super) fn valued(&self, averages: &[Averages], n_targets: usize) -> Vec<Valued> {
        let value = |target: usize| {
            let effects = of_target(averages, target);
            let net = self.net(&effects);
            let keeps = |(effect, limit): (&AverageEstimate, &Option<f64>)| {
                limit.is_none_or(|limit| effect.effect <= limit + 1e-12 * limit.abs())
            };
            let is_affordable = effects.iter().zip(&self.budgets).all(keeps);
            let score = match self.by {
                By::Value | By::Improvement => net.effect,
                By::Lower => net.interval(self.level)[0],
            };
            Valued { effects, net, score, is_affordable }
        };
        (0..n_targets).map(value).collect()
    }

    /// The effect less prices; errors of outcomes count as independent of each other.
    pub(super) fn net(&self, effects: &[AverageEstimate]) -> AverageEstimate {
        let mut net = effects[self.outcome];
        let mut variance = net.se * net.se;
        for (price, own) in self.prices.iter().zip(effects).filter(|(price, _)| **price != 0.0) {
            net.effect -= price * own.effect;
            variance += (price * own.se).powi(2);
            net.freedom = net.freedom.min(own.freedom);
        }
        AverageEstimate { se: variance.sqrt(), ..net }
    }

    /// Numbers by outcome whose squares add up to that of the value, such as standard deviations.
    pub(super) fn net_deviation(&self, by_outcome: &[f64]) -> f64 {
        let priced = self.prices.iter().zip(by_outcome).map(|(price, own)| (price * own).powi(2));
        (by_outcome[self.outcome].powi(2) + priced.sum::<f64>()).sqrt()
    }

    /// The covariance of the values of some policies, policies × policies.
    pub(super) fn covariance(&self, policies: &PolicySet, targets: &[usize]) -> Result<Vec<f64>> {
        let control = policies.require(self.control)?;
        let averages = self.averages(policies, targets, control, true)?;
        let of = |outcome: usize| averages[outcome].covariance.clone().unwrap_or_default();
        let mut sum = of(self.outcome);
        for (outcome, price) in self.prices.iter().enumerate().filter(|(_, price)| **price != 0.0) {
            sum.iter_mut().zip(of(outcome)).for_each(|(sum, own)| *sum += price * price * own);
        }
        Ok(sum)
    }

    /// The first budget that effects break: the outcome and the limit.
    pub(super) fn broken(&self, effects: &[AverageEstimate]) -> Option<(usize, f64)> {
        let breaks = |(outcome, limit): (usize, &Option<f64>)| {
            limit
                .filter(|limit| effects[outcome].effect > limit + 1e-12 * limit.abs())
                .map(|limit| (outcome, limit))
        };
        self.budgets.iter().enumerate().find_map(breaks)
    }
}

/// The averages of other users: what was known of their errors stays.
pub(super) fn move_to(averages: &mut [Averages], means: Vec<Vec<f64>>) {
    for (own, means) in averages.iter_mut().zip(means) {
        own.estimates.iter_mut().zip(means).for_each(|(own, mean)| own.effect = mean);
    }
}

fn of_target(averages: &[Averages], target: usize) -> Vec<AverageEstimate> {
    averages.iter().map(|own| own.estimates[target]).collect()
}
