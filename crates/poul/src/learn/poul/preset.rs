//! Named sets of defaults: the preset `paper`.

use super::params::{Centring, Embedding, ModelParams, OutcomeTraining, Params, TrainingParams};
use crate::{Error, Kind, Result};

/// The names of all presets.
pub const PRESETS: &[&str] = &["paper"];

/// The defaults under a preset; the learner's own without one.
pub(super) fn defaults(preset: Option<&str>) -> Result<Params> {
    match preset {
        None => Ok(Params::default()),
        Some("paper") => Ok(paper()),
        Some(other) => Err(Error::unknown(Kind::Usage, "preset", other, "presets", PRESETS.iter().copied())),
    }
}

/// Algorithm 1 as App. C of the paper trains it: one network, Adam at a fixed rate of 1e-4 in batches of 512, a fixed
/// number of epochs on all rows, m fitted once on all rows in the same way; no dropout, decay, gates, weights by noise,
/// averaging, clipping or stopping.
/// φ is a table of atoms and ρ a small MLP (Sec. 2.1). The seed of the paper, 3407, is the default everywhere.
fn paper() -> Params {
    let model = ModelParams {
        embedding: Embedding::Lookup,
        rho_skip: false,
        dropout: 0.0,
        shared_gain: false,
        centring: Centring::Exact,
        members: 1,
        ..ModelParams::default()
    };
    let training = TrainingParams {
        folds: 1,
        learning_rate: 1e-4,
        batch_rows: 512,
        patience: 0,
        validation_share: 0.0,
        decay_g: 0.0,
        decay_rho: 0.0,
        decay_phi: 0.0,
        decay_delta: 0.0,
        gate_penalty: 0.0,
        noise_weights: false,
        calibrate: false,
        outcome_training: OutcomeTraining::AsEffects,
        average: 0.0,
        clip_norm: 0.0,
        ..TrainingParams::default()
    };
    Params { model, training }
}

#[cfg(test)]
mod tests {
    use super::super::nuisances::outcome_settings;
    use super::super::phases::PhaseParams;
    use super::*;

    #[test]
    fn presets_are_valid_and_unknown_ones_are_told() {
        for preset in PRESETS {
            assert!(defaults(Some(preset)).unwrap().check().is_ok(), "{preset}");
        }
        assert_eq!(defaults(None).unwrap(), Params::default());
        let mut paper = defaults(Some("paper")).unwrap();
        paper.training.phases = [3, 2].map(|epochs| PhaseParams { population: None, epochs }).to_vec();
        let outcome = outcome_settings(&paper, 10_000);
        assert_eq!((outcome.learning_rate, outcome.dropout, outcome.weight_decay), (1e-4, 0.0, 0.0));
        assert_eq!((outcome.members, outcome.average), (1, 0.0));
        assert_eq!((outcome.schedule.epochs, outcome.schedule.patience), (5, 0));
        let error = defaults(Some("papre")).unwrap_err();
        assert_eq!(error.to_string(), "unknown preset `papre`");
        assert_eq!(error.hint_text(), Some("did you mean `paper`?"));
    }
}
