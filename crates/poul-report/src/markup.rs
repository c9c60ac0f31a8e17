//! Text into HTML: escaping, tables, numbers with their intervals.

use poul::evaluate::Interval;

use crate::number::optional;

/// Text that a browser shows as it is, between tags or inside a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A paragraph.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// A table; the first `n_words` columns hold words, the others numbers.
pub(super) struct HtmlTable {
    caption: String,
    n_words: usize,
    heading: Vec<String>,
    rows: Vec<(&'static str, Vec<String>)>,
}

impl HtmlTable {
    pub(super) fn new<const N: usize>(caption: &str, n_words: usize, heading: [&str; N]) -> Self {
        let heading = heading.map(str::to_owned).to_vec();
        Self { caption: caption.to_owned(), n_words, heading, rows: Vec::new() }
    }

    /// A table of any width, for [`cells`](Self::cells) to fill.
    pub(super) fn wide(caption: &str, n_words: usize, heading: Vec<String>) -> Self {
        Self { caption: caption.to_owned(), n_words, heading, rows: Vec::new() }
    }

    /// Adds a row to a table of any width.
    pub(super) fn cells(&mut self, class: &'static str, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heading.len());
        self.rows.push((class, cells));
    }

    /// Adds a row, in a class of its own (`""` for none).
    pub(super) fn row<const N: usize>(&mut self, class: &'static str, cells: [String; N]) {
        debug_assert_eq!(N, self.heading.len());
        self.rows.push((class, cells.to_vec()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table in a box that scrolls sideways where the screen is narrow; every cell is escaped here, and a column
    /// that has no number at all is left out.
    pub(super) fn render(&self) -> String {
        let kept = |place: &usize| {
            *place < self.n_words
                || self.rows.iter().any(|(_, cells)| cells.get(*place).is_some_and(|cell| cell != "–"))
        };
        let kept: Vec<usize> = (0..self.heading.len()).filter(kept).collect();
        let cell = |place: usize, text: &str, tag: &str, scope: &str| {
            let class = if place < self.n_words { "" } else { " class=\"n\"" };
            format!("<{tag}{scope}{class}>{}</{tag}>", escape(text))
        };
        let heading: String =
            kept.iter().map(|place| cell(*place, &self.heading[*place], "th", " scope=\"col\"")).collect();
        let mut rows = String::new();
        for (class, cells) in &self.rows {
            let cells: String = kept
                .iter()
                .map(|place| match place {
                    0 => cell(0, &cells[0], "th", " scope=\"row\""),
                    place => cell(*place, &cells[*place], "td", ""),
                })
                .collect();
            let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
            rows.push_str(&format!("<tr{class}>{cells}</tr>\n"));
        }
        format!(
            "<p class=\"caption\">{caption}</p>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
             <table aria-label=\"{caption}\">\n<thead><tr>{heading}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            caption = escape(&self.caption),
        )
    }
}

/// `low … high`, or a dash.
pub(super) fn interval(ends: Option<Interval>) -> String {
    ends.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
    )
}

/// A number with its sign.
pub(super) fn signed(value: Option<f64>) -> String {
    match value {
        Some(value) if value > 0.0 => format!("+{}", optional(Some(value))),
        value => optional(value),
    }
}

/// A sum, such as a gain: with thousands where it is large.
pub(super) fn amount(value: f64) -> String {
    const LARGE: f64 = 10_000.0;
    match value.abs() {
        size if (LARGE..1e15).contains(&size) => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, crate::number::count(size.round() as u64))
        }
        _ => crate::number::significant(value),
    }
}

/// `1 policy`, `2 policies`.
pub(super) fn several(n: usize, one: &str, many: &str) -> String {
    crate::number::counted(n, one, many)
}

/// The first few of a list, and how many more there are.
pub(super) fn listed(items: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
