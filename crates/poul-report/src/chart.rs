//! What all charts share: a figure with choices, its words for those who do not see it, and its values as a table.
//!
//! Figures are plotly's JSON without colours: a trace names its `role`, and `page.js` gives roles the colours of the page.

use poul::effect::name_beside;
use serde::Serialize;
use serde_json::{Value, json};

use super::markup::escape;

/// A figure whose variants the reader chooses among: one drawing at a time, whatever their number.
pub(super) struct Panel {
    /// Its name in the page.
    pub(super) id: &'static str,
    /// What it shows.
    pub(super) title: String,
    /// How to read it.
    pub(super) how: String,
    /// What variants differ by, such as `outcome`; a choice is offered where there are several values.
    pub(super) keys: Vec<&'static str>,
    pub(super) variants: Vec<Variant>,
    /// The columns of its table of values.
    pub(super) columns: Vec<Column>,
}

/// One state of a figure.
#[derive(Serialize)]
pub(super) struct Variant {
    /// A value for each key.
    pub(super) at: Vec<String>,
    /// The main numbers, in words.
    pub(super) words: String,
    /// Plotly's traces; none for a variant that is HTML.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) traces: Vec<Value>,
    /// Plotly's layout, as far as it differs from that of all charts.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) layout: Value,
    /// What stands in the page instead of a chart.
    #[serde(skip)]
    pub(super) html: String,
}

/// A column of the values: a field of a trace.
#[derive(Clone, Serialize)]
pub(super) struct Column {
    name: String,
    trace: usize,
    /// The path to it: `x`, `error_x.array`.
    of: &'static str,
}

impl Column {
    pub(super) fn new(name: &str, trace: usize, of: &'static str) -> Self {
        Self { name: name.to_owned(), trace, of }
    }
}

impl Variant {
    pub(super) fn chart(at: Vec<String>, words: String, traces: Vec<Value>, layout: Value) -> Self {
        Self { at, words, traces, layout, html: String::new() }
    }

    pub(super) fn html(at: Vec<String>, words: String, html: String) -> Self {
        Self { at, words, traces: Vec::new(), layout: Value::Null, html }
    }
}

impl Panel {
    /// What `page.js` needs.
    pub(super) fn data(&self) -> Value {
        json!({ "id": self.id, "keys": self.keys, "columns": self.columns, "variants": self.variants })
    }

    pub(super) fn render(&self) -> String {
        let Self { id, title, how, .. } = self;
        let words = self.variants.first().map_or("", |variant| &variant.words);
        let (title, how, words) = (escape(title), escape(how), escape(words));
        let is_chart = self.variants.iter().any(|variant| !variant.traces.is_empty());
        let body = match is_chart {
            true => format!(
                "<div class=\"chart\" id=\"{id}-chart\" role=\"img\" tabindex=\"0\" aria-label=\"{title}. {words}\"></div>\n\
                 <p class=\"spoken\" aria-live=\"polite\"></p>\n"
            ),
            false => self
                .variants
                .iter()
                .enumerate()
                .map(|(place, variant)| {
                    let hidden = if place == 0 { "" } else { " hidden" };
                    format!("<div class=\"block\" data-variant=\"{place}\"{hidden}>{}</div>\n", variant.html)
                })
                .collect(),
        };
        let values = match is_chart {
            true => "<details class=\"values\"><summary>Values</summary></details>\n",
            false => "",
        };
        format!(
            "<figure class=\"panel\" id=\"{id}\" data-panel=\"{id}\">\n<h3>{title}</h3>\n{}{body}\
             <figcaption><span class=\"words\">{words}</span> <span class=\"how\">{how}</span></figcaption>\n{values}</figure>\n",
            self.choices(),
        )
    }

    /// A list for each key that has several values.
    fn choices(&self) -> String {
        let mut choices = String::new();
        for (place, key) in self.keys.iter().enumerate() {
            let mut values: Vec<&str> = Vec::new();
            for variant in &self.variants {
                if let Some(value) = variant.at.get(place)
                    && !values.contains(&value.as_str())
                {
                    values.push(value);
                }
            }
            if values.len() > 1 {
                let options: String =
                    values.iter().map(|value| format!("<option>{}</option>", escape(value))).collect();
                choices.push_str(&format!(
                    "<label>{key} <select data-key=\"{key}\">{options}</select></label>\n"
                ));
            }
        }
        if choices.is_empty() { choices } else { format!("<div class=\"choices\">\n{choices}</div>\n") }
    }
}

/// A name as plotly shows it: its labels understand some tags.
pub(super) fn label(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As [`label`], cut to what fits beside an axis.
pub(super) fn short_label(text: &str) -> String {
    policy_label(text, "")
}

/// As [`short_label`], of a policy: what differs from the policy compared with.
pub(super) fn policy_label(policy: &str, against: &str) -> String {
    const MOST: usize = 24;
    label(&name_beside(policy, against, MOST))
}

/// The places of at most `most` of `n` points, evenly spread, with both ends.
pub(super) fn thinned(n: usize, most: usize) -> Vec<usize> {
    let most = most.max(2);
    match n <= most {
        true => (0..n).collect(),
        false => (0..most).map(|place| place * (n - 1) / (most - 1)).collect(),
    }
}

/// An axis with a title.
pub(super) fn axis(title: &str) -> Value {
    json!({ "title": { "text": label(title) } })
}

/// An axis of names, the first on top.
pub(super) fn names_axis() -> Value {
    json!({ "type": "category", "autorange": "reversed", "automargin": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_and_order() {
        for (n, most) in [(0, 5), (1, 5), (5, 5), (101, 30), (1000, 101), (7, 2)] {
            let places = thinned(n, most);
            assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
            assert_eq!(places.len(), n.min(most));
            assert_eq!(places.last().copied(), n.checked_sub(1));
        }
    }
}
