//! The main metrics of every comparison, of its rows and of each bootstrap draw: rankings of the same rows get the same
//! draws, so that the difference of two rankings has an interval of its own.

use serde::{Deserialize, Serialize};

use super::evaluation::{Effects, Scored, stacked};
use super::pair::{ArmSizes, Pair};
use super::params::ValidParams;
use super::ranked::Ranked;
use super::reading::{Reading, read};
use super::registry::Metric;
use super::table;
use crate::{Progress, Result};

/// The metrics of one comparison; `None` where one is not defined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Readings {
    /// The outcome, as an index into the table's.
    pub outcome: usize,
    /// The policy, as an index into the table's; all together where `None`.
    pub policy: Option<usize>,
    /// Rows that got the policy.
    pub n_treated: usize,
    /// Rows it is compared with.
    pub n_control: usize,
    /// Observed average effect.
    pub ate: Option<f64>,
    /// By [`Metric::compared`].
    pub values: Vec<Option<f64>>,
    /// For each draw, by [`Metric::compared`].
    pub draws: Vec<Vec<Option<f64>>>,
    /// Why numbers are missing.
    pub note: Option<String>,
}

/// Reads every column of effects on its outcomes, and all policies of an outcome together where there are several.
///
/// Draws are paired between calls whose tables differ in the effects alone, if the table has clusters: give each row its
/// number where there are none.
pub(crate) fn readings(
    table: &Scored<'_>,
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Vec<Readings>> {
    table::check(table, params)?;
    let sizes = ArmSizes::by_policy(table);
    let n_comparisons = table.effects.len() + table.outcomes.len();
    progress.start("Evaluating", "draws", Some((n_comparisons * params.bootstrap.draws) as u64));
    let mut all = Vec::new();
    for (outcome, column) in table.outcomes.iter().enumerate() {
        let of_outcome = table.effects.iter().filter(|own| own.outcome.is_none_or(|only| only == outcome));
        let mut usable: Vec<&Effects<'_>> = Vec::new();
        for effects in of_outcome {
            let sizes = &sizes[effects.policy];
            let Some(note) = sizes.too_few() else {
                usable.push(effects);
                let pair = Pair::new(table, column, effects, None)?;
                all.push(measured(&pair, (outcome, Some(effects.policy)), sizes.n_rows, params, progress)?);
                continue;
            };
            all.push(Readings {
                outcome,
                policy: Some(effects.policy),
                n_treated: sizes.n_rows[1],
                n_control: sizes.n_rows[0],
                ate: None,
                values: vec![None; Metric::compared().count()],
                draws: Vec::new(),
                note: Some(note),
            });
        }
        if usable.len() > 1 {
            let pair = stacked(table, outcome, &usable, &sizes)?;
            let n_treated = usable.iter().map(|effects| sizes[effects.policy].n_rows[1]).sum();
            let n_rows = [sizes[table.against].n_rows[0], n_treated];
            all.push(measured(&pair, (outcome, None), n_rows, params, progress)?);
        }
    }
    progress.finish();
    Ok(all)
}

fn measured(
    pair: &Pair,
    (outcome, policy): (usize, Option<usize>),
    [n_control, n_treated]: [usize; 2],
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Readings> {
    let sample = pair.sample()?;
    let ranked = Ranked::new(&sample);
    let columns = pair.columns(&ranked);
    let reading = read(ranked.rows(), &columns, params);
    let chosen = |reading: &Reading| -> Vec<Option<f64>> {
        Metric::compared().map(|metric| reading.value(metric)).collect()
    };
    let draws = params.bootstrap.draw(&ranked, progress, |rows| {
        chosen(&read(rows, &columns, params)).into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()
    })?;
    let defined = |draw: &Vec<f64>| draw.iter().map(|value| value.is_finite().then_some(*value)).collect();
    Ok(Readings {
        outcome,
        policy,
        n_treated,
        n_control,
        ate: reading.value(Metric::Ate),
        values: chosen(&reading),
        draws: draws.values().iter().map(defined).collect(),
        note: None,
    })
}
