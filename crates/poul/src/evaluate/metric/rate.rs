//! Rank-weighted average treatment effects (Yadlowsky et al., RATE) on doubly robust scores, as grf defines them.
//!
//! TOC(q) is the mean score among the top q share, less the mean over all. AUTOC averages it over the rows, QINI with
//! weight q. Within a tie group every row has the group's mean score. A group of c rows after the first K then
//! contributes sums of (S + j·d)/(K + j), j = 1…c, which have closed forms; they extend to weights.

use super::bootstrap::Bootstrap;
use super::coarse::{self, Coarse, Drawn};
use super::definition::{About, Definition};
use super::ranked::{Ranked, Rows};
use crate::{Error, Progress, Result};

pub(super) const RATE_AUTOC: Definition = Definition {
    se: Some(|whole| whole.rate.and_then(|rate| rate.autoc_se)),
    ..Definition::new("rate_autoc", "RATE (AUTOC)", About::Ranking, |pass| pass.rate.map(|(autoc, _)| autoc))
};

pub(super) const RATE_QINI: Definition = Definition {
    se: Some(|whole| whole.rate.and_then(|rate| rate.qini_se)),
    ..Definition::new("rate_qini", "RATE (Qini)", About::Ranking, |pass| pass.rate.map(|(_, qini)| qini))
};

/// AUTOC: the mean of TOC. `dr_scores` are in the sample's row order.
pub fn rate_autoc<'a>(rows: impl Into<Rows<'a>>, dr_scores: &[f64]) -> Option<f64> {
    let rows = rows.into();
    rate_sums(rows, &rows.ranked.ranked_column(dr_scores)).map(|(autoc, _)| autoc)
}

/// QINI: the mean of q·TOC(q). `dr_scores` are in the sample's row order.
pub fn rate_qini<'a>(rows: impl Into<Rows<'a>>, dr_scores: &[f64]) -> Option<f64> {
    let rows = rows.into();
    rate_sums(rows, &rows.ranked.ranked_column(dr_scores)).map(|(_, qini)| qini)
}

/// Both RATE values with standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// AUTOC.
    pub autoc: f64,
    /// Its half-sample bootstrap standard error, by cluster.
    pub autoc_se: Option<f64>,
    /// QINI.
    pub qini: f64,
    /// Its half-sample bootstrap standard error, by cluster.
    pub qini_se: Option<f64>,
}

/// AUTOC and QINI, with standard errors over draws of half of the units without replacement: the spread of half
/// samples around the whole is that of the whole around the truth.
pub fn rate(
    ranked: &Ranked,
    dr_scores: &[f64],
    bootstrap: &Bootstrap,
    progress: &dyn Progress,
) -> Result<Option<Rate>> {
    let n_known = ranked.order().iter().copied().max().map_or(0, |row| row as usize + 1);
    if dr_scores.len() < n_known {
        return Err(Error::input(format!(
            "there are {} doubly robust scores for {n_known} rows",
            dr_scores.len()
        ))
        .hint("give one value for each row"));
    }
    rate_ranked(ranked, &ranked.ranked_column(dr_scores), bootstrap, progress)
}

/// As [`rate`], with scores in rank order.
pub(super) fn rate_ranked(
    ranked: &Ranked,
    dr_ranked: &[f64],
    bootstrap: &Bootstrap,
    progress: &dyn Progress,
) -> Result<Option<Rate>> {
    let Some((autoc, qini)) = rate_sums(ranked.rows(), dr_ranked) else {
        return Ok(None);
    };
    let of = |rows: Rows<'_>, dr_ranked: &[f64]| {
        let (autoc, qini) = rate_sums(rows, dr_ranked).unwrap_or((f64::NAN, f64::NAN));
        vec![autoc, qini]
    };
    let draws = if ranked.n_rows() < coarse::MIN_ROWS {
        bootstrap.half_samples(ranked, progress, |rows| of(rows, dr_ranked))?
    } else {
        let measure = |drawn: &Drawn<1>| of(drawn.ranked.rows(), &drawn.means[0]);
        Coarse::new(ranked, [dr_ranked]).half_samples(bootstrap, progress, measure, &[autoc, qini])?
    };
    Ok(Some(Rate {
        autoc,
        autoc_se: draws.standard_deviation(0),
        qini,
        qini_se: draws.standard_deviation(1),
    }))
}

