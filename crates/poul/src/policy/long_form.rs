//! The long form: rows of `policy`, `context`, `action` and, optionally, `probability`.

use std::io::Read;
use std::path::Path;

use parquet::file::reader::ChunkReader;

use super::builder::PolicySetBuilder;
use super::set::PolicySet;
use super::table::{self, Cell, Choice, TableRow};
use super::weights::ContextWeights;
use crate::{Error, Result};

const COLUMNS: [&str; 4] = ["policy", "context", "action", "probability"];

impl PolicySet {
    /// Reads the long form from the bytes of a CSV file; `file` is named in errors. Uniform without weights.
    pub fn from_csv(bytes: &[u8], file: &Path, weights: Option<&ContextWeights>) -> Result<PolicySet> {
        finish(csv(bytes, file)?, weights)
    }

    /// Reads the long form from Parquet, open as a [`File`](std::fs::File) or held in memory as `bytes::Bytes`.
    pub fn from_parquet(
        input: impl ChunkReader + 'static,
        file: &Path,
        weights: Option<&ContextWeights>,
    ) -> Result<PolicySet> {
        finish(parquet(input, file)?, weights)
    }
}

pub(super) fn csv(input: impl Read, file: &Path) -> Result<PolicySetBuilder> {
    let mut builder = PolicySetBuilder::default();
    builder.read_from(file, "line");
    table::read_csv(input, file, choose, |row| add(&mut builder, &row))?;
    Ok(builder)
}

pub(super) fn parquet(input: impl ChunkReader + 'static, file: &Path) -> Result<PolicySetBuilder> {
    let mut builder = PolicySetBuilder::default();
    builder.read_from(file, "row");
    table::read_parquet(input, file, choose, |row| add(&mut builder, &row))?;
    Ok(builder)
}

fn finish(mut builder: PolicySetBuilder, weights: Option<&ContextWeights>) -> Result<PolicySet> {
    if let Some(weights) = weights {
        builder.replace_weights(weights);
    }
    builder.build()
}

fn choose(columns: &[&str]) -> Result<Choice> {
    let choice = COLUMNS.map(|name| columns.iter().position(|column| *column == name));
    let known = || columns.iter().copied();
    if let Some(missing) = choice[..3].iter().position(Option::is_none) {
        return Err(table::missing_column(COLUMNS[missing], columns, &COLUMNS));
    }
    // With all four there, other columns are remarks; without `probability`, one of them may be it, misspelt.
    if choice[3].is_none()
        && let Some(other) = known().find(|column| !COLUMNS.contains(column))
    {
        let error =
            Error::input(format!("column `{other}` is not one of a policy file without `probability`"));
        return Err(error.hint("call it `probability` if it is that, otherwise leave it out"));
    }
    Ok(choice)
}

fn add(builder: &mut PolicySetBuilder, row: &TableRow<'_>) -> Result<()> {
    let [policy, context, action, probability] = &row.cells;
    let (policy, context, action) = (policy.name(), context.name(), action.name());
    let value = if matches!(probability, Cell::Absent) { Ok(1.0) } else { probability.number() };
    match value {
        Ok(value) => {
            builder.add_at(&policy, &context, &action, value, row.place);
            Ok(())
        }
        Err(what) => {
            let error = builder.source.place(Error::input(format!("the probability {what}")), row.place);
            let error = error.at(format!("policy `{policy}`")).at(format!("context `{context}`"));
            Err(error.hint("a probability is a number from 0 to 1; leave the column out where all are 1"))
        }
    }
}
