//! Measuring effects: a model's, or columns that anyone predicted. The same steps as `poul evaluate`.

use poul::data::{ColumnKind, Columns, Design, Feature, Labels, Need, Roles, RowReader, Source};
use poul::effect::Question;
use poul::evaluate::{Bootstrap, CostPair, Effects, Evaluation, Outcome, Params, Scored, ValidParams};
use poul::model::{self, Answer};
use poul::policy::{self, Assigner};
use poul::{Error, Kind, Progress, Result, Seed};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::guarded;
use crate::frame::Frame;
use crate::model::{Model, to_json};
use crate::policies::PolicySet;
use crate::predicted::Predicted;
use crate::rows::Rows;
use crate::settings::{budget, parse};
use crate::specs::{self, Spec};
use crate::work;

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvaluationRequest {
    /// Roles by name; for a model, those that differ from the roles it was fitted with.
    roles: Map<String, Value>,
    policy: Vec<String>,
    against: Option<String>,
    allow_unseen: bool,
    /// Columns of predicted effects, where no model predicts them.
    effects: Vec<Spec>,
    truth: Vec<Spec>,
    cost_curve: Option<(String, String)>,
    draws: usize,
    level: f64,
    bins: usize,
    seed: u64,
    memory: Option<String>,
    threads: Option<usize>,
}

/// Measures columns of effects that anyone predicted; JSON.
#[pyfunction]
pub(crate) fn evaluate_columns(
    py: Python<'_>,
    frame: &Frame,
    request: &str,
    listener: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let request: EvaluationRequest = guarded(py, || parse(request))?;
    work::run(py, request.threads, listener, |progress| {
        let found = by_columns(frame, &request, progress);
        to_json(&found.map_err(|error| frame.locate(error))?)
    })
}

/// Measures the effects of a model; JSON.
pub(crate) fn by_model(
    py: Python<'_>,
    model: &Model,
    frame: &Frame,
    request: &EvaluationRequest,
    policies: Option<&PolicySet>,
    listener: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let model = &*model.model;
    let policies = policies.map_or(&model.manifest().policies, |policies| &policies.set);
    work::run(py, request.threads, listener, |progress| {
        let found = scored_by_model(model, policies, frame, request, progress);
        to_json(&found.map_err(|error| frame.locate(error))?)
    })
}

fn by_columns(frame: &Frame, request: &EvaluationRequest, progress: &dyn Progress) -> Result<Evaluation> {
    let source = &frame.source;
    let mut roles: Roles = over(&Roles::default(), &request.roles)?;
    let params = params(request, &roles)?;
    specs::check(&request.effects, "effects", source, &roles)?;
    specs::check(&request.truth, "truth", source, &roles)?;
    // The scores are read as the features of the table; the table's own features are not needed.
    roles.features = request.effects.iter().chain(&request.truth).map(|spec| spec.column.clone()).collect();
    roles.exclude.clear();
    let columns = roles.check(source.schema(), Need::FIT)?;
    let policies = policy::PolicySet::from_data(source, &columns, None, progress)?;
    let against = request.against.as_deref().or(roles.control.as_deref()).unwrap_or("control");
    let against = policies.require(against).map_err(|error| error.at("against"))?;
    let chosen: Vec<usize> = match request.policy.is_empty() {
        true => (0..policies.len()).filter(|policy| *policy != against).collect(),
        false => request.policy.iter().map(|name| policies.require(name)).collect::<Result<_>>()?,
    };
    let table = Rows::read(source, &columns, &policies, 0, |_| Ok(()), progress)?;
    let assigned = specs::assign(&request.effects, "effects", &columns, &policies, against, &chosen)?;
    let truths = specs::assign(&request.truth, "truth", &columns, &policies, against, &chosen)?;
    let effects: Vec<Effects<'_>> = assigned
        .iter()
        .map(|(&(policy, outcome), column)| Effects {
            policy,
            outcome: Some(outcome),
            values: &table.scores[*column],
            truth: truths.get(&(policy, outcome)).map(|column| table.scores[*column].as_slice()),
        })
        .collect();
    measure(&table, &columns, policies.names(), against, &effects, &params, progress)
}

