//! JSON to the tree of the human form, with the line of every key.
//!
//! A small reader of our own, for three things a serde data model does not give: the line of a value that is well
//! formed but wrong, an error (not the last value) for a key given twice, and floats read to the last bit.

use std::collections::HashSet;
use std::path::Path;

use super::builder::PolicySetBuilder;
use super::human_form::{self, Entry, Node, NodeValue};
use super::set::PolicySet;
use crate::{Error, Result};

/// A policy file is four levels deep; this bounds the stack on hostile input.
const MAX_DEPTH: u32 = 64;

impl PolicySet {
    /// Reads the human form from JSON; `file` is named in errors.
    pub fn from_json(text: &str, file: &Path) -> Result<PolicySet> {
        builder(text, file)?.build()
    }
}

pub(super) fn builder(text: &str, file: &Path) -> Result<PolicySetBuilder> {
    let root = parse(text).map_err(|problem| {
        let error = Error::input(format!("not valid JSON: {}", problem.what)).file(file);
        error
            .at(format!("line {}", problem.line))
            .hint("write the tree of a policy file in JSON, each key once")
    })?;
    human_form::read(root, file)
}

/// What is wrong with the text, and on which line.
#[derive(Debug)]
struct Problem {
    line: u32,
    what: String,
}

fn parse(text: &str) -> Result<Node, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    let mut parser = Parser { text, at: 0, line: 1 };
    let root = parser.value(MAX_DEPTH)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.problem("there is more after the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl Parser<'_> {
    fn value(&mut self, depth: u32) -> Result<Node, Problem> {
        self.skip_space();
        if depth == 0 {
            return Err(self.problem("it is nested too deeply"));
        }
        let line = self.line;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeValue::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => NodeValue::Number(self.number()?),
            Some(b't') => self.word("true", NodeValue::Flag(true))?,
            Some(b'f') => self.word("false", NodeValue::Flag(false))?,
            Some(b'n') => self.word("null", NodeValue::Other("null"))?,
            Some(_) => return Err(self.problem("a value is expected")),
            None => return Err(self.problem("the text ends where a value is expected")),
        };
        Ok(Node { line, value })
    }

    fn object(&mut self, depth: u32) -> Result<NodeValue, Problem> {
        self.at += 1;
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(NodeValue::Table(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.problem("a key in quotes is expected"));
            }
            let line = self.line;
            let key = self.string()?;
            if !seen.insert(key.clone()) {
                return Err(self.problem(&format!("key `{key}` is given twice")));
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.problem("`:` is expected after a key"));
            }
            let node = self.value(depth - 1)?;
            entries.push(Entry { key, line, node });
            self.skip_space();
            if self.take(b'}') {
                return Ok(NodeValue::Table(entries));
            }
            if !self.take(b',') {
                return Err(self.problem("`,` or `}` is expected"));
            }
        }
    }

    /// No policy file holds an array: it is read to its end and only its kind is kept.
    fn array(&mut self, depth: u32) -> Result<NodeValue, Problem> {
        self.at += 1;
        self.skip_space();
        if self.take(b']') {
            return Ok(NodeValue::Other("an array"));
        }
        loop {
            self.value(depth - 1)?;
            self.skip_space();
            if self.take(b']') {
                return Ok(NodeValue::Other("an array"));
            }
            if !self.take(b',') {
                return Err(self.problem("`,` or `]` is expected"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Problem> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let Some(plain) = plain else {
                return Err(self.problem("the text ends inside a string"));
            };
            // Both ends are at ASCII bytes, hence at character boundaries.
            out.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Ok(out),
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.problem("a string holds a control character")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Problem> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex()?;
                let code = if (0xd800..0xdc00).contains(&first) {
                    let pair = self.take(b'\\') && self.take(b'u');
                    let second = if pair { self.hex()? } else { 0 };
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(self.problem("half of a surrogate pair is missing"));
                    }
                    0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                } else {
                    first
                };
                char::from_u32(code).ok_or_else(|| self.problem("half of a surrogate pair is missing"))?
            }
            _ => return Err(self.problem("an escape is not one of JSON's")),
        })
    }

    fn hex(&mut self) -> Result<u32, Problem> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).and_then(|bytes| {
            bytes.iter().try_fold(0, |code, byte| Some(code * 16 + char::from(*byte).to_digit(16)?))
        });
        self.at += 4;
        digits.ok_or_else(|| self.problem("`\\u` needs four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<f64, Problem> {
        let start = self.at;
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let n_digits = self.digits();
        let mut valid = n_digits > 0 && !(leading_zero && n_digits > 1);
        if self.take(b'.') {
            valid &= self.digits() > 0;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            valid &= self.digits() > 0;
        }
        match self.text[start..self.at].parse::<f64>() {
            Ok(number) if valid => Ok(number),
            _ => Err(self.problem("a number is not written as JSON writes numbers")),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: NodeValue) -> Result<NodeValue, Problem> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.problem("a value is expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.line += u32::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem(&self, what: &str) -> Problem {
        Problem { line: self.line, what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What an independent reader makes of the same text.
    fn expected(value: &Value) -> NodeValue {
        match value {
            Value::Null => NodeValue::Other("null"),
            Value::Bool(flag) => NodeValue::Flag(*flag),
            Value::Number(number) => NodeValue::Number(number.as_f64().unwrap()),
            Value::String(text) => NodeValue::Text(text.clone()),
            Value::Array(_) => NodeValue::Other("an array"),
            Value::Object(entries) => NodeValue::Table(
                entries
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        line: 0,
                        node: Node { line: 0, value: expected(value) },
                    })
                    .collect(),
            ),
        }
    }

    /// Without lines, and with keys in order, as serde_json keeps them.
    fn stripped(node: Node) -> NodeValue {
        match node.value {
            NodeValue::Table(mut entries) => {
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                let strip = |entry: Entry| Entry {
                    line: 0,
                    node: Node { line: 0, value: stripped(entry.node) },
                    ..entry
                };
                NodeValue::Table(entries.into_iter().map(strip).collect())
            }
            other => other,
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            // Few digits: the independent reader is exact only there.
            (-1_000_000..1_000_000).prop_map(|i| Value::from(f64::from(i) / 1024.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_an_independent_reader(value in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            prop_assert_eq!(stripped(parse(&text.unwrap()).unwrap()), expected(&value));
        }

        #[test]
        fn accepts_what_an_independent_reader_accepts(text in r#"[-+0-9.eE{}\[\]":,a\\u ntrlfs]{0,12}"#) {
            if let (Err(_), Ok(_)) = (serde_json::from_str::<Value>(&text), parse(&text)) {
                // A number too large for a float is for the builder to refuse.
                prop_assert!(text.contains(['e', 'E']), "{text} is not JSON");
            }
            if let (Ok(_), Err(problem)) = (serde_json::from_str::<Value>(&text), parse(&text)) {
                prop_assert!(problem.what.contains("twice"), "{text} is JSON: {problem:?}");
            }
        }

        #[test]
        fn floats_are_exact(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            let node = parse(&format!("{value:e}")).unwrap();
            prop_assert_eq!(node.value, NodeValue::Number(value));
        }
    }

    #[test]
    fn escapes_and_surrogates() {
        let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#;
        let expected = "\"\\/\u{8}\u{c}\n\r\té😀";
        assert_eq!(parse(text).unwrap().value, NodeValue::Text(expected.to_owned()));
        for wrong in
            [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00""#, r#""\u12é4""#, r#""\é""#, "\"a\nb\"", "\"a"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let text = "[".repeat(1_000_000);
        assert!(parse(&text).unwrap_err().what.contains("deeply"));
    }

    #[test]
    fn a_key_given_twice_is_an_error_on_its_line() {
        let problem = parse("{\n\"a\": 1,\n\"\\u0061\": 2}").unwrap_err();
        assert_eq!((problem.line, problem.what.as_str()), (3, "key `a` is given twice"));
    }
}
