//! Features that say too much of the outcome or of the policy, by a sample of encoded rows.

use rayon::prelude::*;

use super::super::balance::Groups;
use super::super::findings::{Finding, Level};
use super::balanced::Units;
use super::{about, exclude};
use crate::data::{Columns, Design, Encoder};

/// Rank correlation from which a feature *is* the outcome, up to a bend.
const SAME: f64 = 0.9999;
/// And from which it follows it too closely to have been known before.
const CLOSE: f64 = 0.95;
/// Ranks are looked at only where the plain correlation is at least this.
const WORTH_RANKING: f64 = 0.5;
/// Rows off the usual value that a pattern must rest on.
const ENOUGH: usize = 30;
/// The logarithm of the chance below which a pattern is none.
const LOG_CHANCE: f64 = -20.7; // 1e-9

/// Encoded rows with what they were assigned and what came out.
pub(crate) struct EncodedRows<'a> {
    pub(crate) encoder: &'a Encoder,
    /// Row by row.
    pub(crate) x: &'a [f32],
    pub(crate) policy: &'a [u32],
    pub(crate) outcomes: &'a [Vec<f64>],
    pub(crate) cluster: Option<&'a [u32]>,
    pub(crate) stratum: Option<&'a [u32]>,
}

/// What is wrong with one encoded column.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// The outcome that it is.
    same: Option<usize>,
    /// The outcome that it follows.
    close: Option<usize>,
    /// The outcome without which it is never off its usual value.
    nested: Option<usize>,
    tells_policy: bool,
    unbalanced: bool,
}

/// Findings about features. `alone`: whether nothing else looks at them; `check` tests balance by permutation, and close
/// followers by all rows.
pub(crate) fn by_rows(
    rows: &EncodedRows<'_>,
    columns: &Columns,
    groups: &Groups,
    alone: bool,
) -> Vec<Finding> {
    let width = rows.encoder.width();
    let n_rows = rows.policy.len();
    if n_rows < 2 * ENOUGH {
        return Vec::new();
    }
    let outcomes: Vec<OutcomeRows<'_>> =
        rows.outcomes.iter().map(|values| OutcomeRows::new(values)).collect();
    let units = (alone && columns.design != Design::Observational).then(|| Units::new(rows, groups, width));
    let marks: Vec<Marks> = (0..width)
        .into_par_iter()
        .map(|column| {
            let values: Vec<f64> = (0..n_rows).map(|row| f64::from(rows.x[row * width + column])).collect();
            let mut marks = of_outcomes(&values, &outcomes);
            marks.tells_policy = tells_policy(&values, rows.policy);
            marks.unbalanced = units.as_ref().is_some_and(|units| units.is_unbalanced(&values, rows.stratum));
            marks
        })
        .collect();
    findings(&marks, rows, columns, alone)
}

/// A feature is what its encoded columns are.
fn findings(marks: &[Marks], rows: &EncodedRows<'_>, columns: &Columns, alone: bool) -> Vec<Finding> {
    let origins = rows.encoder.origins();
    let names: Vec<&str> = rows.encoder.features().map(|feature| feature.name.as_str()).collect();
    let features = |is: &dyn Fn(&Marks) -> bool| -> Vec<&str> {
        let mut found: Vec<usize> =
            origins.iter().zip(marks).filter(|(_, marks)| is(marks)).map(|(of, _)| *of).collect();
        found.dedup();
        found.into_iter().map(|feature| names[feature]).collect()
    };
    let mut findings = Vec::new();
    let mut add = |level: Level, features: &[&str], what: &str, why: &str| {
        if !features.is_empty() {
            let hint = format!("{why}{}", exclude(features));
            findings.push(about(level, features, what, &hint));
        }
    };
    for (place, outcome) in columns.outcomes.iter().enumerate() {
        let known = "a feature must be known before assignment: leave it out with ";
        let what = format!("is the outcome `{outcome}` under another name");
        add(Level::Problem, &features(&|marks| marks.same == Some(place)), &what, known);
        let what = format!("follows the outcome `{outcome}` almost exactly");
        add(Level::Warning, &features(&|marks| alone && marks.close == Some(place)), &what, known);
        let what =
            format!("never leaves its usual value unless `{outcome}` does: it looks like another outcome");
        add(
            Level::Warning,
            &features(&|marks| marks.nested == Some(place)),
            &what,
            "if it is one, leave it out with ",
        );
    }
    // One cluster for each policy, and everything that clusters differ by tells the policy.
    let level = if columns.cluster.is_some() { Level::Warning } else { Level::Problem };
    add(
        level,
        &features(&|marks| marks.tells_policy),
        "tells which policy a row got",
        "the treatment must not be a feature: leave it out with ",
    );
    add(
        Level::Warning,
        &features(&|marks| marks.unbalanced && !marks.tells_policy),
        "differs by policy far beyond chance: it looks measured after assignment",
        "if assignment was not random, say so with ‹stratum=COL› or ‹design=observational›; else leave it out with ",
    );
    findings
}

/// An outcome, and where it is off its usual value.
struct OutcomeRows<'a> {
    values: &'a [f64],
    usual: Option<f64>,
    off_share: f64,
    ranks: Vec<f64>,
}

impl<'a> OutcomeRows<'a> {
    fn new(values: &'a [f64]) -> Self {
        let usual = majority(values);
        let n_off = usual.map_or(0, |usual| values.iter().filter(|value| **value != usual).count());
        Self { values, usual, off_share: n_off as f64 / values.len() as f64, ranks: ranks(values) }
    }
}

