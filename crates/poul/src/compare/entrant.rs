//! What takes part in a comparison: a learner under some settings, perhaps by a schedule of epochs (App. C of the paper).

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::effect::Settings;
use crate::model::{LEARNERS, Learner};
use crate::{Error, Result};

/// The learners that are compared where none are named, as far as the registry has them.
const DEFAULT_LEARNERS: &[&str] = &["poul", "ridge", "s-learner", "t-learner", "random"];

/// A learner with settings that were settled.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// What the results call it.
    pub label: String,
    /// The learner.
    pub learner: &'static Learner,
    /// Its settings, complete.
    pub settings: Settings,
    /// The schedule, where it has one.
    pub schedule: Option<Schedule>,
}

/// Epochs on all rows, then on the core population: the (i, j) of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Epochs on all rows.
    pub global: usize,
    /// Epochs on the core population.
    pub core: usize,
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", self.global, self.core)
    }
}

impl std::str::FromStr for Schedule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("`{text}` is no schedule"))
                .hint("write epochs on all rows and on the core population, such as 10,5; one may be 0")
        };
        let (global, core) = text.split_once(',').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse().map_err(|_| wrong());
        let schedule = Self { global: number(global)?, core: number(core)? };
        if schedule == (Self { global: 0, core: 0 }) { Err(wrong()) } else { Ok(schedule) }
    }
}

impl Schedule {
    /// The settings that train by it: phases of a fixed length, without early stopping unless a patience is set.
    pub(crate) fn apply(self, settings: &Settings, core: Option<&str>) -> Result<Settings> {
        let mut phases = Vec::new();
        if self.global > 0 {
            phases.push(json!({ "epochs": self.global }));
        }
        if self.core > 0 {
            let Some(core) = core else {
                let error = Error::usage(format!("the schedule {self} trains on the core population"));
                return Err(error.hint("say which rows it has: ‹core=EXPR›"));
            };
            phases.push(json!({ "population": core, "epochs": self.core }));
        }
        let mut settings = settings.clone();
        settings.training.insert("phases".into(), phases.into());
        settings.training.entry("patience").or_insert(json!(0));
        Ok(settings)
    }
}

impl Entrant {
    /// A learner under settings, which are completed and checked.
    pub fn new(learner: &'static Learner, settings: &Settings) -> Result<Self> {
        let settings = (learner.settle)(settings)
            .map_err(|error| error.within(format!("learner `{}`", learner.name)))?;
        Ok(Self { label: learner.name.to_owned(), learner, settings, schedule: None })
    }

    /// A learner by a schedule.
    pub fn scheduled(
        learner: &'static Learner,
        settings: &Settings,
        schedule: Schedule,
        core: Option<&str>,
    ) -> Result<Self> {
        let entrant = Self::new(learner, &schedule.apply(settings, core)?)?;
        Ok(Self { label: format!("{} {schedule}", learner.name), schedule: Some(schedule), ..entrant })
    }
}

/// The names of `DEFAULT_LEARNERS` that the registry has.
pub fn default_learners() -> Vec<&'static str> {
    let known = |name: &&&str| LEARNERS.iter().any(|learner| learner.name == **name);
    DEFAULT_LEARNERS.iter().filter(known).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_phases() {
        let schedule: Schedule = "10, 5".parse().unwrap();
        assert_eq!(schedule.to_string(), "(10, 5)");
        let settings = schedule.apply(&Settings::default(), Some("core")).unwrap();
        let phases = json!([{ "epochs": 10 }, { "population": "core", "epochs": 5 }]);
        assert_eq!((&settings.training["phases"], &settings.training["patience"]), (&phases, &json!(0)));
        assert!(schedule.apply(&Settings::default(), None).is_err());
        for wrong in ["", "10", "0,0", "-1,2", "1,2,3", "a,b"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }
}
