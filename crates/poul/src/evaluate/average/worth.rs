//! What rules that give each row a policy are worth: mean doubly robust scores, with paired standard errors.
//!
//! A rule ρ is worth V(ρ) = Σ w·Γ_ρ(x) / Σ w against giving everybody the policy compared with, Γ being the score of
//! `average_score`: predicted effects only sharpen it, so a rule that was found by them is not flattered by them (Sverdrup, Wu,
//! Athey and Wager 2024). Rules are compared on the same rows: the variance of V(ρ) − V(ρ') is that of the difference row by
//! row, summed by cluster. The return Σ value / Σ cost has the error of a ratio (delta method). Where a few rows make most of a
//! variance, as the large spenders of an outcome do, it is itself a guess, and intervals are those of Student's t.

use serde::{Deserialize, Serialize};

use super::score::AverageScore;
use super::simultaneous::max_t_quantile;
use super::tails::Tails;
use super::units::Units;
use crate::evaluate::metric::FEWEST_ARM_ROWS;
use crate::evaluate::metric::{Effects, Scored};
use crate::nuisance::Propensity;
use crate::{Error, Result, Seed};

/// A way to give every row a policy.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Its name, such as `the allocation`.
    pub name: String,
    /// Who gets what.
    pub choice: Choice,
}

/// Who gets which policy, by places in [`Scored::policies`].
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// A policy for each row.
    Rows(Vec<u16>),
    /// The same chances for every row: what a draw for each would be worth on average.
    Shares(Vec<f64>),
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorthParams {
    /// Level of intervals, between 0 and 1.
    pub level: f64,
    /// The outcomes whose ratio is the return: what is brought, and what is spent.
    pub ratio: Option<(usize, usize)>,
    /// Where the band draws from.
    pub seed: Seed,
}

/// What one rule is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleWorth {
    /// Its name.
    pub rule: String,
    /// By outcome.
    pub outcomes: Vec<OutcomeWorth>,
    /// What is brought for each unit spent; none where next to nothing is spent.
    #[serde(rename = "return", skip_serializing_if = "Option::is_none")]
    pub gained_per_unit: Option<Estimated>,
    /// The share of rows that get a policy with fewer than 30 rows here: what that is worth is predicted, not measured.
    pub predicted_share: f64,
}

/// What one rule is worth in one outcome, against the policy compared with for everybody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeWorth {
    /// The outcome.
    pub outcome: String,
    /// For each row, on average.
    pub per_user: Estimated,
    /// For all rows together.
    pub total: f64,
    /// Its interval.
    pub total_interval: [f64; 2],
    /// By how much the first rule is better, for each row on average; none for the first rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_is_better_by: Option<Estimated>,
}

/// A number with its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// The number.
    pub estimate: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval.
    pub interval: [f64; 2],
}

/// What `rules` are worth on the rows of a table, which has predicted effects of every policy that a rule gives.
pub(crate) fn worth(
    table: &Scored<'_>,
    propensity: &Propensity,
    rules: &[Rule],
    params: &WorthParams,
) -> Result<Vec<RuleWorth>> {
    let scores = RuleScores::new(table, propensity, rules)?;
    let moments = scores.moments();
    let n_rules = rules.len();
    let n_rows = table.arm.len() as f64;
    let told = |rule: usize| {
        let outcomes = table.outcomes.iter().enumerate().map(|(outcome, named)| {
            let own = outcome * n_rules + rule;
            let per_user = moments.estimated(own, params.level);
            let better = (rule > 0).then(|| moments.difference(outcome * n_rules, own, params.level));
            OutcomeWorth {
                outcome: named.name.to_owned(),
                per_user,
                total: n_rows * per_user.estimate,
                total_interval: per_user.interval.map(|end| n_rows * end),
                first_is_better_by: better,
            }
        });
        let ratio = params.ratio.and_then(|(value, cost)| {
            moments.ratio(value * n_rules + rule, cost * n_rules + rule, params.level)
        });
        RuleWorth {
            rule: rules[rule].name.clone(),
            outcomes: outcomes.collect(),
            gained_per_unit: ratio,
            predicted_share: scores.predicted_share(rule),
        }
    };
    Ok((0..n_rules).map(told).collect())
}

