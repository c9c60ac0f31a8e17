//! Rows by role: everything but the features, which are wide and may be on disk.

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::labels::Labels;
use super::raw_column::RawColumn;
use super::reader::{Batch, RowReader};
use super::roles::{Columns, Design, Propensity};
use super::source::Source;
use crate::{Error, Progress, Result};

/// The rows of a population, in the order of the source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Table {
    /// The number of each row in the source, from 0.
    pub rows: Vec<u64>,
    /// The names of the treatment columns.
    pub treatment_names: Vec<String>,
    /// For each treatment column, codes into `treatment_labels`.
    pub treatment: Vec<Vec<u32>>,
    /// For each treatment column, its labels in the order of their first appearance.
    pub treatment_labels: Vec<Arc<Labels>>,
    /// The policy of each row, once policies are known; nothing before.
    pub policy: Vec<u32>,
    /// The names of the outcomes.
    pub outcome_names: Vec<String>,
    /// For each outcome, its values, all finite.
    pub outcomes: Vec<Vec<f64>>,
    /// The names of the outcomes that are only there to teach.
    pub auxiliary_names: Vec<String>,
    /// For each of them, its values, all finite.
    pub auxiliary: Vec<Vec<f64>>,
    /// Weights, finite and ≥ 0, not all 0.
    pub weight: Option<Vec<f64>>,
    /// Codes into `cluster_labels`.
    pub cluster: Option<Vec<u32>>,
    /// Clusters in the order of their first appearance.
    pub cluster_labels: Arc<Labels>,
    /// Codes into `stratum_labels`.
    pub stratum: Option<Vec<u32>>,
    /// Strata in the order of their first appearance.
    pub stratum_labels: Arc<Labels>,
    /// The propensity columns and the policies they are of.
    pub propensity_columns: Vec<Propensity>,
    /// For each propensity column, its probabilities.
    pub propensity: Vec<Vec<f32>>,
    /// The user's own predictions: the outcome's index and the values.
    pub predictions: Vec<(usize, Vec<f64>)>,
    /// How much rows meet contexts: for each exposure column, its numbers.
    pub exposure: Vec<Vec<f32>>,
    /// Parts of the rows by expression, and whether each row is part of them.
    pub populations: Vec<(String, Vec<bool>)>,
    /// Effects that were predicted, or are known to be true: the column's name and its values, all finite.
    pub effects: Vec<(String, Vec<f64>)>,
    /// The columns that rows are grouped by.
    pub by: Vec<RawColumn>,
    /// The time column, in the pieces in which it was read.
    pub time: Vec<ArrayRef>,
    /// For each id column, its pieces.
    pub ids: Vec<Vec<ArrayRef>>,
    /// How assignment happened.
    pub design: Design,
}

impl Table {
    /// No rows yet.
    pub fn new(columns: &Columns) -> Self {
        let predictions = columns.predictions.iter().map(|prediction| (prediction.outcome_idx, Vec::new()));
        let populations = columns.populations.iter().map(|filter| (filter.text().to_owned(), Vec::new()));
        Self {
            rows: Vec::new(),
            treatment_names: columns.treatment.clone(),
            treatment: vec![Vec::new(); columns.treatment.len()],
            treatment_labels: Vec::new(),
            policy: Vec::new(),
            outcome_names: columns.outcomes.clone(),
            outcomes: vec![Vec::new(); columns.outcomes.len()],
            auxiliary_names: columns.auxiliary.clone(),
            auxiliary: vec![Vec::new(); columns.auxiliary.len()],
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            cluster_labels: Arc::default(),
            stratum: columns.stratum.as_ref().map(|_| Vec::new()),
            stratum_labels: Arc::default(),
            propensity_columns: columns.propensity.clone(),
            propensity: vec![Vec::new(); columns.propensity.len()],
            predictions: predictions.collect(),
            exposure: vec![Vec::new(); columns.exposure.len()],
            populations: populations.collect(),
            effects: columns.effects.iter().map(|name| (name.clone(), Vec::new())).collect(),
            by: columns.by.iter().map(|own| RawColumn::new(own.name.as_str(), own.kind)).collect(),
            time: Vec::new(),
            ids: vec![Vec::new(); columns.ids.len()],
            design: columns.design,
        }
    }