fn scored_by_model(
    model: &model::Model,
    policies: &policy::PolicySet,
    frame: &Frame,
    request: &EvaluationRequest,
    progress: &dyn Progress,
) -> Result<Evaluation> {
    let source = &frame.source;
    let roles: Roles = over(&default_roles(model, source, progress), &request.roles)?;
    let roles = Roles { features: Vec::new(), exclude: Vec::new(), ..roles };
    let params = params(request, &roles)?;
    specs::check(&request.truth, "truth", source, &roles)?;
    let mut columns = model.columns(source, &roles, Need::EVALUATE)?;
    let outcomes = outcomes_of(&columns, model)?;
    let answer = ask(model, policies, source, &columns, request, progress)?;
    let asked = &answer.asked;
    check_memory(source, asked.targets.len() * outcomes.len(), request)?;
    let n_features = columns.features.len();
    for Spec { column, .. } in &request.truth {
        if columns.features[n_features..].iter().all(|feature| feature.name != *column) {
            columns.features.push(Feature { name: column.clone(), kind: ColumnKind::Number });
        }
    }
    let mut predicted = Predicted::new(model, &answer, outcomes);
    let table =
        Rows::read(source, &columns, &asked.policies, n_features, |rows| predicted.add(rows), progress)?;
    predicted.unseen.notes(&model.manifest().encoder).iter().for_each(|note| progress.warn(note));
    let truths =
        specs::assign(&request.truth, "truth", &columns, &asked.policies, asked.against, &asked.targets)?;
    let effects: Vec<Effects<'_>> = predicted
        .columns()
        .map(|(policy, outcome, values)| Effects {
            policy,
            outcome: Some(outcome),
            values,
            truth: truths.get(&(policy, outcome)).map(|column| table.scores[*column].as_slice()),
        })
        .collect();
    measure(&table, &columns, asked.policies.names(), asked.against, &effects, &params, progress)
}

/// Roles, and others laid over them by name.
fn over(roles: &Roles, others: &Map<String, Value>) -> Result<Roles> {
    let failed = |error: serde_json::Error| Error::usage(error.to_string()).at("roles");
    let mut merged = match serde_json::to_value(roles).map_err(failed)? {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    merged.extend(others.clone());
    serde_json::from_value(Value::Object(merged)).map_err(failed)
}

fn params(request: &EvaluationRequest, roles: &Roles) -> Result<ValidParams> {
    let cost = request.cost_curve.clone().map(|(value, cost)| CostPair { value, cost });
    if let Some(pair) = &cost
        && let Some(name) = [&pair.value, &pair.cost].into_iter().find(|name| !roles.outcome.contains(name))
    {
        return Err(Error::usage(format!("cost_curve: `{name}` is not an outcome")));
    }
    let bootstrap = Bootstrap { draws: request.draws, level: request.level, seed: Seed::new(request.seed) };
    Params { bootstrap, bins: request.bins, cost, ..Params::default() }.check()
}

fn measure(
    table: &Rows,
    columns: &Columns,
    policies: &[String],
    against: usize,
    effects: &[Effects<'_>],
    params: &ValidParams,
    progress: &dyn Progress,
) -> Result<Evaluation> {
    let outcomes: Vec<Outcome<'_>> = columns
        .outcomes
        .iter()
        .zip(&table.outcomes)
        .enumerate()
        .map(|(idx, (name, values))| Outcome {
            name,
            values,
            prediction: table.predictions.get(&idx).map(Vec::as_slice),
        })
        .collect();
    let scored = Scored {
        outcomes: &outcomes,
        policies,
        arm: &table.arm,
        against,
        effects,
        weight: table.weight.as_deref(),
        cluster: table.cluster.as_deref(),
        propensity: None,
    };
    poul::evaluate::evaluate(&scored, params, progress)
}

/// The roles that the model was fitted with, as far as they matter here and the table has them.
fn default_roles(model: &model::Model, source: &Source, progress: &dyn Progress) -> Roles {
    let fitted = &model.manifest().roles;
    let known = source.column_names();
    let has = |name: &String| known.contains(&name.as_str());
    let kept = |role: &str, name: &Option<String>| {
        let kept = name.clone().filter(has);
        if let (Some(name), None) = (name, &kept) {
            progress.warn(&format!("the data have no column `{name}`: evaluated without a {role}"));
        }
        kept
    };
    Roles {
        treatment: fitted.treatment.clone(),
        treatment_columns: fitted.treatment_columns.clone(),
        outcome: fitted.outcome.clone(),
        control: model.manifest().control.clone(),
        weight: kept("weight", &fitted.weight),
        cluster: kept("cluster", &fitted.cluster),
        prediction: fitted.prediction.clone().into_iter().filter(|(_, column)| has(column)).collect(),
        // Strata and propensities play no part in the metrics.
        design: Design::Randomized,
        ..Roles::default()
    }
}

/// The place of each outcome among the model's.
fn outcomes_of(columns: &Columns, model: &model::Model) -> Result<Vec<usize>> {
    let known = model.effects().outcomes();
    let place = |name: &String| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let known = known.iter().map(String::as_str);
            Error::unknown(Kind::Usage, "outcome", name, "outcomes of the model", known)
        })
    };
    columns.outcomes.iter().map(place).collect()
}

