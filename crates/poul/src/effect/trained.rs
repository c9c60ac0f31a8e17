//! What a learner gives back.

use serde::{Deserialize, Serialize};

use super::EffectModel;
use crate::net::Epoch;

/// A fitted model and how it came about.
pub struct Trained {
    /// The effects.
    pub effects: Box<dyn EffectModel>,
    /// How training went, stage by stage; empty for learners in closed form.
    pub history: Vec<Phase>,
    /// What the user should know, such as how many propensities were clipped.
    pub notes: Vec<String>,
}

/// One stage of training, such as `outcome model, fold 1` or `effects`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What was trained.
    pub name: String,
    /// Every epoch that was run.
    pub epochs: Vec<Epoch>,
    /// The epoch whose state was kept, from 0.
    pub best: Option<usize>,
}
