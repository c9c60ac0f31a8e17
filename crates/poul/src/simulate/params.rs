//! What to simulate: the settings, and their checked form.

use serde::{Deserialize, Serialize};

use super::ride_hailing;
use super::scenario::Scenario;
use crate::{Error, Result};

/// What to simulate. Defaults that depend on the scenario are `None`; [`check`](Self::check) fills them in.
///
/// ```
/// use poul::simulate::Simulation;
/// let valid = Simulation { scenario: "long-tail".into(), ..Simulation::default() }.check()?;
/// assert_eq!(valid.n_policies(), 200);
/// # Ok::<(), poul::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Simulation {
    /// Name of the scenario; `ride-hailing`. One of [`scenarios`](super::scenarios()).
    pub scenario: String,
    /// Rows of the training table; 20,000. At least 1.
    pub rows: u64,
    /// Rows of the test table; a quarter of `rows`. At least 1.
    pub test_rows: Option<u64>,
    /// Features of a unit; 100. At least those that the scenario names, such as 22 in `ride-hailing`; at most 20,000.
    pub features: Option<usize>,
    /// Policies, control included; as many as suit the scenario, such as 200 in `long-tail`. At least 2 (3 in
    /// `ride-hailing`, and at most 589); at most 20,000.
    pub policies: Option<usize>,
    /// Contexts; 12, unless the scenario fixes them. 1 to 1,000.
    pub contexts: Option<usize>,
    /// Actions, `none` included; 5, unless the scenario fixes them. 2 to 1,000.
    pub actions: Option<usize>,
    /// Size of the noise. In `ride-hailing`, the standard deviation of the logarithm of an active user's GMV; 0.7.
    /// In the others, the standard deviation of the noise over that of the effects; 2. From 0 to 1,000 (to 3 in
    /// `ride-hailing`).
    pub noise: Option<f64>,
    /// Test rows, from the first, whose true effects are written; all, but at most five million pairs of a row and
    /// a policy. At least 1.
    pub truth_rows: Option<u64>,
    /// Seed of everything random; 3407.
    pub seed: u64,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            scenario: ride_hailing::SCENARIO.name.to_string(),
            rows: 20_000,
            test_rows: None,
            features: None,
            policies: None,
            contexts: None,
            actions: None,
            noise: None,
            truth_rows: None,
            seed: 3407,
        }
    }
}

/// A [`Simulation`] whose settings are complete and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    pub(super) scenario: &'static Scenario,
    pub(super) n_train: u64,
    pub(super) n_test: u64,
    pub(super) n_truth: u64,
    pub(super) n_features: usize,
    pub(super) n_policies: usize,
    pub(super) n_contexts: usize,
    pub(super) n_actions: usize,
    pub(super) noise: f64,
    pub(super) seed: u64,
}

/// Pairs of a row and a policy whose truth is written unless more are asked for.
pub(super) const TRUTH_PAIRS: u64 = 5_000_000;

impl Simulation {
    /// Completes the settings; every one that is out of range is a usage error.
    pub fn check(&self) -> Result<Valid> {
        let scenario = Scenario::named(&self.scenario)?;
        let Scenario { name, policy_range, fixed, max_noise, .. } = *scenario;
        let context_range = fixed.map_or((1, 1_000), |(n, _)| (n, n));
        let action_range = fixed.map_or((2, 1_000), |(_, n)| (n, n));
        let (default_contexts, default_actions) = fixed.unwrap_or((12, 5));

        let n_train = in_range("rows", self.rows, (1, 1 << 40), name)?;
        let n_test =
            in_range("test_rows", self.test_rows.unwrap_or((n_train / 4).max(1)), (1, 1 << 40), name)?;
        let n_policies =
            in_range("policies", self.policies.unwrap_or(scenario.n_policies), policy_range, name)?;
        let affordable = (TRUTH_PAIRS / n_policies as u64).max(1);
        let n_truth = match self.truth_rows {
            Some(rows) => in_range("truth_rows", rows, (1, n_test), name)?,
            None => n_test.min(affordable),
        };
        let valid = Valid {
            scenario,
            n_train,
            n_test,
            n_truth,
            n_features: in_range(
                "features",
                self.features.unwrap_or(100),
                (scenario.min_features, 20_000),
                name,
            )?,
            n_policies,
            n_contexts: in_range("contexts", self.contexts.unwrap_or(default_contexts), context_range, name)?,
            n_actions: in_range("actions", self.actions.unwrap_or(default_actions), action_range, name)?,
            noise: self.noise.unwrap_or(scenario.noise),
            seed: self.seed,
        };
        if !(0.0..=max_noise).contains(&valid.noise) {
            let what = format!("`noise` is {}: it must be from 0 to {max_noise} in `{name}`", valid.noise);
            return Err(Error::usage(what).hint("leave it out for the default"));
        }
        if valid.n_policies * valid.n_contexts * valid.n_actions > 100_000_000 {
            let error = Error::usage("`policies` × `contexts` × `actions` is over 100 million");
            return Err(error.hint("make one of them smaller"));
        }
        Ok(valid)
    }
}

