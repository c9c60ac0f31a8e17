//! `poul.toml`: what stands in it, and the line of what is wrong in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use poul::data::{EncoderParams, Roles};
use poul::effect::Settings;
use poul::{Error, Kind, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

/// What stands in `poul.toml`, with flags laid over it where there are any.
#[derive(Default)]
pub(crate) struct DataSettings {
    pub(crate) roles: Roles,
    pub(crate) policies: PolicySource,
    /// Declared assignment shares.
    pub(crate) shares: BTreeMap<String, f64>,
    /// Tables of rows without a treatment.
    pub(crate) baseline_data: Vec<String>,
    /// π(t | stratum) as it was designed.
    pub(crate) strata_table: Option<PathBuf>,
    /// How features are encoded: `[data.encoder]`.
    pub(crate) encoder: EncoderParams,
    /// `[model]` and `[training]`.
    pub(crate) learner: Settings,
    /// `[learners.NAME.model]` and `[learners.NAME.training]`.
    pub(crate) learners: BTreeMap<String, Settings>,
    /// `[compare]`, for that command to judge.
    pub(crate) compare: Map<String, Value>,
    /// `[tune]`, for that command to judge.
    pub(crate) tune: Map<String, Value>,
}

/// Where the policies are defined, if anywhere.
#[derive(Default)]
pub(crate) struct PolicySource {
    pub(crate) policies: Option<PathBuf>,
    pub(crate) contexts: Option<PathBuf>,
    pub(crate) exposure_log: Option<PathBuf>,
    pub(crate) context_column: Option<String>,
}

/// Settings beside the roles that `[data]` holds.
const BESIDE_ROLES: [&str; 8] = [
    "policies",
    "contexts",
    "exposure_log",
    "context_column",
    "shares",
    "baseline_data",
    "strata_table",
    "encoder",
];

/// Reads all tables. What stands under `[model]` and `[training]` is for the learner to judge.
pub(crate) fn read(path: &Path) -> Result<DataSettings> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::read(path, error))?;
    let file = File { path, text: &text };
    let root = DeTable::parse(&text).map_err(|error| file.wrong(&error, "not valid TOML: "))?;
    let mut settings = DataSettings::default();
    for (key, value) in root.into_inner() {
        match key.get_ref().as_ref() {
            "data" => file.data(value, &mut settings)?,
            "model" => settings.learner.model = file.table("model", value)?,
            "training" => settings.learner.training = file.table("training", value)?,
            "learners" => settings.learners = file.learners(value)?,
            "compare" => settings.compare = file.table("compare", value)?,
            "tune" => settings.tune = file.table("tune", value)?,
            unknown => {
                let known = ["data", "model", "training", "learners", "compare", "tune"];
                let error = Error::unknown(Kind::Input, "table", unknown, "tables", known);
                return Err(file.at(error, key.span().start));
            }
        }
    }
    Ok(settings)
}

