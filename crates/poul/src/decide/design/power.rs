//! How many users tell an effect, and what so many users tell: noise after the outcome model, two-sided at 5 %, four times in
//! five.

use super::result::{Detectable, Noise, Pair, Plan, PlannedPolicy};
use super::valuation::Valuation;
use crate::Result;
use crate::effect::{AverageEstimate, Averages};
use crate::model::Model;
use crate::policy::PolicySet;
use crate::stats::{normal_below, normal_quantile};

/// Chance of telling an effect that is not there.
const FALSE_ALARM: f64 = 0.05;
/// Chance of telling one that is.
const POWER: f64 = 0.8;
/// Beyond this many users nobody counts.
const MOST_USERS: f64 = 1e15;

/// The noise of one user by outcome. Models that do not know it have the outcome's own, which is more.
pub(super) fn noise(model: &Model) -> Vec<Noise> {
    let known = model.effects().row_deviations();
    let of = |(place, record): (usize, &crate::model::OutcomeRecord)| Noise {
        outcome: record.name.clone(),
        deviation: known.as_ref().map_or(record.sd, |known| known[place]),
        of_outcome: record.sd,
        known: known.is_some(),
    };
    model.manifest().outcomes.iter().enumerate().map(of).collect()
}

/// Users of two arms of the same size that tell an effect; none where it is zero.
pub(super) fn users_needed(effect: f64, deviation: f64) -> Option<u64> {
    let users = 4.0 * (told() * deviation / effect).powi(2);
    (users.is_finite() && users < MOST_USERS).then(|| (users.ceil() as u64).max(2))
}

/// The smallest effect that two arms tell.
pub(super) fn detectable(deviation: f64, rows: [f64; 2]) -> f64 {
    told() * contrast_error(deviation, rows)
}

/// The standard error of a difference between two arms.
pub(super) fn contrast_error(deviation: f64, [a, b]: [f64; 2]) -> f64 {
    deviation * (1.0 / a + 1.0 / b).sqrt()
}

/// An effect in standard errors from which it is told.
fn told() -> f64 {
    normal_quantile(1.0 - FALSE_ALARM / 2.0) + normal_quantile(POWER)
}

/// The probability that an experiment with this error tells an effect of which so much is known.
fn chance(known: &AverageEstimate, error: f64) -> f64 {
    let limit = normal_quantile(1.0 - FALSE_ALARM / 2.0) * error;
    let spread = (known.se * known.se + error * error).sqrt();
    normal_below((known.effect - limit) / spread) + normal_below((-known.effect - limit) / spread)
}

/// What `rows` users tell of some policies that share them evenly with control.
pub(super) fn plan(
    valuation: &Valuation<'_>,
    policies: &PolicySet,
    targets: &[usize],
    averages: &[Averages],
    rows: u64,
    noise: &[Noise],
) -> Result<Plan> {
    let arms = targets.len() + 1;
    let each = (rows as f64 / arms as f64).max(1.0);
    let smallest = |own: &Noise| Detectable {
        outcome: own.outcome.clone(),
        effect: detectable(own.deviation, [each, each]),
    };
    let (mut planned, mut pairs) = (Vec::new(), Vec::new());
    for (own, noise) in averages.iter().zip(noise) {
        let error = contrast_error(noise.deviation, [each, each]);
        for (target, known) in targets.iter().zip(&own.estimates) {
            let (before, new) = (known.se * known.se, error * error);
            let after = AverageEstimate { se: (before * new / (before + new)).sqrt(), ..*known };
            planned.push(PlannedPolicy {
                policy: policies.name(*target).to_owned(),
                outcome: noise.outcome.clone(),
                effect: known.effect,
                se: known.se,
                se_after: after.se,
                interval_after: after.interval(valuation.level),
                chance: chance(known, error),
                users_needed: users_needed(known.effect, noise.deviation),
            });
        }
    }
    for (place, target) in targets.iter().enumerate() {
        let others = &targets[..place];
        if others.is_empty() {
            continue;
        }
        let apart = valuation.averages(policies, others, *target, false)?;
        for ((outcome, own), noise) in apart.iter().enumerate().zip(noise) {
            for (first, (other, estimate)) in others.iter().zip(&own.estimates).enumerate() {
                // Of the users that are asked about, where they are not those of training.
                let effect =
                    averages[outcome].estimates[first].effect - averages[outcome].estimates[place].effect;
                pairs.push(Pair {
                    policy: policies.name(*other).to_owned(),
                    against: policies.name(*target).to_owned(),
                    outcome: noise.outcome.clone(),
                    effect,
                    se: estimate.se,
                    users_needed: users_needed(effect, noise.deviation),
                });
            }
        }
    }
    Ok(Plan { rows, arms, detectable: noise.iter().map(smallest).collect(), policies: planned, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_effects_are_two_sides_of_one_sum() {
        // A tenth of a standard deviation needs 1,570 users in each arm (Cohen 1988).
        assert_eq!(users_needed(0.1, 1.0), Some(3140));
        assert_eq!(users_needed(-0.1, 1.0), users_needed(0.1, 1.0));
        assert_eq!(users_needed(0.0, 1.0), None);
        assert!((detectable(1.0, [1570.0, 1570.0]) - 0.1).abs() < 1e-4);
        assert_eq!(users_needed(0.2, 2.0), users_needed(0.1, 1.0));
    }

    #[test]
    fn chances_are_those_of_the_design() {
        let known = |effect: f64, se: f64| AverageEstimate { effect, se, freedom: f64::INFINITY };
        let error = contrast_error(1.0, [1570.0, 1570.0]);
        assert!((chance(&known(0.1, 0.0), error) - POWER).abs() < 1e-3);
        assert!((chance(&known(0.0, 0.0), error) - FALSE_ALARM).abs() < 1e-9);
        // Of an effect that may be anything, a large part is large enough.
        assert!(chance(&known(0.0, 1.0), error) > 0.9);
    }
}
