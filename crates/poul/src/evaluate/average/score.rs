//! The doubly robust score of every policy on one outcome, prepared once for all of them.
//!
//! Γ_t(i) = τ̂_t(x) + 1{T=t}/π_t(x)·(y − μ̂_t(x)) − 1{T=0}/π_0(x)·(y − μ̂_0(x)), where μ̂_0 = m̂ − Σ_s π_s·τ̂_s and
//! μ̂_t = μ̂_0 + τ̂_t: the decomposition of the paper, solved for the arms (Robins, Rotnitzky and Zhao 1994 for the score).
//! Every arm's μ̂ is moved by a constant so that its residuals have mean 0 under weights 1/π (Hájek): no constant in y, m̂
//! or τ̂ matters then, and that shares π̂ are themselves estimated costs nothing in the standard error.
//!
//! Where nobody randomised ([`Refinement`]), every arm's μ̂ gets c_t(x) on top, a ridge of its residuals under weights 1/π,
//! out of fold: Γ is then right to first order where π̂ is, where μ̂ is, and where what π̂ misses is linear in x. Rows that had
//! next to no chance of their own policy are no part of it: a few of them would outweigh all others.
//!
//! A policy without predicted effects enters Σ_s π_s·τ̂_s by what its rows show: the difference of mean residuals y − m̂
//! between its arm and the one compared with. With the right π this is about precision alone: E Γ does not depend on μ̂.

use super::refinement::Refinement;
use crate::evaluate::metric::{Effects, Outcome, Scored};
use crate::nuisance::{CommonSupport, Propensity};
use crate::{Error, Result};

/// Fewest rows of an arm that say anything of its mean effect.
const FEWEST_ROWS: usize = 30;

/// What turns predicted effects of one outcome into doubly robust scores.
pub(super) struct AverageScore<'a> {
    table: &'a Scored<'a>,
    /// By row: (y − μ̂_T)/π_T of the row's own policy.
    correction: Vec<f64>,
    /// By row: 1/π_T; 0 for rows without weight.
    inverse: Vec<f64>,
    /// By policy: c_t − c_0 of each row, where arms were refined.
    refined: Vec<Option<Vec<f32>>>,
    /// By policy: the constant that its arm's residuals had, less that of the arm compared with.
    shift: Vec<f64>,
    /// Policies with rows, but without predicted effects.
    pub(super) n_unpredicted: usize,
}