/// A list, or a single name for a list of one.
struct OneOrMany(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a name or a list of names")]
        enum Either {
            One(String),
            Many(Vec<String>),
        }
        Ok(Self(match Either::deserialize(deserializer)? {
            Either::One(name) => vec![name],
            Either::Many(names) => names,
        }))
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn table(&self, name: &str, table: Spanned<DeValue<'_>>) -> Result<Map<String, Value>> {
        let start = table.span().start;
        match table.get_ref() {
            DeValue::Table(_) => self.value(table),
            _ => {
                let error = self.at(Error::input(format!("`{name}` must be a table")), start);
                Err(error.hint(format!("write `[{name}]`")))
            }
        }
    }

    /// `[learners.NAME.model]` and `[learners.NAME.training]`.
    fn learners(&self, table: Spanned<DeValue<'_>>) -> Result<BTreeMap<String, Settings>> {
        let start = table.span().start;
        let mut learners = BTreeMap::new();
        for (name, value) in self.table("learners", table)? {
            let place = |error: Error| self.at(error, start).at(format!("[learners.{name}]"));
            poul::model::learner(&name).map_err(place)?;
            let entries = value.as_object().into_iter().flatten();
            for (key, value) in entries {
                let fits = match key.as_str() {
                    "preset" => value.is_string(),
                    "model" | "training" => value.is_object(),
                    _ => false,
                };
                if !fits {
                    let error = place(Error::input(format!("`{key}` does not belong here")));
                    let hint = format!(
                        "settings stand under [learners.{name}.model] and [learners.{name}.training]"
                    );
                    return Err(error.hint(hint));
                }
            }
            let settings = Settings::deserialize(value);
            learners.insert(name.clone(), settings.map_err(|error| place(Error::input(error.to_string())))?);
        }
        Ok(learners)
    }

    fn data(&self, table: Spanned<DeValue<'_>>, settings: &mut DataSettings) -> Result<()> {
        let span = table.span();
        let DeValue::Table(entries) = table.into_inner() else {
            return Err(self.at(Error::input("`data` must be a table"), span.start).hint("write `[data]`"));
        };
        let known = known_settings()?;
        let mut roles = DeTable::new();
        // File names in a configuration file are relative to it.
        let folder = self.path.parent().unwrap_or(Path::new(""));
        for (key, value) in entries {
            match key.get_ref().replace('-', "_").as_str() {
                "policies" => settings.policies.policies = Some(folder.join(self.value::<String>(value)?)),
                "contexts" => settings.policies.contexts = Some(folder.join(self.value::<String>(value)?)),
                "exposure_log" => {
                    settings.policies.exposure_log = Some(folder.join(self.value::<String>(value)?));
                }
                "strata_table" => settings.strata_table = Some(folder.join(self.value::<String>(value)?)),
                "baseline_data" => {
                    let OneOrMany(locations) = self.value(value)?;
                    let beside = |location: String| folder.join(location).to_string_lossy().into_owned();
                    settings.baseline_data = locations.into_iter().map(beside).collect();
                }
                "context_column" => settings.policies.context_column = Some(self.value(value)?),
                "shares" => {
                    let shares = self.value(value);
                    let hint = "write shares = { control = 0.5, T1 = 0.5 }";
                    settings.shares = shares.map_err(|error| error.hint(hint))?;
                }
                "encoder" => settings.encoder = self.value(value)?,
                name if known.iter().any(|known| known == name) => {
                    roles.insert(key, value);
                }
                _ => {
                    let (name, known) = (key.get_ref(), known.iter().map(String::as_str));
                    let error = Error::unknown(Kind::Input, "setting", name, "settings", known);
                    return Err(self.at(error, key.span().start).at("[data]"));
                }
            }
        }
        let roles = Roles::deserialize(Deserializer::from(Spanned::new(span, roles)));
        settings.roles = roles.map_err(|error| self.wrong(&error, ""))?;
        Ok(())
    }

    fn value<T: DeserializeOwned>(&self, value: Spanned<DeValue<'_>>) -> Result<T> {
        T::deserialize(ValueDeserializer::from(value)).map_err(|error| self.wrong(&error, ""))
    }

    fn wrong(&self, error: &toml::de::Error, before: &str) -> Error {
        let wrong = Error::input(format!("{before}{}", error.message()));
        match error.span() {
            Some(span) => self.at(wrong, span.start),
            None => wrong.file(self.path),
        }
    }

    fn at(&self, error: Error, byte: usize) -> Error {
        let before = self.text.get(..byte).unwrap_or_default();
        error.file(self.path).at(format!("line {}", 1 + before.matches('\n').count()))
    }
}

/// The names of all settings under `[data]`, as the library spells them.
fn known_settings() -> Result<Vec<String>> {
    let roles = serde_json::to_value(Roles::default());
    let roles = roles.map_err(|error| Error::other(format!("cannot list the settings: {error}")))?;
    let roles = roles.as_object().into_iter().flat_map(|roles| roles.keys().cloned());
    // Those that are stored only where they are given.
    let roles = roles.chain(["auxiliary", "exposure", "exposure_scale"].map(String::from));
    Ok(roles.chain(BESIDE_ROLES.map(String::from)).collect())
}
