//! Attributes of contexts and of actions as numbers, so that one never seen can be embedded by what is known of it.
//!
//! Numbers and flags are standardised over the names of training, categories become centred indicators of their levels.
//! What is absent counts as the mean; where names of training lack it too, an indicator says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::policy::AttributeValue;
use crate::{Error, Result};

/// The attributes of one context or action, by name.
type Properties = BTreeMap<String, AttributeValue>;

/// How the attributes of contexts, or those of actions, become numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributeEncoder {
    columns: Vec<Column>,
    /// The numbers of every name of training, name after name.
    trained: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Column {
    name: String,
    form: Form,
    /// The share of names of training that lack it; above 0 there is an indicator.
    lacking: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    /// Numbers, and flags as 0 and 1. A spread of 0: only whether a name has the attribute says something.
    Number { mean: f64, sd: f64, low: f64, high: f64 },
    /// Levels, sorted, each with its share among the names that have the attribute.
    Text { levels: Vec<(String, f64)> },
}

/// A name by its attributes.
pub(super) struct Encoded {
    pub(super) values: Vec<f32>,
    /// Whether at least one attribute says something: a number, or a level that training knew.
    pub(super) is_known: bool,
}

impl AttributeEncoder {
    /// Learns from the names of training, sorted; attributes that are the same for all of them say nothing and are
    /// left out. `kind` is what the names are, for messages.
    pub(super) fn fit(kind: &str, names: &[String], known: &BTreeMap<String, Properties>) -> Result<Self> {
        let of = |name: &String| known.get(name);
        let properties: BTreeSet<&String> = names.iter().filter_map(of).flat_map(BTreeMap::keys).collect();
        let mut columns = Vec::new();
        for property in properties {
            let own: Vec<&AttributeValue> =
                names.iter().filter_map(of).filter_map(|own| own.get(property)).collect();
            let form = Form::fit(&own).ok_or_else(|| {
                let what = "is a number for some, a text for others";
                let error = Error::input(what).at(format!("attribute `{property}` of {kind}s"));
                error.hint("give it values of one kind")
            })?;
            let lacking = 1.0 - own.len() as f64 / names.len() as f64;
            let column = Column { name: property.clone(), form, lacking };
            if column.width() > 0 {
                columns.push(column);
            }
        }
        let mut encoder = Self { columns, trained: Vec::new() };
        encoder.trained = names.iter().flat_map(|name| encoder.encode(of(name)).values).collect();
        Ok(encoder)
    }

    /// The same encoder for other names: those it was fitted on keep their numbers, new ones have those of `known`.
    pub(super) fn for_names(
        &self,
        own_names: &[String],
        names: &[String],
        known: &BTreeMap<String, Properties>,
    ) -> Self {
        let numbers = |name: &String| match own_names.binary_search(name) {
            Ok(index) => self.trained(index).to_vec(),
            Err(_) => self.encode(known.get(name)).values,
        };
        Self { columns: self.columns.clone(), trained: names.iter().flat_map(numbers).collect() }
    }

    /// Whether nothing is known of any name.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// How many numbers a name becomes.
    pub(crate) fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// The numbers of a name of training.
    pub(super) fn trained(&self, name_idx: usize) -> &[f32] {
        let width = self.width();
        &self.trained[name_idx * width..][..width]
    }

    /// Whether the parts fit together for so many names of training.
    pub(super) fn is_consistent(&self, n_names: usize) -> bool {
        let finite = |column: &Column| match &column.form {
            Form::Number { mean, sd, .. } => mean.is_finite() && sd.is_finite(),
            Form::Text { levels } => levels.iter().all(|(_, share)| share.is_finite()),
        };
        self.trained.len() == n_names * self.width()
            && self.trained.iter().all(|value| value.is_finite())
            && self.columns.iter().all(|column| finite(column) && (0.0..1.0).contains(&column.lacking))
    }

    /// The numbers of any name.
    pub(super) fn encode(&self, properties: Option<&Properties>) -> Encoded {
        let mut encoded = Encoded { values: Vec::with_capacity(self.width()), is_known: false };
        for column in &self.columns {
            column.encode(properties.and_then(|own| own.get(&column.name)), &mut encoded);
        }
        encoded
    }

    /// Numbers beyond those of training: (attribute, value, least and greatest of training).
    pub(super) fn beyond<'a>(
        &'a self,
        properties: Option<&'a Properties>,
    ) -> impl Iterator<Item = (&'a str, f64, f64, f64)> + 'a {
        self.columns.iter().filter_map(move |column| {
            let value = number(properties?.get(&column.name)?)?;
            match column.form {
                Form::Number { low, high, .. } if value < low || value > high => {
                    Some((column.name.as_str(), value, low, high))
                }
                _ => None,
            }
        })
    }
}

impl Form {
    /// None where numbers and texts are mixed.
    fn fit(values: &[&AttributeValue]) -> Option<Self> {
        let n_values = values.len() as f64;
        let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
        if numbers.is_empty() {
            let mut levels: BTreeMap<&str, f64> = BTreeMap::new();
            for value in values {
                if let AttributeValue::Text(level) = value {
                    *levels.entry(level).or_default() += 1.0 / n_values;
                }
            }
            let levels = levels.into_iter().map(|(level, share)| (level.to_owned(), share)).collect();
            return Some(Self::Text { levels });
        }
        if numbers.len() < values.len() {
            return None;
        }
        let (low, high) =
            numbers.iter().fold((f64::MAX, f64::MIN), |(low, high), own| (low.min(*own), high.max(*own)));
        let mean = numbers.iter().sum::<f64>() / n_values;
        let variance = numbers.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / n_values;
        // Equal numbers may differ from their mean by rounding.
        let sd = if low == high { 0.0 } else { variance.sqrt() };
        Some(Self::Number { mean: if sd > 0.0 { mean } else { low }, sd, low, high })
    }

