//! Checks of the table that [`evaluate`](super::evaluate()) takes.

use super::evaluation::Scored;
use super::params::ValidParams;
use crate::{Error, Kind, Result};

/// Rows of an arm below which an average has no standard error: its distribution is not normal, its variance unknown.
pub(crate) const FEWEST_ARM_ROWS: usize = 30;

/// Everything that can be wrong with a table, except values in the rows of a comparison.
pub(in crate::evaluate) fn check(table: &Scored<'_>, params: &ValidParams) -> Result<()> {
    let n_rows = table.arm.len();
    let n_policies = table.policies.len();
    if n_rows > u32::MAX as usize {
        return Err(Error::input(format!("{n_rows} rows are more than one evaluation can rank"))
            .hint("evaluate a sample of the rows"));
    }
    if table.outcomes.is_empty() {
        return Err(Error::usage("there is no outcome to evaluate").hint("name at least one outcome column"));
    }
    if table.effects.is_empty() {
        return Err(Error::usage("there are no predicted effects to evaluate")
            .hint("give a column of effects for at least one policy"));
    }
    if table.against >= n_policies {
        return Err(Error::usage(format!(
            "policy number {} to compare with is not one of {n_policies}",
            table.against
        ))
        .hint("name the control policy"));
    }
    if let Some(row) = table.arm.iter().position(|arm| *arm as usize >= n_policies) {
        return Err(Error::input(format!("policy number {} is not one of {n_policies}", table.arm[row]))
            .at_row(row)
            .hint("every row's policy must have a name"));
    }
    for outcome in table.outcomes {
        let place = format!("outcome `{}`", outcome.name);
        check_length(outcome.values.len(), n_rows, &place)?;
        if let Some(prediction) = outcome.prediction {
            check_length(prediction.len(), n_rows, &format!("prediction of {place}"))?;
        }
    }
    check_effects(table)?;
    if let Some(weight) = table.weight {
        check_length(weight.len(), n_rows, "weights")?;
        if let Some(row) = weight.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(Error::input(format!("the weight is {}", weight[row]))
                .at_row(row)
                .hint("weights are finite and not negative"));
        }
    }
    if let Some(cluster) = table.cluster {
        check_length(cluster.len(), n_rows, "clusters")?;
    }
    if let Some(propensity) = table.propensity {
        if propensity.len() != n_policies {
            return Err(Error::input(format!(
                "{} propensity columns for {n_policies} policies",
                propensity.len()
            ))
            .hint("give one column for each policy"));
        }
        for (column, policy) in propensity.iter().zip(table.policies) {
            check_length(column.len(), n_rows, &format!("propensity of `{policy}`"))?;
        }
    }
    if let Some(cost) = &params.cost {
        outcome_named(table, &cost.value)?;
        outcome_named(table, &cost.cost)?;
    }
    Ok(())
}

/// The index of the outcome called `name`.
pub(in crate::evaluate) fn outcome_named(table: &Scored<'_>, name: &str) -> Result<usize> {
    table.outcomes.iter().position(|outcome| outcome.name == name).ok_or_else(|| {
        let known = table.outcomes.iter().map(|outcome| outcome.name);
        Error::unknown(Kind::Usage, "outcome", name, "outcomes", known)
    })
}

fn check_effects(table: &Scored<'_>) -> Result<()> {
    let n_rows = table.arm.len();
    for (index, effects) in table.effects.iter().enumerate() {
        let Some(policy) = table.policies.get(effects.policy) else {
            return Err(Error::usage(format!(
                "effects of policy number {}, which is not one of {}",
                effects.policy,
                table.policies.len()
            ))
            .hint("every column of effects belongs to a named policy"));
        };
        let place = format!("effects of `{policy}`");
        if effects.policy == table.against {
            return Err(Error::usage("a policy cannot be compared with itself")
                .at(place)
                .hint("name another policy to compare with"));
        }
        if effects.outcome.is_some_and(|outcome| outcome >= table.outcomes.len()) {
            return Err(Error::usage("the outcome is not one of the table")
                .at(place)
                .hint("number outcomes in the order of the table"));
        }
        let same = |other: &super::Effects<'_>| {
            let overlap = match (other.outcome, effects.outcome) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            };
            other.policy == effects.policy && overlap
        };
        if table.effects[..index].iter().any(same) {
            return Err(Error::usage("two columns of effects for one policy and outcome")
                .at(place)
                .hint("evaluate them one after the other"));
        }
        check_length(effects.values.len(), n_rows, &place)?;
        if let Some(truth) = effects.truth {
            check_length(truth.len(), n_rows, &format!("true {place}"))?;
        }
    }
    Ok(())
}

fn check_length(found: usize, n_rows: usize, place: &str) -> Result<()> {
    if found == n_rows {
        return Ok(());
    }
    Err(Error::input(format!("{found} values for {n_rows} rows"))
        .at(place)
        .hint("give one value for each row"))
}
