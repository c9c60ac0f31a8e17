//! The tables of learners: each learner's own, and `[model]` and `[training]`, which are of whichever is named.

use std::collections::BTreeMap;

use poul::effect::Settings;
use poul::model::{LEARNERS, Learner};
use poul::{Error, Result};
use serde_json::{Map, Value, json};

use super::meaning::meaning;

/// A definition for each learner, and `learners` of them all.
pub(super) fn definitions() -> Result<Map<String, Value>> {
    let mut definitions = Map::new();
    let mut by_name = Map::new();
    for learner in LEARNERS {
        definitions.insert(learner.name.into(), own(learner)?);
        by_name.insert(learner.name.into(), json!({ "$ref": format!("#/definitions/{}", learner.name) }));
    }
    let learners = json!({
        "description": "Settings of learners by name, for compare and for members of a stack",
        "type": "object",
        "properties": by_name,
        "additionalProperties": false,
    });
    definitions.insert("learners".into(), learners);
    Ok(definitions)
}

/// `[learners.NAME]`.
fn own(learner: &Learner) -> Result<Value> {
    let defaults = (learner.settle)(&Settings::default())?;
    let mut properties = Map::new();
    if presets(learner) {
        properties.insert("preset".into(), preset());
    }
    for (table, entries) in [("model", &defaults.model), ("training", &defaults.training)] {
        let mut settings = Map::new();
        for (name, default) in entries {
            settings.insert(name.clone(), setting(learner.name, table, name, default)?);
        }
        let of_table = json!({ "type": "object", "properties": settings, "additionalProperties": false });
        properties.insert(table.into(), of_table);
    }
    Ok(json!({
        "description": learner.summary,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    }))
}

/// `[model]` or `[training]`: the settings of all learners.
pub(super) fn any(table: &str) -> Result<Map<String, Value>> {
    let mut forms: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for learner in LEARNERS {
        let own = own(learner)?;
        for (name, form) in own["properties"][table]["properties"].as_object().into_iter().flatten() {
            let mut form = form.clone();
            // Learners have defaults of their own.
            form.as_object_mut().map(|form| form.remove("default"));
            let known = forms.entry(name.clone()).or_default();
            if !known.contains(&form) {
                known.push(form);
            }
        }
    }
    let united = forms.into_iter().map(|(name, mut forms)| match forms.len() {
        1 => (name, forms.remove(0)),
        _ => (name, json!({ "anyOf": forms })),
    });
    Ok(united.collect())
}

/// The named sets of defaults.
pub(super) fn preset() -> Value {
    json!({ "description": "Named set of defaults", "type": "string", "enum": ["paper"] })
}

fn presets(learner: &Learner) -> bool {
    (learner.settle)(&Settings { preset: Some("paper".into()), ..Settings::default() }).is_ok()
}

/// One setting: its type by its default, and what is known of it.
fn setting(learner: &str, table: &str, name: &str, default: &Value) -> Result<Value> {
    let Some((_, says, values)) = meaning(learner, &format!("{table}.{name}")) else {
        return Err(Error::other(format!("the setting `{table}.{name}` of `{learner}` has no description")));
    };
    let mut form = values.keywords();
    if form.get("$ref").is_some() {
        return Ok(form);
    }
    let kind = match default {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        _ => "object",
    };
    form["description"] = Value::from(*says);
    form["type"] = Value::from(kind);
    if kind == "integer" && form.get("minimum").is_none() {
        form["minimum"] = Value::from(0);
    }
    form["default"] = short(default);
    Ok(form)
}

/// A number of single precision as it was written: 0.001, not 0.0010000000474974513.
fn short(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if value.is_f64() && f64::from(number as f32) == number => {
            (number as f32).to_string().parse::<f64>().map_or(value.clone(), Value::from)
        }
        _ => value.clone(),
    }
}
