//! What may be said of an average: the number, its standard error, its interval and p-value, or why there is none.

use super::estimate::{ArmSums, Ingredients, Sums, Variance};
use super::hidden::hidden_confounding;
use super::tails::Tails;
use crate::evaluate::metric::Effects;
use crate::evaluate::metric::FEWEST_ARM_ROWS;
use crate::evaluate::reasons::AverageEffect;

/// Fewer clusters than this are told, whatever the interval.
const FEW_CLUSTERS: usize = 10;
/// Effective rows of an arm below which there is no interval: a few rows decide all.
const FEWEST_EFFECTIVE: f64 = 10.0;

/// An average, and the distribution of its error.
#[derive(Clone)]
pub(super) struct Averaged {
    pub(super) average: AverageEffect,
    pub(super) tails: Tails,
}

/// What averages of one policy on one outcome have in common.
pub(super) struct Claim<'a> {
    pub(super) of: &'a Ingredients<'a>,
    pub(super) outcome: &'a str,
    pub(super) effects: &'a Effects<'a>,
    pub(super) level: f64,
    /// Whether over all rows too many have no overlap: then no group claims anything either.
    pub(super) lacks_overlap: bool,
}

impl Claim<'_> {
    /// The average over the rows of a group.
    pub(super) fn of_group(&self, sums: &Sums, mean: f64, variance: Variance) -> Averaged {
        let mut average = self.start(sums);
        let [n_control, n_treated] = sums.arms.map(|arm| arm.n_rows);
        let mut tails = Tails::default();
        if n_treated == 0 || n_control == 0 {
            average
                .notes
                .push(format!("{n_treated} treated and {n_control} control rows: no effect is seen"));
            average.notes.extend(self.weightless());
            return Averaged { average, tails };
        }
        average.effect = Some(mean);
        match self.degrees(sums, &variance) {
            Err(note) => average.notes.push(note),
            Ok(degrees) => {
                tails = Tails::new(degrees);
                let se = variance.variance.sqrt();
                average.se = Some(se);
                average.notes.extend(self.few_clusters(&variance, &tails));
                if self.lacks_overlap || average.lacks_overlap() {
                    average.notes.push(self.without_overlap(&average));
                } else {
                    let half = tails.quantile(self.level) * se;
                    average.interval = Some([mean - half, mean + half]);
                    average.p_value = tails.p_value(mean, se);
                }
            }
        }
        Averaged { average, tails }
    }

    /// Adds the bounds under hidden confounding, where nobody randomised and there is an interval.
    pub(super) fn bound(&self, own: &mut Averaged) {
        let average = &mut own.average;
        if let (Some(_), Some(effect), Some([_, high])) = (self.of.support, average.effect, average.interval)
        {
            average.hidden = hidden_confounding(self.of, self.effects, effect, high - effect);
        }
    }

    fn start(&self, sums: &Sums) -> AverageEffect {
        let table = self.of.table;
        let [n_control, n_treated] = sums.arms.map(|arm| arm.n_rows);
        let share = (1.0 - sums.mass / sums.mass_of_all).max(0.0);
        let is_observed = self.of.support.is_some();
        AverageEffect {
            outcome: self.outcome.to_owned(),
            policy: table.policies[self.effects.policy].clone(),
            against: table.policies[table.against].clone(),
            rows: sums.n_rows,
            n_treated,
            n_control,
            predicted: (sums.mass > 0.0).then(|| sums.predicted / sums.mass),
            population: (is_observed && share > 0.0)
                .then(|| format!("rows with overlap ({:.0} %)", 100.0 * (1.0 - share))),
            share_without_overlap: is_observed.then_some(share),
            effective_rows: is_observed.then(|| sums.arms[1].effective_rows()),
            ..AverageEffect::default()
        }
    }

    /// Degrees of freedom of the standard error, many where there are none; or why there is no standard error.
    fn degrees(&self, sums: &Sums, variance: &Variance) -> Result<Option<usize>, String> {
        let [n_control, n_treated] = sums.arms.map(|arm| arm.n_rows);
        if n_treated.min(n_control) < FEWEST_ARM_ROWS {
            return Err(format!(
                "{n_treated} treated and {n_control} control rows: fewer than {FEWEST_ARM_ROWS} give no interval"
            ));
        }
        if variance.n_units < 2 {
            return Err("all rows are one cluster: no interval".to_owned());
        }
        let mut degrees = None;
        if let Some([control, treated]) = variance.arm_clusters {
            let fewest = control.min(treated);
            if fewest < 2 {
                return Err(format!(
                    "the treated rows are in {treated} and the control rows in {control} clusters: no interval \
                     without 2 of each"
                ));
            }
            degrees = Some(fewest - 1);
        }
        if self.of.support.is_some() {
            let effective = sums.arms.iter().map(ArmSums::effective_rows).fold(f64::INFINITY, f64::min);
            if effective < FEWEST_EFFECTIVE {
                return Err(format!(
                    "the effective sample size of an arm after weighting is {effective:.1}: no interval below \
                     {FEWEST_EFFECTIVE}"
                ));
            }
            let by_values = Tails::by_values(variance.degrees);
            degrees = Some(degrees.unwrap_or(usize::MAX).min(effective as usize - 1).min(by_values));
        }
        Ok(degrees)
    }

    fn few_clusters(&self, variance: &Variance, tails: &Tails) -> Option<String> {
        let fewest = variance.arm_clusters.map(|[control, treated]| control.min(treated))?;
        let degrees = tails.degrees()?;
        (fewest < FEW_CLUSTERS).then(|| {
            format!(
                "an arm has only {fewest} clusters: the interval is wide, by Student's t with {degrees} degrees of \
                 freedom, and holds only if clusters are alike"
            )
        })
    }

    fn without_overlap(&self, average: &AverageEffect) -> String {
        match average.lacks_overlap() {
            true => format!(
                "{:.0} % of the rows had next to no chance of `{}` or of `{}`: the number is about the other rows, and no \
                 finding",
                100.0 * average.share_without_overlap.unwrap_or_default(),
                average.policy,
                average.against
            ),
            false => {
                "too many rows of the table had next to no chance of one of the two policies: no finding"
                    .to_owned()
            }
        }
    }

    /// Why an arm has rows that do not count.
    fn weightless(&self) -> Option<String> {
        let table = self.of.table;
        let mut rows = (0..table.arm.len()).filter(|row| table.arm[*row] as usize == self.effects.policy);
        let weightless = rows.clone().next().is_some() && rows.all(|row| self.of.weight(row) <= 0.0);
        let name = &table.policies[self.effects.policy];
        weightless.then(|| format!("all rows of `{name}` have weight 0"))
    }
}