    /// Reads all rows. `each` is given every batch, with its labels, and says which of its rows are kept: all for none.
    pub(crate) fn read(
        source: &Source,
        columns: &Columns,
        stage: &str,
        mut each: impl FnMut(&mut Self, &Batch, &RowReader) -> Result<Option<Vec<u32>>>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut table = Self::new(columns);
        let mut reader = RowReader::new(source, columns)?;
        progress.start(stage, "rows", source.n_rows());
        let mut n_reported = 0;
        while let Some(batch) = reader.next_batch()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let kept = each(&mut table, &batch, &reader)?;
            table.append(batch, kept.as_deref())?;
            progress.advance(reader.n_read() - n_reported);
            n_reported = reader.n_read();
        }
        progress.finish();
        let (treatment, cluster, stratum) = reader.into_labels();
        table.treatment_labels = treatment.into_iter().map(Arc::new).collect();
        (table.cluster_labels, table.stratum_labels) = (Arc::new(cluster), Arc::new(stratum));
        Ok(table)
    }

    /// How many rows it has.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The weight of a row.
    pub(crate) fn weight_of(&self, row: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[row])
    }

    /// The user's own prediction of an outcome, where given.
    pub fn prediction(&self, outcome: usize) -> Option<&[f64]> {
        self.predictions.iter().find(|(of, _)| *of == outcome).map(|(_, values)| values.as_slice())
    }

    /// The effects in a column of that name.
    pub fn effect(&self, column: &str) -> Option<&[f64]> {
        self.effects.iter().find(|(name, _)| name == column).map(|(_, values)| values.as_slice())
    }

    /// How many rows each policy has.
    pub fn policy_rows(&self, n_policies: usize) -> Vec<u64> {
        let mut counts = vec![0; n_policies];
        self.policy.iter().for_each(|policy| counts[*policy as usize] += 1);
        counts
    }

    /// Some of the rows, by place. Labels keep their codes; what rows are grouped by, time and ids are left out.
    #[must_use]
    pub fn take(&self, rows: &[u32]) -> Self {
        fn each<T: Copy>(columns: &[Vec<T>], rows: &[u32]) -> Vec<Vec<T>> {
            columns.iter().map(|values| pick(values, rows)).collect()
        }
        fn optional<T: Copy>(column: &Option<Vec<T>>, rows: &[u32]) -> Option<Vec<T>> {
            column.as_ref().map(|values| pick(values, rows))
        }
        fn named<N: Clone, T: Copy>(columns: &[(N, Vec<T>)], rows: &[u32]) -> Vec<(N, Vec<T>)> {
            columns.iter().map(|(name, values)| (name.clone(), pick(values, rows))).collect()
        }
        Self {
            rows: pick(&self.rows, rows),
            treatment_names: self.treatment_names.clone(),
            treatment: each(&self.treatment, rows),
            treatment_labels: self.treatment_labels.clone(),
            policy: if self.policy.is_empty() { Vec::new() } else { pick(&self.policy, rows) },
            outcome_names: self.outcome_names.clone(),
            outcomes: each(&self.outcomes, rows),
            auxiliary_names: self.auxiliary_names.clone(),
            auxiliary: each(&self.auxiliary, rows),
            weight: optional(&self.weight, rows),
            cluster: optional(&self.cluster, rows),
            cluster_labels: Arc::clone(&self.cluster_labels),
            stratum: optional(&self.stratum, rows),
            stratum_labels: Arc::clone(&self.stratum_labels),
            propensity_columns: self.propensity_columns.clone(),
            propensity: each(&self.propensity, rows),
            predictions: named(&self.predictions, rows),
            exposure: each(&self.exposure, rows),
            populations: named(&self.populations, rows),
            effects: named(&self.effects, rows),
            by: Vec::new(),
            time: Vec::new(),
            ids: Vec::new(),
            design: self.design,
        }
    }

    /// Adds the rows of a batch, or those of `kept`. What rows are grouped by, time and ids are added whole.
    fn append(&mut self, batch: Batch, kept: Option<&[u32]>) -> Result<()> {
        fn extend<T: Copy>(whole: &mut Vec<T>, part: &[T], kept: Option<&[u32]>) {
            match kept {
                None => whole.extend_from_slice(part),
                Some(rows) => whole.extend(rows.iter().map(|row| part[*row as usize])),
            }
        }
        fn each<T: Copy>(whole: &mut [Vec<T>], parts: &[Vec<T>], kept: Option<&[u32]>) {
            whole.iter_mut().zip(parts).for_each(|(whole, part)| extend(whole, part, kept));
        }
        extend(&mut self.rows, &batch.rows, kept);
        each(&mut self.treatment, &batch.treatment, kept);
        // Those that are only there to teach come last.
        each(&mut self.outcomes, &batch.outcomes, kept);
        each(&mut self.auxiliary, &batch.outcomes[self.outcome_names.len()..], kept);
        each(&mut self.propensity, &batch.propensity, kept);
        each(&mut self.exposure, &batch.exposure, kept);
        for (whole, part) in [(&mut self.cluster, &batch.cluster), (&mut self.stratum, &batch.stratum)] {
            if let (Some(whole), Some(part)) = (whole, part) {
                extend(whole, part, kept);
            }
        }
        if let (Some(whole), Some(part)) = (&mut self.weight, &batch.weight) {
            extend(whole, part, kept);
        }
        for ((_, whole), (_, part)) in self.predictions.iter_mut().zip(&batch.predictions) {
            extend(whole, part, kept);
        }
        for ((_, whole), part) in self.populations.iter_mut().zip(&batch.populations) {
            extend(whole, part, kept);
        }
        for ((name, whole), part) in self.effects.iter_mut().zip(&batch.effects) {
            if let Some(row) = part.iter().position(|value| !value.is_finite()) {
                return Err(Error::input("the predicted effect is null or not finite")
                    .at_row(batch.rows[row])
                    .at(format!("column `{name}`"))
                    .hint(format!("leave such rows out: ‹population={name} is not null›")));
            }
            extend(whole, part, kept);
        }
        for (column, array) in self.by.iter_mut().zip(&batch.by) {
            column.append(array.as_ref(), None)?;
        }
        self.time.extend(batch.time);
        self.ids.iter_mut().zip(batch.ids).for_each(|(whole, part)| whole.push(part));
        Ok(())
    }
}

