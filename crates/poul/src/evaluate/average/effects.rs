//! Average effects of policies, over all rows and by group, by the doubly robust score (see `average_score`, `estimate`).
//!
//! The variance of an average is the sum over clusters of their squared sums of what rows add to its error, times C/(C − 1).
//! Standard errors count units: a weight is not a second observation. Where they rest on few clusters, intervals are those
//! of Student's t.
//!
//! Where nobody randomised, averages are over the rows with overlap, and named so; where more than a tenth of the rows have none,
//! there is a number and no interval.

use rayon::prelude::*;

use super::claim::{Averaged, Claim};
use super::estimate::{Estimates, Ingredients};
use super::groups::Groups;
use super::refinement::Refinement;
use super::score::AverageScore;
use super::simultaneous::{max_t_quantile, q_values, sidak_quantile};
use super::units::Units;
use crate::data::{Design, RawColumn};
use crate::evaluate::metric::ValidParams;
use crate::evaluate::metric::table;
use crate::evaluate::metric::{Effects, Outcome, Scored};
use crate::evaluate::reasons::AverageEffect;
use crate::net::RowSource;
use crate::nuisance::{CommonSupport, Folds, Propensity};
use crate::{Error, Result};

/// What rows are grouped by where it is the predicted effect.
pub const BY_PREDICTED_EFFECT: &str = "predicted effect";
/// Parts that the arms' ridges are cross-fitted in.
const FOLDS: usize = 5;
const COLUMN_QUANTILES: usize = 4;
const COLUMN_CATEGORIES: usize = 10;
/// Beyond so many comparisons their correlation is not computed, and the band is Šidák's.
const MOST_CORRELATED: usize = 128;

/// How rows came to their policies.
#[derive(Clone, Copy)]
pub struct Assigned<'a> {
    /// π(t|x) over the policies of the table.
    pub propensity: &'a Propensity,
    /// Where it is observational, averages are over rows with overlap.
    pub design: Design,
    /// The encoded features: what is left in each arm is explained by them in an observational design, whose averages rest
    /// on m̂ and π̂.
    pub x: Option<&'a dyn RowSource>,
}

/// The average effect of every policy with predicted effects, over all rows, by quantile of the predicted effect and by
/// each of the columns `by`: numbers in quarters, the 10 commonest categories, missing values.
///
/// `table` needs predicted effects in all rows. Its [`prediction`](Outcome::prediction) is m̂(x), out of fold; without
/// one averages are less precise. The level of intervals and the seed of the band are those of the bootstrap. An arm with fewer
/// than 30 rows has an estimate and no interval.
///
/// The band of averages over all rows is that of max-t; within a grouping it is Šidák's, which is all but exact since
/// groups share no rows.
pub fn average_effects(
    table: &Scored<'_>,
    assigned: &Assigned<'_>,
    by: &[RawColumn],
    params: &ValidParams,
) -> Result<Vec<AverageEffect>> {
    let Assigned { propensity, design, x } = *assigned;
    table::check(table, params)?;
    check(table, propensity, by)?;
    let n_rows = table.arm.len();
    let is_observed = design == Design::Observational;
    // Where assignment was random features would only sharpen.
    let x = x.filter(|_| is_observed);
    if x.is_some_and(|x| x.n_rows() != n_rows) {
        return Err(Error::other("features of other rows"));
    }
    let folds = Folds::deal(n_rows, table.cluster, FOLDS, params.bootstrap.seed.child("averages"));
    let x = x.filter(|_| folds.check(n_rows).is_ok());
    let support = is_observed.then(|| CommonSupport::new(propensity, &masses(table)));
    let units = Units::new(table.arm.len(), table.cluster);
    let columns: Vec<Groups> = by
        .par_iter()
        .map(|column| Groups::of_column(column, table.weight, COLUMN_QUANTILES, COLUMN_CATEGORIES))
        .collect();
    let groupings: Vec<(&str, &Groups)> = by.iter().map(RawColumn::name).zip(&columns).collect();
    let mut averages = Vec::new();
    for (index, outcome) in table.outcomes.iter().enumerate() {
        let of_outcome = |own: &&Effects<'_>| own.outcome.is_none_or(|only| only == index);
        let effects: Vec<&Effects<'_>> = table.effects.iter().filter(of_outcome).collect();
        if effects.is_empty() {
            continue;
        }
        let score = {
            let refinement = x.map(|x| Refinement { x, folds: &folds });
            AverageScore::new(table, outcome, &effects, propensity, support.as_ref(), refinement)?
        };
        let of = Ingredients { table, score: &score, support: support.as_ref(), units: &units };
        let comparison = Comparison { of, outcome, propensity, params };
        averages.extend(comparison.averages(&effects, &groupings));
    }
    Ok(averages)
}

