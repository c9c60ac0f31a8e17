//! Settings of an evaluation.

use serde::{Deserialize, Serialize};

use super::bootstrap::Bootstrap;
use crate::{Error, Result};

/// Settings of [`evaluate`](super::evaluate()); [`check`](Params::check) makes them usable.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// How intervals are drawn; default 200 draws at level 0.9.
    pub bootstrap: Bootstrap,
    /// Bins of the calibration table and of MAPE; default 10; 2 to 1000.
    pub bins: usize,
    /// Top shares at which `uplift_at_k` is taken; default 0.1, 0.3 and 0.5; each above 0 and at most 1.
    pub top_shares: Vec<f64>,
    /// Points of each curve, from share 0 to 1; default 101; 2 to 200.
    pub curve_points: usize,
    /// Whether scikit-uplift's perfect Qini curve may contain negative effects; default true, as there.
    pub negative_effect: bool,
    /// Value and cost outcomes of the cost curve; default none.
    pub cost: Option<CostPair>,
}

/// Which outcomes a cost curve sets against each other; rows are ranked by the predicted effect on the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostPair {
    /// Name of the outcome that is wanted, such as `gmv`.
    pub value: String,
    /// Name of the outcome that is paid, such as `cost`.
    pub cost: String,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bootstrap: Bootstrap::default(),
            bins: 10,
            top_shares: vec![0.1, 0.3, 0.5],
            curve_points: 101,
            negative_effect: true,
            cost: None,
        }
    }
}

/// Settings known to be in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidParams(Params);

impl Params {
    /// Checks every setting against its range.
    pub fn check(self) -> Result<ValidParams> {
        self.bootstrap.check()?;
        if !(2..=1000).contains(&self.bins) {
            return Err(Error::usage(format!("{} calibration bins", self.bins))
                .hint("use 2 to 1000; the paper uses 10"));
        }
        if !(2..=200).contains(&self.curve_points) {
            return Err(Error::usage(format!("{} points of a curve", self.curve_points)).hint("use 2 to 200"));
        }
        if let Some(share) = self.top_shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
            return Err(Error::usage(format!("a top share of {share}"))
                .hint("shares lie above 0 and at most at 1, such as 0.3"));
        }
        if let Some(CostPair { value, cost }) = &self.cost
            && value == cost
        {
            return Err(Error::usage(format!("the cost curve sets `{value}` against itself"))
                .hint("name two outcomes, such as `gmv` and `cost`"));
        }
        Ok(ValidParams(self))
    }
}

impl std::ops::Deref for ValidParams {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_ranges_are_kept() {
        assert!(Params::default().check().is_ok());
        let wrong = [
            Params { bins: 1, ..Params::default() },
            Params { curve_points: 201, ..Params::default() },
            Params { top_shares: vec![0.5, 0.0], ..Params::default() },
            Params { top_shares: vec![f64::NAN], ..Params::default() },
            Params { cost: Some(CostPair { value: "a".into(), cost: "a".into() }), ..Params::default() },
        ];
        for params in wrong {
            let error = params.check().unwrap_err();
            assert_eq!(error.kind(), crate::Kind::Usage);
            assert!(error.hint_text().is_some());
        }
    }
}
