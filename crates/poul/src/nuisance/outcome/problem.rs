//! What the outcome model is fitted to, and whether it fits together.

use crate::net::RowSource;
use crate::nuisance::Folds;
use crate::{Error, Result, row_name};

use super::params::OutcomeLoss;

/// What the outcome model is fitted to.
#[derive(Clone, Copy)]
pub struct OutcomeProblem<'a> {
    /// Encoded features of the experiment's rows.
    pub x: &'a dyn RowSource,
    /// Outcomes, row-major: one row per row of `x`, one column per entry of `losses`. In any units: each is
    /// standardised inside, and predictions come back in the same units.
    pub outcomes: &'a [f32],
    /// What each outcome is fitted by.
    pub losses: &'a [OutcomeLoss],
    /// Sample weights.
    pub weight: Option<&'a [f32]>,
    /// Cluster of each row: rows of a cluster are held out of early stopping together, as they are of folds.
    pub cluster: Option<&'a [u32]>,
    /// The user's own predictions, by outcome: those outcomes are not fitted.
    pub given: &'a [(usize, &'a [f32])],
    /// Policy of each row, for [`Dragonnet`](super::OutcomeKind::Dragonnet).
    pub policy: Option<&'a [u32]>,
    /// Rows without a treatment, to train on beside the experiment's: D_all of Algorithm 1.
    pub extra: Option<ExtraRows<'a>>,
}

/// Rows that only the outcome model learns from.
///
/// A row of the experiment that comes again here would be seen by the model that predicts it. Give such tables a
/// cluster column (the user): a row whose cluster is in a fold is kept from that fold's model.
#[derive(Clone, Copy)]
pub struct ExtraRows<'a> {
    /// Encoded features, by the same encoder.
    pub x: &'a dyn RowSource,
    /// Outcomes, row-major, as in [`OutcomeProblem::outcomes`].
    pub outcomes: &'a [f32],
    /// Sample weights; where only one of the two tables has them, the other's rows count 1.
    pub weight: Option<&'a [f32]>,
    /// Cluster of each row, numbered as the experiment's are; numbers beyond those are clusters of their own.
    pub cluster: Option<&'a [u32]>,
}

impl<'a> OutcomeProblem<'a> {
    /// Outcomes by squared loss, nothing else.
    pub fn new(x: &'a dyn RowSource, outcomes: &'a [f32], losses: &'a [OutcomeLoss]) -> Self {
        Self { x, outcomes, losses, weight: None, cluster: None, given: &[], policy: None, extra: None }
    }

    /// The outcomes that are fitted.
    pub(super) fn fitted(&self) -> Vec<usize> {
        (0..self.losses.len()).filter(|outcome| self.given_for(*outcome).is_none()).collect()
    }

    pub(super) fn given_for(&self, outcome: usize) -> Option<&'a [f32]> {
        self.given.iter().find(|(given, _)| *given == outcome).map(|(_, values)| *values)
    }

    pub(super) fn check(&self, folds: &Folds) -> Result<()> {
        let (n_rows, n_outcomes) = (self.x.n_rows(), self.losses.len());
        if n_outcomes == 0 {
            return Err(Error::usage("there is no outcome").hint("name at least one outcome column"));
        }
        if n_rows == 0 {
            return Err(Error::input("there are no rows"));
        }
        folds.check(n_rows)?;
        length("outcomes", self.outcomes.len(), n_rows * n_outcomes)?;
        length("weights", self.weight.map_or(n_rows, <[f32]>::len), n_rows)?;
        length("clusters", self.cluster.map_or(n_rows, <[u32]>::len), n_rows)?;
        length("policies", self.policy.map_or(n_rows, <[u32]>::len), n_rows)?;
        check_values(self.outcomes, self.losses, "")?;
        check_weights(self.weight)?;
        for (outcome, values) in self.given {
            if *outcome >= n_outcomes {
                return Err(Error::other(format!("a prediction of outcome {outcome} of {n_outcomes}")));
            }
            length("predictions", values.len(), n_rows)?;
            if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::input("the prediction is not finite").at_row(row));
            }
        }
        match &self.extra {
            Some(extra) => extra.check(self),
            None => Ok(()),
        }
    }
}

impl ExtraRows<'_> {
    fn check(&self, problem: &OutcomeProblem<'_>) -> Result<()> {
        let (n_rows, n_cols) = (self.x.n_rows(), self.x.n_cols());
        if n_cols != problem.x.n_cols() {
            let expected = problem.x.n_cols();
            let what = format!("the baseline data has {n_cols} encoded features instead of {expected}");
            return Err(Error::other(what).hint("encode both tables by the same encoder"));
        }
        if u32::try_from(n_rows + problem.x.n_rows()).is_err() {
            return Err(Error::input("more than 4 billion rows to fit the outcome model on"));
        }
        length("baseline outcomes", self.outcomes.len(), n_rows * problem.losses.len())?;
        length("baseline weights", self.weight.map_or(n_rows, <[f32]>::len), n_rows)?;
        length("baseline clusters", self.cluster.map_or(n_rows, <[u32]>::len), n_rows)?;
        check_values(self.outcomes, problem.losses, "baseline ")?;
        check_weights(self.weight)
    }
}

fn length(what: &str, given: usize, expected: usize) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(Error::other(format!("{given} {what} where {expected} are needed")))
}

fn check_values(outcomes: &[f32], losses: &[OutcomeLoss], table: &str) -> Result<()> {
    for (row, outcomes) in outcomes.chunks(losses.len()).enumerate() {
        for (outcome, (value, loss)) in outcomes.iter().zip(losses).enumerate() {
            let what = match loss {
                _ if !value.is_finite() => "is not finite",
                OutcomeLoss::Logistic if !(0.0..=1.0).contains(value) => "is not between 0 and 1",
                _ => continue,
            };
            let error = Error::input(format!("outcome {} {what}: {value}", outcome + 1));
            let error = error.at(format!("{table}{}", row_name(row)));
            return Err(match loss {
                OutcomeLoss::Logistic => error.hint("the logistic loss is for 0/1 outcomes: use `squared`"),
                OutcomeLoss::Squared => error,
            });
        }
    }
    Ok(())
}

pub(in crate::nuisance) fn check_weights(weight: Option<&[f32]>) -> Result<()> {
    let Some(weight) = weight else { return Ok(()) };
    if let Some(row) = weight.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite())) {
        let error = Error::input(format!("the weight is {}", weight[row])).at_row(row);
        return Err(error.hint("weights are finite and not below 0"));
    }
    Ok(())
}