/// What `rules` are worth in one outcome for all rows together, with a band that holds all of them at once.
pub(crate) fn worth_band(
    table: &Scored<'_>,
    propensity: &Propensity,
    rules: &[Rule],
    outcome: usize,
    params: &WorthParams,
) -> Result<Vec<(f64, [f64; 2])>> {
    let outcomes = &table.outcomes[outcome..=outcome];
    let of_outcome = |own: &&Effects<'_>| own.outcome.is_none_or(|only| only == outcome);
    let effects: Vec<Effects<'_>> =
        table.effects.iter().filter(of_outcome).map(|own| Effects { outcome: Some(0), ..*own }).collect();
    let table = Scored { outcomes, effects: &effects, ..*table };
    let scores = RuleScores::new(&table, propensity, rules)?;
    let moments = scores.moments();
    let quantile = max_t_quantile(&moments.covariance, rules.len(), params.level, params.seed);
    let n_rows = table.arm.len() as f64;
    let point = |rule: usize| {
        let own = moments.within(rule, |tails| tails.as_far_as(quantile));
        (n_rows * own.estimate, own.interval.map(|end| n_rows * end))
    };
    Ok((0..rules.len()).map(point).collect())
}

/// Scores of all rules on all outcomes.
struct RuleScores<'a> {
    table: &'a Scored<'a>,
    rules: &'a [Rule],
    /// By outcome: the score, and the effects of each policy.
    outcomes: Vec<(AverageScore<'a>, Vec<Option<&'a Effects<'a>>>)>,
    n_rows_of: Vec<usize>,
}

impl<'a> RuleScores<'a> {
    fn new(table: &'a Scored<'a>, propensity: &Propensity, rules: &'a [Rule]) -> Result<Self> {
        let n_policies = table.policies.len();
        let mut n_rows_of = vec![0; n_policies];
        table.arm.iter().for_each(|arm| n_rows_of[*arm as usize] += 1);
        if n_rows_of[table.against] == 0 {
            let name = &table.policies[table.against];
            return Err(Error::input(format!(
                "no row has the policy `{name}`, which others are compared with"
            ))
            .hint("what an allocation is worth needs rows that were left alone: add some"));
        }
        let mut outcomes = Vec::with_capacity(table.outcomes.len());
        for (index, outcome) in table.outcomes.iter().enumerate() {
            let of_outcome = |own: &&Effects<'_>| own.outcome.is_none_or(|only| only == index);
            let effects: Vec<&Effects<'_>> = table.effects.iter().filter(of_outcome).collect();
            let mut by_policy = vec![None; n_policies];
            effects.iter().for_each(|own| by_policy[own.policy] = Some(*own));
            let is_known = |policy: usize| policy == table.against || by_policy[policy].is_some();
            for rule in rules {
                let unknown = match &rule.choice {
                    Choice::Rows(rows) => {
                        rows.iter().map(|own| usize::from(*own)).find(|own| !is_known(*own))
                    }
                    Choice::Shares(shares) => shares
                        .iter()
                        .enumerate()
                        .find(|(own, share)| **share > 0.0 && !is_known(*own))
                        .map(|own| own.0),
                };
                if let Some(policy) = unknown {
                    let name = &table.policies[policy];
                    return Err(Error::other(format!("the policy `{name}` has no predicted effects")));
                }
            }
            outcomes.push((AverageScore::new(table, outcome, &effects, propensity, None, None)?, by_policy));
        }
        Ok(Self { table, rules, outcomes, n_rows_of })
    }

    /// Γ of what a rule gives to a row.
    #[inline]
    fn of(&self, outcome: usize, rule: usize, row: usize) -> f64 {
        let (score, effects) = &self.outcomes[outcome];
        let of_policy = |policy: usize| effects[policy].map_or(0.0, |effects| score.of(effects, row));
        match &self.rules[rule].choice {
            Choice::Rows(rows) => of_policy(usize::from(rows[row])),
            Choice::Shares(shares) => {
                let given = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
                given.map(|(policy, share)| share * of_policy(policy)).sum()
            }
        }
    }

    fn weight(&self, row: usize) -> f64 {
        self.table.weight.map_or(1.0, |weight| weight[row])
    }

    /// Outcomes first, then rules.
    fn moments(&self) -> Moments<'_> {
        let (n_rows, n_rules) = (self.table.arm.len(), self.rules.len());
        let n = self.outcomes.len() * n_rules;
        let mass: f64 = (0..n_rows).map(|row| self.weight(row)).sum();
        let mut mean = vec![0.0; n];
        for (place, mean) in mean.iter_mut().enumerate() {
            let (outcome, rule) = (place / n_rules, place % n_rules);
            *mean = (0..n_rows).map(|row| self.weight(row) * self.of(outcome, rule, row)).sum::<f64>() / mass;
        }
        let units = Units::new(n_rows, self.table.cluster);
        let n_units = units.n_units();
        let mut covariance = units.covariance(n, |place, row| self.influence(place, row, mean[place], mass));
        let correction = if n_units > 1 { n_units as f64 / (n_units as f64 - 1.0) } else { f64::NAN };
        covariance.iter_mut().for_each(|own| *own *= correction);
        Moments { scores: self, mass, mean, covariance, units }
    }

    /// What a row adds to how far a mean is from the truth.
    #[inline]
    fn influence(&self, place: usize, row: usize, mean: f64, mass: f64) -> f64 {
        let n_rules = self.rules.len();
        self.weight(row) * (self.of(place / n_rules, place % n_rules, row) - mean) / mass
    }

    fn predicted_share(&self, rule: usize) -> f64 {
        let is_thin = |policy: usize| self.n_rows_of[policy] < FEWEST_ARM_ROWS;
        match &self.rules[rule].choice {
            Choice::Rows(rows) => {
                let n_thin = rows.iter().filter(|policy| is_thin(usize::from(**policy))).count();
                n_thin as f64 / rows.len().max(1) as f64
            }
            Choice::Shares(shares) => {
                shares.iter().enumerate().filter(|(policy, _)| is_thin(*policy)).map(|(_, share)| share).sum()
            }
        }
    }
}

