//! Average effects of policies, over all rows and by group, by the doubly robust score (see `average_score`).
//!
//! An average is Σ w·Γ / Σ w over the rows of a group, whatever policy they got; its variance is the sum over clusters of
//! squared sums of w·(Γ − mean) / Σ w, times C/(C − 1). Standard errors count units: a weight is not a second observation.

use rayon::prelude::*;

use super::average_score::AverageScore;
use super::evaluation::{Effects, Outcome, Scored};
use super::groups::Groups;
use super::params::ValidParams;
use super::reasons::AverageEffect;
use super::refinement::Refinement;
use super::simultaneous::{max_t_quantile, p_value, q_values, sidak_quantile};
use super::table;
use super::units::Units;
use crate::data::RawColumn;
use crate::effect::normal_quantile;
use crate::net::RowSource;
use crate::nuisance::{Folds, Propensity};
use crate::{Error, Result};

/// What rows are grouped by where it is the predicted effect.
pub const BY_PREDICTED_EFFECT: &str = "predicted effect";
/// Rows of an arm below which an average has no standard error: its distribution is not normal, its variance unknown.
pub const FEWEST_ARM_ROWS: usize = 30;
const FEWEST_CLUSTERS: usize = 30;
/// Parts that the arms' ridges are cross-fitted in.
const FOLDS: usize = 5;
const COLUMN_QUANTILES: usize = 4;
const COLUMN_CATEGORIES: usize = 10;
/// Beyond so many comparisons their correlation is not computed, and the band is Šidák's.
const MOST_CORRELATED: usize = 128;

/// The average effect of every policy with predicted effects, over all rows, by quantile of the predicted effect and by
/// each of the columns `by`: numbers in quarters, the 10 commonest categories, missing values.
///
/// `table` needs predicted effects in all rows. Its [`prediction`](Outcome::prediction) is m̂(x), out of fold; without
/// one averages are less precise. `propensity` has π(t|x) over the policies of the table. The level of intervals and the
/// seed of the band are those of the bootstrap. With `x`, the encoded features, what is left in each arm is explained by a
/// ridge: for observational designs, whose averages rest on m̂ and π̂. An arm with fewer than 30 rows has an estimate and no interval.
///
/// The band of averages over all rows is that of max-t; within a grouping it is Šidák's, which is all but exact since
/// groups share no rows.
pub fn average_effects(
    table: &Scored<'_>,
    propensity: &Propensity,
    x: Option<&dyn RowSource>,
    by: &[RawColumn],
    params: &ValidParams,
) -> Result<Vec<AverageEffect>> {
    table::check(table, params)?;
    check(table, propensity, by)?;
    let n_rows = table.arm.len();
    if x.is_some_and(|x| x.n_rows() != n_rows) {
        return Err(Error::other("features of other rows"));
    }
    let folds = Folds::deal(n_rows, table.cluster, FOLDS, params.bootstrap.seed.child("averages"));
    let x = x.filter(|_| folds.check(n_rows).is_ok());
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
            AverageScore::new(table, outcome, &effects, propensity, refinement)?
        };
        let comparison = Comparison { table, outcome, score: &score, propensity, units: &units, params };
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
    let is_control = |(row, arm): (usize, &u32)| *arm as usize == table.against && counts(row);
    if !table.arm.iter().enumerate().any(is_control) {
        let name = &table.policies[table.against];
        return Err(Error::input(format!("no row has the policy `{name}`, which others are compared with"))
            .hint("add its rows, or compare with a policy that the rows have: --against NAME"));
    }
    Ok(())
}

/// The averages of one outcome.
struct Comparison<'a> {
    table: &'a Scored<'a>,
    outcome: &'a Outcome<'a>,
    score: &'a AverageScore<'a>,
    propensity: &'a Propensity,
    units: &'a Units,
    params: &'a ValidParams,
}

