//! Flags and `poul.toml` merged into settings; flags win.

use std::collections::BTreeMap;

use poul::data::{Budget, Design, ExposureRole, ExposureScale, Roles, Source};
use poul::effect::Settings;
use poul::model::DEFAULT_LEARNER;
use poul::policy::{ContextWeights, PolicySet, exposure_weights};
use poul::{Error, Result};

use serde_json::{Map, Value};

use crate::args::{self, Common, Fit, NuisanceArgs, PolicyArgs, RoleArgs};
use crate::config::{self, DataSettings, PolicySource};

impl DataSettings {
    /// Reads the configuration file, if one is named, and lays the flags over it.
    pub(crate) fn load(roles: &RoleArgs, policy: &PolicyArgs) -> Result<Self> {
        Self::load_over(Roles::default(), roles, policy)
    }

    /// As [`load`](Self::load), with other defaults for the roles where no configuration file is named.
    pub(crate) fn load_over(defaults: Roles, roles: &RoleArgs, policy: &PolicyArgs) -> Result<Self> {
        let mut settings = match &roles.config {
            Some(path) => config::read(path)?,
            None => Self { roles: defaults, ..Self::default() },
        };
        settings.lay_over(roles)?;
        settings.policies.lay_over(policy);
        Ok(settings)
    }

    fn lay_over(&mut self, args: &RoleArgs) -> Result<()> {
        let roles = &mut self.roles;
        if !args.treatment_columns.is_empty() {
            roles.treatment_columns.clone_from(&args.treatment_columns);
            roles.treatment = None;
        }
        if args.treatment.is_some() {
            roles.treatment_columns.clear();
        }
        take(&mut roles.treatment, &args.treatment);
        take(&mut roles.control, &args.control);
        take(&mut roles.weight, &args.weight);
        take(&mut roles.cluster, &args.cluster);
        take(&mut roles.stratum, &args.stratum);
        take(&mut roles.propensity, &args.propensity);
        take(&mut roles.population, &args.population);
        take(&mut roles.time, &args.time);
        take_all(&mut roles.outcome, &args.outcome);
        take_all(&mut roles.auxiliary, &args.auxiliary);
        take_all(&mut roles.features, &args.features);
        take_all(&mut roles.exclude, &args.exclude);
        take_all(&mut roles.id, &args.id);
        for entry in &args.prediction {
            let (outcome, column) = split(entry, "--prediction", "OUTCOME=COL")?;
            roles.prediction.insert(outcome.to_string(), column.to_string());
        }
        if let Some(exposure) = ExposureRole::from_entries(&args.exposure)? {
            roles.exposure = Some(exposure);
        }
        if let Some(scale) = args.exposure_scale {
            roles.exposure_scale = match scale {
                args::ExposureScale::Share => ExposureScale::Share,
                args::ExposureScale::Total => ExposureScale::Total,
            };
        }
        if let Some(design) = args.design {
            roles.design = match design {
                args::Design::Randomized => Design::Randomized,
                args::Design::Stratified => Design::Stratified,
                args::Design::Observational => Design::Observational,
            };
        }
        Ok(())
    }

    /// Opens the tables of stage 1, flags before the file: the baseline data, and the table of strata.
    pub(crate) fn nuisance_tables(&self, args: &NuisanceArgs) -> Result<(Vec<Source>, Option<Source>)> {
        let baseline = match args.baseline_data.as_slice() {
            [] => &self.baseline_data,
            typed => typed,
        };
        let baseline = baseline.iter().map(Source::open_path).collect::<Result<_>>()?;
        let table = args.strata_table.as_ref().or(self.strata_table.as_ref());
        let table = table.map(Source::open_path).transpose()?;
        Ok((baseline, table))
    }

    /// Adds `POLICY=SHARE` flags.
    pub(crate) fn declare_shares(&mut self, entries: &[String]) -> Result<()> {
        if !entries.is_empty() {
            self.shares.clear();
        }
        for entry in entries {
            let (policy, share) = split(entry, "--shares", "POLICY=SHARE")?;
            let share: f64 = share.trim().parse().map_err(|_| {
                Error::usage(format!("--shares: `{share}` is not a number"))
                    .hint("write --shares control=0.5,T1=0.5")
            })?;
            if self.shares.insert(policy.trim().to_string(), share).is_some() {
                return Err(Error::usage(format!("--shares names `{policy}` twice")));
            }
        }
        Ok(())
    }
}

impl PolicySource {
    pub(crate) fn from_args(args: &PolicyArgs) -> Self {
        let mut source = Self::default();
        source.lay_over(args);
        source
    }

    fn lay_over(&mut self, args: &PolicyArgs) {
        take(&mut self.policies, &args.policies);
        take(&mut self.contexts, &args.contexts);
        take(&mut self.exposure_log, &args.exposure_log);
        take(&mut self.context_column, &args.context_column);
    }

    /// The policies of the file, with weights from the exposure log if one is given; `None` without a file.
    pub(crate) fn read(&self) -> Result<Option<PolicySet>> {
        let Some(path) = &self.policies else {
            return Ok(None);
        };
        let policies = PolicySet::read(path, self.contexts.as_deref())?;
        Ok(Some(match self.weights()? {
            Some(weights) if self.exposure_log.is_some() => {
                let weighted = policies.with_weights(&ContextWeights::from_map(&weights));
                weighted.map_err(|error| match &self.exposure_log {
                    Some(log) => error.file(log),
                    None => error,
                })?
            }
            _ => policies,
        }))
    }

