//! What a learner is given: rows, their policies and outcomes, known to be usable.

use std::ops::Deref;
use std::sync::Arc;

use crate::data::{Design, Table};
use crate::net::RowSource;
use crate::nuisance::{
    Assignment, BaselineRows, ObservedRows, OutcomeColumn, PropensityColumn, PropensityOrigin, StratumTable,
};
use crate::policy::PolicySet;
use crate::{Error, Kind, Result, row_name};

/// How far the propensities of a row may sum from 1: they pass through 32 bits and users round them.
const SUM_TOLERANCE: f32 = 1e-3;

/// Rows to learn from; [`check`](Self::check) makes them usable.
#[derive(Clone)]
pub struct TrainingData<'a> {
    /// Encoded features.
    pub x: &'a dyn RowSource,
    /// The policies; all of them, run or not.
    pub policies: &'a PolicySet,
    /// The policy of each row.
    pub policy: &'a [u32],
    /// The outcomes, at least one.
    pub outcomes: Vec<OutcomeColumn<'a>>,
    /// Outcomes whose effects are not asked for, from which those of the others may learn. Default: none.
    pub auxiliary: Vec<OutcomeColumn<'a>>,
    /// Sample weights. Default: all 1.
    pub weight: Option<&'a [f64]>,
    /// Rows of one cluster are folded together. Default: each row for itself.
    pub cluster: Option<&'a [u32]>,
    /// The stratum of each row. Default: one for all.
    pub stratum: Option<&'a [u32]>,
    /// The strata that `stratum` has the codes of.
    pub stratum_labels: &'a [Arc<str>],
    /// π(t | stratum) as it was designed. Default: the shares within each stratum.
    pub stratum_table: Option<&'a StratumTable>,
    /// The user's own π(t|x), where given. Default: none.
    pub propensity: Vec<GivenPropensity<'a>>,
    /// Tables of rows without a treatment, from which the outcome model learns too. Default: none.
    pub baseline: Vec<BaselineRows<'a>>,
    /// Parts of the rows by expression, for the phases of training. Default: none.
    pub populations: Vec<(&'a str, &'a [bool])>,
    /// A model to start from, which [may be one](super::EffectModel::starts_training). Default: none.
    pub start: Option<&'a dyn super::EffectModel>,
    /// How assignment happened. Default: randomized.
    pub design: Design,
    /// The policy that others are compared with, where there is one.
    pub control: Option<usize>,
    /// The number of each row in the source, for messages. Default: counted from 0.
    pub rows: Option<&'a [u64]>,
}

/// The user's own probability of one policy.
#[derive(Clone, Copy, Debug)]
pub struct GivenPropensity<'a> {
    /// The policy.
    pub policy: usize,
    /// The column's name, for messages.
    pub column: &'a str,
    /// Its value in each row, from 0 to 1.
    pub values: &'a [f32],
}

impl<'a> TrainingData<'a> {
    /// Rows of a randomized experiment, with everything else as by default.
    pub fn new(
        x: &'a dyn RowSource,
        policies: &'a PolicySet,
        policy: &'a [u32],
        outcomes: Vec<OutcomeColumn<'a>>,
    ) -> Self {
        Self {
            x,
            policies,
            policy,
            outcomes,
            auxiliary: Vec::new(),
            weight: None,
            cluster: None,
            stratum: None,
            stratum_labels: &[],
            stratum_table: None,
            propensity: Vec::new(),
            baseline: Vec::new(),
            populations: Vec::new(),
            start: None,
            design: Design::Randomized,
            control: None,
            rows: None,
        }
    }

    /// The rows of a table, whose encoded features are `x` and whose policies are `policy`.
    pub fn of(
        table: &'a Table,
        x: &'a dyn RowSource,
        policies: &'a PolicySet,
        policy: &'a [u32],
        design: Design,
        control: Option<usize>,
    ) -> Result<Self> {
        let auxiliary = table.auxiliary_names.iter().zip(&table.auxiliary);
        let auxiliary = auxiliary.map(|(name, values)| OutcomeColumn { name, values, prediction: None });
        let mut propensity = Vec::with_capacity(table.propensity.len());
        for (column, values) in table.propensity_columns.iter().zip(&table.propensity) {
            let policy = policies.index(&column.policy).ok_or_else(|| {
                let known = policies.names().iter().map(String::as_str);
                Error::unknown(Kind::Input, "policy", &column.policy, "policies", known)
                    .at(format!("propensity column `{}`", column.column))
            })?;
            propensity.push(GivenPropensity { policy, column: &column.column, values });
        }
        Ok(Self {
            x,
            policies,
            policy,
            outcomes: ObservedRows::outcomes_of(table),
            auxiliary: auxiliary.collect(),
            weight: table.weight.as_deref(),
            cluster: table.cluster.as_deref(),
            stratum: table.stratum.as_deref(),
            stratum_labels: table.stratum_labels.names(),
            stratum_table: None,
            propensity,
            populations: table
                .populations
                .iter()
                .map(|(text, rows)| (text.as_str(), rows.as_slice()))
                .collect(),
            start: None,
            baseline: Vec::new(),
            design,
            control,
            rows: Some(&table.rows),
        })
    }

