//! TOML to the tree of the human form, with the line of every key.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::builder::PolicySetBuilder;
use super::human_form::{self, Entry, Node, NodeValue};
use super::set::PolicySet;
use crate::{Error, Result};

impl PolicySet {
    /// Reads the human form from TOML; `file` is named in errors.
    pub fn from_toml(text: &str, file: &Path) -> Result<PolicySet> {
        builder(text, file)?.build()
    }
}

pub(super) fn builder(text: &str, file: &Path) -> Result<PolicySetBuilder> {
    let lines = Lines::new(text);
    let root = DeTable::parse(text).map_err(|error| {
        let what = format!("not valid TOML: {}", error.message());
        let error = match error.span() {
            Some(span) => {
                Error::input(what).file(file).at(format!("line {}", lines.line(span.start))).source(error)
            }
            None => Error::input(what).file(file).source(error),
        };
        error.hint("names with spaces or signs need quotes; a key may appear once")
    })?;
    let line = lines.line(root.span().start);
    human_form::read(Node { line, value: table(root.into_inner(), &lines) }, file)
}

fn table(entries: DeTable<'_>, lines: &Lines) -> NodeValue {
    // Nesting is bounded by the TOML parser.
    let entries = entries.into_iter().map(|(key, value)| Entry {
        line: lines.line(key.span().start),
        key: key.into_inner().into_owned(),
        node: node(value, lines),
    });
    NodeValue::Table(entries.collect())
}

fn node(value: Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let line = lines.line(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(text) => NodeValue::Text(text.into_owned()),
        DeValue::Integer(integer) => integer_value(&integer),
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(number) => NodeValue::Number(number),
            Err(_) => NodeValue::Other("a number that cannot be read"),
        },
        DeValue::Boolean(flag) => NodeValue::Flag(flag),
        DeValue::Datetime(_) => NodeValue::Other("a date"),
        DeValue::Array(_) => NodeValue::Other("an array"),
        DeValue::Table(entries) => table(entries, lines),
    };
    Node { line, value }
}

fn integer_value(integer: &DeInteger<'_>) -> NodeValue {
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) => NodeValue::Number(number as f64),
        Err(_) => NodeValue::Other("an integer that is too large"),
    }
}

/// Where lines begin.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Self { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line of a byte, from 1.
    fn line(&self, byte: usize) -> u32 {
        self.starts.partition_point(|start| *start <= byte) as u32
    }
}