fn check(table: &Scored<'_>, propensity: &Propensity, by: &[RawColumn]) -> Result<()> {
    let (n_rows, n_policies) = (table.arm.len(), table.policies.len());
    let fits = match propensity {
        Propensity::Shares(shares) => shares.len() == n_policies,
        Propensity::Strata { table: strata, of_row } => {
            of_row.len() == n_rows
                && of_row.iter().all(|stratum| (*stratum as usize + 1) * n_policies <= strata.len())
        }
        Propensity::Rows(rows) => rows.len() == n_rows * n_policies,
    };
    if !fits {
        return Err(Error::other("a propensity of other rows or policies"));
    }
    if let Some(column) = by.iter().find(|column| column.len() != n_rows) {
        return Err(Error::other(format!("{} cells for {n_rows} rows", column.len()))
            .at(format!("column `{}`", column.name())));
    }
    let counts = |row: usize| table.weight.is_none_or(|weight| weight[row] > 0.0);
    let is_control = |(_, arm): &(usize, &u32)| **arm as usize == table.against;
    let mut controls = table.arm.iter().enumerate().filter(is_control).peekable();
    let name = &table.policies[table.against];
    if controls.peek().is_some() && !controls.any(|(row, _)| counts(row)) {
        let what = format!("all rows of the policy `{name}`, which others are compared with, have weight 0");
        return Err(
            Error::input(what).hint("give them weights, or compare with another policy: ‹against=NAME›")
        );
    }
    if !table.arm.iter().enumerate().any(|own| is_control(&own)) {
        return Err(Error::input(format!("no row has the policy `{name}`, which others are compared with"))
            .hint("add its rows, or compare with a policy that the rows have: ‹against=NAME›"));
    }
    Ok(())
}

/// The weight of each policy's rows.
fn masses(table: &Scored<'_>) -> Vec<f64> {
    let mut mass = vec![0.0; table.policies.len()];
    for (row, arm) in table.arm.iter().enumerate() {
        mass[*arm as usize] += table.weight.map_or(1.0, |weight| weight[row]);
    }
    mass
}

/// The averages of one outcome.
struct Comparison<'a> {
    of: Ingredients<'a>,
    outcome: &'a Outcome<'a>,
    propensity: &'a Propensity,
    params: &'a ValidParams,
}

