//! Effects that anyone predicted, in columns of the table.

use super::assigned::{by_columns, measured};
use super::effect_columns::{assign, check, itself};
use super::measure::Compared;
use super::nuisances::Nuisances;
use super::{EvaluationRequest, ValidEvaluationRequest, group_columns, provenance};
use crate::data::{Batch, Need, Roles, RowReader, Source, Table};
use crate::evaluate::{Effects, Evaluation, arms_are_thin, verdicts};
use crate::experiment::{Experiment, Policies};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result, Run};

/// Measures columns of effects. The policies are those that the rows name.
pub fn evaluate_columns(
    source: &Source,
    request: &ValidEvaluationRequest,
    progress: &dyn Progress,
) -> Result<Evaluation> {
    let ValidEvaluationRequest { request, params, .. } = request;
    if request.effects.is_empty() {
        return Err(Error::usage("what is to be evaluated?")
            .hint("give a model before the data, or columns of effects: ‹effects=COL›"));
    }
    for (specs, flag) in [(&request.effects, "‹effects›"), (&request.truth, "‹truth›")] {
        check(specs, flag, source, &request.roles).map_err(|error| source.locate(error))?;
    }
    // They are checked as features are; the table's own features are not needed.
    let scores = request.effects.iter().chain(&request.truth).map(|spec| spec.column.clone()).collect();
    let roles = Roles { features: scores, exclude: Vec::new(), ..request.roles.clone() };
    let columns = roles.check(source.schema(), Need::FIT);
    let mut columns = columns.map_err(|error| source.locate(error))?;
    columns.effects = std::mem::take(&mut columns.features).into_iter().map(|own| own.name).collect();
    let by = group_columns::features(&request.by, source, &columns);
    columns.by = by.map_err(|error| source.locate(error))?;
    let experiment = Experiment::resolve(source, &roles, columns, Policies::default(), progress);
    let experiment = experiment.map_err(|error| source.locate(error))?;
    let columns = experiment.columns();
    let (policies, against) = against(request, &experiment).map_err(|error| source.locate(error))?;
    let chosen = chosen(request, &policies, against).map_err(|error| source.locate(error))?;
    let mut assigner = Assigner::new(&policies, columns);
    let each = |table: &mut Table, batch: &Batch, reader: &RowReader| {
        table.policy.extend(assigner.assign_batch(batch, reader)?);
        Ok(None)
    };
    let rows = Table::read(source, columns, "Reading effects", each, progress);
    let rows = rows.map_err(|error| source.locate(error))?;

    let assigned = assign(&request.effects, "‹effects›", columns, &policies, against, &chosen)?;
    let truths = assign(&request.truth, "‹truth›", columns, &policies, against, &chosen)?;
    let effects: Vec<Effects<'_>> = assigned
        .iter()
        .filter_map(|(&(policy, outcome), column)| {
            let values = rows.effect(column)?;
            let truth = truths.get(&(policy, outcome)).and_then(|column| rows.effect(column));
            Some(Effects { policy, outcome: Some(outcome), values, truth })
        })
        .collect();
    let compared = Compared { rows: &rows, policies: &policies, against, effects: &effects };
    let nuisances = Nuisances::of(&compared, None, Run::new(params.bootstrap.seed, progress));
    let nuisances = nuisances.map_err(|error| source.locate(error))?;
    let averages = compared.averages(&nuisances, None, params).map_err(|error| source.locate(error))?;
    let metrics = compared.metrics(params, progress).map_err(|error| source.locate(error))?;
    let contrasts = by_columns(&compared, &nuisances, params.bootstrap.seed);
    let assigned = measured(&compared, &nuisances, &contrasts, None, params, progress)?;
    let thin_arms = arms_are_thin(&rows.policy_rows(policies.len()), Some(against));
    let provenance = Some(provenance::of_columns(source, request)?);
    let mut evaluation = Evaluation { averages, assigned, thin_arms, provenance, ..metrics };
    evaluation.verdicts = Some(verdicts(&evaluation));
    Ok(evaluation)
}

/// The policies, and the one compared with: the one asked for, or the control.
fn against(request: &EvaluationRequest, experiment: &Experiment) -> Result<(PolicySet, usize)> {
    let policies = experiment.policies();
    if let Some(name) = &request.against {
        let against = policies.require(name).map_err(|error| error.at("‹against›"))?;
        return Ok((policies.clone(), against));
    }
    if experiment.control().is_some() {
        return experiment.with_control();
    }
    let known = policies.require("control").err();
    let known = known.as_ref().and_then(Error::hint_text).unwrap_or_default();
    let hint = format!("name the one to compare with: ‹against=NAME›; {known}");
    Err(Error::input("no policy is called `control`").hint(hint))
}

/// The policies asked for, or all but the one compared with.
fn chosen(request: &EvaluationRequest, policies: &PolicySet, against: usize) -> Result<Vec<usize>> {
    if !request.policy.is_empty() {
        let chosen: Result<Vec<usize>> = request.policy.iter().map(|name| policies.require(name)).collect();
        let chosen = chosen.map_err(|error| error.at("‹policy›"))?;
        if chosen.contains(&against) {
            return Err(itself(policies.name(against)));
        }
        return Ok(chosen);
    }
    let chosen: Vec<usize> = (0..policies.len()).filter(|policy| *policy != against).collect();
    if chosen.is_empty() {
        let name = policies.name(against);
        return Err(Error::input(format!("every row has the policy `{name}`"))
            .hint("an effect needs two policies; check the treatment column and the population filter"));
    }
    Ok(chosen)
}
