//! What a user may set about a learner: the `[model]` and `[training]` tables of `poul.toml`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::wrong_setting::read_table;
use crate::{Error, Result};

/// Settings by table, as given or, once a learner has seen them, complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// A named set of defaults, such as `paper`. Default: the learner's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// `[model]`: what is learned. Default: empty, the learner's defaults.
    pub model: Map<String, Value>,
    /// `[training]`: how it is learned. Default: empty, the learner's defaults.
    pub training: Map<String, Value>,
}

/// A table in which there is nothing to set.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoSettings {}

impl Settings {
    /// The two tables as the types of a learner.
    ///
    /// The types should have `#[serde(default, deny_unknown_fields)]`: then what is left out has a default and a wrong
    /// name is an error that lists the right ones.
    pub(crate) fn read<M: DeserializeOwned, T: DeserializeOwned>(&self) -> Result<(M, T)> {
        Ok((read_table("model", &self.model)?, read_table("training", &self.training)?))
    }

    /// The populations that training asks for: those of `phases` under `[training]`, and under that of every member of a
    /// stack.
    pub(crate) fn populations(&self) -> Vec<&str> {
        let members = self.model.get("learners").and_then(Value::as_object).into_iter().flatten();
        let of_members = members.filter_map(|(_, settings)| settings.get("training")?.get("phases"));
        let phases = self.training.get("phases").into_iter().chain(of_members);
        let phases = phases.filter_map(Value::as_array).flatten();
        phases.filter_map(|phase| phase.get("population")?.as_str()).collect()
    }

    /// These settings, and those of `under` where these are silent.
    #[must_use]
    pub fn over(&self, under: &Self) -> Self {
        let merged = |over: &Map<String, Value>, under: &Map<String, Value>| {
            under.clone().into_iter().chain(over.clone()).collect()
        };
        Self {
            preset: self.preset.clone().or_else(|| under.preset.clone()),
            model: merged(&self.model, &under.model),
            training: merged(&self.training, &under.training),
        }
    }

    /// Completes the settings of a learner that has none.
    pub(crate) fn require_none(&self, learner: &str) -> Result<Self> {
        self.require_no_preset(learner)?;
        let (model, training): (NoSettings, NoSettings) = self.read()?;
        Self::of(None, &model, &training)
    }

    /// Refuses a preset, for learners that have none.
    pub(crate) fn require_no_preset(&self, learner: &str) -> Result<()> {
        match &self.preset {
            Some(preset) => Err(Error::usage(format!("the learner `{learner}` has no preset `{preset}`"))),
            None => Ok(()),
        }
    }

    /// The settings that give these values when read.
    pub fn of(preset: Option<String>, model: &impl Serialize, training: &impl Serialize) -> Result<Self> {
        Ok(Self { preset, model: write_table(model)?, training: write_table(training)? })
    }
}

fn write_table(value: &impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(entries)) => {
            Ok(entries.into_iter().map(|(key, value)| (key, short(value))).collect())
        }
        Ok(other) => Err(Error::other(format!("settings must be a table, not {other}"))),
        Err(error) => Err(Error::other(format!("cannot store settings: {error}")).source(error)),
    }
}

/// Numbers of single precision as they were written: 0.2, not 0.20000000298023224.
fn short(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(short).collect(),
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (key, short(value))).collect(),
        Value::Number(number) if number.is_f64() => {
            let wide = number.as_f64().filter(|wide| f64::from(*wide as f32) == *wide);
            let written = wide.and_then(|wide| (wide as f32).to_string().parse::<f64>().ok());
            written.map_or(Value::Number(number), Value::from)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_is_kept_as_it_was_written() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Rates {
            single: f32,
            several: Vec<f32>,
            double: f64,
            whole: f32,
        }
        let rates = Rates { single: 0.2, several: vec![1e-3, 0.5], double: 1.0 / 3.0, whole: 3.0 };
        let settings = Settings::of(None, &rates, &rates).unwrap();
        assert_eq!(settings.model["single"].to_string(), "0.2");
        assert_eq!(settings.model["several"].to_string(), "[0.001,0.5]");
        let (model, training): (Rates, Rates) = settings.read().unwrap();
        assert_eq!((&model, &training), (&rates, &rates));
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Net {
        members: usize,
    }

    #[test]
    fn settings_survive_and_wrong_names_are_told() {
        let settings = Settings::of(None, &Net { members: 6 }, &Net { members: 2 }).unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert_eq!(settings.read::<Net, Net>().unwrap(), (Net { members: 6 }, Net { members: 2 }));
        let mut wrong = settings;
        wrong.training.insert("member".into(), Value::from(1));
        let error = wrong.read::<Net, Net>().unwrap_err();
        assert_eq!(error.to_string(), "[training]: unknown setting `member`");
    }
}