/// Means and their covariances.
struct Moments<'a> {
    scores: &'a RuleScores<'a>,
    mass: f64,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    units: Units,
}

impl Moments<'_> {
    fn covariance(&self, a: usize, b: usize) -> f64 {
        self.covariance[a * self.mean.len() + b]
    }

    /// How far Σ factor · mean over some places may be from the truth, in standard errors.
    fn tails(&self, parts: &[(usize, f64)]) -> Tails {
        let variance = self.units.variance(|row| {
            let influence = |(place, factor): &(usize, f64)| {
                factor * self.scores.influence(*place, row, self.mean[*place], self.mass)
            };
            parts.iter().map(influence).sum()
        });
        let by_units = self.units.n_units().saturating_sub(1).max(1);
        Tails::new(Some(by_units.min(Tails::by_values(variance.degrees))))
    }

    fn within(&self, own: usize, quantile: impl Fn(&Tails) -> f64) -> Estimated {
        Estimated::of(self.mean[own], self.covariance(own, own), quantile(&self.tails(&[(own, 1.0)])))
    }

    fn estimated(&self, own: usize, level: f64) -> Estimated {
        self.within(own, |tails| tails.quantile(level))
    }

    fn difference(&self, first: usize, other: usize, level: f64) -> Estimated {
        let variance = self.covariance(first, first) - 2.0 * self.covariance(first, other)
            + self.covariance(other, other);
        let quantile = self.tails(&[(first, 1.0), (other, -1.0)]).quantile(level);
        Estimated::of(self.mean[first] - self.mean[other], variance, quantile)
    }

    /// None where what is spent is within its error of nothing: a ratio has no mean there.
    fn ratio(&self, value: usize, cost: usize, level: f64) -> Option<Estimated> {
        let spent = self.estimated(cost, level);
        if spent.interval[0] <= 0.0 && spent.interval[1] >= 0.0 {
            return None;
        }
        let ratio = self.mean[value] / self.mean[cost];
        let variance = self.covariance(value, value) - 2.0 * ratio * self.covariance(value, cost)
            + ratio * ratio * self.covariance(cost, cost);
        let quantile = self.tails(&[(value, 1.0), (cost, -ratio)]).quantile(level);
        Some(Estimated::of(ratio, variance / self.mean[cost].powi(2), quantile))
    }
}

