//! The canonical set as text for people and as bytes for digests.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::attributes::AttributeValue;
use super::set::PolicySet;

impl PolicySet {
    /// The human form in TOML. Reading it gives this set back, to the last bit.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("[contexts]\n");
        for (context, weight) in self.contexts.iter().zip(&self.weights) {
            out += &match self.exposure.get(context) {
                None => format!("{} = {}\n", toml_key(context), number(*weight)),
                Some(column) => format!(
                    "{} = {{ weight = {}, exposure = {} }}\n",
                    toml_key(context),
                    number(*weight),
                    toml_string(column)
                ),
            };
        }
        for policy_idx in 0..self.len() {
            out += &format!("\n[policies.{}]\n", toml_key(self.name(policy_idx)));
            for (context, actions) in self.contexts.iter().zip(self.by_context(policy_idx)) {
                out += &format!("{} = {}\n", toml_key(context), toml_actions(&actions));
            }
        }
        for (kind, group) in [("contexts", &self.attributes.contexts), ("actions", &self.attributes.actions)]
        {
            for (name, properties) in group {
                out += &format!("\n[attributes.{kind}.{}]\n", toml_key(name));
                for (property, value) in properties {
                    let value = match value {
                        AttributeValue::Flag(flag) => flag.to_string(),
                        AttributeValue::Number(value) => number(*value),
                        AttributeValue::Text(text) => toml_string(text),
                    };
                    out += &format!("{} = {value}\n", toml_key(property));
                }
            }
        }
        out
    }

    /// The human form as a JSON tree.
    pub fn to_json_value(&self) -> Value {
        let mut root = Map::new();
        let weights = self.contexts.iter().zip(&self.weights);
        let weights = weights.map(|(context, weight)| match self.exposure.get(context) {
            None => (context.clone(), Value::from(*weight)),
            Some(column) => (context.clone(), serde_json::json!({ "weight": weight, "exposure": column })),
        });
        root.insert("contexts".to_owned(), Value::Object(weights.collect()));
        let policies = (0..self.len()).map(|policy_idx| {
            let contexts = self.contexts.iter().zip(self.by_context(policy_idx));
            let contexts = contexts.map(|(context, actions)| (context.clone(), json_actions(&actions)));
            (self.name(policy_idx).to_owned(), Value::Object(contexts.collect()))
        });
        root.insert("policies".to_owned(), Value::Object(policies.collect()));
        if !self.attributes.is_empty() {
            let mut groups = Map::new();
            groups.insert("contexts".to_owned(), json_attributes(&self.attributes.contexts));
            groups.insert("actions".to_owned(), json_attributes(&self.attributes.actions));
            root.insert("attributes".to_owned(), Value::Object(groups));
        }
        Value::Object(root)
    }

    /// A serialisation that is equal for equal sets and different for different ones, for digests.
    ///
    /// Version 1: lengths and numbers are little-endian, names are preceded by their length.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let mut out = Bytes(b"poul policies 1\n".to_vec());
        out.count(self.contexts.len());
        for (context, weight) in self.contexts.iter().zip(&self.weights) {
            out.text(context);
            out.number(*weight);
        }
        out.count(self.actions.len());
        self.actions.iter().for_each(|action| out.text(action));
        out.count(self.atoms.len());
        for atom in &self.atoms {
            out.0.extend(atom.context.to_le_bytes());
            out.0.extend(atom.action.to_le_bytes());
        }
        out.count(self.len());
        for policy_idx in 0..self.len() {
            let atoms = self.mixture(policy_idx).atoms;
            out.text(self.name(policy_idx));
            out.count(atoms.len());
            for (atom, probability) in atoms.iter().zip(self.conditional(policy_idx)) {
                out.0.extend(atom.to_le_bytes());
                out.number(*probability);
            }
        }
        out.attributes(&self.attributes.contexts);
        out.attributes(&self.attributes.actions);
        // Digests of sets without exposure are what they were.
        if !self.exposure.is_empty() {
            out.count(self.exposure.len());
            for (context, column) in &self.exposure {
                out.text(context);
                out.text(column);
            }
        }
        out.0
    }
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn count(&mut self, count: usize) {
        self.0.extend((count as u64).to_le_bytes());
    }

    fn number(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend(text.as_bytes());
    }

    fn attributes(&mut self, group: &BTreeMap<String, BTreeMap<String, AttributeValue>>) {
        self.count(group.len());
        for (name, properties) in group {
            self.text(name);
            self.count(properties.len());
            for (property, value) in properties {
                self.text(property);
                match value {
                    AttributeValue::Flag(flag) => self.0.extend([0, u8::from(*flag)]),
                    AttributeValue::Number(number) => {
                        self.0.push(1);
                        self.number(*number);
                    }
                    AttributeValue::Text(text) => {
                        self.0.push(2);
                        self.text(text);
                    }
                }
            }
        }
    }
}

/// The shortest text that reads back as the same number; always a float in TOML.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn toml_key(key: &str) -> String {
    let bare = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { key.to_owned() } else { toml_string(key) }
}

fn toml_string(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => out += &format!("\\U{:08x}", u32::from(control)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn toml_actions(actions: &[(&str, f64)]) -> String {
    if let [(action, 1.0)] = actions {
        return toml_string(action);
    }
    let actions: Vec<String> = actions
        .iter()
        .map(|(action, probability)| format!("{} = {}", toml_key(action), number(*probability)))
        .collect();
    format!("{{ {} }}", actions.join(", "))
}

fn json_actions(actions: &[(&str, f64)]) -> Value {
    if let [(action, 1.0)] = actions {
        return Value::from(*action);
    }
    let table = actions.iter().map(|(action, probability)| ((*action).to_owned(), Value::from(*probability)));
    Value::Object(table.collect())
}

fn json_attributes(group: &BTreeMap<String, BTreeMap<String, AttributeValue>>) -> Value {
    let names = group.iter().map(|(name, properties)| {
        let properties = properties.iter().map(|(property, value)| {
            let value = match value {
                AttributeValue::Flag(flag) => Value::from(*flag),
                AttributeValue::Number(number) => Value::from(*number),
                AttributeValue::Text(text) => Value::from(text.as_str()),
            };
            (property.clone(), value)
        });
        (name.clone(), Value::Object(properties.collect()))
    });
    Value::Object(names.collect())
}
