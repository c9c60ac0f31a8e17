//! What is wrong with a setting: its name, its value, and what it must be.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::nearest_name;
use crate::{Error, Kind, Result};

/// A setting that cannot have this value; `said` is what the reader of JSON says of it.
///
/// ```
/// let said = "invalid value: integer `-1`, expected usize";
/// let error = poul::effect::wrong_value("epochs", &(-1).into(), said);
/// assert_eq!(error.to_string(), "`epochs` is -1: must be a whole number of at least 0");
/// ```
pub fn wrong_value(name: &str, value: &Value, said: &str) -> Error {
    let is_inside = said.starts_with("unknown field") || said.starts_with("missing field");
    let Some((_, expected)) = said.split_once(", expected ").filter(|_| !is_inside) else {
        return Error::usage(format!("`{name}`: {said}"));
    };
    let (one, several) = match expected {
        "usize" | "u64" | "u32" => ("a whole number of at least 0", "whole numbers of at least 0"),
        "f64" | "f32" => ("a number", "numbers"),
        "a boolean" => ("true or false", "true or false"),
        "a string" => ("a text", "texts"),
        "a sequence" => ("a list", "lists"),
        "a map" => ("a table", "tables"),
        // A struct of the library has a name that says nothing here.
        other if other.starts_with("struct ") => ("a table", "tables"),
        other => (other, other),
    };
    let must = match value {
        Value::Array(_) if one != "a list" => format!("must hold {several}"),
        _ => format!("must be {one}"),
    };
    let error = Error::usage(format!("`{name}` is {value}: {must}"));
    let choices = between_ticks(expected);
    match value.as_str().and_then(|text| nearest_name(text, &choices)) {
        Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
        None => error,
    }
}

/// A setting that a table does not have.
pub(crate) fn unknown_setting(table: &str, name: &str, known: &[&str]) -> Error {
    let error = Error::unknown(Kind::Usage, "setting", name, "settings here", known.iter().copied());
    error.at(format!("[{table}]"))
}

/// A table of settings as a type that refuses names it does not have.
pub(super) fn read_table<T: DeserializeOwned>(table: &str, entries: &Map<String, Value>) -> Result<T> {
    let read = |entries: Map<String, Value>| serde_json::from_value::<T>(Value::Object(entries));
    read(entries.clone()).map_err(|error| {
        // The reader does not say which entry it is about: it is the one that cannot be read alone either.
        let alone = entries.iter().find_map(|(name, value)| {
            let entry = Map::from_iter([(name.clone(), value.clone())]);
            Some((name, value, read(entry).err()?.to_string()))
        });
        match alone {
            Some((name, _, said)) if said.starts_with(&format!("unknown field `{name}`")) => {
                let known =
                    said.split_once(", expected ").map_or(Vec::new(), |(_, known)| between_ticks(known));
                unknown_setting(table, name, &known)
            }
            Some((name, value, said)) => wrong_value(name, value, &said),
            None => Error::usage(error.to_string()).at(format!("[{table}]")),
        }
    })
}

/// The names that stand between backticks.
fn between_ticks(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Embedding {
        #[default]
        Lookup,
        Additive,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Phase {
        epochs: usize,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Net {
        epochs: usize,
        hidden: Vec<usize>,
        dropout: f32,
        skip: bool,
        embedding: Embedding,
        phases: Vec<Phase>,
    }

    #[test]
    fn settings_are_named_with_their_value_and_what_they_must_be() {
        let told = |name: &str, value: Value| {
            let entries = Map::from_iter([("dropout".to_owned(), json!(0.5)), (name.to_owned(), value)]);
            read_table::<Net>("training", &entries).unwrap_err().to_string()
        };
        for (name, value, expected) in [
            ("epochs", json!(-1), "`epochs` is -1: must be a whole number of at least 0"),
            ("epochs", json!(2.5), "`epochs` is 2.5: must be a whole number of at least 0"),
            ("epochs", json!("x"), "`epochs` is \"x\": must be a whole number of at least 0"),
            ("hidden", json!([16, -1]), "`hidden` is [16,-1]: must hold whole numbers of at least 0"),
            ("hidden", json!(16), "`hidden` is 16: must be a list"),
            ("dropout", json!("x"), "`dropout` is \"x\": must be a number"),
            ("skip", json!(1), "`skip` is 1: must be true or false"),
            ("embedding", json!("aditive"), "`embedding` is \"aditive\": must be `lookup` or `additive`"),
            ("phases", json!([{ "x": 1 }]), "`phases`: unknown field `x`, expected `epochs`"),
            ("epoch", json!(1), "[training]: unknown setting `epoch`"),
        ] {
            assert_eq!(told(name, value), expected);
        }
        let hint = |name: &str, value: Value| {
            let error = read_table::<Net>("model", &Map::from_iter([(name.to_owned(), value)])).unwrap_err();
            error.hint_text().map(str::to_owned)
        };
        assert_eq!(hint("embedding", json!("aditive")).as_deref(), Some("did you mean `additive`?"));
        assert_eq!(hint("epoch", json!(1)).as_deref(), Some("did you mean `epochs`?"));
        assert_eq!(hint("epochs", json!(-1)), None);
    }
}