impl Estimated {
    fn of(estimate: f64, variance: f64, quantile: f64) -> Self {
        // The difference of a rule with itself is 0, whatever its sums round to.
        let se = variance.max(0.0).sqrt();
        Self { estimate, se, interval: [estimate - quantile * se, estimate + quantile * se] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Outcome;

    /// Two policies and control; policy 1 gains 2 for a cost of 1 in even rows, nothing in odd ones.
    struct World {
        arm: Vec<u32>,
        value: Vec<f64>,
        cost: Vec<f64>,
        names: Vec<String>,
        zeros: Vec<f64>,
    }

    fn world(n_rows: usize) -> World {
        let arm: Vec<u32> = (0..n_rows as u32).map(|row| (row / 2) % 3).collect();
        let noise = |row: usize| ((row * 7919) % 101) as f64 / 101.0 - 0.5;
        let gain = |row: usize| f64::from(u8::from(row.is_multiple_of(2))) * 2.0;
        let value = (0..n_rows).map(|row| if arm[row] == 1 { gain(row) } else { 0.0 } + noise(row)).collect();
        let cost = arm.iter().map(|arm| f64::from(*arm)).collect();
        let names = ["control", "T1", "T2"].map(String::from).to_vec();
        World { arm, value, cost, names, zeros: vec![0.0; n_rows] }
    }

    fn found(world: &World, rules: &[Rule], cluster: Option<&[u32]>) -> Vec<RuleWorth> {
        let outcomes = [
            Outcome { name: "gmv", values: &world.value, prediction: None },
            Outcome { name: "cost", values: &world.cost, prediction: None },
        ];
        let effects: Vec<Effects<'_>> = [1, 2]
            .map(|policy| Effects { policy, outcome: None, values: &world.zeros, truth: None })
            .to_vec();
        let table = Scored {
            outcomes: &outcomes,
            policies: &world.names,
            arm: &world.arm,
            against: 0,
            effects: &effects,
            weight: None,
            cluster,
            propensity: None,
        };
        let propensity = Propensity::shares(&world.arm, None, 3);
        let params = WorthParams { level: 0.9, ratio: Some((0, 1)), seed: Seed::new(1) };
        worth(&table, &propensity, rules, &params).unwrap()
    }

    fn rule(name: &str, choice: Choice) -> Rule {
        Rule { name: name.to_owned(), choice }
    }

    #[test]
    fn the_right_rows_are_worth_what_they_gain() {
        let world = world(3_000);
        let even = (0..3_000).map(|row| u16::from(row % 2 == 0)).collect();
        let rules = [
            rule("even", Choice::Rows(even)),
            rule("control", Choice::Rows(vec![0; 3_000])),
            rule("all", Choice::Rows(vec![1; 3_000])),
            rule("half at random", Choice::Shares(vec![0.5, 0.5, 0.0])),
        ];
        let found = found(&world, &rules, None);
        let gmv = |rule: usize| found[rule].outcomes[0].per_user;
        let cost = |rule: usize| found[rule].outcomes[1].per_user;
        for (rule, value, spent) in [(0, 1.0, 0.5), (2, 1.0, 1.0), (3, 0.5, 0.5)] {
            assert!(
                (gmv(rule).estimate - value).abs() < 4.0 * gmv(rule).se + 1e-9,
                "{rule}: {:?}",
                gmv(rule)
            );
            assert!((cost(rule).estimate - spent).abs() < 4.0 * cost(rule).se + 1e-9, "{:?}", cost(rule));
        }
        assert_eq!((gmv(1).estimate, gmv(1).se, found[1].gained_per_unit), (0.0, 0.0, None));
        let better = found[3].outcomes[0].first_is_better_by.unwrap();
        assert!((better.estimate - (gmv(0).estimate - gmv(3).estimate)).abs() < 1e-12);
        assert!(better.interval[0] > 0.0, "{better:?}");
        // Scores of the same rows go together: the difference is known better than its parts apart.
        assert!(better.se < (gmv(0).se.powi(2) + gmv(3).se.powi(2)).sqrt());
        let gained = found[0].gained_per_unit.unwrap();
        assert!((gained.estimate - 2.0).abs() < 4.0 * gained.se, "{gained:?}");
        assert_eq!(found[0].outcomes[0].total, 3_000.0 * gmv(0).estimate);
    }

    #[test]
    fn a_few_rows_that_make_most_of_the_variance_widen_the_interval() {
        let even = world(3_000);
        let mut heavy = world(3_000);
        (0..3_000).step_by(500).for_each(|row| heavy.value[row] += 400.0);
        let rules = [rule("all", Choice::Rows(vec![1; 3_000]))];
        let width = |world: &World| {
            let own = found(world, &rules, None)[0].outcomes[0].per_user;
            (own.interval[1] - own.estimate) / own.se
        };
        let (even, heavy) = (width(&even), width(&heavy));
        assert!((1.64..1.66).contains(&even), "{even}");
        assert!(heavy > 1.75, "{heavy}");
    }

    #[test]
    fn each_row_twice_in_a_cluster_is_each_row_once() {
        let (once, twice) = (world(600), {
            let world = world(600);
            let both = |values: &[f64]| values.iter().flat_map(|value| [*value; 2]).collect::<Vec<f64>>();
            World {
                arm: world.arm.iter().flat_map(|arm| [*arm; 2]).collect(),
                value: both(&world.value),
                cost: both(&world.cost),
                zeros: vec![0.0; 1200],
                ..world
            }
        });
        let cluster: Vec<u32> = (0..1200).map(|row| row / 2).collect();
        let all = |n| [rule("all", Choice::Rows(vec![1; n])), rule("two", Choice::Rows(vec![2; n]))];
        let (a, b) = (found(&once, &all(600), None), found(&twice, &all(1200), Some(&cluster)));
        for (a, b) in a.iter().zip(&b) {
            let (a, b) = (a.outcomes[0].per_user, b.outcomes[0].per_user);
            assert!((a.estimate - b.estimate).abs() < 1e-9 && (a.se - b.se).abs() < 1e-9, "{a:?} {b:?}");
        }
    }
}
