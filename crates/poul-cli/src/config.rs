//! `poul.toml`: reads the `[data]` table, and names the line of what is wrong in it.

use std::path::Path;

use poul::data::Roles;
use poul::{Error, Kind, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

use crate::settings::DataSettings;

/// Settings beside the roles that `[data]` holds.
const BESIDE_ROLES: [&str; 5] = ["policies", "contexts", "exposure_log", "context_column", "shares"];

/// Reads the `[data]` table; `[model]` and `[training]` are for commands that fit.
pub(crate) fn read(path: &Path) -> Result<DataSettings> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::read(path, error))?;
    let file = File { path, text: &text };
    let root = DeTable::parse(&text).map_err(|error| file.wrong(&error, "not valid TOML: "))?;
    let mut settings = DataSettings::default();
    for (key, value) in root.into_inner() {
        match key.get_ref().as_ref() {
            "data" => settings = file.data(value)?,
            "model" | "training" => {}
            unknown => {
                let known = ["data", "model", "training"];
                let error = Error::unknown(Kind::Input, "table", unknown, "tables", known);
                return Err(file.at(error, key.span().start));
            }
        }
    }
    Ok(settings)
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn data(&self, table: Spanned<DeValue<'_>>) -> Result<DataSettings> {
        let span = table.span();
        let DeValue::Table(entries) = table.into_inner() else {
            return Err(self.at(Error::input("`data` must be a table"), span.start).hint("write `[data]`"));
        };
        let known = known_settings()?;
        let mut settings = DataSettings::default();
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
                "context_column" => settings.policies.context_column = Some(self.value(value)?),
                "shares" => {
                    let shares = self.value(value);
                    let hint = "write shares = { control = 0.5, T1 = 0.5 }";
                    settings.shares = shares.map_err(|error| error.hint(hint))?;
                }
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
        Ok(settings)
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
    Ok(roles.chain(BESIDE_ROLES.map(String::from)).collect())
}
