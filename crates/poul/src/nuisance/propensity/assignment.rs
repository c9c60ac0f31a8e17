//! Who was given what, how that came about, and the propensity that follows.

use std::sync::Arc;

use crate::data::Design;
use crate::net::RowSource;
use crate::nuisance::outcome::problem::check_weights;
use crate::nuisance::{Folds, NuisanceChoice};
use crate::{Error, Result, Run, row_name};

use super::Propensity;
use super::clip::Clipped;
use super::columns::PropensityColumn;
use super::cross_fit::fit_softmax;
use super::params::ValidPropensityParams;
use super::report::PropensityReport;
use super::stored::PropensityModels;
use super::stratum_table::StratumTable;

/// Who was given what.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// All policies, run or not.
    pub policy_names: &'a [String],
    /// Policy of each row.
    pub policy: &'a [u32],
    /// Sample weights.
    pub weight: Option<&'a [f32]>,
    /// Cluster of each row: rows of a cluster are held out of early stopping together, as they are of folds.
    pub cluster: Option<&'a [u32]>,
    /// The number of each row in its source, from 0, for messages; without it rows are counted as they come.
    pub rows: Option<&'a [u64]>,
}

/// How assignment happened.
#[derive(Clone, Copy)]
pub enum AssignmentDesign<'a> {
    /// At random: π(t) is the policies' shares, by weight.
    Randomized,
    /// At random within strata: π(t | stratum) is given, or the shares within the stratum.
    Stratified {
        /// Stratum of each row: codes into `labels`.
        stratum: &'a [u32],
        /// The strata.
        labels: &'a [Arc<str>],
        /// The probabilities as they were designed.
        table: Option<&'a StratumTable>,
    },
    /// By rules that follow x: a model of the policy, cross-fitted and clipped.
    Observational {
        /// Encoded features.
        x: &'a dyn RowSource,
        /// Folds; the outcome model's.
        folds: &'a Folds,
    },
    /// As the user's own columns say, without clipping.
    Columns(&'a [PropensityColumn<'a>]),
}

/// Where π comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropensityOrigin {
    /// The user's own columns.
    Columns,
    /// The shares of all rows: every row had the same chances.
    Shares,
    /// A table by stratum, or shares within strata.
    Strata,
    /// A model of the features.
    Learned,
}

impl PropensityOrigin {
    /// By the design, over which columns win.
    pub fn of(design: Design, has_columns: bool) -> Self {
        match design {
            _ if has_columns => Self::Columns,
            Design::Randomized => Self::Shares,
            Design::Stratified => Self::Strata,
            Design::Observational => Self::Learned,
        }
    }
}

/// A propensity, what there is to know about it, and the models where there are any.
#[derive(Clone, Debug)]
pub struct PropensityFit {
    /// π(t | x) of the rows; out of fold where it was cross-fitted.
    pub propensity: Propensity,
    /// Clipping and overlap.
    pub report: PropensityReport,
    /// The models, for new rows, in the observational design.
    pub models: Option<PropensityModels>,
    /// What [`PropensityKind::Auto`](super::PropensityKind::Auto) chose.
    pub choice: Option<NuisanceChoice>,
}

/// The propensity of the rows under a design.
pub fn fit_propensity(
    assignment: &Assignment<'_>,
    design: &AssignmentDesign<'_>,
    params: &ValidPropensityParams,
    run: Run<'_>,
) -> Result<PropensityFit> {
    assignment.check()?;
    let (policy, weight) = (assignment.policy, assignment.weight);
    let n_policies = assignment.policy_names.len();
    let propensity = match *design {
        AssignmentDesign::Observational { x, folds } => {
            return fit_softmax(x, folds, assignment, params, run);
        }
        AssignmentDesign::Randomized => Propensity::shares(policy, weight, n_policies),
        AssignmentDesign::Stratified { stratum, labels, table } => {
            if stratum.len() != policy.len() || stratum.iter().any(|code| *code as usize >= labels.len()) {
                return Err(Error::other("strata that do not fit the rows"));
            }
            match table {
                Some(table) => table.propensity(stratum, labels, assignment)?,
                None => Propensity::strata(policy, stratum, labels.len(), weight, n_policies),
            }
        }
        AssignmentDesign::Columns(columns) => Propensity::from_columns(columns, assignment)?,
    };
    let report = PropensityReport::new(&propensity, assignment, Clipped::default());
    Ok(PropensityFit { propensity, report, models: None, choice: None })
}

impl<'a> Assignment<'a> {
    /// Policies of rows that all count the same.
    pub fn new(policy_names: &'a [String], policy: &'a [u32]) -> Self {
        Self { policy_names, policy, weight: None, cluster: None, rows: None }
    }

    /// What a row is called in messages.
    pub(super) fn place(&self, row: usize) -> String {
        let number = self.rows.and_then(|rows| rows.get(row).copied()).unwrap_or(row as u64);
        row_name(number)
    }

    fn check(&self) -> Result<()> {
        let (n_rows, n_policies) = (self.policy.len(), self.policy_names.len());
        if n_rows == 0 {
            return Err(Error::input("there are no rows"));
        }
        if self.policy.iter().any(|policy| *policy as usize >= n_policies) {
            return Err(Error::other(format!("a policy beyond the {n_policies} that there are")));
        }
        let lengths = [
            self.weight.map_or(n_rows, <[f32]>::len),
            self.cluster.map_or(n_rows, <[u32]>::len),
            self.rows.map_or(n_rows, <[u64]>::len),
        ];
        if lengths != [n_rows; 3] {
            return Err(Error::other(format!("weights, clusters or numbers that do not fit {n_rows} rows")));
        }
        check_weights(self.weight)?;
        if self.weight.is_some_and(|weight| weight.iter().all(|weight| *weight <= 0.0)) {
            return Err(Error::input("all weights are zero").hint("at least one row must count"));
        }
        Ok(())
    }
}
