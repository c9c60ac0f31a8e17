//! Every metric, for every outcome and policy, with intervals: the table in, an [`Evaluation`] out.

use super::bootstrap::Draws;
use super::calibration::calibration;
use super::coarse::{self, Coarse, Drawn};
use super::cost_curve::cost_curve_ranked;
use super::definition::Whole;
use super::gain_curve::gain_curve;
use super::metrics::{Metrics, Number};
use super::pair::{ArmSizes, Pair};
use super::params::{CostPair, ValidParams};
use super::ranked::{Ranked, Rows};
use super::rate::rate_ranked;
use super::reading::{Columns, Reading, curve_place, read, top_share_place};
use super::registry::Metric;
use super::{notes, table};
use crate::evaluate::result::{CostResult, Evaluation, PolicyResult, PooledResult, TopShare};
#[doc(inline)]
pub use crate::nuisance::OutcomeColumn as Outcome;
use crate::{Progress, Result, counted};

/// A table of rows with outcomes, the policy each row got, and predicted effects.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// The outcomes to evaluate.
    pub outcomes: &'a [Outcome<'a>],
    /// Names of the policies.
    pub policies: &'a [String],
    /// The policy of each row, as an index into `policies`.
    pub arm: &'a [u32],
    /// The policy that others are compared with, usually control.
    pub against: usize,
    /// Predicted effects against that policy.
    pub effects: &'a [Effects<'a>],
    /// Row weights.
    pub weight: Option<&'a [f64]>,
    /// Cluster of each row; equal codes are one cluster.
    pub cluster: Option<&'a [u32]>,
    /// π(t|x) of each policy (a column of the rows for each entry of `policies`); arm shares without it.
    pub propensity: Option<&'a [&'a [f64]]>,
}

/// A column of predicted effects. Only rows that got its policy, or the one compared with, are read.
#[derive(Clone, Copy, Debug)]
pub struct Effects<'a> {
    /// The policy whose effect it is, as an index into [`Scored::policies`].
    pub policy: usize,
    /// The outcome, as an index into [`Scored::outcomes`]; every outcome where `None`.
    pub outcome: Option<usize>,
    /// The predicted effect for each row.
    pub values: &'a [f64],
    /// The true effect for each row, where it is known.
    pub truth: Option<&'a [f64]>,
}

