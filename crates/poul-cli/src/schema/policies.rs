//! The schema of policy files in the human form: contexts, policies and attributes.

use serde_json::{Value, json};

use super::DRAFT;

/// A policy file, in TOML or JSON.
pub(crate) fn policies() -> Value {
    let attributes = |of: &str| {
        json!({
            "description": format!("What is known of each {of}"),
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": { "type": ["number", "boolean", "string"] },
            },
        })
    };
    json!({
        "$schema": DRAFT,
        "title": "Policies of POUL",
        "type": "object",
        "properties": {
            "contexts": {
                "description": "The contexts and how much each weighs; weights are normalised. Without it all weigh the same.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": { "anyOf": [
                    { "type": "number", "minimum": 0 },
                    {
                        "type": "object",
                        "properties": {
                            "weight": { "description": "How much the context weighs", "type": "number", "minimum": 0, "default": 1 },
                            "exposure": {
                                "description": "Column of the data that says how much each row meets the context",
                                "type": "string",
                                "minLength": 1,
                            },
                        },
                        "additionalProperties": false,
                    },
                ] },
            },
            "policies": {
                "description": "The policies by name: for each context an action, or probabilities of actions. \"*\" is every context not named.",
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": { "anyOf": [
                        { "description": "The action", "type": "string", "minLength": 1 },
                        {
                            "description": "The probability of each action; they sum to 1",
                            "type": "object",
                            "minProperties": 1,
                            "additionalProperties": { "type": "number", "minimum": 0, "maximum": 1 },
                        },
                    ] },
                },
            },
            "attributes": {
                "description": "What is known of contexts and actions, so that new ones can be scored",
                "type": "object",
                "properties": { "contexts": attributes("context"), "actions": attributes("action") },
                "additionalProperties": false,
            },
        },
        "additionalProperties": false,
    })
}
