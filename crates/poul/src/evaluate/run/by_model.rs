//! Effects that a model predicts: the rows are scored by it, then measured as any other effects.

use super::assigned::{by_columns, by_model, measured};
use super::chosen::choose;
use super::effect_columns::{assign, check};
use super::measure::Compared;
use super::nuisances::Nuisances;
use super::predicted::Predicted;
use super::sampled::SampledRows;
use super::trust::Trust;
use super::{ValidEvaluationRequest, group_columns, provenance};
use crate::data::{Batch, Budget, Columns, Need, Roles, Source};
use crate::effect::{Asked, AverageEstimate, ExposedRows};
use crate::evaluate::{AverageEffect, Effects, Evaluation, verdicts};
use crate::model::Model;
use crate::net::DenseRows;
use crate::policy::PolicySet;
use crate::{Error, Kind, Progress, Result, Run};

/// Measures a model's effects on the rows of a table, which it need not have seen.
///
/// `policies` are the model's own and perhaps others over the same contexts; its own without any. A factorial model
/// learns of those in the rows too.
pub fn evaluate_model(
    model: &Model,
    policies: Option<&PolicySet>,
    source: &Source,
    request: &ValidEvaluationRequest,
    progress: &dyn Progress,
) -> Result<Evaluation> {
    let ValidEvaluationRequest { request, params, validation } = request;
    if !request.effects.is_empty() {
        return Err(Error::usage("a model and ‹effects› exclude each other")
            .hint("give the model and the data, or the data with ‹effects=COL›"));
    }
    // The features are the model's.
    let roles = Roles { features: Vec::new(), exclude: Vec::new(), ..request.roles.clone() };
    check(&request.truth, "‹truth›", source, &roles).map_err(|error| source.locate(error))?;
    let columns = model.columns(source, &roles, Need::EVALUATE);
    let mut columns = columns.map_err(|error| source.locate(error))?;
    let outcomes = outcomes_of(&columns, model)?;
    let own = &model.manifest().policies;
    let chosen = choose(model, policies.unwrap_or(own), source, &columns, request, progress);
    let chosen = chosen.map_err(|error| source.locate(error))?;
    let asked = &chosen.asked;
    check_memory(source, asked.targets.len() * outcomes.len(), &request.budget)?;

    for truth in &request.truth {
        if !columns.effects.contains(&truth.column) {
            columns.effects.push(truth.column.clone());
        }
    }
    let by = group_columns::features(&request.by, source, &columns);
    columns.by = by.map_err(|error| source.locate(error))?;
    let mut predicted = Predicted::new(model, &chosen, outcomes.clone());
    let mut sampled = SampledRows::new(&columns.features);
    let width = model.manifest().encoder.width();
    let also = |batch: &Batch| sampled.add(&batch.features);
    let (rows, matrix) = predicted.read(source, &columns, &request.budget, also, progress)?;
    let truths = assign(&request.truth, "‹truth›", &columns, &asked.policies, asked.against, &asked.targets)?;
    let effects: Vec<Effects<'_>> = predicted
        .columns()
        .map(|(policy, outcome, values)| Effects {
            policy,
            outcome: Some(outcome),
            values,
            truth: truths.get(&(policy, outcome)).and_then(|column| rows.effect(column)),
        })
        .collect();
    let compared =
        Compared { rows: &rows, policies: &asked.policies, against: asked.against, effects: &effects };
    let x = DenseRows::new(matrix.values(), width)?;
    let x = ExposedRows { x: &x, exposure: predicted.exposed.as_ref() };
    if let (Some(exposure), Some(rows)) = (&model.manifest().exposure, &predicted.exposed) {
        exposure.note(rows.n_unexposed()).iter().for_each(|note| progress.warn(note));
    }
    let nuisances = Nuisances::of(&compared, Some(&x), Run::new(params.bootstrap.seed, progress));
    let averages =
        nuisances.and_then(|nuisances| Ok((compared.averages(&nuisances, Some(&x), params)?, nuisances)));
    predicted.unseen.notes(&model.manifest().encoder).iter().for_each(|note| progress.warn(note));
    let (mut averages, nuisances) = averages.map_err(|error| source.locate(error))?;
    add_errors(&mut averages, model, asked, params.bootstrap.level)?;
    let mut contrasts = by_columns(&compared, &nuisances, params.bootstrap.seed);
    // Who asks for some policies of full arms is not made to wait for all.
    let wants_all = chosen.thin_arms || request.policy.is_empty();
    if wants_all && contrasts.iter().any(Option::is_none) {
        let is_scored = if request.allow_unseen {
            vec![true; asked.policies.len()]
        } else {
            model.knows(&asked.policies)
        };
        contrasts = by_model(model, &compared, &nuisances, (&outcomes, &is_scored), &x, params, progress)?;
    }
    let is_seen: Vec<bool> = asked.policies.names().iter().map(|name| model.has_rows_of(name)).collect();
    let assigned = measured(&compared, &nuisances, &contrasts, Some(&is_seen), params, progress)?;
    drop(matrix);
    let metrics = compared.metrics(params, progress).map_err(|error| source.locate(error))?;
    let who_gains = sampled.who_gains(&compared)?;
    let thin_arms = chosen.thin_arms;
    let mut evaluation = Evaluation { averages, who_gains, assigned, thin_arms, ..metrics };
    if let Some(params) = validation {
        let trust = Trust { params, min_rows: request.min_rows, evaluated: (&rows, &nuisances) };
        trust.add(&mut evaluation, model, source, &roles, asked, progress)?;
    }
    evaluation.provenance = Some(provenance::of_model(model, source, request)?);
    evaluation.verdicts = Some(verdicts(&evaluation));
    Ok(evaluation)
}

/// The model's own errors of its averages, where it knows them, for the averages over all rows.
fn add_errors(averages: &mut [AverageEffect], model: &Model, asked: &Asked, level: f64) -> Result<()> {
    let found = model.effects().averages(&asked.policies, &asked.targets, asked.against, false)?;
    let Some(found) = found else { return Ok(()) };
    for average in averages.iter_mut().filter(|own| own.by.is_none()) {
        let outcome = model.effects().outcomes().iter().position(|name| *name == average.outcome);
        let target = asked.targets.iter().position(|own| asked.policies.name(*own) == average.policy);
        if let (Some(outcome), Some(target), Some(predicted)) = (outcome, target, average.predicted) {
            // These rows may be of another population than that of training: the error is taken over, not the average.
            let own = AverageEstimate { effect: predicted, ..found[outcome].estimates[target] };
            average.predicted_se = Some(own.se);
            average.predicted_interval = Some(own.interval(level));
        }
    }
    Ok(())
}

/// The place of each outcome among the model's.
pub(super) fn outcomes_of(columns: &Columns, model: &Model) -> Result<Vec<usize>> {
    let known = model.effects().outcomes();
    let place = |name: &String| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let known = known.iter().map(String::as_str);
            Error::unknown(Kind::Usage, "outcome", name, "outcomes of the model", known)
        })
    };
    columns.outcomes.iter().map(place).collect()
}

/// Every effect is kept until all are measured.
pub(super) fn check_memory(source: &Source, n_columns: usize, budget: &Budget) -> Result<()> {
    let needed = source.n_rows().unwrap_or(0).saturating_mul(n_columns as u64).saturating_mul(8);
    if needed <= budget.bytes {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
    let what = format!("the effects to measure take {:.1} GiB of {:.1}", gib(needed), gib(budget.bytes));
    Err(Error::usage(what)
        .hint("choose policies with ‹policy›, or rows with ‹population›, or raise ‹memory›"))
}