impl Comparison<'_> {
    fn averages(&self, effects: &[&Effects<'_>], columns: &[(&str, &Groups)]) -> Vec<AverageEffect> {
        let table = self.of.table;
        let whole = Groups::whole(table.arm.len());
        // By policy, then by grouping: all rows, the predicted effect, the columns.
        let by_policy: Vec<Vec<Vec<Averaged>>> = effects
            .par_iter()
            .map(|own| {
                let over_all = self.of_groups(own, None, &whole, false);
                let lacks_overlap = over_all.iter().any(|own| own.average.lacks_overlap());
                let quantiles = Groups::of_effect(own.values, table.weight, self.params.bins);
                let named = [(BY_PREDICTED_EFFECT, &quantiles)].into_iter().chain(columns.iter().copied());
                let named =
                    named.map(|(name, groups)| self.of_groups(own, Some(name), groups, lacks_overlap));
                [over_all].into_iter().chain(named).collect()
            })
            .collect();
        let mut averages = Vec::new();
        for grouping in 0..columns.len() + 2 {
            let mut own: Vec<Averaged> =
                by_policy.iter().flat_map(|policy| policy[grouping].iter().cloned()).collect();
            self.adjust(&mut own, (grouping == 0).then_some((effects, &whole)));
            averages.extend(own.into_iter().map(|own| own.average));
        }
        averages
    }

    /// One policy in each group of a grouping; estimates, standard errors, intervals. `lacks_overlap`: over all rows.
    fn of_groups(
        &self,
        effects: &Effects<'_>,
        by: Option<&str>,
        groups: &Groups,
        lacks_overlap: bool,
    ) -> Vec<Averaged> {
        let estimates = Estimates::new(self.of, effects, groups);
        let variances = estimates.variances();
        let claim = Claim {
            of: &self.of,
            outcome: self.outcome.name,
            effects,
            level: self.params.bootstrap.level,
            lacks_overlap,
        };
        let is_met = |group: &usize| estimates.sums[*group].mass_of_all > 0.0;
        let of_group = |group: usize| {
            let mut own = claim.of_group(&estimates.sums[group], estimates.mean(group), variances[group]);
            if by.is_none() {
                own.average.notes.extend(self.impossible(effects.policy));
                claim.bound(&mut own);
            }
            own.average.by = by.map(str::to_owned);
            own.average.group = by.map(|_| groups.labels[group].clone());
            own
        };
        (0..groups.len()).filter(is_met).map(of_group).collect()
    }

    /// Rows that could not have got the policy, or the one compared with: nothing is observed of them.
    fn impossible(&self, policy: usize) -> Option<String> {
        // Where nobody randomised these rows are left out.
        if self.of.support.is_some() || matches!(self.propensity, Propensity::Shares(_)) {
            return None;
        }
        let table = self.of.table;
        let n_policies = table.policies.len();
        let is_possible = |row: &usize| {
            let probabilities = self.propensity.of_row(*row, n_policies);
            probabilities[policy] > 0.0 && probabilities[table.against] > 0.0
        };
        let n_rows = table.arm.len();
        let share = 1.0 - (0..n_rows).filter(is_possible).count() as f64 / n_rows.max(1) as f64;
        (share > 0.0).then(|| {
            let share = 100.0 * share;
            format!("{share:.1} % of the rows could not get one of the two policies: there the prediction counts alone")
        })
    }

    /// Bands and false-discovery rates of the comparisons of one grouping; `whole`: of all rows, for their correlation.
    fn adjust(&self, averages: &mut [Averaged], whole: Option<(&[&Effects<'_>], &Groups)>) {
        let is_known = |index: &usize| averages[*index].average.interval.is_some();
        let known: Vec<usize> = (0..averages.len()).filter(is_known).collect();
        let level = self.params.bootstrap.level;
        let quantile = match whole {
            Some((effects, groups)) if known.len() <= MOST_CORRELATED => {
                let chosen: Vec<Estimates<'_>> =
                    known.iter().map(|index| Estimates::new(self.of, effects[*index], groups)).collect();
                let covariance = self.of.units.covariance(chosen.len(), |comparison, row| {
                    chosen[comparison].influence(row).unwrap_or(0.0)
                });
                let seed = self.params.bootstrap.seed.child("averages").child(self.outcome.name);
                max_t_quantile(&covariance, chosen.len(), level, seed)
            }
            _ => sidak_quantile(known.len(), level),
        };
        for index in &known {
            let Averaged { average, tails } = &mut averages[*index];
            if let (Some(effect), Some(se)) = (average.effect, average.se) {
                let half = tails.as_far_as(quantile) * se;
                let (low, high) = (effect - half, effect + half);
                average.band = Some([low, high]);
                average.outside_band = average.predicted.is_some_and(|own| own < low || own > high);
            }
        }
        let tested: Vec<usize> =
            known.into_iter().filter(|index| averages[*index].average.p_value.is_some()).collect();
        let p_values: Vec<f64> = tested.iter().filter_map(|index| averages[*index].average.p_value).collect();
        for (index, q_value) in tested.iter().zip(q_values(&p_values)) {
            averages[*index].average.q_value = Some(q_value);
        }
        let n_unpredicted = self.of.score.n_unpredicted;
        if whole.is_some() && n_unpredicted > 0 {
            let policies = if n_unpredicted == 1 { "policy has" } else { "policies have" };
            let note = format!(
                "{n_unpredicted} {policies} no predicted effect: the mean of their rows stands in for it"
            );
            averages.iter_mut().for_each(|own| own.average.notes.push(note.clone()));
        }
    }
}
