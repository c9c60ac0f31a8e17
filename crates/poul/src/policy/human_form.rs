//! The human form: one tree of `contexts`, `policies` and `attributes`, written in TOML or JSON.

use std::collections::BTreeMap;
use std::path::Path;

use super::attributes::{AttributeValue, Attributes};
use super::builder::{PolicySetBuilder, is_blank};
use crate::{Error, Kind, Result};

/// A value and the line it is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: NodeValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeValue {
    Text(String),
    Number(f64),
    Flag(bool),
    /// Keys with their lines; no key twice.
    Table(Vec<Entry>),
    /// Something no policy file holds, by its name.
    Other(&'static str),
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) node: Node,
}

/// Reads the tree.
pub(super) fn read(root: Node, file: &Path) -> Result<PolicySetBuilder> {
    let mut builder = PolicySetBuilder::default();
    builder.read_from(file, "line");
    let reader = Reader { file };
    for entry in reader.table(root, "the file")? {
        match entry.key.as_str() {
            "contexts" => reader.contexts(entry, &mut builder)?,
            "policies" => reader.policies(entry, &mut builder)?,
            "attributes" => {
                let attributes = reader.attributes(entry)?;
                builder.attributes(attributes);
            }
            unknown => {
                return Err(reader.unknown(unknown, entry.line, &["contexts", "policies", "attributes"]));
            }
        }
    }
    Ok(builder)
}

struct Reader<'a> {
    file: &'a Path,
}