/// Evaluates every column of effects on its outcomes, and all policies of an outcome together.
///
/// A comparison with fewer than two rows in an arm gives a note instead of numbers. Results do not depend on the
/// number of threads.
pub fn evaluate(table: &Scored<'_>, params: &ValidParams, progress: &dyn Progress) -> Result<Evaluation> {
    table::check(table, params)?;
    let comparisons: Vec<(usize, &Effects<'_>)> = (0..table.outcomes.len())
        .flat_map(|outcome| table.effects.iter().map(move |effects| (outcome, effects)))
        .filter(|(outcome, effects)| effects.outcome.is_none_or(|only| only == *outcome))
        .collect();
    let sizes = ArmSizes::by_policy(table);
    let value = params.cost.as_ref().map(|cost| table::outcome_named(table, &cost.value)).transpose()?;
    let usable = |outcome: usize| {
        let of_outcome = comparisons.iter().filter(move |(of, _)| *of == outcome);
        of_outcome.filter(|(_, effects)| sizes[effects.policy].too_few().is_none()).count()
    };
    let n_stages: usize = (0..table.outcomes.len())
        .map(usable)
        .enumerate()
        .map(|(outcome, n)| 2 * (n + usize::from(n > 1)) + if value == Some(outcome) { n } else { 0 })
        .sum();
    progress.start("Evaluating", "draws", Some((n_stages * params.bootstrap.draws) as u64));

    let mut evaluation =
        Evaluation { rows: table.arm.len(), level: params.bootstrap.level, ..Evaluation::default() };
    for (outcome, effects) in &comparisons {
        let outcome = &table.outcomes[*outcome];
        let sizes = &sizes[effects.policy];
        let metrics = match sizes.too_few() {
            Some(note) => empty(sizes, note),
            None => measure(&Pair::new(table, outcome, effects, None)?, params, progress)?,
        };
        evaluation.results.push(PolicyResult {
            outcome: outcome.name.to_owned(),
            policy: table.policies[effects.policy].clone(),
            against: table.policies[table.against].clone(),
            metrics,
        });
    }
    for outcome in 0..table.outcomes.len() {
        let members: Vec<(&Effects<'_>, &PolicyResult)> = comparisons
            .iter()
            .zip(&evaluation.results)
            .filter(|((of, _), _)| *of == outcome)
            .map(|((_, effects), result)| (*effects, result))
            .collect();
        let pooled = pool(table, outcome, &members, &sizes, params, progress)?;
        evaluation.pooled.extend(pooled);
    }
    if let Some(cost) = &params.cost {
        evaluation.cost_curves = cost_curves(table, cost, &comparisons, &sizes, params, progress)?;
    }
    progress.finish();
    Ok(evaluation)
}

/// All policies of an outcome together; `None` without one that can be compared.
fn pool(
    table: &Scored<'_>,
    outcome: usize,
    members: &[(&Effects<'_>, &PolicyResult)],
    sizes: &[ArmSizes],
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Option<PooledResult>> {
    let usable: Vec<(&Effects<'_>, &PolicyResult)> = members
        .iter()
        .filter(|(effects, _)| sizes[effects.policy].too_few().is_none())
        .map(|(effects, result)| (*effects, *result))
        .collect();
    let mut metrics = match usable[..] {
        [] => return Ok(None),
        [(_, alone)] => alone.metrics.clone(),
        _ => {
            let effects: Vec<&Effects<'_>> = usable.iter().map(|(effects, _)| *effects).collect();
            measure(&stacked(table, outcome, &effects, sizes)?, params, progress)?
        }
    };
    let n_left_out = members.len() - usable.len();
    if n_left_out > 0 {
        let policies = counted(n_left_out, "policy", "policies");
        metrics.notes.push(format!("left out: {policies} with fewer than 2 rows in an arm"));
    }
    Ok(Some(PooledResult {
        outcome: table.outcomes[outcome].name.to_owned(),
        policies: usable.iter().map(|(effects, _)| table.policies[effects.policy].clone()).collect(),
        against: table.policies[table.against].clone(),
        metrics,
    }))
}

/// The comparisons of several policies stacked: one ratio of the arms for all, the control rows keeping their total weight.
pub(super) fn stacked(
    table: &Scored<'_>,
    outcome: usize,
    usable: &[&Effects<'_>],
    sizes: &[ArmSizes],
) -> Result<Pair> {
    let total = |arm: usize| usable.iter().map(|effects| sizes[effects.policy].mass[arm]).sum::<f64>();
    let ratio = total(0) / total(1);
    let pair = |effects: &&Effects<'_>| {
        let [control, treated] = sizes[effects.policy].mass;
        Pair::new(table, &table.outcomes[outcome], effects, Some(treated * ratio / control))
    };
    Ok(Pair::stack(usable.iter().map(pair).collect::<Result<_>>()?))
}

/// Every metric of one comparison.
fn measure(pair: &Pair, params: &ValidParams, progress: &dyn Progress) -> Result<Metrics> {
    let sample = pair.sample()?;
    let ranked = Ranked::new(&sample);
    let columns = pair.columns(&ranked);
    let reading = read(ranked.rows(), &columns, params);
    let draws = draws(&ranked, &columns, &reading, params, progress)?;
    let rate = rate_ranked(&ranked, &columns.dr_score, &params.bootstrap, progress)?;
    let whole = Whole { ranked: &ranked, rate };
    let bins = calibration(&ranked, params.bins).bins;

    let interval =
        |place: usize| reading.at(place).and_then(|_| draws.interval(place, params.bootstrap.level));
    let n_treated = sample.treated().iter().filter(|treated| **treated).count();
    let mut metrics = Metrics {
        n_treated,
        n_control: sample.n_rows() - n_treated,
        mape_flagged_bins: bins.iter().filter(|bin| bin.flagged).count(),
        calibration: bins,
        curve: gain_curve(&ranked, params.curve_points),
        ..Metrics::default()
    };
    for metric in Metric::ARMS {
        let own = metric.definition();
        metrics[*metric] = Number {
            value: reading.value(*metric),
            se: own.se.and_then(|se| se(&whole)),
            interval: if own.has_interval { interval(*metric as usize) } else { None },
        };
    }
    metrics.uplift_at_k = params
        .top_shares
        .iter()
        .enumerate()
        .map(|(index, share)| TopShare {
            share: *share,
            overall: reading.at(top_share_place(index)),
            overall_interval: interval(top_share_place(index)),
            by_group: reading.at(top_share_place(index) + 1),
            by_group_interval: interval(top_share_place(index) + 1),
        })
        .collect();
    let n = ranked.rows().totals().k();
    for (index, point) in metrics.curve.iter_mut().enumerate() {
        point.gain_interval = interval(curve_place(params, index)).map(|band| band.map(|end| end * n));
    }
    metrics.notes = notes::of(&metrics, &ranked, params);
    Ok(metrics)
}

/// Every metric of every draw: row by row, or bucket by bucket where there are many rows.
fn draws(
    ranked: &Ranked,
    columns: &Columns,
    reading: &Reading,
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Draws> {
    if ranked.n_rows() < coarse::MIN_ROWS || columns.truth.is_some() {
        return params.bootstrap.draw(ranked, progress, |rows| read(rows, columns, params).0);
    }
    let squares: Vec<f64> = columns.residual.iter().map(|residual| residual * residual).collect();
    let coarse = Coarse::new(ranked, [ranked.outcome(), &columns.dr_score, &columns.residual, &squares]);
    let arm_residual = coarse.mean_of(&columns.arm_residual);
    let measure = |drawn: &Drawn<4>| {
        let [_, dr_score, residual, squares] = drawn.means.clone();
        let arm_residual = arm_residual.clone();
        let variance = squares.iter().zip(&residual).map(|(square, mean)| (square - mean * mean).max(0.0));
        let residual_variance = Some(variance.collect());
        let columns = Columns { dr_score, residual, arm_residual, truth: None, residual_variance };
        read(drawn.ranked.rows(), &columns, params).0
    };
    // The relative errors of bins are quotients by what may be next to nothing: no difference can be taken off them.
    let mut whole = reading.0.clone();
    let quotients = Metric::ARMS.iter().filter(|metric| metric.definition().is_quotient);
    quotients.for_each(|metric| whole[*metric as usize] = f64::NAN);
    coarse.draw(&params.bootstrap, progress, measure, &whole)
}

fn cost_curves(
    table: &Scored<'_>,
    names: &CostPair,
    comparisons: &[(usize, &Effects<'_>)],
    sizes: &[ArmSizes],
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Vec<CostResult>> {
    let value = table::outcome_named(table, &names.value)?;
    let cost = table::outcome_named(table, &names.cost)?;
    let mut results = Vec::new();
    for (_, effects) in comparisons.iter().filter(|(outcome, _)| *outcome == value) {
        let mut result = CostResult {
            policy: table.policies[effects.policy].clone(),
            against: table.policies[table.against].clone(),
            value: names.value.clone(),
            cost: names.cost.clone(),
            aucc: None,
            aucc_interval: None,
            random_aucc: None,
            curve: Vec::new(),
            notes: sizes[effects.policy].too_few().into_iter().collect(),
        };
        if result.notes.is_empty() {
            let pair = Pair::new(table, &table.outcomes[value], effects, None)?;
            let ranked = Ranked::new(&pair.sample()?);
            let cost = ranked.ranked_column(&pair.taken(table.outcomes[cost].values));
            if let Some(curve) = cost_curve_ranked(ranked.rows(), &cost, params.curve_points) {
                result.aucc = curve.aucc;
                result.random_aucc = curve.random_aucc;
                result.curve = curve.points;
            }
            let area = |rows: Rows<'_>, cost: &[f64]| cost_curve_ranked(rows, cost, 2)?.aucc;
            result.aucc_interval = if ranked.n_rows() < coarse::MIN_ROWS {
                params.bootstrap.interval(&ranked, progress, |rows| area(rows, &cost))?
            } else {
                let measure =
                    |drawn: &Drawn<2>| vec![area(drawn.ranked.rows(), &drawn.means[1]).unwrap_or(f64::NAN)];
                let whole = [area(ranked.rows(), &cost).unwrap_or(f64::NAN)];
                let coarse = Coarse::new(&ranked, [ranked.outcome(), &cost]);
                coarse.draw(&params.bootstrap, progress, measure, &whole)?.interval(0, params.bootstrap.level)
            };
            if result.aucc.is_none() {
                result.notes.push("aucc: the average effect on value or cost is zero".to_owned());
            }
        }
        results.push(result);
    }
    Ok(results)
}

fn empty(sizes: &ArmSizes, note: String) -> Metrics {
    let [n_control, n_treated] = sizes.n_rows;
    Metrics { n_treated, n_control, notes: vec![note], ..Metrics::default() }
}
