//! The space of a learner where none is given, and the paper's grids (App. C and D).

use serde_json::{Map, Value, json};

use super::space::Space;
use crate::compare::Schedule;
use crate::effect::Settings;
use crate::learn::poul;
use crate::model::Learner;
use crate::{Error, Kind, Result};

/// The names of all presets.
pub const PRESETS: &[&str] = &["paper-gmv", "paper-cost"];

/// The paper's (i, j) for the method, the same for GMV and cost.
const PAPER_SCHEDULES: [(usize, usize); 8] =
    [(1, 1), (1, 3), (1, 5), (2, 1), (5, 1), (5, 2), (5, 5), (5, 10)];

/// A named search: settings under every trial, and the space.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Settings under every trial.
    pub base: Settings,
    /// What is searched.
    pub space: Space,
}

/// The paper's grid for a learner. The grids of GMV and of cost are the same; the outcome is yours to name.
///
/// The method's schedules are of two phases, the second on `core`. Of the rivals' schedules those on all rows alone are
/// tried: rivals have no phases.
pub fn preset(name: &str, learner: &Learner, core: Option<&str>) -> Result<Preset> {
    if !PRESETS.contains(&name) {
        return Err(Error::unknown(Kind::Usage, "preset", name, "presets", PRESETS.iter().copied()));
    }
    let mut base = Settings::default();
    if learner.name == poul::NAME {
        base.preset = Some("paper".to_owned());
        let phases = PAPER_SCHEDULES.iter().map(|(global, core_epochs)| {
            let schedule = Schedule { global: *global, core: *core_epochs };
            Ok(schedule.apply(&base, core)?.training.remove("phases").unwrap_or_default())
        });
        let phases = phases.collect::<Result<Vec<Value>>>()?;
        let space = Space::parse(&table([("training.phases", phases.into())]))?;
        return Ok(Preset { base, space });
    }
    let epochs = match learner.name {
        "t-learner" => json!([10, 15, 20, 25]),
        "descn" => json!([15, 20, 25]),
        "drcfr" => json!([15, 25]),
        other => {
            let error = Error::usage(format!("the paper has no grid for the learner `{other}`"));
            return Err(
                error.hint("it has grids for poul, t-learner, descn and drcfr; give [tune] for others")
            );
        }
    };
    base.training = table([
        ("learning_rate", json!(1e-4)),
        ("batch_rows", json!(512)),
        ("patience", json!(0)),
        ("validation_share", json!(0.0)),
    ]);
    Ok(Preset { base, space: Space::parse(&table([("training.epochs", epochs)]))? })
}

/// What is worth searching of a learner.
pub fn default_space(learner: &Learner) -> Result<Space> {
    if learner.name == poul::NAME {
        return Space::parse(&table([
            ("training.learning_rate", json!([1e-3, 2e-3, 4e-3])),
            ("training.decay_g", json!([0.3, 1.0, 3.0])),
            ("training.gate_penalty", json!([0.0, 1.0, 1.75, 3.0])),
            ("model.dropout", json!([0.1, 0.2, 0.4])),
            ("model.effect_dim", json!([8, 16, 32])),
        ]));
    }
    // Rivals spell these the same, as far as they have them.
    let candidates = [
        ("training.learning_rate", json!([3e-4, 1e-3, 3e-3])),
        ("training.weight_decay", json!([0.03, 0.3, 1.0])),
        ("training.folds", json!([2, 3, 5])),
        ("model.dropout", json!([0.0, 0.1, 0.3])),
    ];
    // A learner may lack a setting, or fix it.
    let accepts = |name: &str, values: &Value| {
        let mut settings = Settings::default();
        values.as_array().into_iter().flatten().all(|value| {
            match name.split_once('.') {
                Some(("model", key)) => settings.model.insert(key.to_owned(), value.clone()),
                Some((_, key)) => settings.training.insert(key.to_owned(), value.clone()),
                None => None,
            };
            (learner.settle)(&settings).is_ok()
        })
    };
    let space: Map<String, Value> = candidates
        .into_iter()
        .filter(|(name, values)| accepts(name, values))
        .map(|(name, values)| (name.to_owned(), values))
        .collect();
    Space::parse(&space).map_err(|_| {
        let error = Error::usage(format!("the learner `{}` has nothing to tune by default", learner.name));
        error.hint("say what to search under [tune] in poul.toml")
    })
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::points::{Search, points};
    use super::super::space::apply;
    use super::*;
    use crate::Seed;
    use crate::model::{LEARNERS, learner};

    #[test]
    fn every_space_has_points_that_its_learner_accepts() {
        for learner in LEARNERS {
            let Ok(space) = default_space(learner) else {
                let settings = (learner.settle)(&Settings::default()).unwrap();
                assert!(!settings.training.contains_key("learning_rate"), "{}", learner.name);
                continue;
            };
            for point in points(&space, Search::Random, 20, Seed::new(1)).unwrap() {
                (learner.settle)(&apply(&point, &Settings::default())).unwrap();
            }
        }
    }

    #[test]
    fn the_papers_grids_are_accepted_and_others_are_told() {
        for (name, n_points) in [("poul", 8), ("t-learner", 4), ("descn", 3), ("drcfr", 2)] {
            let learner = learner(name).unwrap();
            for outcome in PRESETS {
                let preset = preset(outcome, learner, Some("core")).unwrap();
                let points = points(&preset.space, Search::Grid, 1, Seed::new(1)).unwrap();
                assert_eq!(points.len(), n_points);
                for point in &points {
                    (learner.settle)(&apply(point, &preset.base)).unwrap();
                }
            }
        }
        let poul = learner("poul").unwrap();
        assert!(preset("paper-gvm", poul, None).unwrap_err().hint_text().unwrap().contains("paper-gmv"));
        assert!(preset("paper-gmv", poul, None).unwrap_err().hint_text().unwrap().contains("`core"));
        assert!(preset("paper-gmv", learner("ridge").unwrap(), None).is_err());
    }
}