impl Valid {
    /// The settings in full, as a world is kept.
    pub(super) fn settings(&self) -> Simulation {
        let is_fixed = self.scenario.fixed.is_some();
        Simulation {
            scenario: self.scenario.name.to_owned(),
            rows: self.n_train,
            test_rows: Some(self.n_test),
            features: Some(self.n_features),
            policies: Some(self.n_policies),
            contexts: (!is_fixed).then_some(self.n_contexts),
            actions: (!is_fixed).then_some(self.n_actions),
            noise: Some(self.noise),
            truth_rows: Some(self.n_truth),
            seed: self.seed,
        }
    }

    /// Policies, control included.
    pub fn n_policies(&self) -> usize {
        self.n_policies
    }

    /// Features of a unit.
    pub fn n_features(&self) -> usize {
        self.n_features
    }
}

fn in_range<N: PartialOrd + std::fmt::Display + Copy>(
    setting: &str,
    value: N,
    (least, most): (N, N),
    scenario: &str,
) -> Result<N> {
    if value >= least && value <= most {
        return Ok(value);
    }
    let allowed = if least == most { format!("{least}") } else { format!("from {least} to {most}") };
    let error = Error::usage(format!("`{setting}` is {value}: it must be {allowed} in `{scenario}`"));
    Err(error.hint("leave it out for the default"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::simulate::scenario::SCENARIOS;

    fn simulation(scenario: &str) -> Simulation {
        Simulation { scenario: scenario.into(), ..Simulation::default() }
    }

    #[test]
    fn every_scenario_has_its_name_and_defaults() {
        for scenario in SCENARIOS {
            let valid = simulation(scenario.name).check().unwrap();
            assert_eq!((valid.scenario, valid.n_policies), (*scenario, scenario.n_policies));
            assert_eq!((valid.n_train, valid.n_test, valid.n_features), (20_000, 5_000, 100));
        }
    }

    #[test]
    fn wrong_settings_are_usage_errors_that_name_the_setting() {
        let base = simulation("long-tail");
        let wrong = [
            ("rows", Simulation { rows: 0, ..base.clone() }),
            ("test_rows", Simulation { test_rows: Some(0), ..base.clone() }),
            ("truth_rows", Simulation { truth_rows: Some(6_000), ..base.clone() }),
            ("features", Simulation { features: Some(7), ..base.clone() }),
            ("features", Simulation { features: Some(21), ..simulation("ride-hailing") }),
            ("policies", Simulation { policies: Some(1), ..base.clone() }),
            ("policies", Simulation { policies: Some(2), ..simulation("ride-hailing") }),
            ("contexts", Simulation { contexts: Some(12), ..simulation("ride-hailing") }),
            ("contexts", Simulation { contexts: Some(0), ..base.clone() }),
            ("actions", Simulation { actions: Some(1), ..base.clone() }),
            ("noise", Simulation { noise: Some(-1.0), ..base.clone() }),
            ("noise", Simulation { noise: Some(f64::NAN), ..base.clone() }),
        ];
        for (setting, simulation) in wrong {
            let error = simulation.check().unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
            assert!(error.to_string().starts_with(&format!("`{setting}` is")), "{error}");
        }
    }

    #[test]
    fn an_unknown_scenario_suggests_the_nearest() {
        let error = simulation("longtail").check().unwrap_err();
        assert_eq!(error.to_string(), "unknown scenario `longtail`");
        assert_eq!(error.hint_text(), Some("did you mean `long-tail`?"));
    }

    #[test]
    fn truth_is_bounded_unless_asked_for() {
        let large = Simulation { rows: 4_000_000, ..simulation("long-tail") };
        assert_eq!(large.check().unwrap().n_truth, 25_000);
        let all = Simulation { truth_rows: Some(1_000_000), ..large };
        assert_eq!(all.check().unwrap().n_truth, 1_000_000);
    }

    #[test]
    fn settings_come_from_toml() {
        let read: Simulation = toml::from_str("scenario = \"stratified\"\nrows = 10\nnoise = 1.5").unwrap();
        assert_eq!(read.noise, Some(1.5));
        assert_eq!(read.seed, 3407);
        assert!(toml::from_str::<Simulation>("row = 10").is_err());
    }
}