fn of_outcomes(values: &[f64], outcomes: &[OutcomeRows<'_>]) -> Marks {
    let mut marks = Marks::default();
    let usual = majority(values);
    for (place, outcome) in outcomes.iter().enumerate() {
        if correlation(values, outcome.values).abs() >= WORTH_RANKING {
            let along = correlation(&ranks(values), &outcome.ranks).abs();
            match along {
                along if along >= SAME => marks.same = Some(place),
                along if along >= CLOSE => marks.close = Some(place),
                _ => {}
            }
        }
        if let (Some(usual), Some(of_outcome)) = (usual, outcome.usual) {
            let off = values.iter().zip(outcome.values).filter(|(value, _)| **value != usual);
            let (mut n_off, mut n_both) = (0_usize, 0_usize);
            off.for_each(|(_, value)| {
                n_off += 1;
                n_both += usize::from(*value != of_outcome);
            });
            let by_chance = n_off as f64 * outcome.off_share.ln();
            if n_off >= ENOUGH && n_both == n_off && by_chance < LOG_CHANCE && marks.same != Some(place) {
                marks.nested = Some(place);
            }
        }
    }
    // The strongest finding about an outcome is enough.
    if marks.same.is_some() || marks.close.is_some() {
        marks.nested = None;
    }
    marks
}

/// The value of more than half of the rows (Boyer and Moore's vote).
fn majority(values: &[f64]) -> Option<f64> {
    let (mut candidate, mut votes) = (f64::NAN, 0_usize);
    for value in values {
        if votes == 0 {
            (candidate, votes) = (*value, 1);
        } else if *value == candidate {
            votes += 1;
        } else {
            votes -= 1;
        }
    }
    let n = values.iter().filter(|value| **value == candidate).count();
    (2 * n > values.len() && n < values.len()).then_some(candidate)
}

/// Whether the column has one value within each policy, and rests on enough rows.
fn tells_policy(values: &[f64], policy: &[u32]) -> bool {
    let n_policies = policy.iter().max().map_or(0, |last| *last as usize + 1);
    let mut seen: Vec<Option<(f64, usize)>> = vec![None; n_policies];
    for (value, policy) in values.iter().zip(policy) {
        match &mut seen[*policy as usize] {
            Some((own, n)) if own == value => *n += 1,
            Some(_) => return false,
            none => *none = Some((*value, 1)),
        }
    }
    // Rows of policies that have few say nothing: in such a policy any rare value is alone.
    let rows_at = |is: &dyn Fn(f64) -> bool| -> usize {
        seen.iter().flatten().filter(|(value, n)| *n >= ENOUGH && is(*value)).map(|(_, n)| n).sum()
    };
    let all = rows_at(&|_| true);
    let commonest =
        seen.iter().flatten().map(|(value, _)| rows_at(&|other| other == *value)).max().unwrap_or(0);
    2 * all > values.len() && all - commonest >= ENOUGH
}

/// Average ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|a, b| values[*a as usize] == values[*b as usize]) {
        let rank = first as f64 + (tied.len() as f64 - 1.0) / 2.0;
        tied.iter().for_each(|row| ranks[*row as usize] = rank);
        first += tied.len();
    }
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        (aa, bb, ab) = (aa + a * a, bb + b * b, ab + a * b);
    }
    if aa > 0.0 && bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    #[test]
    fn a_bent_copy_is_the_outcome_and_a_predictor_is_not() {
        let mut rng = Seed::new(3).rng();
        let gmv: Vec<f64> = (0..4000)
            .map(
                |_| if rng.random_range(0.0..1.0) < 0.7 { 0.0 } else { rng.random_range(0.0_f64..6.0).exp() },
            )
            .collect();
        let outcomes = [OutcomeRows::new(&gmv)];
        let bent: Vec<f64> = gmv.iter().map(|value| f64::from(value.asinh() as f32)).collect();
        assert_eq!(of_outcomes(&bent, &outcomes).same, Some(0));
        let cost: Vec<f64> = gmv
            .iter()
            .map(|value| if *value > 0.0 && rng.random_range(0.0..1.0) < 0.2 { 1.0 } else { 0.0 })
            .collect();
        let marks = of_outcomes(&cost, &outcomes);
        assert!(marks.nested == Some(0) && marks.same.is_none() && marks.close.is_none(), "{marks:?}");
        let past: Vec<f64> = gmv.iter().map(|value| value.asinh() + rng.random_range(-3.0..3.0)).collect();
        let marks = of_outcomes(&past, &outcomes);
        assert!(marks.same.is_none() && marks.close.is_none() && marks.nested.is_none(), "{marks:?}");
        let rare: Vec<f64> =
            (0..4000).map(|_| f64::from(u8::from(rng.random_range(0.0..1.0) < 0.02))).collect();
        assert!(of_outcomes(&rare, &outcomes).nested.is_none());
    }

    #[test]
    fn a_flag_of_the_treatment_tells_the_policy_and_a_rare_city_does_not() {
        let policy: Vec<u32> = (0..3000).map(|row| if row < 40 { 2 } else { row % 2 }).collect();
        let flag: Vec<f64> = policy.iter().map(|own| f64::from(u8::from(*own == 1))).collect();
        assert!(tells_policy(&flag, &policy));
        let city: Vec<f64> = (0..3000).map(|row| f64::from(u8::from(row % 7 == 0))).collect();
        assert!(!tells_policy(&city, &policy));
        assert!(!tells_policy(&vec![1.0; 3000], &policy));
        // Every row its own policy.
        let each: Vec<u32> = (0..3000).collect();
        assert!(!tells_policy(&city, &each));
    }
}
