//! What a first stage is fitted on: rows with what they got, how that came about, and what happened.

use std::sync::Arc;

use super::propensity::{AssignmentDesign, PropensityOrigin};
use super::{
    Assignment, ExtraRows, Folds, PropensityColumn, PropensityFit, StackedRows, StratumTable,
    ValidPropensityParams, fit_propensity,
};
use crate::data::{Design, Table};
use crate::net::RowSource;
use crate::{Error, Result, Run};

/// Rows with what they got and what happened.
#[derive(Clone)]
pub struct ObservedRows<'a> {
    /// Encoded features, where there are any. Default: none.
    pub x: Option<&'a dyn RowSource>,
    /// All policies, run or not.
    pub policy_names: &'a [String],
    /// The policy of each row.
    pub policy: &'a [u32],
    /// What happened. Default: nothing.
    pub outcomes: Vec<OutcomeColumn<'a>>,
    /// Sample weights. Default: all 1.
    pub weight: Option<&'a [f64]>,
    /// Rows of one cluster are folded together. Default: each row for itself.
    pub cluster: Option<&'a [u32]>,
    /// The number of each row in its source, for messages. Default: counted from 0.
    pub numbers: Option<&'a [u64]>,
    /// How assignment happened. Default: randomized.
    pub design: Design,
    /// The stratum of each row, and the strata that it has the codes of. Default: none.
    pub stratum: Option<(&'a [u32], &'a [Arc<str>])>,
    /// π(t | stratum) as it was designed. Default: the shares within each stratum.
    pub stratum_table: Option<&'a StratumTable>,
    /// The user's own propensities; they win over the design. Default: none.
    pub propensity: Vec<PropensityColumn<'a>>,
    /// Tables of rows without a treatment, from which m learns too. Default: none.
    pub baseline: Vec<BaselineRows<'a>>,
}

/// One outcome.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value in each row, finite.
    pub values: &'a [f64],
    /// The user's own prediction m̂(x), where given.
    pub prediction: Option<&'a [f64]>,
}

/// A table of rows without a treatment: part of D_all of Algorithm 1.
#[derive(Clone)]
pub struct BaselineRows<'a> {
    /// Encoded features, by the encoder of the experiment.
    pub x: &'a dyn RowSource,
    /// For each outcome, its values, finite.
    pub outcomes: Vec<&'a [f64]>,
    /// Sample weights. Default: all 1.
    pub weight: Option<&'a [f64]>,
    /// The cluster of each row, numbered as the experiment's are; other numbers are clusters of their own.
    pub cluster: Option<&'a [u32]>,
}

impl<'a> ObservedRows<'a> {
    /// Rows of a randomized experiment, with everything else as by default.
    pub fn new(policy_names: &'a [String], policy: &'a [u32]) -> Self {
        Self {
            x: None,
            policy_names,
            policy,
            outcomes: Vec::new(),
            weight: None,
            cluster: None,
            numbers: None,
            design: Design::Randomized,
            stratum: None,
            stratum_table: None,
            propensity: Vec::new(),
            baseline: Vec::new(),
        }
    }

    /// The rows of a table, of which policies are known; without features.
    pub fn of(table: &'a Table, policy_names: &'a [String]) -> Self {
        let propensity = table.propensity_columns.iter().zip(&table.propensity);
        let propensity = propensity.map(|(own, values)| PropensityColumn {
            column: &own.column,
            policy: &own.policy,
            values,
        });
        Self {
            outcomes: Self::outcomes_of(table),
            weight: table.weight.as_deref(),
            cluster: table.cluster.as_deref(),
            numbers: Some(&table.rows),
            design: table.design,
            stratum: table.stratum.as_deref().map(|stratum| (stratum, table.stratum_labels.names())),
            propensity: propensity.collect(),
            ..Self::new(policy_names, &table.policy)
        }
    }

    /// The outcomes of a table.
    pub(crate) fn outcomes_of(table: &'a Table) -> Vec<OutcomeColumn<'a>> {
        let named = table.outcome_names.iter().zip(&table.outcomes).enumerate();
        named
            .map(|(idx, (name, values))| OutcomeColumn { name, values, prediction: table.prediction(idx) })
            .collect()
    }

    /// How many rows there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.policy.len()
    }

    /// Where π comes from.
    pub(crate) fn propensity_origin(&self) -> PropensityOrigin {
        PropensityOrigin::of(self.design, !self.propensity.is_empty())
    }

    /// Sample weights as models take them.
    pub(super) fn single_weight(&self) -> Option<Vec<f32>> {
        single(self.weight)
    }

    /// π; none where it would have to be learned and there is nothing to learn it from.
    pub(super) fn fit_propensity(
        &self,
        weight: Option<&[f32]>,
        folds: &Folds,
        params: &ValidPropensityParams,
        run: Run<'_>,
    ) -> Result<Option<PropensityFit>> {
        let design = match self.propensity_origin() {
            PropensityOrigin::Columns => AssignmentDesign::Columns(&self.propensity),
            PropensityOrigin::Shares => AssignmentDesign::Randomized,
            PropensityOrigin::Strata => {
                let Some((stratum, labels)) = self.stratum else {
                    let error = Error::usage("a stratified design needs strata");
                    return Err(error.hint("name the column: ‹stratum=COL›"));
                };
                AssignmentDesign::Stratified { stratum, labels, table: self.stratum_table }
            }
            PropensityOrigin::Learned => match self.x {
                Some(x) => AssignmentDesign::Observational { x, folds },
                None => return Ok(None),
            },
        };
        let assignment = Assignment {
            policy_names: self.policy_names,
            policy: self.policy,
            weight,
            cluster: self.cluster,
            rows: self.numbers,
        };
        fit_propensity(&assignment, &design, params, run.child("propensity")).map(Some)
    }
}

/// All tables of baseline rows as one.
pub(super) struct StackedBaseline<'a> {
    x: StackedRows<'a>,
    weight: Option<Vec<f32>>,
    cluster: Option<Vec<u32>>,
}

impl<'a> StackedBaseline<'a> {
    /// `None` without baseline rows.
    pub(super) fn new(parts: &[BaselineRows<'a>]) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let weight = parts.iter().any(|part| part.weight.is_some()).then(|| {
            let of = |part: &BaselineRows<'_>| single(part.weight).unwrap_or(vec![1.0; part.x.n_rows()]);
            parts.iter().flat_map(of).collect()
        });
        let clusters: Option<Vec<&[u32]>> = parts.iter().map(|part| part.cluster).collect();
        Some(Self {
            x: StackedRows::new(parts.iter().map(|part| part.x).collect()),
            weight,
            cluster: clusters.map(|clusters| clusters.concat()),
        })
    }

    pub(super) fn rows<'b>(&'b self, outcomes: &'b [f32]) -> ExtraRows<'b> {
        let (weight, cluster) = (self.weight.as_deref(), self.cluster.as_deref());
        ExtraRows { x: &self.x, outcomes, weight, cluster }
    }
}

fn single(weight: Option<&[f64]>) -> Option<Vec<f32>> {
    weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect())
}
