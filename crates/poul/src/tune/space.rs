//! What is searched: for each setting, choices or a range. The `[tune]` table of `poul.toml`.

use std::collections::BTreeMap;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effect::Settings;
use crate::{Error, Result, Rng};

/// Points of a range in a grid, unless it says how many.
const GRID_STEPS: usize = 5;

/// Values of some settings, by names such as `training.learning_rate`.
pub type Point = BTreeMap<String, Value>;

/// Settings and the values they may take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space(pub BTreeMap<String, Dimension>);

/// The values that a setting may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Dimension {
    /// One of these.
    Choices(Vec<Value>),
    /// A number.
    Range {
        /// The least.
        low: f64,
        /// The largest.
        high: f64,
        /// How it is divided.
        scale: Scale,
        /// Points of it in a grid. Default 5; at least 2.
        steps: usize,
        /// Whether it is a whole number: both ends are.
        whole: bool,
    },
}

/// How a range is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly in the logarithm.
    Log,
}

impl Space {
    /// Reads a table: `"training.learning_rate" = [1e-4, 1e-3]`, or `{ low = 1e-4, high = 1e-2, scale = "log" }`.
    pub fn parse(table: &Map<String, Value>) -> Result<Self> {
        let mut space = BTreeMap::new();
        for (name, value) in table {
            let place = |error: Error| error.at("[tune]").at(format!("`{name}`"));
            if split(name).is_none() {
                let error = place(Error::usage("is no name of a setting"));
                return Err(error.hint("write \"model.NAME\" or \"training.NAME\", in quotes"));
            }
            space.insert(name.clone(), Dimension::parse(value).map_err(place)?);
        }
        if space.is_empty() {
            let error = Error::usage("there is nothing to search").at("[tune]");
            return Err(error.hint("add a line such as \"training.learning_rate\" = [1e-4, 1e-3]"));
        }
        Ok(Self(space))
    }

    /// How many points its grid has.
    pub(crate) fn grid_points(&self) -> usize {
        self.0.values().map(|dimension| dimension.grid().len()).fold(1, usize::saturating_mul)
    }

    /// Whether every setting has choices, and no range.
    pub(crate) fn is_discrete(&self) -> bool {
        self.0.values().all(|dimension| matches!(dimension, Dimension::Choices(_)))
    }
}

/// A point laid over settings.
pub(super) fn apply(point: &Point, settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    for (name, value) in point {
        match split(name) {
            Some(("model", key)) => settings.model.insert(key.to_owned(), value.clone()),
            Some((_, key)) => settings.training.insert(key.to_owned(), value.clone()),
            None => None,
        };
    }
    settings
}

/// `training.learning_rate` → `training`, `learning_rate`.
fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(table, key)| ["model", "training"].contains(table) && !key.is_empty())
}

impl Dimension {
    fn parse(value: &Value) -> Result<Self> {
        let hint = "write a list of values, or { low = 1e-4, high = 1e-2, scale = \"log\" }";
        match value {
            Value::Array(choices) if choices.is_empty() => Err(Error::usage("is an empty list").hint(hint)),
            Value::Array(choices) => Ok(Self::Choices(choices.clone())),
            Value::Object(_) => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Range {
                    low: serde_json::Number,
                    high: serde_json::Number,
                    #[serde(default)]
                    scale: Scale,
                    steps: Option<usize>,
                }
                let range = Range::deserialize(value);
                let Range { low, high, scale, steps } =
                    range.map_err(|error| Error::usage(error.to_string()).hint(hint))?;
                let whole = !low.is_f64() && !high.is_f64();
                let (low, high) = (low.as_f64().unwrap_or(f64::NAN), high.as_f64().unwrap_or(f64::NAN));
                let steps = steps.unwrap_or(GRID_STEPS);
                if !(low < high && low.is_finite() && high.is_finite()) {
                    return Err(Error::usage(format!("is a range from {low} to {high}"))
                        .hint("`low` must be below `high`"));
                }
                if scale == Scale::Log && low <= 0.0 {
                    return Err(Error::usage(format!("is a range from {low} by logarithm"))
                        .hint("`low` must be above 0, or `scale` be \"linear\""));
                }
                if steps < 2 {
                    return Err(Error::usage(format!("has {steps} steps")).hint("use at least 2"));
                }
                Ok(Self::Range { low, high, scale, steps, whole })
            }
            _ => Err(Error::usage(format!("is {value}")).hint(hint)),
        }
    }

    /// Its values in a grid.
    pub(super) fn grid(&self) -> Vec<Value> {
        match self {
            Self::Choices(choices) => choices.clone(),
            Self::Range { steps, .. } => {
                let share = |step: usize| step as f64 / (steps - 1) as f64;
                let mut values: Vec<Value> = (0..*steps).map(|step| self.at(share(step))).collect();
                values.dedup();
                values
            }
        }
    }

    /// A random value.
    pub(super) fn draw(&self, rng: &mut Rng) -> Value {
        match self {
            Self::Choices(choices) => choices[rng.random_range(0..choices.len())].clone(),
            Self::Range { .. } => self.at(rng.random_range(0.0..1.0)),
        }
    }

    /// The value at a share of a range.
    fn at(&self, share: f64) -> Value {
        let Self::Range { low, high, scale, whole, .. } = self else { return Value::Null };
        let value = match scale {
            _ if share >= 1.0 => *high,
            Scale::Linear => low + (high - low) * share,
            Scale::Log => (low.ln() + (high / low).ln() * share).exp().max(*low),
        };
        match whole {
            true => Value::from(value.round() as i64),
            // Six digits: what is tried is what the settings file says.
            false => Value::from(format!("{value:.5e}").parse::<f64>().unwrap_or(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use serde_json::json;

    fn parse(value: Value) -> Result<Space> {
        Space::parse(value.as_object().unwrap())
    }

    #[test]
    fn choices_and_ranges_are_read_and_mistakes_are_told() {
        let space = parse(json!({
            "training.learning_rate": { "low": 1e-4, "high": 1e-2, "scale": "log", "steps": 3 },
            "model.members": { "low": 1, "high": 4 },
            "model.hidden": [[64], [128, 64]],
        }))
        .unwrap();
        assert_eq!(space.0["training.learning_rate"].grid(), [json!(1e-4), json!(1e-3), json!(1e-2)]);
        assert_eq!(space.0["model.members"].grid(), [json!(1), json!(2), json!(3), json!(4)]);
        assert_eq!(space.grid_points(), 24);
        let mut rng = Seed::new(1).rng();
        for _ in 0..200 {
            let rate = space.0["training.learning_rate"].draw(&mut rng).as_f64().unwrap();
            assert!((1e-4..=1e-2).contains(&rate));
            assert!((1..=4).contains(&space.0["model.members"].draw(&mut rng).as_i64().unwrap()));
        }
        for (wrong, message) in [
            (json!({}), "[tune]: there is nothing to search"),
            (json!({ "epochs": [1] }), "[tune]: `epochs`: is no name of a setting"),
            (json!({ "training.epochs": [] }), "[tune]: `training.epochs`: is an empty list"),
            (json!({ "training.epochs": 3 }), "[tune]: `training.epochs`: is 3"),
            (json!({ "model.x": { "low": 2, "high": 1 } }), "[tune]: `model.x`: is a range from 2 to 1"),
            (
                json!({ "model.x": { "low": 0, "high": 1, "scale": "log" } }),
                "[tune]: `model.x`: is a range from 0 by logarithm",
            ),
        ] {
            assert_eq!(parse(wrong).unwrap_err().to_string(), message);
        }
    }
}
