//! The rows of one policy and of the one it is compared with, checked once.

use crate::{Error, Result};

/// Predicted effect, outcome and arm of every row, with optional weights and clusters.
///
/// A value of this type is known to be usable: equal lengths, at least two rows, finite scores and outcomes,
/// finite weights that are not negative, and rows of positive weight in both arms.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    score: &'a [f64],
    outcome: &'a [f64],
    treated: &'a [bool],
    weight: Option<&'a [f64]>,
    cluster: Option<&'a [u32]>,
}

impl<'a> Sample<'a> {
    /// Checks the three columns that every metric needs.
    pub fn new(score: &'a [f64], outcome: &'a [f64], treated: &'a [bool]) -> Result<Self> {
        let n_rows = score.len();
        check_length("outcomes", outcome.len(), n_rows)?;
        check_length("arms", treated.len(), n_rows)?;
        if n_rows < 2 {
            return Err(Error::input(format!("{n_rows} rows are too few to compare two arms"))
                .hint("give at least one treated and one control row"));
        }
        if n_rows > u32::MAX as usize {
            return Err(Error::input(format!("{n_rows} rows are more than one evaluation can rank"))
                .hint("evaluate a sample of the rows"));
        }
        check_finite("predicted effect", score)?;
        check_finite("outcome", outcome)?;
        let sample = Self { score, outcome, treated, weight: None, cluster: None };
        sample.check_arms()?;
        Ok(sample)
    }

    /// The same rows with a weight each.
    pub fn with_weight(self, weight: &'a [f64]) -> Result<Self> {
        check_length("weights", weight.len(), self.n_rows())?;
        if let Some(row) = weight.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(Error::input(format!("the weight is {}", weight[row]))
                .at_row(row)
                .hint("weights are finite and not negative"));
        }
        let sample = Self { weight: Some(weight), ..self };
        sample.check_arms()?;
        Ok(sample)
    }

    /// The same rows with a cluster each: rows of one cluster are drawn together, and their errors may be related.
    /// Codes are any numbers; equal codes are one cluster.
    pub fn with_cluster(self, cluster: &'a [u32]) -> Result<Self> {
        check_length("clusters", cluster.len(), self.n_rows())?;
        Ok(Self { cluster: Some(cluster), ..self })
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.score.len()
    }

    /// Predicted effects.
    pub fn score(&self) -> &'a [f64] {
        self.score
    }

    /// Observed outcomes.
    pub fn outcome(&self) -> &'a [f64] {
        self.outcome
    }

    /// Whether each row got the policy, rather than the one it is compared with.
    pub fn treated(&self) -> &'a [bool] {
        self.treated
    }

    /// Weights, where given.
    pub fn weight(&self) -> Option<&'a [f64]> {
        self.weight
    }

    /// Cluster codes, where given.
    pub fn cluster(&self) -> Option<&'a [u32]> {
        self.cluster
    }

    /// The weight of a row: 1 without weights.
    pub(crate) fn weight_of(&self, row: usize) -> f64 {
        self.weight.map_or(1.0, |weight| weight[row])
    }

    fn check_arms(&self) -> Result<()> {
        let mut seen = [false; 2];
        for (row, treated) in self.treated.iter().enumerate() {
            if self.weight_of(row) > 0.0 {
                seen[usize::from(*treated)] = true;
                if seen == [true; 2] {
                    return Ok(());
                }
            }
        }
        let what = match seen {
            [false, false] => "every weight is zero",
            [_, false] => "there are no treated rows",
            _ => "there are no control rows",
        };
        let what = if self.weight.is_some() && seen != [false; 2] {
            format!("{what} of positive weight")
        } else {
            what.to_owned()
        };
        Err(Error::input(what).hint("an effect is measured against rows of the other arm"))
    }
}

fn check_length(what: &str, found: usize, n_rows: usize) -> Result<()> {
    if found == n_rows {
        return Ok(());
    }
    Err(Error::input(format!("there are {found} {what} for {n_rows} predicted effects"))
        .hint("give one value for each row"))
}

fn check_finite(what: &str, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(row) => Err(Error::input(format!("the {what} is {}", values[row]))
            .at_row(row)
            .hint("drop the row, or give a finite number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORE: [f64; 3] = [0.3, 0.2, 0.1];
    const OUTCOME: [f64; 3] = [1.0, 0.0, 1.0];
    const TREATED: [bool; 3] = [true, false, true];

    fn message(result: Result<Sample<'_>>) -> String {
        let error = result.unwrap_err();
        assert!(error.hint_text().is_some());
        error.to_string()
    }

    #[test]
    fn errors_name_what_and_where() {
        assert_eq!(
            message(Sample::new(&SCORE, &OUTCOME[..2], &TREATED)),
            "there are 2 outcomes for 3 predicted effects"
        );
        assert_eq!(
            message(Sample::new(&[0.3, f64::NAN, 0.1], &OUTCOME, &TREATED)),
            "row 1 (counted from 0): the predicted effect is NaN"
        );
        assert_eq!(
            message(Sample::new(&SCORE, &[1.0, 0.0, f64::INFINITY], &TREATED)),
            "row 2 (counted from 0): the outcome is inf"
        );
        assert_eq!(message(Sample::new(&SCORE, &OUTCOME, &[true; 3])), "there are no control rows");
        assert_eq!(message(Sample::new(&SCORE, &OUTCOME, &[false; 3])), "there are no treated rows");
        assert!(message(Sample::new(&[1.0], &[1.0], &[true])).contains("too few"));
    }

    #[test]
    fn weights_must_leave_both_arms() {
        let sample = Sample::new(&SCORE, &OUTCOME, &TREATED).unwrap();
        assert_eq!(
            message(sample.with_weight(&[1.0, -1.0, 1.0])),
            "row 1 (counted from 0): the weight is -1"
        );
        assert_eq!(message(sample.with_weight(&[0.0; 3])), "every weight is zero");
        assert_eq!(
            message(sample.with_weight(&[1.0, 0.0, 1.0])),
            "there are no control rows of positive weight"
        );
        assert!(sample.with_weight(&[0.0, 0.5, 2.0]).is_ok());
    }
}
