//! How far an estimate may be from the truth, in standard errors: normal, or Student's t where the standard error itself rests on
//! few clusters or few effective rows.

use super::simultaneous;
use crate::stats::{normal_quantile, student_quantile, student_tails};

/// From so many degrees of freedom on, Student's t is as good as normal.
const NORMAL_FROM: usize = 100;
/// Degrees of freedom that heavy tails leave at the least: with fewer, intervals would say nothing at all.
const FEWEST_DEGREES: usize = 3;

/// The distribution of an estimate over its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tails {
    degrees: Option<usize>,
}

impl Tails {
    /// Student's t, or normal without a number of degrees of freedom or with many.
    pub(super) fn new(degrees: Option<usize>) -> Self {
        Self { degrees: degrees.filter(|degrees| *degrees < NORMAL_FROM) }
    }

    /// Degrees of freedom where large values make most of a variance that is known as well as a χ² with so many: it is itself a
    /// guess then, whatever the number of rows.
    pub(super) fn by_values(degrees: f64) -> usize {
        (degrees as usize).max(FEWEST_DEGREES)
    }

    /// Degrees of freedom, where these are few.
    pub(super) fn degrees(&self) -> Option<usize> {
        self.degrees
    }

    /// Standard errors to either side that hold the truth with probability `level`.
    pub(super) fn quantile(&self, level: f64) -> f64 {
        match self.degrees {
            None => normal_quantile(0.5 + level / 2.0),
            Some(degrees) => student_quantile(0.5 + level / 2.0, degrees),
        }
    }

    /// What is as far out as `z` standard errors are for a normal estimate.
    pub(super) fn as_far_as(&self, z: f64) -> f64 {
        match self.degrees {
            None => z,
            Some(degrees) => {
                let outside = simultaneous::p_value(z, 1.0).unwrap_or(1.0);
                student_quantile(1.0 - 0.5 * outside, degrees)
            }
        }
    }

    /// Two-sided p-value of no effect; none without a standard error.
    pub(super) fn p_value(&self, effect: f64, se: f64) -> Option<f64> {
        match self.degrees {
            None => simultaneous::p_value(effect, se),
            Some(degrees) => (se > 0.0).then(|| student_tails(effect / se, degrees)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_degrees_widen_and_many_do_not() {
        let (normal, few) = (Tails::new(None), Tails::new(Some(4)));
        assert!((few.quantile(0.9) - 2.131_846_786).abs() < 1e-8);
        assert!((few.as_far_as(normal.quantile(0.9)) - few.quantile(0.9)).abs() < 1e-6);
        assert!((few.p_value(2.131_846_786, 1.0).unwrap() - 0.1).abs() < 1e-8);
        assert!(few.p_value(1.0, 0.0).is_none());
        assert_eq!(Tails::new(Some(100)), normal);
        assert_eq!(normal.as_far_as(1.7), 1.7);
    }
}