    /// The rows as a first stage takes them.
    pub(crate) fn observed(&self) -> ObservedRows<'a> {
        let policies = self.policies;
        let given = self.propensity.iter().map(|given| PropensityColumn {
            column: given.column,
            policy: policies.name(given.policy),
            values: given.values,
        });
        ObservedRows {
            x: Some(self.x),
            outcomes: self.outcomes.clone(),
            weight: self.weight,
            cluster: self.cluster,
            numbers: self.rows,
            design: self.design,
            stratum: self.stratum.map(|stratum| (stratum, self.stratum_labels)),
            stratum_table: self.stratum_table,
            propensity: given.collect(),
            baseline: self.baseline.clone(),
            ..ObservedRows::new(policies.names(), self.policy)
        }
    }

    /// Where π comes from.
    pub(crate) fn propensity_origin(&self) -> PropensityOrigin {
        PropensityOrigin::of(self.design, !self.propensity.is_empty())
    }

    /// Checks what no learner can do without: equal lengths, two policies with rows, outcomes that vary, propensities
    /// that sum to 1 and allow what happened.
    pub fn check(self) -> Result<ValidTrainingData<'a>> {
        let n_rows = self.policy.len();
        self.check_lengths(n_rows)?;
        let mut policy_rows = vec![0_u64; self.policies.len()];
        let mut policy_mass = vec![0.0_f64; self.policies.len()];
        for (row, policy) in self.policy.iter().enumerate() {
            let Some(count) = policy_rows.get_mut(*policy as usize) else {
                let what = format!("policy number {policy} is not one of {}", self.policies.len());
                return Err(Error::other(what).at(self.place(row)));
            };
            *count += 1;
            policy_mass[*policy as usize] += self.weight.map_or(1.0, |weight| weight[row]);
        }
        let run: Vec<usize> = (0..policy_mass.len()).filter(|policy| policy_mass[*policy] > 0.0).collect();
        if run.len() < 2 {
            let what = match run.first() {
                Some(only) => format!("every row has the policy `{}`", self.policies.name(*only)),
                None => "there are no rows of positive weight".to_owned(),
            };
            return Err(Error::input(what)
                .hint("an effect needs two policies; check the treatment column and the population filter"));
        }
        for outcome in self.outcomes.iter().chain(&self.auxiliary) {
            self.check_outcome(outcome)?;
        }
        if let Some(control) = self.control
            && control >= self.policies.len()
        {
            return Err(Error::other(format!("control {control} is not one of {}", self.policies.len())));
        }
        self.check_propensity(&run)?;
        self.check_strata()?;
        Ok(ValidTrainingData { data: self, policy_rows, policy_mass })
    }

    fn check_lengths(&self, n_rows: usize) -> Result<()> {
        if u32::try_from(n_rows).is_err() {
            return Err(Error::input(format!("{n_rows} rows are more than can be learned from at once"))
                .hint("take a sample of at most 4 billion rows"));
        }
        if self.outcomes.is_empty() {
            return Err(Error::usage("no outcome is given").hint("name one or more: ‹outcome=COL›"));
        }
        let optional = |found: Option<usize>| found.unwrap_or(n_rows);
        let mut lengths = vec![
            ("features", self.x.n_rows()),
            ("weights", optional(self.weight.map(<[_]>::len))),
            ("clusters", optional(self.cluster.map(<[_]>::len))),
            ("strata", optional(self.stratum.map(<[_]>::len))),
            ("row numbers", optional(self.rows.map(<[_]>::len))),
        ];
        let outcomes = self.outcomes.iter().chain(&self.auxiliary);
        lengths.extend(outcomes.map(|outcome| ("outcomes", outcome.values.len())));
        let predictions = self.outcomes.iter().filter_map(|outcome| outcome.prediction);
        lengths.extend(predictions.map(|values| ("predictions", values.len())));
        lengths.extend(self.propensity.iter().map(|given| ("propensities", given.values.len())));
        lengths.extend(self.populations.iter().map(|(_, rows)| ("rows of a population", rows.len())));
        match lengths.iter().find(|(_, found)| *found != n_rows) {
            Some((what, found)) => Err(Error::other(format!("{found} {what} for {n_rows} rows"))),
            None => Ok(()),
        }
    }

    fn check_outcome(&self, outcome: &OutcomeColumn<'_>) -> Result<()> {
        let place = || format!("outcome `{}`", outcome.name);
        let is_usable = |value: &f64| value.abs() <= crate::data::LARGEST;
        if let Some(row) = outcome.values.iter().position(|value| !is_usable(value)) {
            let what = format!("is {:e}", outcome.values[row]);
            return Err(Error::input(what).at(place()).at(self.place(row)));
        }
        let counted = |row: &usize| self.weight.is_none_or(|weight| weight[*row] > 0.0);
        let mut values = (0..outcome.values.len()).filter(counted).map(|row| outcome.values[row]);
        let first = values.next().unwrap_or(0.0);
        let range = values.fold(0.0, |range: f64, value| range.max((value - first).abs()));
        if range == 0.0 {
            let error = Error::input(format!("is {first} in every row")).at(place());
            return Err(error.hint("an outcome that does not vary has no effects; name another"));
        }
        if range < 1.0 / crate::data::LARGEST {
            let what =
                format!("no two rows differ by more than {:e}, too little to calculate with", 2.0 * range);
            return Err(Error::input(what).at(place()).hint("write it in smaller units"));
        }
        Ok(())
    }

    fn check_propensity(&self, run: &[usize]) -> Result<()> {
        if self.propensity.is_empty() {
            return Ok(());
        }
        let of = |policy: usize| self.propensity.iter().find(|given| given.policy == policy);
        if let Some(missing) = run.iter().find(|policy| of(**policy).is_none()) {
            let name = self.policies.name(*missing);
            let error = Error::input(format!("policy `{name}` has rows but no propensity column"));
            return Err(error.hint("give one column for each policy that was run"));
        }
        let columns: Vec<Option<&GivenPropensity<'_>>> = (0..self.policies.len()).map(of).collect();
        for (row, policy) in self.policy.iter().enumerate() {
            let sum: f32 = self.propensity.iter().map(|given| given.values[row]).sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                let error = Error::input(format!("the propensities sum to {sum}, not 1")).at(self.place(row));
                let error = error.at(self.propensity_columns());
                return Err(error.hint("give the probability of every policy, in columns that sum to 1"));
            }
            let own = columns[*policy as usize];
            if let Some(GivenPropensity { column, .. }) = own.filter(|given| given.values[row] == 0.0) {
                let name = self.policies.name(*policy as usize);
                let what = format!("has policy `{name}`, whose propensity is 0");
                let error = Error::input(what).at(self.place(row)).at(format!("column `{column}`"));
                return Err(error.hint("correct the propensity, or leave the row out with ‹population›"));
            }
        }
        Ok(())
    }

    /// The table of strata has every stratum and allows what happened: told before anything is fitted.
    fn check_strata(&self) -> Result<()> {
        let (Some(table), Some(stratum)) = (self.stratum_table, self.stratum) else { return Ok(()) };
        let assignment =
            Assignment { rows: self.rows, ..Assignment::new(self.policies.names(), self.policy) };
        table.propensity(stratum, self.stratum_labels, &assignment).map(|_| ())
    }

    /// The columns of propensities, for messages; many are cut short.
    fn propensity_columns(&self) -> String {
        const SHOWN: usize = 4;
        let shown = self.propensity.iter().take(SHOWN).map(|given| format!("`{}`", given.column));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match self.propensity.len() {
            1 => format!("column {shown}"),
            n if n > SHOWN => format!("columns {shown} and {} more", n - SHOWN),
            _ => format!("columns {shown}"),
        }
    }

    fn place(&self, row: usize) -> String {
        row_name(self.rows.map_or(row as u64, |rows| rows[row]))
    }
}

