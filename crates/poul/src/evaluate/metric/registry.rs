//! The metrics by name: what is listed here is read on every draw, stands in the JSON of an evaluation in this order, and
//! is shown by the tables that its [`Definition`] names.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::definition::Definition;
use super::{area, assigned, ate, calibration, causalml, rate, residual, sklift, slope, truth};

macro_rules! registry {
    (arms { $($arms:ident = $of_arms:path,)* } assigned { $($own:ident = $of_own:path,)* }) => {
        /// A metric. What it is says its [`definition`](Self::definition).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Metric {
            $(#[doc = concat!("`", stringify!($of_arms), "`")] $arms,)*
            $(#[doc = concat!("`", stringify!($of_own), "`")] $own,)*
        }

        impl Metric {
            /// The metrics of two arms, in the order of the JSON.
            pub const ARMS: &[Self] = &[$(Self::$arms,)*];

            pub(super) const ALL: &[Self] = &[$(Self::$arms,)* $(Self::$own,)*];

            /// What it is.
            pub fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$arms => const { &$of_arms },)*
                    $(Self::$own => const { &$of_own },)*
                }
            }
        }
    };
}

registry! {
    // Of the rows of a policy and of those it is compared with.
    arms {
        Ate = ate::ATE,
        AtePredicted = ate::ATE_PREDICTED,
        Auuc = area::AUUC,
        RandomAuuc = area::RANDOM_AUUC,
        Qini = area::QINI,
        AuucCausalml = causalml::AUUC_CAUSALML,
        QiniCausalml = causalml::QINI_CAUSALML,
        UpliftAucSklift = sklift::UPLIFT_AUC_SKLIFT,
        QiniAucSklift = sklift::QINI_AUC_SKLIFT,
        RateAutoc = rate::RATE_AUTOC,
        RateQini = rate::RATE_QINI,
        Mape = calibration::MAPE,
        Wmape = calibration::WMAPE,
        CalibrationSlope = slope::CALIBRATION_SLOPE,
        RLoss = residual::R_LOSS,
        RScore = residual::R_SCORE,
        AteTrue = truth::ATE_TRUE,
        Pehe = truth::PEHE,
        NormalisedPehe = truth::NORMALISED_PEHE,
        AteError = truth::ATE_ERROR,
    }
    // Of every row by its own policy, beside `RScore`.
    assigned {
        Slope = assigned::SLOPE,
        RankGain = assigned::RANK_GAIN,
    }
}

impl Metric {
    /// The metrics of every row by its own policy.
    pub const ASSIGNED: [Self; 3] = [Self::RScore, Self::Slope, Self::RankGain];

    /// The metrics of two arms that learners are compared by, in the order of `Readings`.
    pub fn compared() -> impl Iterator<Item = Self> {
        Self::ARMS.iter().copied().filter(|metric| metric.definition().in_comparisons)
    }

    /// Its key in JSON.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// What tables call it.
    pub fn title(self) -> &'static str {
        self.definition().title
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Self::ALL.iter().copied().find(|metric| metric.name() == name);
        known.ok_or_else(|| serde::de::Error::custom(format!("there is no metric `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_names_of_their_own_and_are_read_back_by_them() {
        for (place, metric) in Metric::ALL.iter().enumerate() {
            assert_eq!(*metric as usize, place);
            let text = serde_json::to_string(metric).unwrap();
            assert_eq!(text, format!("\"{metric}\""));
            assert_eq!(serde_json::from_str::<Metric>(&text).unwrap(), *metric);
        }
        assert!(serde_json::from_str::<Metric>("\"area\"").unwrap_err().to_string().contains("`area`"));
    }
}
