//! Columns that should not be features: indices, ids, copies of the outcome or of the treatment, other outcomes of the
//! experiment, what was measured after assignment. The same words at `check` and at `fit`.
//!
//! What is certain is a problem, and `fit` refuses it; the rest is a warning, and stays a feature: only its owner knows when
//! a column was measured. Names are judged before any row is read, ids by the first rows as they are in the table, the
//! rest by a bounded sample of encoded rows, so that the cost does not grow with the table.

mod balanced;
mod first_rows;
mod names;
mod sampled;

use rand::RngExt;

use super::findings::{Finding, Level, listed};
use super::{Groups, groups};
use crate::data::{Columns, Dataset, Encoder, RowReader, Source};
use crate::policy::PolicySet;
use crate::{Error, Result, Seed};
pub(super) use first_rows::FirstRows;
pub(super) use names::by_name;
pub(super) use sampled::{EncodedRows, by_rows};

/// Numbers in the sample of encoded rows, about, and its bounds in rows.
const SAMPLE_NUMBERS: usize = 8_000_000;
const SAMPLE_ROWS: std::ops::RangeInclusive<usize> = 1_000..=100_000;

/// The rows of an encoded table that are screened: of so many, evenly spread with a jitter, since tables may be periodic.
pub(super) fn sampled_rows(n_rows: usize, width: usize) -> Vec<u32> {
    let most = (SAMPLE_NUMBERS / width.max(1)).clamp(*SAMPLE_ROWS.start(), *SAMPLE_ROWS.end());
    if n_rows <= most {
        return (0..n_rows as u32).collect();
    }
    let mut rng = Seed::new(0).child("screened rows").rng();
    let stride = n_rows as f64 / most as f64;
    let place = |step: usize| ((step as f64 + rng.random_range(0.0..1.0)) * stride) as usize;
    (0..most).map(place).map(|row| row.min(n_rows - 1) as u32).collect()
}

/// Refuses features whose names say that they are none. Before any row is read.
pub(crate) fn refuse_by_name(columns: &Columns) -> Result<()> {
    refuse(by_name(columns)).map(|_| ())
}

/// A training table that was read: refuses what is certain, and returns a warning for each of the rest.
pub(crate) fn screen_training(
    source: &Source,
    columns: &Columns,
    dataset: &Dataset,
    encoder: &Encoder,
    policies: &PolicySet,
    policy: &[u32],
) -> Result<Vec<String>> {
    let mut first = FirstRows::new(columns);
    let mut reader = RowReader::new(source, columns)?;
    while let Some(batch) = reader.next_batch()? {
        if !first.add(&batch.features) {
            break;
        }
    }
    let width = encoder.width();
    let rows = sampled_rows(policy.len(), width);
    let mut x = vec![0.0; rows.len() * width];
    dataset.x.copy_rows(&rows, &mut x);
    if let Some(error) = dataset.x.failure() {
        return Err(error);
    }
    let pick = |codes: &Vec<u32>| rows.iter().map(|row| codes[*row as usize]).collect::<Vec<u32>>();
    let outcome = |values: &Vec<f64>| rows.iter().map(|row| values[*row as usize]).collect::<Vec<f64>>();
    let groups: Groups = groups(policies, None);
    let (cluster, stratum) = (dataset.cluster.as_ref().map(pick), dataset.stratum.as_ref().map(pick));
    let sample = EncodedRows {
        encoder,
        x: &x,
        policy: &rows.iter().map(|row| policy[*row as usize]).collect::<Vec<u32>>(),
        outcomes: &dataset.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        cluster: cluster.as_deref(),
        stratum: stratum.as_deref(),
    };
    let mut findings = by_name(columns);
    findings.extend(first.findings());
    findings.extend(by_rows(&sample, columns, &groups, true));
    refuse(findings)
}

/// The first problem as an error, else the warnings.
fn refuse(findings: Vec<Finding>) -> Result<Vec<String>> {
    if let Some(problem) = findings.iter().find(|finding| finding.level == Level::Problem) {
        return Err(Error::input(problem.what.clone()).hint(problem.hint.clone()));
    }
    Ok(findings.into_iter().map(|finding| format!("{}: {}", finding.what, finding.hint)).collect())
}

/// A finding about columns.
fn about(level: Level, columns: &[&str], what: &str, hint: &str) -> Finding {
    let names: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    Finding { level, what: format!("{} {what}", listed(&names)), hint: hint.to_owned() }
}

/// The setting that leaves columns out.
fn exclude(columns: &[&str]) -> String {
    format!("‹exclude={}›", columns.join(","))
}