/// Rows that can be learned from.
#[derive(Clone)]
pub struct ValidTrainingData<'a> {
    data: TrainingData<'a>,
    policy_rows: Vec<u64>,
    policy_mass: Vec<f64>,
}

impl<'a> ValidTrainingData<'a> {
    /// The same rows with other outcomes: those named by `order`, which counts `outcomes`, then `auxiliary`.
    pub(crate) fn with_outcomes(&self, order: &[usize]) -> Self {
        let all: Vec<OutcomeColumn<'a>> =
            self.data.outcomes.iter().chain(&self.data.auxiliary).copied().collect();
        let mut data = self.data.clone();
        data.outcomes = order.iter().map(|idx| all[*idx]).collect();
        data.auxiliary = Vec::new();
        for rows in &mut data.baseline {
            rows.outcomes = order.iter().map(|idx| rows.outcomes[*idx]).collect();
        }
        Self { data, policy_rows: self.policy_rows.clone(), policy_mass: self.policy_mass.clone() }
    }

    /// How many rows there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.data.policy.len()
    }

    /// How many rows each policy has.
    pub(crate) fn policy_rows(&self) -> &[u64] {
        &self.policy_rows
    }

    /// The sum of the weights of each policy's rows.
    pub(crate) fn policy_mass(&self) -> &[f64] {
        &self.policy_mass
    }
}