/// Some entries of a column, by place.
pub(crate) fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| values[*row as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::data::{Need, Roles};

    /// Ten rows in a file, with everything that has a role.
    fn source() -> (tempfile::TempDir, Source, Columns) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "policy,y,z,w,c,s,m,p_a,p_b,x\n".to_owned();
        for row in 0..10 {
            let name = ["a", "b"][row % 2];
            text += &format!(
                "{name},{row},{},{},c{},s{},{row}.5,0.5,0.5,{row}\n",
                10 * row,
                row + 1,
                row / 2,
                row % 3
            );
        }
        let path = folder.path().join("data.csv");
        std::fs::write(&path, text).unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        let roles = Roles {
            outcome: vec!["y".into()],
            auxiliary: vec!["z".into()],
            weight: Some("w".into()),
            cluster: Some("c".into()),
            stratum: Some("s".into()),
            prediction: [("y".to_owned(), "m".to_owned())].into_iter().collect(),
            propensity: Some("p_*".into()),
            ..Roles::default()
        };
        let columns = roles.check(source.schema(), Need::FIT).unwrap();
        (folder, source, columns)
    }

    #[test]
    fn rows_that_are_taken_are_those_that_would_have_been_kept() {
        let (_folder, source, columns) = source();
        let all = Table::read(&source, &columns, "Reading", |_, _, _| Ok(None), &Silent).unwrap();
        let kept = [1, 4, 5, 9];
        let some =
            Table::read(&source, &columns, "Reading", |_, _, _| Ok(Some(kept.to_vec())), &Silent).unwrap();
        let taken = all.take(&kept);
        assert_eq!((all.n_rows(), taken.rows.as_slice()), (10, &[1, 4, 5, 9][..]));
        // Labels have no order in which to print what they look up.
        let shown = |table: &Table| {
            let (cluster_labels, stratum_labels) = (Arc::default(), Arc::default());
            let plain =
                Table { treatment_labels: Vec::new(), cluster_labels, stratum_labels, ..table.clone() };
            format!("{plain:?}")
        };
        assert_eq!(shown(&taken), shown(&some));
        assert_eq!(taken.cluster_labels.names(), some.cluster_labels.names());
        assert_eq!(
            (taken.outcomes[0].as_slice(), taken.auxiliary[0].as_slice()),
            (&[1.0, 4.0, 5.0, 9.0][..], &[10.0, 40.0, 50.0, 90.0][..])
        );
        assert_eq!((taken.weight_of(2), taken.prediction(0).unwrap()[3]), (6.0, 9.5));
        let twice = all.take(&[9, 9]);
        assert_eq!((twice.cluster.unwrap(), twice.stratum.unwrap()), (vec![4, 4], vec![0, 0]));
        assert_eq!(twice.propensity, [[0.5, 0.5], [0.5, 0.5]]);
    }
}
