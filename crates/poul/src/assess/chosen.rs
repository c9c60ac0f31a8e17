//! The policies that a model is asked for: those named, or those that the rows have and it can score.

use super::AssessmentRequest;
use crate::data::{Columns, Labels, RowReader, Source};
use crate::effect::Question;
use crate::model::{Answer, Model};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result};

/// Rows of a policy without which nothing can be measured.
const FEWEST_ROWS: u64 = 2;

/// Gets ready to score the policies. `policies` holds the model's own.
pub(super) fn answer<'m>(
    model: &'m Model,
    policies: &PolicySet,
    source: &Source,
    columns: &Columns,
    request: &AssessmentRequest,
    progress: &dyn Progress,
) -> Result<Answer<'m>> {
    let in_rows = match model.is_factorial() {
        true => Some(policies.union(&PolicySet::from_data(source, columns, None, progress)?)?),
        false => None,
    };
    let policies = in_rows.as_ref().unwrap_or(policies);
    let mut question = Question { policies: request.policy.clone(), against: request.against.clone() };
    if question.policies.is_empty() {
        let rows = rows_of_policies(source, columns, policies, progress)?;
        let against = question.against.as_ref().or(model.manifest().control.as_ref());
        question.policies = comparable(model, policies, &rows, against, request.allow_unseen, progress)?;
    }
    let answer = model.ask(policies, &question, request.allow_unseen)?;
    answer.scorer.notes().iter().for_each(|note| progress.warn(note));
    Ok(answer)
}

/// The policies with rows enough to be measured, and atoms that were seen. What is left out is said.
fn comparable(
    model: &Model,
    policies: &PolicySet,
    rows: &[u64],
    against: Option<&String>,
    allow_unseen: bool,
    progress: &dyn Progress,
) -> Result<Vec<String>> {
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
            Err(error) if !allow_unseen => progress.warn(&format!("left out: {error}")),
            _ => chosen.push(policies.name(*policy).to_owned()),
        }
    }
    if chosen.is_empty() {
        return Err(Error::input("the rows have no policy that can be compared")
            .hint("an effect needs two policies; check the treatment column, or see --allow-unseen"));
    }
    Ok(chosen)
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
        let labels: Vec<&Labels> = (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
        for policy in assigner.assign(&batch.treatment, &labels, &batch.rows)? {
            counts[policy as usize] += 1;
        }
        progress.advance(batch.n_rows() as u64);
    }
    progress.finish();
    Ok(counts)
}
