//! Settings of the encoder.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How features are encoded; [`check`](Self::check) makes them usable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderParams {
    /// Levels of a text feature that get a column of their own, the most frequent first. Default 32; 1 to 10 000.
    pub max_levels: usize,
    /// A level in fewer rows than this, and in fewer than 1 % of rows, is `other`. Default 20; at least 1.
    pub min_level_rows: u64,
    /// Tails are heavy if the 0.5 % or 99.5 % quantile is this many robust standard deviations from the median, which
    /// is 2.6 for normal data and 5.6 for exponential. Default 6; above 0, infinite for never.
    pub heavy_tail: f64,
    /// Encoded numbers lie between −`clip` and `clip`, and within the range seen in fitting. Default 10; above 0.
    pub clip: f64,
}

impl Default for EncoderParams {
    fn default() -> Self {
        Self { max_levels: 32, min_level_rows: 20, heavy_tail: 6.0, clip: 10.0 }
    }
}

impl EncoderParams {
    /// Checks the ranges.
    pub fn check(self) -> Result<ValidEncoderParams> {
        let wrong = |name: &str, value: String, range: &str| {
            Err(Error::usage(format!("`{name}` is {value}")).hint(format!("it must be {range}")))
        };
        if !(1..=10_000).contains(&self.max_levels) {
            return wrong("max_levels", self.max_levels.to_string(), "from 1 to 10000");
        }
        if self.min_level_rows == 0 {
            return wrong("min_level_rows", self.min_level_rows.to_string(), "at least 1");
        }
        if self.heavy_tail.is_nan() || self.heavy_tail <= 0.0 {
            return wrong("heavy_tail", self.heavy_tail.to_string(), "above 0");
        }
        if !(self.clip > 0.0 && self.clip.is_finite()) {
            return wrong("clip", self.clip.to_string(), "above 0 and finite");
        }
        Ok(ValidEncoderParams(self))
    }
}

/// Settings whose ranges were checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidEncoderParams(EncoderParams);

impl std::ops::Deref for ValidEncoderParams {
    type Target = EncoderParams;

    fn deref(&self) -> &EncoderParams {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked() {
        let base = EncoderParams::default;
        assert!(base().check().is_ok());
        assert!(EncoderParams { max_levels: 0, ..base() }.check().is_err());
        assert!(EncoderParams { min_level_rows: 0, ..base() }.check().is_err());
        assert!(EncoderParams { heavy_tail: f64::NAN, ..base() }.check().is_err());
        assert!(EncoderParams { heavy_tail: f64::INFINITY, ..base() }.check().is_ok());
        assert!(EncoderParams { clip: 0.0, ..base() }.check().is_err());
    }
}