    /// The policies of the file laid beside `own`, whose contexts and weights hold; `None` without a file.
    pub(crate) fn read_beside(&self, own: &PolicySet) -> Result<Option<PolicySet>> {
        if self.exposure_log.is_some() {
            return Err(Error::usage(
                "the contexts of a model have weights: --exposure-log cannot change them",
            )
            .hint("leave it out, or fit again with it"));
        }
        match &self.policies {
            Some(path) => own.read_beside(path, self.contexts.as_deref()).map(Some),
            None => Ok(None),
        }
    }

    /// The policies of the file.
    pub(crate) fn require(&self) -> Result<PolicySet> {
        let missing = || Error::usage("no policy file is named").hint("name it: --policies policies.toml");
        self.read()?.ok_or_else(missing)
    }

    /// Context weights from the log or the weights file, for policies that come from the data.
    pub(crate) fn weights(&self) -> Result<Option<BTreeMap<String, f64>>> {
        match (&self.exposure_log, &self.contexts) {
            (Some(log), _) => exposure_weights(log, self.context_column.as_deref()).map(Some),
            (None, Some(file)) => exposure_weights(file, None).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The learner that `[model]` names, if it does, and the settings of `[model]` and `[training]`.
pub(crate) fn file_learner(file: &Settings) -> Result<(Option<String>, Settings)> {
    let mut settings = file.clone();
    let mut text_of = |key: &str| match settings.model.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::usage(format!("`{key}` must be a text")).at("[model]")),
    };
    let (learner, preset) = (text_of("learner")?, text_of("preset")?);
    settings.preset = preset;
    Ok((learner, settings))
}

/// The settings of one learner among several: `[learners.NAME]`, over `[model]` and `[training]` where those are of it.
pub(crate) fn of_learner(data: &DataSettings, name: &str) -> Result<Settings> {
    let (named, shared) = file_learner(&data.learner)?;
    let own = data.learners.get(name).cloned().unwrap_or_default();
    let mut settings = match named.as_deref().unwrap_or(DEFAULT_LEARNER) == name {
        true => own.over(&shared),
        false => own,
    };
    if name == poul::learn::stack::NAME {
        stack(&mut settings, &data.learners)?;
    }
    Ok(settings)
}

/// The learner's name, if one is given, and its settings: the tables of the configuration file under the flags.
pub(crate) fn learner(args: &Fit, file: &Settings) -> Result<(Option<String>, Settings)> {
    let (learner, mut settings) = file_learner(file)?;
    settings.preset = args.preset.clone().or(settings.preset);
    let mut model =
        |key: &str, value: Option<Value>| value.map(|value| settings.model.insert(key.into(), value));
    model("of", (!args.of.is_empty()).then(|| args.of.clone().into()));
    model("members", args.members.map(Value::from));
    model("outcome_model", args.nuisance.outcome_model.map(|kind| kind.name().into()));
    let mut training =
        |key: &str, value: Option<Value>| value.map(|value| settings.training.insert(key.into(), value));
    training("epochs", args.epochs.map(Value::from));
    training("clip", args.nuisance.clip.map(Value::from));
    training("folds", args.folds.map(Value::from));
    training("learning_rate", args.learning_rate.map(Value::from));
    Ok((args.learner.clone().or(learner), settings))
}

/// The settings of a stack: those of its members are `[learners.NAME]`, where `[model]` does not have them itself.
pub(crate) fn stack(settings: &mut Settings, learners: &BTreeMap<String, Settings>) -> Result<()> {
    let failed = |error| Error::other(format!("cannot read the settings of members: {error}")).source(error);
    let complete = (poul::model::learner(poul::learn::stack::NAME)?.settle)(settings)?;
    let of: Vec<&str> = complete
        .model
        .get("of")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut members = match settings.model.remove("learners") {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    for (name, own) in learners.iter().filter(|(name, _)| of.contains(&name.as_str())) {
        if !members.contains_key(name) {
            members.insert(name.clone(), serde_json::to_value(own).map_err(failed)?);
        }
    }
    if !members.is_empty() {
        settings.model.insert("learners".into(), Value::Object(members));
    }
    Ok(())
}

/// The memory budget asked for.
pub(crate) fn budget(common: &Common) -> Result<Budget> {
    match &common.memory {
        Some(text) => text.parse(),
        None => Ok(Budget::default()),
    }
}

/// Splits `NAME=VALUE` at the first `=`.
pub(crate) fn split<'a>(entry: &'a str, flag: &str, form: &str) -> Result<(&'a str, &'a str)> {
    entry
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| Error::usage(format!("{flag}: `{entry}` is not of the form {form}")))
}

fn take<T: Clone>(setting: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        setting.clone_from(flag);
    }
}

fn take_all(setting: &mut Vec<String>, flag: &[String]) {
    if !flag.is_empty() {
        *setting = flag.to_vec();
    }
}