impl Comparison<'_> {
    fn averages(&self, effects: &[&Effects<'_>], columns: &[(&str, &Groups)]) -> Vec<AverageEffect> {
        let whole = Groups::whole(self.table.arm.len());
        // By policy, then by grouping: all rows, the predicted effect, the columns.
        let by_policy: Vec<Vec<Vec<AverageEffect>>> = effects
            .par_iter()
            .map(|own| {
                let quantiles = Groups::of_effect(own.values, self.table.weight, self.params.bins);
                let named = [(BY_PREDICTED_EFFECT, &quantiles)].into_iter().chain(columns.iter().copied());
                let named = named.map(|(name, groups)| self.of_groups(own, Some(name), groups));
                [self.of_groups(own, None, &whole)].into_iter().chain(named).collect()
            })
            .collect();
        let mut averages = Vec::new();
        for grouping in 0..columns.len() + 2 {
            let mut own: Vec<AverageEffect> =
                by_policy.iter().flat_map(|policy| policy[grouping].iter().cloned()).collect();
            self.adjust(&mut own, (grouping == 0).then_some(effects));
            averages.extend(own);
        }
        averages
    }

    /// One policy in each group of a grouping; estimates, standard errors, intervals.
    fn of_groups(&self, effects: &Effects<'_>, by: Option<&str>, groups: &Groups) -> Vec<AverageEffect> {
        let mut sums = vec![Sums::default(); groups.len()];
        for (row, group) in groups.of_row.iter().enumerate() {
            let weight = self.weight(row);
            if weight > 0.0 {
                let arm = self.table.arm[row] as usize;
                let own = &mut sums[usize::from(*group)];
                own.n_rows += 1;
                own.n_treated += usize::from(arm == effects.policy);
                own.n_control += usize::from(arm == self.table.against);
                own.mass += weight;
                own.score += weight * self.score.of(effects, row);
                own.predicted += weight * effects.values[row];
            }
        }
        let means: Vec<f64> = sums.iter().map(|own| own.score / own.mass).collect();
        let variances = self.units.variances(&groups.of_row, groups.len(), |row| {
            let group = usize::from(groups.of_row[row]);
            let weight = self.weight(row);
            let deviation = || weight * (self.score.of(effects, row) - means[group]) / sums[group].mass;
            (weight > 0.0).then(deviation)
        });
        let averages = groups.labels.iter().zip(&sums).zip(means).zip(variances);
        averages
            .filter(|(((_, own), _), _)| own.n_rows > 0)
            .map(|(((label, own), mean), (variance, n_units))| {
                let mut average = self.average(effects, own, mean, variance, n_units);
                if by.is_none() {
                    average.notes.extend(self.impossible(effects.policy));
                }
                average.by = by.map(str::to_owned);
                average.group = by.map(|_| label.clone());
                average
            })
            .collect()
    }

    /// Rows that could not have got the policy, or the one compared with: nothing is observed of them.
    fn impossible(&self, policy: usize) -> Option<String> {
        if matches!(self.propensity, Propensity::Shares(_)) {
            return None;
        }
        let n_policies = self.table.policies.len();
        let is_possible = |row: &usize| {
            let probabilities = self.propensity.of_row(*row, n_policies);
            probabilities[policy] > 0.0 && probabilities[self.table.against] > 0.0
        };
        let n_rows = self.table.arm.len();
        let share = 1.0 - (0..n_rows).filter(is_possible).count() as f64 / n_rows.max(1) as f64;
        (share > 0.0).then(|| {
            let share = 100.0 * share;
            format!("{share:.1} % of the rows could not get one of the two policies: there the prediction counts alone")
        })
    }

    fn average(
        &self,
        effects: &Effects<'_>,
        sums: &Sums,
        mean: f64,
        variance: f64,
        n_units: usize,
    ) -> AverageEffect {
        let table = self.table;
        let mut average = AverageEffect {
            outcome: self.outcome.name.to_owned(),
            policy: table.policies[effects.policy].clone(),
            against: table.policies[table.against].clone(),
            rows: sums.n_rows,
            n_treated: sums.n_treated,
            n_control: sums.n_control,
            predicted: Some(sums.predicted / sums.mass),
            ..AverageEffect::default()
        };
        let (n_treated, n_control) = (sums.n_treated, sums.n_control);
        if n_treated == 0 || n_control == 0 {
            average
                .notes
                .push(format!("{n_treated} treated and {n_control} control rows: no effect is seen"));
            return average;
        }
        average.effect = Some(mean);
        if n_treated.min(n_control) < FEWEST_ARM_ROWS {
            average.notes.push(format!(
                "{n_treated} treated and {n_control} control rows: fewer than {FEWEST_ARM_ROWS} give no interval"
            ));
            return average;
        }
        if n_units < 2 {
            average.notes.push("all rows are one cluster: no interval".to_owned());
            return average;
        }
        if n_units < FEWEST_CLUSTERS {
            average.notes.push(format!("{n_units} clusters: the interval is too narrow"));
        }
        let se = variance.sqrt();
        let half = normal_quantile(0.5 + self.params.bootstrap.level / 2.0) * se;
        average.se = Some(se);
        average.interval = Some([mean - half, mean + half]);
        average.p_value = p_value(mean, se);
        average
    }

    /// Bands and false-discovery rates of the comparisons of one grouping; `whole`: of all rows, for their correlation.
    fn adjust(&self, averages: &mut [AverageEffect], whole: Option<&[&Effects<'_>]>) {
        let known: Vec<usize> = (0..averages.len()).filter(|index| averages[*index].se.is_some()).collect();
        let level = self.params.bootstrap.level;
        let quantile = match whole {
            Some(effects) if known.len() <= MOST_CORRELATED => {
                let chosen: Vec<(&Effects<'_>, f64)> = known
                    .iter()
                    .map(|index| (effects[*index], averages[*index].effect.unwrap_or_default()))
                    .collect();
                let covariance = self.units.covariance(chosen.len(), |comparison, row| {
                    let (effects, mean) = chosen[comparison];
                    self.weight(row) * (self.score.of(effects, row) - mean)
                });
                let seed = self.params.bootstrap.seed.child("averages").child(self.outcome.name);
                max_t_quantile(&covariance, chosen.len(), level, seed)
            }
            _ => sidak_quantile(known.len(), level),
        };
        for index in &known {
            let average = &mut averages[*index];
            if let (Some(effect), Some(se)) = (average.effect, average.se) {
                let (low, high) = (effect - quantile * se, effect + quantile * se);
                average.band = Some([low, high]);
                average.outside_band = average.predicted.is_some_and(|own| own < low || own > high);
            }
        }
        let tested: Vec<usize> =
            known.into_iter().filter(|index| averages[*index].p_value.is_some()).collect();
        let p_values: Vec<f64> = tested.iter().filter_map(|index| averages[*index].p_value).collect();
        for (index, q_value) in tested.iter().zip(q_values(&p_values)) {
            averages[*index].q_value = Some(q_value);
        }
        if whole.is_some() && self.score.n_unpredicted > 0 {
            let note = format!(
                "{} policies of the rows have no predicted effect: m̂ is split by what their rows show on average",
                self.score.n_unpredicted
            );
            averages.iter_mut().for_each(|average| average.notes.push(note.clone()));
        }
    }

    fn weight(&self, row: usize) -> f64 {
        self.table.weight.map_or(1.0, |weight| weight[row])
    }
}

/// Sums over the rows of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n_rows: usize,
    n_treated: usize,
    n_control: usize,
    mass: f64,
    score: f64,
    predicted: f64,
}