/// AUTOC and QINI of scores in rank order; `None` without rows.
pub(in crate::evaluate) fn rate_sums(rows: Rows<'_>, dr_ranked: &[f64]) -> Option<(f64, f64)> {
    let (mut k, mut sum) = (0.0, 0.0);
    let (mut group_mass, mut group_sum) = (0.0, 0.0);
    let (mut autoc, mut qini) = (0.0, 0.0);
    rows.for_each(|row| {
        group_mass += row.mass;
        group_sum += row.mass * dr_ranked[row.index];
        if row.last_of_tie {
            // A group that was not drawn has no sum either: its mean counts 0, without a branch.
            let mean = group_sum / group_mass.max(f64::MIN_POSITIVE);
            autoc += group_sum + (sum - k * mean) * harmonic_step(k, group_mass);
            qini += group_mass * sum + group_sum * (group_mass + 1.0) / 2.0;
            k += group_mass;
            sum += group_sum;
            (group_mass, group_sum) = (0.0, 0.0);
        }
    });
    if k == 0.0 {
        return None;
    }
    let ate = sum / k;
    Some((autoc / k - ate, (qini - ate * k * (k + 1.0) / 2.0) / (k * k)))
}

/// Σ 1/(k + j) over j = 1…c, extended to real c: ψ(k + c + 1) − ψ(k + 1).
#[inline(always)]
fn harmonic_step(k: f64, c: f64) -> f64 {
    // Around the midpoint the sum is a series in (c/middle)²; two terms are exact to rounding for short steps, and
    // free of branches that depend on how often a row was drawn.
    let middle = k + (c + 1.0) / 2.0;
    if middle > 2000.0 * c {
        return c / middle * (1.0 + (c * c - 1.0) / (12.0 * middle * middle));
    }
    harmonic_difference(k, c)
}

fn harmonic_difference(k: f64, c: f64) -> f64 {
    if c <= 8.0 && c.fract() == 0.0 {
        return (1..=c as u32).map(|j| 1.0 / (k + f64::from(j))).sum();
    }
    // Climb to where the asymptotic series of ψ is exact to rounding, then take its difference term by term.
    const FLOOR: f64 = 12.0;
    let (mut low, mut high) = (k + 1.0, k + c + 1.0);
    let mut climbed = 0.0;
    while low < FLOOR {
        climbed += 1.0 / low - 1.0 / high;
        low += 1.0;
        high += 1.0;
    }
    let tail = |x: f64| {
        let square = 1.0 / (x * x);
        0.5 / x + square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square / 240.0)))
    };
    climbed + ((high - low) / low).ln_1p() + tail(low) - tail(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmonic_steps_agree_with_sums() {
        for (k, c) in [(0, 9), (0, 100), (3, 17), (1000, 12), (5_000_000, 40), (2001, 1), (20_000, 9)] {
            let expected: f64 = (1..=c).rev().map(|j| 1.0 / f64::from(k + j)).sum();
            for found in
                [harmonic_difference(f64::from(k), f64::from(c)), harmonic_step(f64::from(k), f64::from(c))]
            {
                assert!((found / expected - 1.0).abs() < 1e-13, "{k} {c} {found} {expected}");
            }
        }
        assert_eq!((harmonic_step(0.0, 0.0), harmonic_step(9.0, 0.0)), (0.0, 0.0));
        // ψ(2.5) − ψ(1) = 2 − 2 ln 2 + 2/3.
        let expected = 2.0 - 2.0 * std::f64::consts::LN_2 + 2.0 / 3.0;
        assert!((harmonic_difference(0.0, 1.5) - expected).abs() < 1e-13);
    }
}
