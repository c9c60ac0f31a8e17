//! Successive halving (Jamieson and Talwalkar 2016): many settings on little data or few epochs, fewer on more.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::Settings;
use crate::{Error, Result};

/// What a trial that is not yet sure of its place gets less of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Units to train on.
    #[default]
    Rows,
    /// Passes over them: `training.epochs`, or those of every phase.
    Epochs,
}

/// How trials are thinned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halving {
    /// One in so many goes on, with so many times as much. Default 3; 2 to 10.
    pub factor: usize,
    /// Most rounds; the first has the least. Default 3; 1 to 6.
    pub rounds: usize,
    /// What is scarce. Default: rows.
    pub resource: Resource,
}

impl Default for Halving {
    fn default() -> Self {
        Self { factor: 3, rounds: 3, resource: Resource::Rows }
    }
}

/// One round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// How many trials take part.
    pub(super) n_trials: usize,
    /// The share of the resource that each gets; 1 in the last.
    pub(super) share: f64,
}

impl Halving {
    /// Checks every setting against its range.
    pub(super) fn check(&self) -> Result<()> {
        if !(2..=10).contains(&self.factor) {
            return Err(Error::usage(format!("halving by {}", self.factor)).hint("use a factor of 2 to 10"));
        }
        if !(1..=6).contains(&self.rounds) {
            return Err(Error::usage(format!("{} rounds of halving", self.rounds)).hint("use 1 to 6"));
        }
        Ok(())
    }

    /// The rounds for so many trials: the last has at least one, and everything.
    pub(super) fn plan(halving: Option<&Self>, n_trials: usize) -> Vec<Round> {
        let Some(Self { factor, rounds, .. }) = halving else {
            return vec![Round { n_trials, share: 1.0 }];
        };
        let mut counts = vec![n_trials];
        while counts.len() < *rounds && counts.last().is_some_and(|last| *last > 1) {
            let last = counts.last().copied().unwrap_or(1);
            counts.push(last.div_ceil(*factor));
        }
        let n_rounds = counts.len();
        let share = |round: usize| (*factor as f64).powi(round as i32 + 1 - n_rounds as i32);
        counts
            .into_iter()
            .enumerate()
            .map(|(round, n_trials)| Round { n_trials, share: share(round) })
            .collect()
    }
}

/// Settings with a share of their epochs, at least one in each phase.
pub(super) fn with_epochs(settings: &Settings, share: f64) -> Result<Settings> {
    let mut settings = settings.clone();
    let scaled = |epochs: u64| Value::from((epochs as f64 * share).ceil().max(1.0) as u64);
    let mut found = false;
    if let Some(Value::Array(phases)) = settings.training.get_mut("phases") {
        for phase in phases {
            if let Some(epochs) = phase.get("epochs").and_then(Value::as_u64) {
                phase["epochs"] = scaled(epochs);
                found = true;
            }
        }
    }
    if let Some(epochs) = settings.training.get("epochs").and_then(Value::as_u64) {
        settings.training.insert("epochs".into(), scaled(epochs));
        found = true;
    }
    match found {
        true => Ok(settings),
        false => Err(Error::usage("the learner has no epochs to save").hint("save rows: ‹resource=rows›")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rounds_shrink_and_the_last_has_everything() {
        let plan = |n| Halving::plan(Some(&Halving::default()), n);
        let shown: Vec<(usize, f64)> = plan(9).iter().map(|round| (round.n_trials, round.share)).collect();
        assert_eq!(shown, [(9, 1.0 / 9.0), (3, 1.0 / 3.0), (1, 1.0)]);
        assert_eq!(plan(1), [Round { n_trials: 1, share: 1.0 }]);
        assert_eq!(plan(2).len(), 2);
        assert_eq!(Halving::plan(None, 7), [Round { n_trials: 7, share: 1.0 }]);
        assert!(Halving { factor: 1, ..Halving::default() }.check().is_err());
    }

    #[test]
    fn epochs_shrink_in_every_phase() {
        let mut settings = Settings::default();
        assert!(with_epochs(&settings, 0.5).is_err());
        settings.training.insert("epochs".into(), json!(9));
        settings
            .training
            .insert("phases".into(), json!([{ "epochs": 1 }, { "epochs": 6, "population": "c" }]));
        let less = with_epochs(&settings, 1.0 / 3.0).unwrap();
        assert_eq!(less.training["epochs"], json!(3));
        assert_eq!(less.training["phases"], json!([{ "epochs": 1 }, { "epochs": 2, "population": "c" }]));
    }
}
