//! The best settings as a file that `poul fit --config` takes: `[data]` as it was, `[model]` and `[training]` as found.

use std::path::Path;

use poul::tune::Tuning;
use poul::{Error, Result};
use serde_json::{Map, Value, json};

use crate::config::DataSettings;

/// The text of the file at `out`.
pub(super) fn settings_file(tuning: &Tuning, data: &DataSettings, out: &Path) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::other(format!("cannot write the settings: {error}"));
    let roles = serde_json::to_value(&data.roles).map_err(|error| failed(&error))?;
    let mut table = Map::new();
    table.extend(roles.as_object().cloned().unwrap_or_default());
    let path = |path: &Path| beside(path, out).map(Value::from);
    let policies = &data.policies;
    let files = [
        ("policies", &policies.policies),
        ("contexts", &policies.contexts),
        ("exposure_log", &policies.exposure_log),
        ("strata_table", &data.strata_table),
    ];
    for (name, file) in files {
        if let Some(file) = file {
            table.insert(name.to_owned(), path(file)?);
        }
    }
    table.insert("context_column".to_owned(), json!(policies.context_column));
    table.insert("shares".to_owned(), json!(data.shares));
    let baseline = data.baseline_data.iter().map(|location| path(Path::new(location)));
    table.insert("baseline_data".to_owned(), Value::Array(baseline.collect::<Result<_>>()?));
    table.insert("encoder".to_owned(), serde_json::to_value(&data.encoder).map_err(|error| failed(&error))?);

    let mut model = tuning.settings.model.clone();
    model.insert("learner".to_owned(), json!(tuning.learner));
    if let Some(preset) = &tuning.settings.preset {
        model.insert("preset".to_owned(), json!(preset));
    }
    let document = json!({ "data": table, "model": model, "training": tuning.settings.training });
    let document = without_nothing(document).unwrap_or_default();
    let table = toml::Table::try_from(&document).map_err(|error| failed(&error))?;
    let text = toml::to_string(&table).map_err(|error| failed(&error))?;
    let best = tuning.trials.iter().find(|trial| trial.number == tuning.best);
    let loss = best.and_then(|trial| trial.r_loss).map_or_else(String::new, |loss| format!("{loss:.6}"));
    let (number, n) = (tuning.best, tuning.trials.len());
    Ok(format!(
        "# Found by poul tune: trial {number} of {n}, validation R-loss {loss}, seed {}.\n\n{text}",
        tuning.seed
    ))
}

/// A path as the file at `out` must name it: relative paths in a settings file are relative to it.
fn beside(path: &Path, out: &Path) -> Result<String> {
    let is_here = out.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if is_here || path.is_absolute() {
        return Ok(path.to_string_lossy().into_owned());
    }
    let whole = std::path::absolute(path).map_err(|error| Error::read(path, error))?;
    Ok(whole.to_string_lossy().into_owned())
}

/// A value without nulls and without empty lists and tables, which a settings file leaves out.
fn without_nothing(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(values) if values.is_empty() => None,
        Value::Object(entries) => {
            let kept = entries.into_iter().filter_map(|(name, value)| Some((name, without_nothing(value)?)));
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_out_and_paths_are_relative_to_the_file() {
        let value = json!({ "a": null, "b": [], "c": { "d": null }, "e": { "f": 0, "g": [] } });
        assert_eq!(without_nothing(value), Some(json!({ "e": { "f": 0 } })));
        assert_eq!(beside(Path::new("p.toml"), Path::new("poul.toml")).unwrap(), "p.toml");
        let whole = beside(Path::new("p.toml"), Path::new("out/poul.toml")).unwrap();
        assert!(Path::new(&whole).is_absolute() && whole.ends_with("p.toml"));
    }
}
