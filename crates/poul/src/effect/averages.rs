//! Average effects of policies over the training population, with their errors.

use serde::{Deserialize, Serialize};

use crate::stats::{normal_quantile, student_quantile};

/// More degrees of freedom than this are as good as a normal distribution.
const NORMAL_FROM: f64 = 1000.0;

/// The averages of some policies against one, for one outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Averages {
    /// One for each policy.
    pub estimates: Vec<AverageEstimate>,
    /// Their covariances, policies × policies, where these were asked for.
    pub covariance: Option<Vec<f64>>,
}

/// An average effect and how well it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AverageEstimate {
    /// The average effect, in the outcome's units.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// The degrees of freedom of the standard error; infinite where it is as good as known.
    #[serde(skip)]
    pub freedom: f64,
}

impl AverageEstimate {
    /// The interval at a level between 0 and 1.
    pub fn interval(&self, level: f64) -> [f64; 2] {
        let half = self.quantile(0.5 + level / 2.0) * self.se;
        [self.effect - half, self.effect + half]
    }

    /// The quantile of the error, in standard errors.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        match self.freedom < NORMAL_FROM {
            true => student_quantile(p, self.freedom.max(1.0) as usize),
            false => normal_quantile(p),
        }
    }
}