    fn width(&self) -> usize {
        match self {
            Self::Number { sd, .. } => usize::from(*sd > 0.0),
            Self::Text { levels } if levels.len() < 2 => 0,
            Self::Text { levels } => levels.len(),
        }
    }
}

impl Column {
    fn width(&self) -> usize {
        self.form.width() + usize::from(self.lacking > 0.0)
    }

    fn encode(&self, value: Option<&AttributeValue>, encoded: &mut Encoded) {
        let (mut is_known, values) = (false, &mut encoded.values);
        match &self.form {
            Form::Number { mean, sd, .. } => {
                let own = value.and_then(number);
                is_known = own.is_some_and(|own| *sd > 0.0 || own == *mean);
                if *sd > 0.0 {
                    values.push(own.map_or(0.0, |own| (own - mean) / sd) as f32);
                }
            }
            Form::Text { levels } => {
                let own = value.and_then(|own| match own {
                    AttributeValue::Text(own) => levels.iter().position(|(level, _)| level == own),
                    _ => None,
                });
                is_known |= own.is_some();
                if levels.len() > 1 {
                    // All indicators together have variance 1, as a number has.
                    let spread = (1.0 - levels.iter().map(|(_, share)| share * share).sum::<f64>()).sqrt();
                    values.extend(levels.iter().enumerate().map(|(level, (_, share))| match own {
                        Some(own) => ((f64::from(u8::from(own == level)) - share) / spread) as f32,
                        None => 0.0,
                    }));
                }
            }
        }
        if self.lacking > 0.0 {
            let spread = (self.lacking * (1.0 - self.lacking)).sqrt();
            values.push(((f64::from(u8::from(value.is_none())) - self.lacking) / spread) as f32);
        }
        encoded.is_known |= is_known;
    }
}

/// A number, or a flag as 0 or 1.
fn number(value: &AttributeValue) -> Option<f64> {
    match value {
        AttributeValue::Number(number) => Some(*number),
        AttributeValue::Flag(flag) => Some(f64::from(u8::from(*flag))),
        AttributeValue::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn known(entries: &[(&str, &str, AttributeValue)]) -> BTreeMap<String, Properties> {
        let mut known: BTreeMap<String, Properties> = BTreeMap::new();
        for (name, property, value) in entries {
            known.entry((*name).to_owned()).or_default().insert((*property).to_owned(), value.clone());
        }
        known
    }

    fn text(value: &str) -> AttributeValue {
        AttributeValue::Text(value.to_owned())
    }

    #[test]
    fn attributes_are_standardised_over_the_names_of_training() {
        let names = names(&["d0", "d10", "none"]);
        let known = known(&[
            ("d0", "discount", AttributeValue::Number(0.0)),
            ("d10", "discount", AttributeValue::Number(10.0)),
            ("d99", "discount", AttributeValue::Number(99.0)),
            ("d0", "colour", text("red")),
            ("d10", "colour", text("blue")),
            ("none", "colour", text("blue")),
            ("d0", "paid", AttributeValue::Flag(true)),
            ("d10", "paid", AttributeValue::Flag(true)),
            ("none", "paid", AttributeValue::Flag(true)),
        ]);
        let encoder = AttributeEncoder::fit("action", &names, &known).unwrap();
        // Two colours, the discount, and whether there is none; `paid` is the same for all.
        assert_eq!(encoder.width(), 4);
        for column in 0..4 {
            let values: Vec<f32> = (0..3).map(|name| encoder.trained(name)[column]).collect();
            assert!(values.iter().sum::<f32>().abs() < 1e-6, "{values:?}");
        }
        assert_eq!(encoder.trained(2)[2], 0.0, "an absent number counts as the mean");
        assert!(encoder.trained(2)[3] > 0.0 && encoder.trained(0)[3] < 0.0);
        assert!(encoder.is_consistent(3) && !encoder.is_consistent(2));
        let far = encoder.encode(known.get("d99"));
        assert!(far.is_known && far.values[2] > 10.0);
        assert_eq!(encoder.beyond(known.get("d99")).collect::<Vec<_>>(), [("discount", 99.0, 0.0, 10.0)]);
        assert_eq!(encoder.beyond(known.get("d10")).count(), 0);
    }

    #[test]
    fn what_says_nothing_does_not_make_a_name_known() {
        let names = names(&["a", "b"]);
        let both = [("a", "colour", text("red")), ("b", "colour", text("blue"))];
        let encoder = AttributeEncoder::fit("action", &names, &known(&both)).unwrap();
        let of = |property: &str, value: AttributeValue| {
            encoder.encode(known(&[("new", property, value)]).get("new"))
        };
        let unknown_level = of("colour", text("green"));
        assert!(!unknown_level.is_known && unknown_level.values == [0.0, 0.0]);
        assert!(of("colour", text("red")).is_known && !of("shape", text("red")).is_known);
        assert!(!encoder.encode(None).is_known);
        // One level, which only some have: having it is what is known.
        let one = AttributeEncoder::fit("action", &names, &known(&both[..1])).unwrap();
        assert_eq!(one.width(), 1);
        assert!(one.encode(known(&both).get("a")).is_known && !one.encode(known(&both).get("b")).is_known);
    }

    #[test]
    fn mixed_kinds_are_an_error() {
        let mixed = known(&[("a", "size", text("big")), ("b", "size", AttributeValue::Number(3.0))]);
        let error = AttributeEncoder::fit("action", &names(&["a", "b"]), &mixed).unwrap_err();
        assert_eq!(error.to_string(), "attribute `size` of actions: is a number for some, a text for others");
    }
}
