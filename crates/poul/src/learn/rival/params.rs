//! How rivals that are networks are trained: `[training]` of `poul.toml`, the same names for all of them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::treatments::Tier;
use crate::effect::{unknown_setting, wrong_value};
use crate::net::{AdamParams, Schedule};
use crate::{Error, Result};

/// How a network is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TrainingParams {
    /// Learning rate of AdamW. Default 0.001; above 0.
    pub learning_rate: f32,
    /// Rows of a batch. Default 512; at least 1.
    pub batch_rows: usize,
    /// Most passes over the rows. Default 60; at least 1.
    pub epochs: usize,
    /// Epochs without a better validation loss before training ends. Default 6; 0: run all epochs.
    pub patience: usize,
    /// Share of the units held out for validation. Default 0.125; in [0, 0.5].
    pub validation_share: f64,
    /// Decoupled weight decay, for passes of up to 64 batches; less per step where they are longer. Default 0.3; at least 0.
    pub weight_decay: f32,
    /// Decay of the running average of weights. Default 0.999; in [0, 1).
    pub average: f32,
    /// Longest gradient. Default 5; above 0.
    pub clip_norm: f32,
}

impl Default for TrainingParams {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            batch_rows: 512,
            epochs: 60,
            patience: 6,
            validation_share: 0.125,
            weight_decay: 0.3,
            average: 0.999,
            clip_norm: 5.0,
        }
    }
}

impl TrainingParams {
    /// Checks every setting against its range.
    pub(super) fn check(&self) -> Result<()> {
        let rules = [
            Rule(
                "training.learning_rate",
                self.learning_rate > 0.0 && self.learning_rate.is_finite(),
                "above 0",
            ),
            Rule("training.batch_rows", self.batch_rows > 0, "at least 1"),
            Rule("training.epochs", self.epochs > 0, "at least 1"),
            Rule("training.validation_share", (0.0..=0.5).contains(&self.validation_share), "from 0 to 0.5"),
            Rule("training.weight_decay", (0.0..100.0).contains(&self.weight_decay), "from 0 to 100"),
            Rule("training.average", (0.0..1.0).contains(&self.average), "in [0, 1)"),
            Rule("training.clip_norm", self.clip_norm > 0.0 && self.clip_norm.is_finite(), "above 0"),
        ];
        check_rules(&rules)
    }

    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            batch_rows: self.batch_rows,
            epochs: self.epochs,
            patience: self.patience,
            ..Schedule::default()
        }
    }

    pub(super) fn adam(&self) -> AdamParams {
        AdamParams {
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            clip_norm: Some(self.clip_norm),
            average: Some(self.average),
            ..AdamParams::default()
        }
    }
}

/// How networks are learned after a first stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FoldedTrainingParams {
    /// The networks, in both stages.
    #[serde(flatten)]
    pub(super) network: TrainingParams,
    /// Folds of cross-fitting. Default 0: 6 up to 5,000 rows, 3 beyond; at most 100; 1 fits the first stage on all rows.
    pub(super) folds: usize,
}

impl FoldedTrainingParams {
    /// Checks every setting against its range.
    pub(super) fn check(&self) -> Result<()> {
        self.network.check()?;
        check_rules(&[Rule("training.folds", self.folds <= 100, "0 to 100")])
    }
}

/// `[model]` of rivals that learn a representation of units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RepresentationParams {
    /// What is seen of a policy. Default `id`: a head for each arm; `spec`: one head that reads the mixture.
    pub(super) tier: Tier,
    /// Widths of the shared layers. Default 200, 200, 200; at least one.
    pub(super) trunk: Vec<usize>,
    /// Widths of the hidden layers of each head. Default 100, 100, 100; at least one.
    pub(super) heads: Vec<usize>,
    /// Dropout after each hidden layer. Default 0; in [0, 1).
    pub(super) dropout: f32,
    /// Arms with fewer rows share a head. Default 200.
    pub(super) min_arm_rows: u64,
    /// Networks trained side by side and averaged. Default 1; 1 to 256.
    pub(super) members: usize,
}

impl Default for RepresentationParams {
    fn default() -> Self {
        Self {
            tier: Tier::Id,
            trunk: vec![200; 3],
            heads: vec![100; 3],
            dropout: 0.0,
            min_arm_rows: 200,
            members: 1,
        }
    }
}

impl RepresentationParams {
    pub(super) fn check(&self) -> Result<()> {
        check_rules(&[
            Rule("model.trunk", are_widths(&self.trunk), "one or more widths of 1 to 65,536"),
            Rule("model.heads", are_widths(&self.heads), "one or more widths of 1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&self.dropout), "in [0, 1)"),
        ])
    }
}

/// A table of settings as a type, whose fields may be those of other types flattened into it: names that it does not
/// have are refused here.
pub(super) fn read_table<T: Default + Serialize + DeserializeOwned>(
    table: &str,
    entries: &Map<String, Value>,
) -> Result<T> {
    let wrong = |error: serde_json::Error| Error::usage(error.to_string()).at(format!("[{table}]"));
    let defaults = serde_json::to_value(T::default()).map_err(wrong)?;
    let known: Vec<&str> = defaults.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    if let Some(name) = entries.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown_setting(table, name, &known));
    }
    serde_json::from_value(Value::Object(entries.clone())).map_err(|error| {
        // The error does not say which entry it is about: it is the one that cannot be read among the defaults.
        let among_defaults = |(name, value): (&String, &Value)| {
            let mut table = defaults.clone();
            table[name.as_str()] = value.clone();
            let said = serde_json::from_value::<T>(table).err()?.to_string();
            Some(wrong_value(name, value, &said))
        };
        entries.iter().find_map(among_defaults).unwrap_or_else(|| wrong(error))
    })
}

/// A setting's name, whether it is in range, and the range.
pub(super) struct Rule(pub(super) &'static str, pub(super) bool, pub(super) &'static str);

/// The first setting that is out of range is the error.
pub(super) fn check_rules(rules: &[Rule]) -> Result<()> {
    match rules.iter().find(|rule| !rule.1) {
        Some(Rule(name, _, range)) => {
            Err(Error::usage(format!("`{name}` is out of range")).hint(format!("it must be {range}")))
        }
        None => Ok(()),
    }
}

/// Whether hidden widths can be built.
pub(super) fn are_widths(widths: &[usize]) -> bool {
    !widths.is_empty() && widths.iter().all(|width| (1..=1 << 16).contains(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_wrong_settings_are_named() {
        assert!(TrainingParams::default().check().is_ok());
        let wrong = TrainingParams { weight_decay: f32::NAN, ..TrainingParams::default() };
        assert_eq!(wrong.check().unwrap_err().to_string(), "`training.weight_decay` is out of range");
        assert!(are_widths(&[3]) && !are_widths(&[]) && !are_widths(&[3, 0]));
    }
}
