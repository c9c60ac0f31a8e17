//! The user's own propensities: one column per policy.

use std::sync::Arc;

use crate::{Error, Kind, Result};

use super::Propensity;
use super::assignment::Assignment;

/// How far from 1 the probabilities of a row may sum.
const TOLERANCE: f64 = 1e-3;

/// A column with the probability of one policy.
#[derive(Clone, Copy, Debug)]
pub struct PropensityColumn<'a> {
    /// The column's name.
    pub column: &'a str,
    /// The policy's name.
    pub policy: &'a str,
    /// The probability in each row.
    pub values: &'a [f32],
}

impl Propensity {
    /// The user's own columns as they are, rows scaled to sum to 1 exactly.
    ///
    /// Policies without a column have probability 0. Errors name the row: probabilities out of range or that do not
    /// sum to 1 within 1e-3, and a row whose own policy has probability 0.
    pub(crate) fn from_columns(
        columns: &[PropensityColumn<'_>],
        assignment: &Assignment<'_>,
    ) -> Result<Self> {
        let (n_rows, n_policies) = (assignment.policy.len(), assignment.policy_names.len());
        let column_of = columns_by_policy(columns, assignment)?;
        let mut table = vec![0.0; n_rows * n_policies];
        for (row, probabilities) in table.chunks_mut(n_policies).enumerate() {
            let mut total = 0.0;
            for (policy, column) in column_of.iter().enumerate() {
                let Some(PropensityColumn { column, values, .. }) = column else { continue };
                let value = values[row];
                if !(0.0..=1.0).contains(&value) {
                    let error = Error::input(format!("the propensity is {value}")).at(assignment.place(row));
                    let error = error.at(format!("column `{column}`"));
                    return Err(error.hint("probabilities lie between 0 and 1"));
                }
                probabilities[policy] = value;
                total += f64::from(value);
            }
            if (total - 1.0).abs() > TOLERANCE {
                let error = Error::input(format!("the propensities sum to {total:.6}, not 1"));
                let hint = "give a column for every policy that the row could have had, or normalise them";
                return Err(error.at(assignment.place(row)).hint(hint));
            }
            probabilities.iter_mut().for_each(|value| *value = (f64::from(*value) / total) as f32);
            let own = assignment.policy[row] as usize;
            if probabilities[own] <= 0.0 {
                return Err(impossible(column_of[own], assignment, row));
            }
        }
        Ok(Self::Rows(Arc::new(table)))
    }
}

fn columns_by_policy<'a, 'c>(
    columns: &'a [PropensityColumn<'c>],
    assignment: &Assignment<'_>,
) -> Result<Vec<Option<&'a PropensityColumn<'c>>>> {
    let mut column_of: Vec<Option<&PropensityColumn<'_>>> = vec![None; assignment.policy_names.len()];
    for part in columns {
        let known = assignment.policy_names;
        let Some(policy) = known.iter().position(|name| name == part.policy) else {
            let known = known.iter().map(String::as_str);
            let error = Error::unknown(Kind::Input, "policy", part.policy, "policies", known);
            return Err(error.at(format!("propensity column `{}`", part.column)));
        };
        if part.values.len() != assignment.policy.len() {
            return Err(Error::other(format!("the propensity column `{}` is too short", part.column)));
        }
        if let Some(other) = column_of[policy].replace(part) {
            let what = format!("the columns `{}` and `{}` are both of it", other.column, part.column);
            let error = Error::input(what).at(format!("policy `{}`", part.policy));
            return Err(error.hint("match one column per policy"));
        }
    }
    Ok(column_of)
}

fn impossible(column: Option<&PropensityColumn<'_>>, assignment: &Assignment<'_>, row: usize) -> Error {
    let policy = &assignment.policy_names[assignment.policy[row] as usize];
    let error = match column {
        Some(part) => Error::input(format!("the row was given policy `{policy}`, whose propensity is 0"))
            .at(format!("column `{}`", part.column))
            .hint("what happened cannot have probability 0: correct the column, or leave the row out"),
        None => Error::input(format!("the row was given policy `{policy}`, which has no propensity column"))
            .hint("add a column for it, or leave its rows out"),
    };
    error.at(assignment.place(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &[u32], columns: &[(&str, &[f32])]) -> Result<Propensity> {
        let names = ["a", "b", "c"].map(String::from);
        let parts: Vec<PropensityColumn<'_>> = columns
            .iter()
            .map(|(name, values)| PropensityColumn { column: name, policy: &name[2..], values })
            .collect();
        let rows: Vec<u64> = (0..policy.len() as u64).map(|row| 10 * row).collect();
        let assignment = Assignment { rows: Some(&rows), ..Assignment::new(&names, policy) };
        Propensity::from_columns(&parts, &assignment)
    }

    #[test]
    fn columns_are_matched_by_name_and_rows_sum_to_one() {
        let columns: [(&str, &[f32]); 2] = [("p_c", &[0.25, 0.4995]), ("p_a", &[0.75, 0.5])];
        let propensity = run(&[0, 2], &columns).unwrap();
        assert_eq!(propensity.of_row(0, 3), [0.75, 0.0, 0.25]);
        let second = propensity.of_row(1, 3);
        assert!((second.iter().sum::<f32>() - 1.0).abs() < 1e-6 && second[2] < second[0]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_row() {
        let told = |policy: &[u32], columns: &[(&str, &[f32])]| {
            let error = run(policy, columns).unwrap_err();
            assert!(error.hint_text().is_some(), "{error}");
            error.to_string()
        };
        let sum = told(&[0, 0], &[("p_a", &[1.0, 0.5]), ("p_b", &[0.0, 0.4])]);
        assert_eq!(sum, "row 10 (counted from 0): the propensities sum to 0.900000, not 1");
        let missing = told(&[0, 2], &[("p_a", &[0.5, 0.5]), ("p_b", &[0.5, 0.5])]);
        assert!(missing.starts_with("row 10 (counted from 0): ") && missing.contains("`c`"), "{missing}");
        let zero = told(&[1], &[("p_a", &[1.0]), ("p_b", &[0.0])]);
        assert!(zero.contains("`p_b`") && zero.contains("row 0 (counted from 0): "), "{zero}");
        assert!(told(&[0], &[("p_a", &[1.5])]).contains("column `p_a`"));
        assert!(told(&[0], &[("p_a", &[f32::NAN])]).contains("row 0 (counted from 0)"));
        assert!(told(&[0], &[("p_z", &[1.0])]).contains("unknown policy `z`"));
        assert!(told(&[0], &[("p_a", &[1.0]), ("q_a", &[1.0])]).contains("`q_a`"));
    }
}
