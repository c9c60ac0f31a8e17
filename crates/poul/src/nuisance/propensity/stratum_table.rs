//! Assignment probabilities by stratum, from a file with columns `stratum`, `policy` and `probability`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::data::{Labels, Source, numbers};
use crate::{Error, Kind, Result, row_name};

use super::Propensity;
use super::assignment::Assignment;

/// How far from 1 the probabilities of a stratum may sum.
const TOLERANCE: f64 = 1e-6;
const COLUMNS: [&str; 3] = ["stratum", "policy", "probability"];
const BATCH_ROWS: usize = 1 << 16;

/// π(t | stratum) as it was designed.
#[derive(Clone, Debug, PartialEq)]
pub struct StratumTable {
    /// Probabilities by stratum, in the order of the policies.
    by_stratum: BTreeMap<String, Vec<f64>>,
    /// For messages.
    file: Option<PathBuf>,
}

impl StratumTable {
    /// Opens and reads a CSV, Parquet or Arrow file (see [`from_source`](Self::from_source)).
    pub fn open(location: &str, policy_names: &[String]) -> Result<Self> {
        Self::from_source(&Source::open(location)?, policy_names)
    }

    /// Reads a table with columns `stratum`, `policy` and `probability`. A policy that a stratum leaves out has
    /// probability 0 there. Errors name the row or the stratum: an unknown policy, a probability out of range, the
    /// same pair twice, probabilities of a stratum that do not sum to 1 within 1e-6.
    pub(crate) fn from_source(source: &Source, policy_names: &[String]) -> Result<Self> {
        let file = source.files().first().map(|path| path.to_path_buf());
        let mut table = Self { by_stratum: BTreeMap::new(), file };
        table.read(source, policy_names).map_err(|error| table.locate(error))?;
        for (stratum, probabilities) in &mut table.by_stratum {
            // A pair that was never named is NaN until here.
            probabilities.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
            let total: f64 = probabilities.iter().sum();
            if (total - 1.0).abs() > TOLERANCE {
                let error = Error::input(format!("the probabilities sum to {total}, not 1"));
                let error = error.at(format!("stratum `{stratum}`"));
                let error = error.hint("list every policy that is run in the stratum");
                return Err(match &table.file {
                    Some(file) => error.file(file),
                    None => error,
                });
            }
            probabilities.iter_mut().for_each(|value| *value /= total);
        }
        if table.by_stratum.is_empty() {
            let error = Error::input("there are no strata").hint("the table needs at least one row");
            return Err(table.locate(error));
        }
        Ok(table)
    }

    /// The strata, sorted.
    pub fn strata(&self) -> impl Iterator<Item = &str> {
        self.by_stratum.keys().map(String::as_str)
    }

    /// The probability of each policy in a stratum.
    pub fn probabilities(&self, stratum: &str) -> Option<&[f64]> {
        self.by_stratum.get(stratum).map(Vec::as_slice)
    }

    /// The propensity of rows whose strata are codes into `labels`. Errors: a stratum of the data that the table does
    /// not have, and a row with a policy that has probability 0 in its stratum.
    pub fn propensity(
        &self,
        stratum: &[u32],
        labels: &[Arc<str>],
        assignment: &Assignment<'_>,
    ) -> Result<Propensity> {
        let n_policies = assignment.policy_names.len();
        let mut table = Vec::with_capacity(labels.len() * n_policies);
        for label in labels {
            let Some(probabilities) = self.probabilities(label) else {
                let error =
                    Error::unknown(Kind::Input, "stratum", label, "strata of the table", self.strata());
                let row = stratum.iter().position(|code| labels.get(*code as usize) == Some(label));
                return Err(self.locate(match row {
                    Some(row) => error.at(format!("{} of the data", assignment.place(row))),
                    None => error,
                }));
            };
            table.extend(probabilities.iter().map(|value| *value as f32));
        }
        for (row, (stratum, policy)) in stratum.iter().zip(assignment.policy).enumerate() {
            let probability = table.get(*stratum as usize * n_policies + *policy as usize);
            if probability.is_none_or(|probability| *probability <= 0.0) {
                let policy = &assignment.policy_names[*policy as usize];
                let label = labels.get(*stratum as usize).map_or("?", AsRef::as_ref);
                let what = format!("policy `{policy}` has probability 0 in stratum `{label}`");
                let error = Error::input(what).at(format!("{} of the data", assignment.place(row)));
                let hint = "what happened cannot have probability 0: correct the table, or leave the row out";
                return Err(self.locate(error.hint(hint)));
            }
        }
        Ok(Propensity::Strata { table: Arc::new(table), of_row: stratum.to_vec() })
    }

    fn read(&mut self, source: &Source, policy_names: &[String]) -> Result<()> {
        let mut row = 0;
        for batch in source.batches(&COLUMNS, BATCH_ROWS)? {
            self.add(&batch?, &mut row, policy_names)?;
        }
        Ok(())
    }

    /// Adds the rows of a batch; `row` counts those of the table, from 0.
    fn add(&mut self, batch: &RecordBatch, row: &mut u64, policy_names: &[String]) -> Result<()> {
        let first = *row;
        let null = |column: &str, in_batch: usize| {
            let error = Error::input(format!("the {column} is null"));
            error.at_row(first + in_batch as u64).hint("fill it in, or leave the row out")
        };
        let (mut strata, mut policies) = (Labels::new(), Labels::new());
        let stratum_codes = strata.codes_of(batch.column(0)).map_err(|row| null("stratum", row))?;
        let policy_codes = policies.codes_of(batch.column(1)).map_err(|row| null("policy", row))?;
        let Some(values) = numbers(batch.column(2)) else {
            let error = Error::input("is not numeric").at("column `probability`");
            return Err(error.hint("a cell that is no number makes a CSV column text"));
        };
        for ((stratum, policy), value) in stratum_codes.iter().zip(&policy_codes).zip(values) {
            let place = row_name(*row);
            *row += 1;
            let (Some(stratum), Some(policy)) = (strata.name(*stratum), policies.name(*policy)) else {
                continue;
            };
            let Some(policy_idx) = policy_names.iter().position(|name| name == policy) else {
                let known = policy_names.iter().map(String::as_str);
                return Err(Error::unknown(Kind::Input, "policy", policy, "policies", known).at(place));
            };
            if !(0.0..=1.0).contains(&value) {
                let what = if value.is_nan() { "null".to_owned() } else { value.to_string() };
                let error = Error::input(format!("the probability is {what}")).at(place);
                return Err(error.hint("probabilities lie between 0 and 1"));
            }
            let probabilities = self.by_stratum.entry(stratum.to_owned());
            let probabilities = probabilities.or_insert_with(|| vec![f64::NAN; policy_names.len()]);
            if !probabilities[policy_idx].is_nan() {
                let what = format!("policy `{policy}` has two probabilities in stratum `{stratum}`");
                return Err(Error::input(what).at(place).hint("keep one of them"));
            }
            probabilities[policy_idx] = value;
        }
        Ok(())
    }

    fn locate(&self, error: Error) -> Error {
        match &self.file {
            Some(file) => error.file(file),
            None => error,
        }
    }
}