impl Reader<'_> {
    fn contexts(&self, entry: Entry, builder: &mut PolicySetBuilder) -> Result<()> {
        let line = entry.line;
        let contexts = self.table(entry.node, "`contexts`")?;
        if contexts.is_empty() {
            let error = self.error("`contexts` lists no context", line);
            return Err(error.hint("list every context with its weight, or leave `contexts` out"));
        }
        for Entry { key: context, line, node } in contexts {
            match node.value {
                NodeValue::Number(weight) => builder.weight_at(&context, weight, line),
                NodeValue::Table(entries) => self.described(&context, line, entries, builder)?,
                other => {
                    let what =
                        format!("the weight of context `{context}` is {}, not a number", other.describe());
                    return Err(self
                        .error(what, line)
                        .hint(format!("write `{context} = 1`, or another weight")));
                }
            };
        }
        Ok(())
    }

    /// `[contexts.NAME]` with a weight, 1 by default, and the column of its exposure.
    fn described<'b>(
        &self,
        context: &str,
        line: u32,
        entries: Vec<Entry>,
        builder: &'b mut PolicySetBuilder,
    ) -> Result<&'b mut PolicySetBuilder> {
        let mut weight = 1.0;
        for Entry { key, line, node } in entries {
            let is = node.value.describe();
            match (key.as_str(), node.value) {
                ("weight", NodeValue::Number(number)) => weight = number,
                ("exposure", NodeValue::Text(column)) if !is_blank(&column) => {
                    builder.exposure(context, &column);
                }
                ("weight", _) => {
                    let error = self.error(format!("`weight` is {is}, not a number"), line);
                    return Err(error.at(format!("context `{context}`")).hint("write `weight = 1`"));
                }
                ("exposure", _) => {
                    let error = self.error(format!("`exposure` is {is}, not the name of a column"), line);
                    let hint = "write `exposure = \"trips_at_peak\"`, a column of the data";
                    return Err(error.at(format!("context `{context}`")).hint(hint));
                }
                (unknown, _) => {
                    let error = self.unknown(unknown, line, &["weight", "exposure"]);
                    return Err(error.at(format!("context `{context}`")));
                }
            }
        }
        Ok(builder.weight_at(context, weight, line))
    }

    fn policies(&self, entry: Entry, builder: &mut PolicySetBuilder) -> Result<()> {
        for Entry { key: policy, line, node } in self.table(entry.node, "`policies`")? {
            if is_blank(&policy) {
                let error = self.error("the name of the policy is empty", line);
                return Err(error.hint("give the policy a name"));
            }
            builder.policy_at(&policy, line);
            for entry in self.table(node, &format!("policy `{policy}`"))? {
                self.context(&policy, entry, builder)?;
            }
        }
        Ok(())
    }

    fn context(&self, policy: &str, entry: Entry, builder: &mut PolicySetBuilder) -> Result<()> {
        let Entry { key: context, line, node } = entry;
        let named = |error: Error| error.at(format!("policy `{policy}`")).at(format!("context `{context}`"));
        let hint = "write \"action\", or { action = 0.5, other = 0.5 }";
        match node.value {
            NodeValue::Text(action) => {
                builder.add_at(policy, &context, &action, 1.0, line);
            }
            NodeValue::Table(actions) if actions.is_empty() => {
                return Err(named(self.error("no action is given", line)).hint(hint));
            }
            NodeValue::Table(actions) => {
                for Entry { key: action, line, node } in actions {
                    let NodeValue::Number(probability) = node.value else {
                        let is = node.value.describe();
                        let what = format!("the probability of action `{action}` is {is}, not a number");
                        return Err(
                            named(self.error(what, line)).hint("a probability is a number from 0 to 1")
                        );
                    };
                    builder.add_at(policy, &context, &action, probability, line);
                }
            }
            other => {
                let what = format!("{} is neither an action nor a table of actions", other.describe());
                return Err(named(self.error(what, line)).hint(hint));
            }
        }
        Ok(())
    }

    fn attributes(&self, entry: Entry) -> Result<Attributes> {
        let mut attributes = Attributes::default();
        for Entry { key, line, node } in self.table(entry.node, "`attributes`")? {
            let (kind, group) = match key.as_str() {
                "contexts" => ("context", &mut attributes.contexts),
                "actions" => ("action", &mut attributes.actions),
                unknown => return Err(self.unknown(unknown, line, &["contexts", "actions"])),
            };
            // Whether each attribute is a text, and whose value said so first.
            let mut kinds: BTreeMap<String, (bool, String)> = BTreeMap::new();
            for Entry { key: name, line, node } in self.table(node, &format!("`attributes.{key}`"))? {
                if is_blank(&name) {
                    let error = self.error(format!("the name of the {kind} is empty"), line);
                    return Err(error.hint(format!("give the {kind} a name")));
                }
                let properties = self.table(node, &format!("the attributes of {kind} `{name}`"))?;
                let whose = format!("{kind} `{name}`");
                group.insert(name.clone(), self.properties(&whose, properties, &mut kinds)?);
            }
        }
        Ok(attributes)
    }

    fn properties(
        &self,
        whose: &str,
        entries: Vec<Entry>,
        kinds: &mut BTreeMap<String, (bool, String)>,
    ) -> Result<BTreeMap<String, AttributeValue>> {
        let mut properties = BTreeMap::new();
        for Entry { key, line, node } in entries {
            let wrong = |what: String| {
                let error = self.error(format!("attribute `{key}` is {what}"), line).at(whose);
                error.hint("an attribute is a finite number, true or false, or a string")
            };
            let value = match node.value {
                NodeValue::Number(number) if number.is_finite() => AttributeValue::Number(number + 0.0),
                NodeValue::Number(number) => return Err(wrong(number.to_string())),
                NodeValue::Flag(flag) => AttributeValue::Flag(flag),
                NodeValue::Text(text) => AttributeValue::Text(text),
                other => return Err(wrong(other.describe().to_owned())),
            };
            let is_text = matches!(value, AttributeValue::Text(_));
            let (first, who) = kinds.entry(key.clone()).or_insert_with(|| (is_text, whose.to_owned()));
            if *first != is_text {
                let [own, other] =
                    [is_text, *first].map(|is_text| if is_text { "a text" } else { "a number" });
                let what = format!("attribute `{key}` is {own}, and {other} for {who}");
                return Err(self.error(what, line).at(whose).hint("give it values of one kind"));
            }
            properties.insert(key, value);
        }
        Ok(properties)
    }

    fn table(&self, node: Node, what: &str) -> Result<Vec<Entry>> {
        match node.value {
            NodeValue::Table(entries) => Ok(entries),
            other => {
                let error = self.error(format!("{what} is {}, not a table", other.describe()), node.line);
                Err(error.hint(
                    "see the form of a policy file: [contexts], [policies.NAME], [attributes.actions.NAME]",
                ))
            }
        }
    }

    fn unknown(&self, key: &str, line: u32, known: &[&str]) -> Error {
        Error::unknown(Kind::Input, "key", key, "keys", known.iter().copied())
            .file(self.file)
            .at(format!("line {line}"))
    }

    fn error(&self, what: impl Into<String>, line: u32) -> Error {
        Error::input(what).file(self.file).at(format!("line {line}"))
    }
}

impl NodeValue {
    fn describe(&self) -> &'static str {
        match self {
            NodeValue::Text(_) => "a string",
            NodeValue::Number(_) => "a number",
            NodeValue::Flag(_) => "a boolean",
            NodeValue::Table(_) => "a table",
            NodeValue::Other(name) => name,
        }
    }
}
