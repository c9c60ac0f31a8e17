//! Which column plays which part: the `[data]` table of `poul.toml` and the flags of the same names.

mod check;
mod columns;
mod exposure;
mod table;

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

pub use self::columns::{Columns, ExposureColumn, Feature, Prediction, Propensity};
pub use self::exposure::{ExposureRole, ExposureScale};
use crate::{Error, Kind};

/// The roles of columns as a user gives them; [`check`](Self::check) finds them in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// The column with each row's policy. Default: `policy`, unless `treatment_columns` are given.
    pub treatment: Option<String>,
    /// Factorial form: each column is a context, each value an action. Default: none.
    #[serde(alias = "treatment-columns", deserialize_with = "one_or_many")]
    pub treatment_columns: Vec<String>,
    /// What happened; one or more numeric or boolean columns. No default.
    #[serde(deserialize_with = "one_or_many")]
    pub outcome: Vec<String>,
    /// Outcomes that are only there to teach: who responds in them (visits, opens) helps to find who responds in the noisier
    /// ones. Read by `fit` and `compare` alone. Default: none.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<String>,
    /// The policy that others are compared with. Default: decided where policies are known.
    pub control: Option<String>,
    /// Names or globs (`*`, `?`) of features. Default: every column without another role.
    #[serde(deserialize_with = "one_or_many")]
    pub features: Vec<String>,
    /// Names or globs of columns that are no features. Default: none.
    #[serde(deserialize_with = "one_or_many")]
    pub exclude: Vec<String>,
    /// Sample weights, ≥ 0. Default: all 1.
    pub weight: Option<String>,
    /// Rows of one cluster are split, folded and bootstrapped together. Default: each row for itself.
    pub cluster: Option<String>,
    /// Assignment shares are known or estimated within each stratum. Default: none.
    pub stratum: Option<String>,
    /// Glob of the user's own propensity columns; what `*` stands for names the policy. Default: none.
    pub propensity: Option<String>,
    /// For an outcome, the column with the user's own prediction of it (m). Default: none.
    pub prediction: BTreeMap<String, String>,
    /// How much each row meets each context, before the experiment: a column for each context by its name, or a glob in
    /// which `*` stands for the context. Such columns are features too, unless excluded. Default: contexts weigh the same
    /// for every row, unless the policy file names columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureRole>,
    /// What the numbers of a row are divided by: their own sum (`share`), or the mean sum of all rows (`total`). Default:
    /// `share`.
    #[serde(alias = "exposure-scale", skip_serializing_if = "ExposureScale::is_share")]
    pub exposure_scale: ExposureScale,
    /// Only rows for which this expression holds count; see [`Filter`](super::Filter). Default: all rows.
    pub population: Option<String>,
    /// When the row was observed; carried along, no feature unless named as one. Default: none.
    pub time: Option<String>,
    /// Columns that identify a row in outputs. Default: the row number.
    #[serde(deserialize_with = "one_or_many")]
    pub id: Vec<String>,
    /// How assignment happened. Default: `randomized`.
    pub design: Design,
}

/// How policies were assigned to rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// With the same probabilities for every row.
    #[default]
    Randomized,
    /// With probabilities that depend on the stratum alone.
    Stratified,
    /// In a way that has to be learned from the features.
    Observational,
}

impl Design {
    /// All designs, by name.
    pub const NAMES: [&'static str; 3] = ["randomized", "stratified", "observational"];

    /// The design's name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for Design {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "randomized" => Ok(Self::Randomized),
            "stratified" => Ok(Self::Stratified),
            "observational" => Ok(Self::Observational),
            _ => Err(Error::unknown(Kind::Usage, "design", name, "designs", Self::NAMES)),
        }
    }
}

/// Which roles a command cannot do without; others are used where they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The treatment, and with it stratum and propensity.
    pub treatment: bool,
    /// At least one outcome, and with it predictions.
    pub outcome: bool,
    /// At least one feature.
    pub features: bool,
}

impl Need {
    /// Everything: to fit a model.
    pub const FIT: Self = Self { treatment: true, outcome: true, features: true };
    /// Features alone: to score rows, whatever was done to them.
    pub const SCORE: Self = Self { treatment: false, outcome: false, features: true };
    /// What was done and what happened: to evaluate effects that are already there.
    pub const EVALUATE: Self = Self { treatment: true, outcome: true, features: false };
}

/// A list, or a single name for a list of one.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a name or a list of names")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(name) => vec![name],
        OneOrMany::Many(names) => names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_from_toml() {
        let roles: Roles = toml::from_str(
            "outcome = 'gmv'\nid = ['a', 'b']\ntreatment-columns = ['x']\ndesign = 'stratified'\n[prediction]\ngmv = 'm'",
        )
        .unwrap();
        assert_eq!(roles.outcome, ["gmv"]);
        assert_eq!(roles.id, ["a", "b"]);
        assert_eq!(roles.treatment_columns, ["x"]);
        assert_eq!(roles.design, Design::Stratified);
        assert_eq!(roles.prediction["gmv"], "m");
        assert!(toml::from_str::<Roles>("outcom = 'gmv'").is_err());
        assert!(toml::from_str::<Roles>("design = 'random'").is_err());
        let again: Roles = toml::from_str(&toml::to_string(&roles).unwrap()).unwrap();
        assert_eq!(again, roles);
    }

    #[test]
    fn designs_have_names() {
        for name in Design::NAMES {
            assert_eq!(name.parse::<Design>().unwrap().name(), name);
        }
        assert!("randomised".parse::<Design>().err().unwrap().hint_text().unwrap().contains("randomized"));
    }
}