impl<'a> Deref for ValidTrainingData<'a> {
    type Target = TrainingData<'a>;

    fn deref(&self) -> &TrainingData<'a> {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    fn policies() -> PolicySet {
        let mut builder = PolicySet::builder();
        for name in ["a", "b", "c"] {
            builder.add(name, "s", name, 1.0);
        }
        builder.build().unwrap()
    }

    fn message(change: impl FnOnce(&mut TrainingData<'_>)) -> String {
        let policies = policies();
        let x = [1.0, 2.0, 3.0];
        let x = DenseRows::new(&x, 1).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &[1.0, 2.0, 3.0], prediction: None }];
        let mut data = TrainingData {
            control: Some(0),
            rows: Some(&[10, 11, 12]),
            ..TrainingData::new(&x, &policies, &[0, 1, 1], outcomes)
        };
        change(&mut data);
        match data.check() {
            Ok(data) => format!("{:?} {:?}", data.policy_rows(), data.policy_mass()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn rows_are_counted_and_everything_wrong_is_told() {
        assert_eq!(message(|_| ()), "[1, 2, 0] [1.0, 2.0, 0.0]");
        assert_eq!(message(|data| data.weight = Some(&[1.0, 0.5, 0.0])), "[1, 2, 0] [1.0, 0.5, 0.0]");
        assert_eq!(message(|data| data.policy = &[1, 1, 1]), "every row has the policy `b`");
        assert_eq!(message(|data| data.weight = Some(&[0.0, 1.0, 1.0])), "every row has the policy `b`");
        assert_eq!(
            message(|data| data.policy = &[0, 1, 3]),
            "row 12 (counted from 0): policy number 3 is not one of 3"
        );
        assert_eq!(message(|data| data.cluster = Some(&[1])), "1 clusters for 3 rows");
        assert_eq!(message(|data| data.outcomes[0].values = &[2.0; 3]), "outcome `y`: is 2 in every row");
        let constant = |data: &mut TrainingData<'_>| {
            data.outcomes[0].values = &[2.0, 2.0, 5.0];
            data.weight = Some(&[1.0, 1.0, 0.0]);
        };
        let small = "outcome `y`: no two rows differ by more than 1e-299, too little to calculate with";
        assert_eq!(message(|data| data.outcomes[0].values = &[5e-300, 0.0, 5e-300]), small);
        let large = message(|data| data.outcomes[0].values = &[1.0, 1e31, 0.0]);
        assert!(large.starts_with("outcome `y`: row") && large.ends_with("is 1e31"), "{large}");
        assert_eq!(message(constant), "outcome `y`: is 2 in every row");
        let given = |a: &'static [f32], b: &'static [f32]| {
            let columns = [(0, "p_a", a), (1, "p_b", b)];
            columns.map(|(policy, column, values)| GivenPropensity { policy, column, values }).to_vec()
        };
        let propensity = |b: &'static [f32]| {
            move |data: &mut TrainingData<'_>| data.propensity = given(&[0.5, 0.5, 0.5], b)
        };
        assert_eq!(message(propensity(&[0.5, 0.5, 0.5])), "[1, 2, 0] [1.0, 2.0, 0.0]");
        assert_eq!(
            message(propensity(&[0.5, 0.4, 0.5])),
            "row 11 (counted from 0): columns `p_a`, `p_b`: the propensities sum to 0.9, not 1"
        );
        assert_eq!(
            message(|data| data.propensity = given(&[1.0; 3], &[])[..1].to_vec()),
            "policy `b` has rows but no propensity column"
        );
        assert_eq!(
            message(|data| data.propensity = given(&[1.0, 0.0, 1.0], &[0.0, 1.0, 0.0])),
            "row 12 (counted from 0): column `p_b`: has policy `b`, whose propensity is 0"
        );
    }
}
