//! The policies that a model is asked for: those named, or those that the rows have and it can score.

use super::EvaluationRequest;
use crate::data::{Columns, RowReader, Source};
use crate::effect::{Asked, Question, Scorer};
use crate::evaluate::arms_are_thin;
use crate::model::{Answer, Model};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result, counted};

/// Rows of a policy without which nothing can be measured.
pub(super) const FEWEST_ROWS: u64 = 2;
/// The same where arms are thin: a comparison on fewer rows says nothing, and there may be thousands of them.
pub(super) const FEWEST_THIN_ROWS: u64 = 10;

/// The policies, ready to be scored.
pub(super) struct Chosen<'m> {
    pub(super) asked: Asked,
    /// None where no policy has rows enough to be compared on its own.
    pub(super) scorer: Option<Box<dyn Scorer + 'm>>,
    /// Whether most rows have a policy with too few rows to be compared on its own.
    pub(super) thin_arms: bool,
}

/// Gets ready to score the policies. `policies` holds the model's own.
pub(super) fn choose<'m>(
    model: &'m Model,
    policies: &PolicySet,
    source: &Source,
    columns: &Columns,
    request: &EvaluationRequest,
    progress: &dyn Progress,
) -> Result<Chosen<'m>> {
    let in_rows = match model.is_factorial() {
        true => Some(policies.union(&PolicySet::from_data(source, columns, None, progress)?)?),
        false => None,
    };
    let policies = in_rows.as_ref().unwrap_or(policies);
    let against = request.against.clone().or_else(|| model.manifest().control.clone());
    let mut question = Question { policies: request.policy.clone(), against };
    let rows = rows_of_policies(source, columns, policies, progress)?;
    let against = question.against.as_ref().and_then(|name| policies.index(name));
    let thin_arms = arms_are_thin(&rows, against);
    if question.policies.is_empty() {
        question.policies =
            comparable(model, policies, (&rows, against), thin_arms, request.allow_unseen, progress)?;
        if question.policies.is_empty() {
            let asked = together(model, policies, question)?;
            return Ok(Chosen { asked, scorer: None, thin_arms });
        }
    }
    let Answer { asked, scorer, .. } = model.ask(policies, &question, request.allow_unseen)?;
    scorer.notes().iter().for_each(|note| progress.warn(note));
    Ok(Chosen { asked, scorer: Some(scorer), thin_arms })
}

/// The policies with rows enough to be measured, and atoms that were seen. What is left out is said. None only where arms
/// are thin.
fn comparable(
    model: &Model,
    policies: &PolicySet,
    (rows, against): (&[u64], Option<usize>),
    thin_arms: bool,
    allow_unseen: bool,
    progress: &dyn Progress,
) -> Result<Vec<String>> {
    let in_data = |policy: &usize| rows[*policy] > 0 && against != Some(*policy);
    let in_data: Vec<usize> = (0..policies.len()).filter(in_data).collect();
    let no_base = thin_arms && against.is_none_or(|against| rows[against] < FEWEST_ROWS);
    let fewest = if thin_arms { FEWEST_THIN_ROWS } else { FEWEST_ROWS };
    let is_enough = |policy: &usize| !no_base && rows[*policy] >= fewest;
    let enough: Vec<usize> = in_data.iter().copied().filter(is_enough).collect();
    if enough.len() < in_data.len() {
        let n = in_data.len() - enough.len();
        progress.warn(&match (no_base, thin_arms) {
            (true, _) => {
                let why = match against {
                    Some(_) => "fewer than 2 rows have the policy compared with",
                    None => "no policy to compare with is named",
                };
                format!("{why}: policies are measured together, each row by its own policy")
            }
            (_, true) => format!(
                "{n} of {} {} fewer than {fewest} rows: they are measured together, each row by its own policy",
                counted(in_data.len(), "policy", "policies"),
                if n == 1 { "has" } else { "have" }
            ),
            _ => format!(
                "left out: {n} of {}, with a single row",
                counted(in_data.len(), "policy", "policies")
            ),
        });
    }
    let mut chosen = Vec::with_capacity(enough.len());
    for (policy, support) in enough.iter().zip(model.support(policies, &enough)) {
        match support.require_seen() {
            Err(error) if !allow_unseen => progress.warn(&format!("left out: {error}")),
            _ => chosen.push(policies.name(*policy).to_owned()),
        }
    }
    if chosen.is_empty() && (!thin_arms || in_data.len() < 2) {
        return Err(Error::input("the rows have no policy that can be compared")
            .hint("an effect needs two policies; check the treatment column, or see ‹allow_unseen›"));
    }
    Ok(chosen)
}

/// No policy on its own. Effects are taken against the policy asked for, or the one with most training rows: the contrasts
/// of rows do not depend on it.
fn together(model: &Model, policies: &PolicySet, mut question: Question) -> Result<Asked> {
    let manifest = model.manifest();
    if question.against.is_none() {
        let trained = manifest.policies.names().iter().zip(&manifest.policy_rows);
        // The first of several with as many rows.
        let most = trained.rev().max_by_key(|(_, rows)| **rows);
        question.against = most.map(|(name, _)| name.clone());
    }
    let asked = question.ask(policies, model.is_factorial())?;
    Ok(Asked { targets: Vec::new(), ..asked })
}

fn rows_of_policies(
    source: &Source,
    columns: &Columns,
    policies: &PolicySet,
    progress: &dyn Progress,
) -> Result<Vec<u64>> {
    let mut treatment = columns.clone();
    (treatment.features, treatment.outcomes, treatment.predictions) = (Vec::new(), Vec::new(), Vec::new());
    (treatment.weight, treatment.cluster, treatment.stratum) = (None, None, None);
    treatment.propensity.clear();
    let mut counts = vec![0; policies.len()];
    let mut assigner = Assigner::new(policies, columns);
    let mut reader = RowReader::new(source, &treatment)?;
    progress.start("Counting policies", "rows", source.n_rows());
    while let Some(batch) = reader.next_batch()? {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        for policy in assigner.assign_batch(&batch, &reader)? {
            counts[policy as usize] += 1;
        }
        progress.advance(batch.n_rows() as u64);
    }
    progress.finish();
    Ok(counts)
}