impl<'a> AverageScore<'a> {
    /// Goes through the rows of the table twice.
    pub(super) fn new(
        table: &'a Scored<'a>,
        outcome: &Outcome<'a>,
        effects: &[&Effects<'a>],
        propensity: &Propensity,
        support: Option<&CommonSupport<'_>>,
        refinement: Option<Refinement<'_>>,
    ) -> Result<Self> {
        let n_policies = table.policies.len();
        let mut predicted: Vec<Option<&[f64]>> = vec![None; n_policies];
        effects.iter().for_each(|own| predicted[own.policy] = Some(own.values));
        let expected = |row: usize| outcome.prediction.map_or(0.0, |prediction| prediction[row]);
        let weight = |row: usize| table.weight.map_or(1.0, |weight| weight[row]);

        // What rows of policies without predicted effects show, against those compared with.
        let (mut mass, mut sum, mut n_rows) =
            (vec![0.0; n_policies], vec![0.0; n_policies], vec![0; n_policies]);
        for (row, (arm, y)) in table.arm.iter().zip(outcome.values).enumerate() {
            if !y.is_finite() || !expected(row).is_finite() {
                let what = format!("the outcome `{}` is {y}, predicted {}", outcome.name, expected(row));
                return Err(Error::input(what).at_row(row).hint("drop the row, or give finite numbers"));
            }
            let arm = *arm as usize;
            mass[arm] += weight(row);
            sum[arm] += weight(row) * (y - expected(row));
            n_rows[arm] += usize::from(weight(row) > 0.0);
        }
        let mean = |arm: usize| sum[arm] / mass[arm];
        let is_unpredicted =
            |arm: &usize| predicted[*arm].is_none() && *arm != table.against && n_rows[*arm] > 0;
        let unpredicted: Vec<usize> = (0..n_policies).filter(is_unpredicted).collect();
        let mut constant = vec![0.0; n_policies];
        for arm in unpredicted.iter().filter(|arm| n_rows[**arm] >= FEWEST_ROWS) {
            constant[*arm] = mean(*arm) - mean(table.against);
        }

        let columns: Vec<(usize, &[f64])> =
            predicted.iter().enumerate().filter_map(|(arm, values)| Some((arm, (*values)?))).collect();
        let effect = |arm: usize, row: usize| predicted[arm].map_or(constant[arm], |values| values[row]);
        let mut correction = Vec::with_capacity(table.arm.len());
        let mut inverse = Vec::with_capacity(table.arm.len());
        for (row, (arm, y)) in table.arm.iter().zip(outcome.values).enumerate() {
            let arm = *arm as usize;
            let probabilities = propensity.of_row(row, n_policies);
            let own = f64::from(probabilities[arm]);
            // An arm without any weight has no share either.
            let counts = weight(row) > 0.0;
            if counts && !(own > 0.0 && own <= 1.0) {
                let what = format!("the propensity of the row's policy `{}` is {own}", table.policies[arm]);
                let error = Error::input(what).at_row(row);
                return Err(
                    error.hint("what happened cannot have probability 0: correct it, or drop the row")
                );
            }
            let by_columns: f64 =
                columns.iter().map(|(arm, values)| f64::from(probabilities[*arm]) * values[row]).sum();
            let by_constants: f64 =
                unpredicted.iter().map(|arm| f64::from(probabilities[*arm]) * constant[*arm]).sum();
            let arm_mean = expected(row) - by_columns - by_constants + effect(arm, row);
            let residual = y - arm_mean;
            if !residual.is_finite() {
                return Err(Error::input(format!("a predicted effect on `{}` is not finite", outcome.name))
                    .at_row(row)
                    .hint("averages need the effect of every policy in every row"));
            }
            correction.push(residual);
            inverse.push(if counts { 1.0 / own } else { 0.0 });
        }
        let mut refined = vec![None; n_policies];
        if let Some(refinement) = refinement {
            let arms = columns.iter().map(|(arm, _)| *arm).chain([table.against]);
            let overlaps = |row: usize| support.is_none_or(|own| own.holds(row, table.arm[row] as usize));
            let weigh = |(row, inverse): (usize, &f64)| match overlaps(row) {
                true => weight(row) * inverse,
                false => 0.0,
            };
            let weight: Vec<f64> = inverse.iter().enumerate().map(weigh).collect();
            let mut n_overlapping = vec![0; n_policies];
            for (arm, weight) in table.arm.iter().zip(&weight) {
                n_overlapping[*arm as usize] += usize::from(*weight > 0.0);
            }
            let arms: Vec<usize> = arms.filter(|arm| n_overlapping[*arm] >= FEWEST_ROWS).collect();
            for (arm, values) in refinement.arms(
                &arms,
                table.arm,
                (&correction, &weight),
                (outcome.prediction, propensity, n_policies),
            )? {
                refined[arm] = Some(values);
            }
            for ((row, residual), arm) in correction.iter_mut().enumerate().zip(table.arm) {
                *residual -= refined[*arm as usize].as_ref().map_or(0.0, |own| f64::from(own[row]));
            }
        }
        let (mut residual_sum, mut residual_mass) = (vec![0.0; n_policies], vec![0.0; n_policies]);
        for ((row, residual), arm) in correction.iter().enumerate().zip(table.arm) {
            residual_mass[*arm as usize] += weight(row) * inverse[row];
            residual_sum[*arm as usize] += weight(row) * inverse[row] * residual;
        }
        let centre = |arm: usize| match residual_mass[arm] > 0.0 {
            true => residual_sum[arm] / residual_mass[arm],
            false => 0.0,
        };
        let centres: Vec<f64> = (0..n_policies).map(centre).collect();
        for ((value, inverse), arm) in correction.iter_mut().zip(&inverse).zip(table.arm) {
            *value = (*value - centres[*arm as usize]) * inverse;
        }
        let shift = centres.iter().map(|centre| centre - centres[table.against]).collect();
        if let Some(base) = refined[table.against].take() {
            for (arm, _) in &columns {
                let own = refined[*arm].get_or_insert_with(|| vec![0.0; base.len()]);
                own.iter_mut().zip(&base).for_each(|(own, base)| *own -= base);
            }
        }
        Ok(Self { table, correction, inverse, refined, shift, n_unpredicted: unpredicted.len() })
    }

    /// Γ of a policy in a row.
    #[inline]
    pub(super) fn of(&self, effects: &Effects<'_>, row: usize) -> f64 {
        let arm = self.table.arm[row] as usize;
        let sign =
            f64::from(u8::from(arm == effects.policy)) - f64::from(u8::from(arm == self.table.against));
        self.predicted(effects, row) + sign * self.correction[row]
    }

    /// μ̂_t − μ̂_0 of a policy in a row.
    #[inline]
    pub(super) fn predicted(&self, effects: &Effects<'_>, row: usize) -> f64 {
        let refined = self.refined[effects.policy].as_ref().map_or(0.0, |own| f64::from(own[row]));
        effects.values[row] + refined + self.shift[effects.policy]
    }

    /// y − μ̂ of the row's own policy, and 1/π of it.
    #[inline]
    pub(super) fn residual(&self, row: usize) -> (f64, f64) {
        let inverse = self.inverse[row];
        (if inverse > 0.0 { self.correction[row] / inverse } else { 0.0 }, inverse)
    }
}