/// The policies to compare: those asked for, or those that the rows have and the model can score.
fn ask<'m>(
    model: &'m model::Model,
    policies: &policy::PolicySet,
    source: &Source,
    columns: &Columns,
    request: &EvaluationRequest,
    progress: &dyn Progress,
) -> Result<Answer<'m>> {
    let mut policies = policies.clone();
    if model.is_factorial() {
        policies = policies.union(&policy::PolicySet::from_data(source, columns, None, progress)?)?;
    }
    let mut question = Question { policies: request.policy.clone(), against: request.against.clone() };
    if question.policies.is_empty() {
        let against = question.against.as_ref().or(model.manifest().control.as_ref());
        question.policies = comparable(model, source, columns, &policies, against, request, progress)?;
    }
    let answer = model.ask(&policies, &question, request.allow_unseen)?;
    answer.scorer.notes().iter().for_each(|note| progress.warn(note));
    Ok(answer)
}

/// The policies with rows enough to be measured, and atoms that were seen. What is left out is said.
fn comparable(
    model: &model::Model,
    source: &Source,
    columns: &Columns,
    policies: &policy::PolicySet,
    against: Option<&String>,
    request: &EvaluationRequest,
    progress: &dyn Progress,
) -> Result<Vec<String>> {
    const FEWEST_ROWS: u64 = 2;
    let rows = rows_of_policies(source, columns, policies, progress)?;
    let in_data = |policy: &usize| rows[*policy] > 0 && against != Some(&policies.names()[*policy]);
    let in_data: Vec<usize> = (0..policies.len()).filter(in_data).collect();
    let enough: Vec<usize> = in_data.iter().copied().filter(|policy| rows[*policy] >= FEWEST_ROWS).collect();
    if enough.len() < in_data.len() {
        let n = in_data.len() - enough.len();
        progress.warn(&format!("left out: {n} of {} policies have a single row", in_data.len()));
    }
    let mut chosen = Vec::with_capacity(enough.len());
    for (policy, support) in enough.iter().zip(model.support(policies, &enough)) {
        match support.require_seen() {
            Err(error) if !request.allow_unseen => progress.warn(&format!("left out: {error}")),
            _ => chosen.push(policies.name(*policy).to_owned()),
        }
    }
    if chosen.is_empty() {
        return Err(Error::input("the rows have no policy that can be compared")
            .hint("an effect needs two policies; check the treatment column, or see allow_unseen"));
    }
    Ok(chosen)
}

fn rows_of_policies(
    source: &Source,
    columns: &Columns,
    policies: &policy::PolicySet,
    progress: &dyn Progress,
) -> Result<Vec<u64>> {
    let mut treatment = columns.clone();
    (treatment.features, treatment.outcomes, treatment.predictions) = (Vec::new(), Vec::new(), Vec::new());
    (treatment.weight, treatment.cluster) = (None, None);
    let mut counts = vec![0; policies.len()];
    let mut assigner = Assigner::new(policies, columns);
    let mut reader = RowReader::new(source, &treatment)?;
    progress.start("Counting policies", "rows", source.n_rows());
    while let Some(batch) = reader.next_batch()? {
        let labels: Vec<&Labels> = (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
        for policy in assigner.assign(&batch.treatment, &labels, &batch.rows)? {
            counts[policy as usize] += 1;
        }
        progress.advance(batch.n_rows() as u64);
    }
    progress.finish();
    Ok(counts)
}

/// Every effect is kept until all are measured.
fn check_memory(source: &Source, n_columns: usize, request: &EvaluationRequest) -> Result<()> {
    let budget = budget(request.memory.as_deref())?.bytes;
    let needed = source.n_rows().unwrap_or(0).saturating_mul(n_columns as u64).saturating_mul(8);
    if needed <= budget {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
    let what = format!("the effects to measure take {:.1} GiB of {:.1}", gib(needed), gib(budget));
    Err(Error::usage(what).hint("choose policies, or rows by population, or raise memory"))
}
