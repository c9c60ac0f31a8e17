//! The schema of `poul.toml`.

use poul::Result;
use poul::data::{Design, EncoderParams};
use poul::model::LEARNERS;
use serde_json::{Map, Value, json};

use super::{DRAFT, learners};

/// The settings file.
pub(crate) fn config() -> Result<Value> {
    let names: Vec<&str> = LEARNERS.iter().map(|learner| learner.name).collect();
    let mut model = learners::any("model")?;
    let learner = json!({ "description": "The learner", "type": "string", "enum": names, "default": "poul" });
    model.insert("learner".into(), learner);
    model.insert("preset".into(), learners::preset());
    Ok(json!({
        "$schema": DRAFT,
        "title": "Settings of POUL (poul.toml)",
        "type": "object",
        "definitions": learners::definitions()?,
        "properties": {
            "data": table("Which column is what, and where policies are defined", data()),
            "model": table("What is learned", model),
            "training": table("How it is learned", learners::any("training")?),
            "learners": { "$ref": "#/definitions/learners" },
            "compare": table("How learners are compared", compare()),
            "tune": tune(),
        },
        "additionalProperties": false,
    }))
}

fn table(says: &str, properties: Map<String, Value>) -> Value {
    json!({ "description": says, "type": "object", "properties": properties, "additionalProperties": false })
}

/// `[data]`: names with an underscore may be written with a hyphen.
fn data() -> Map<String, Value> {
    let column = |says: &str| json!({ "description": says, "type": "string" });
    let columns = |says: &str| json!({ "description": says, "type": ["string", "array"], "items": { "type": "string" } });
    let by_name = |says: &str, value: Value| json!({ "description": says, "type": "object", "additionalProperties": value });
    let text = || json!({ "type": "string" });
    let mut settings = Map::new();
    for (name, form) in [
        ("treatment", column("Column that names each row's policy [default: policy]")),
        ("treatment_columns", columns("Factorial treatment: each column is a context, each value an action")),
        ("outcome", columns("What happened: one or more columns")),
        ("auxiliary", columns("Outcomes that only help the others to learn who responds")),
        ("control", column("The policy that others are compared with [default: control]")),
        ("features", columns("Names or globs of features [default: every column without another role]")),
        ("exclude", columns("Names or globs of columns that are not features")),
        ("weight", column("Sample weights")),
        ("cluster", column("Units assigned together: split, permuted and resampled as one")),
        ("stratum", column("Strata within which policies were assigned")),
        ("propensity", column("Glob of columns with each policy's assignment probability")),
        ("prediction", by_name("For an outcome, the column with your own prediction of it", text())),
        (
            "exposure",
            json!({
                "description": "How much each row meets each context: a glob whose * is the context, or the column of each context",
                "type": ["string", "object"],
                "additionalProperties": { "type": "string" },
            }),
        ),
        (
            "exposure_scale",
            json!({
                "description": "What a row's exposures are divided by: their sum, or the mean sum of all rows",
                "type": "string",
                "enum": ["share", "total"],
                "default": "share",
            }),
        ),
        ("population", column("Rows to keep, such as 'core = 1 and city != \"Rome\"'")),
        ("time", column("Time column; not a feature")),
        ("id", columns("Columns that identify a row; not features")),
        (
            "design",
            json!({
                "description": "How policies were assigned",
                "type": "string",
                "enum": Design::NAMES,
                "default": Design::default().name(),
            }),
        ),
        ("policies", column("Policy file, relative to this file")),
        ("contexts", column("Context weights: a table `context,weight`, relative to this file")),
        ("exposure_log", column("Log from which context weights are estimated, relative to this file")),
        ("context_column", column("Column of contexts in the exposure log")),
        ("shares", by_name("Assignment shares as declared, by policy", json!({ "type": "number" }))),
        ("baseline_data", columns("Rows without a treatment for the outcome model, relative to this file")),
        ("strata_table", column("Assignment probabilities as designed, relative to this file")),
        ("encoder", encoder()),
    ] {
        if name.contains('_') {
            settings.insert(name.replace('_', "-"), form.clone());
        }
        settings.insert(name.to_owned(), form);
    }
    settings
}

fn encoder() -> Value {
    let EncoderParams { max_levels, min_level_rows, heavy_tail, clip } = EncoderParams::default();
    json!({
        "description": "How features are encoded",
        "type": "object",
        "properties": {
            "max_levels": {
                "description": "Values of a text feature with a column of their own",
                "type": "integer", "minimum": 1, "maximum": 10_000, "default": max_levels,
            },
            "min_level_rows": {
                "description": "Values in fewer rows, and in fewer than 1 % of rows, are taken together",
                "type": "integer", "minimum": 1, "default": min_level_rows,
            },
            "heavy_tail": {
                "description": "Robust standard deviations of the outer quantiles from which tails count as heavy",
                "type": "number", "minimum": 0, "exclusiveMinimum": true, "default": heavy_tail,
            },
            "clip": {
                "description": "Largest encoded number",
                "type": "number", "minimum": 0, "exclusiveMinimum": true, "default": clip,
            },
        },
        "additionalProperties": false,
    })
}

fn compare() -> Map<String, Value> {
    let names = |says: &str| json!({ "description": says, "type": "array", "items": { "type": "string" } });
    let settings = json!({
        "learner": names("The learners"),
        "schedule": names("Schedules of epochs on all rows and on the core population"),
        "seeds": { "description": "Seeds", "type": "integer", "minimum": 1, "maximum": 1000, "default": 1 },
        "reference": { "description": "The learner that differences are taken to [default: poul]", "type": "string" },
        "core": { "description": "The core population, such as 'core = 1'", "type": "string" },
        "test_share": {
            "description": "Share of the data to test on",
            "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true,
        },
        "test_from": { "description": "The first time to test on", "type": ["string", "number"] },
        "validation_share": {
            "description": "Share of the training units held out",
            "type": "number", "minimum": 0, "maximum": 0.5, "default": 0.1,
        },
        "draws": { "description": "Bootstrap draws; 0: none", "type": "integer", "minimum": 0, "default": 200 },
        "level": {
            "description": "Level of the intervals",
            "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true,
            "default": 0.9,
        },
    });
    settings.as_object().cloned().unwrap_or_default()
}

/// `[tune]`: settings by their full names.
fn tune() -> Value {
    json!({
        "description": "What `poul tune` searches: \"model.NAME\" or \"training.NAME\"",
        "type": "object",
        "patternProperties": {
            "^(model|training)\\..+": { "anyOf": [
                { "description": "Values to try", "type": "array", "minItems": 1 },
                {
                    "description": "A range",
                    "type": "object",
                    "properties": {
                        "low": { "type": "number" },
                        "high": { "type": "number" },
                        "scale": { "type": "string", "enum": ["linear", "log"], "default": "linear" },
                        "steps": { "description": "Points of it in a grid", "type": "integer", "minimum": 2, "default": 5 },
                    },
                    "required": ["low", "high"],
                    "additionalProperties": false,
                },
            ] },
        },
        "additionalProperties": false,
    })
}
