//! From the treatment columns of a table to policies: which policies the rows name, and which one each row has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::factorial::combination_name;
use super::set::PolicySet;
use crate::data::{Batch, Columns, Labels, RowReader, Source, Table};
use crate::{Error, Progress, Result};

impl PolicySet {
    /// The policies that the rows of a table speak of, where no file defines them.
    ///
    /// Factorial columns give one policy for each combination seen. A single treatment column gives policies without
    /// structure: one context, named after the column, in which every label is an action of its own.
    #[doc(hidden)]
    pub fn from_data(
        source: &Source,
        columns: &Columns,
        weights: Option<&BTreeMap<String, f64>>,
        progress: &dyn Progress,
    ) -> Result<PolicySet> {
        let mut treatment = columns.clone();
        treatment.features = Vec::new();
        treatment.outcomes = Vec::new();
        treatment.propensity = Vec::new();
        treatment.predictions = Vec::new();
        treatment.ids = Vec::new();
        (treatment.weight, treatment.cluster, treatment.stratum, treatment.time) = (None, None, None, None);
        let mut reader = RowReader::new(source, &treatment)?;
        progress.start("Reading policies", "rows", source.n_rows());
        let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
        let mut codes = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            for row in 0..batch.n_rows() {
                codes.clear();
                codes.extend(batch.treatment.iter().map(|column| column[row]));
                if !seen.contains(&codes) {
                    seen.insert(codes.clone());
                }
            }
            progress.advance(batch.n_rows() as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        progress.finish();
        let labels: Vec<&Labels> = (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
        let names = |codes: &Vec<u32>| label_names(codes, &labels);
        if columns.factorial {
            return PolicySet::factorial(&columns.treatment, seen.iter().map(names), weights);
        }
        let mut builder = PolicySet::builder();
        for name in seen.iter().flat_map(names) {
            builder.add(name, &columns.treatment[0], name, 1.0);
        }
        builder.build()
    }
}

/// Finds the policy of each row.
pub struct Assigner<'a> {
    policies: &'a PolicySet,
    contexts: Vec<String>,
    factorial: bool,
    /// Policies of the code combinations met so far; only asked, never walked.
    known: HashMap<Vec<u32>, u32>,
    codes: Vec<u32>,
}

impl<'a> Assigner<'a> {
    /// For the treatment columns of `columns`.
    pub fn new(policies: &'a PolicySet, columns: &Columns) -> Self {
        Self {
            policies,
            contexts: columns.treatment.clone(),
            factorial: columns.factorial,
            known: HashMap::new(),
            codes: Vec::new(),
        }
    }

    /// The policy of each row, given the codes and labels of the treatment columns; `rows` are the rows' numbers in
    /// the source, for the message about a policy that is not defined.
    pub fn assign(&mut self, codes: &[Vec<u32>], labels: &[&Labels], rows: &[u64]) -> Result<Vec<u32>> {
        let mut policies = Vec::with_capacity(rows.len());
        for (row, number) in rows.iter().enumerate() {
            self.codes.clear();
            self.codes.extend(codes.iter().map(|column| column[row]));
            let policy = match self.known.get(&self.codes) {
                Some(policy) => *policy,
                None => {
                    let policy = self.find(labels).map_err(|error| self.undefined(error, *number))?;
                    self.known.insert(self.codes.clone(), policy);
                    policy
                }
            };
            policies.push(policy);
        }
        Ok(policies)
    }

    /// The policy of each row of a table.
    pub fn assign_table(&mut self, table: &Table) -> Result<Vec<u32>> {
        let labels: Vec<&Labels> = table.treatment_labels.iter().map(Arc::as_ref).collect();
        self.assign(&table.treatment, &labels, &table.rows)
    }

    /// The policy of each row of the batch that a reader gave last.
    pub(crate) fn assign_batch(&mut self, batch: &Batch, reader: &RowReader) -> Result<Vec<u32>> {
        let labels: Vec<&Labels> = (0..batch.treatment.len()).map(|column| reader.labels(column)).collect();
        self.assign(&batch.treatment, &labels, &batch.rows)
    }

    fn undefined(&self, error: Error, row: u64) -> Error {
        let error = error.at_row(row).otherwise("define it in the policy file");
        match &self.contexts[..] {
            [column] => error.at(format!("column `{column}`")),
            _ => error,
        }
    }

    fn find(&self, labels: &[&Labels]) -> Result<u32> {
        let names = label_names(&self.codes, labels);
        let policy = match self.factorial {
            true => {
                let pairs = self.contexts.iter().map(String::as_str).zip(names);
                self.policies.require(&combination_name(pairs))
            }
            false => self.policies.require(names.first().copied().unwrap_or_default()),
        };
        policy.map(|policy| policy as u32)
    }
}

fn label_names<'l>(codes: &[u32], labels: &[&'l Labels]) -> Vec<&'l str> {
    codes.iter().zip(labels).map(|(code, labels)| labels.name(*code).unwrap_or_default()).collect()
}
