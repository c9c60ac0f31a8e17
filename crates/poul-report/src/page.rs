//! The page: head, style, sections, the numbers of the charts once, and the scripts. Nothing is fetched.

use poul::{Error, Result};
use serde_json::{Value, json};

use super::chart::Panel;
use super::markup::escape;

/// A page of sections.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) sections: Vec<Section>,
}

/// A part of the page under a heading.
pub(super) struct Section {
    /// Its name in links.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) parts: Vec<Part>,
}

/// What a section is made of.
pub(super) enum Part {
    /// Ready markup.
    Html(String),
    /// A figure.
    Panel(Panel),
}

/// The chart library: `plotly/README.md` says which, and how it is updated.
const LIBRARY: &str = include_str!("plotly/plotly-cartesian.min.js");

/// Only what stands in the page may run, and nothing may be fetched.
const SECURITY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data: blob:; base-uri 'none'; form-action 'none'";

impl Page {
    pub(super) fn render(&self) -> Result<String> {
        let title = escape(&self.title);
        let links: String = self
            .sections
            .iter()
            .map(|section| format!("<a href=\"#{}\">{}</a>\n", section.id, escape(section.title)))
            .collect();
        let (mut body, mut panels) = (String::new(), Vec::new());
        for Section { id, title, parts } in &self.sections {
            body.push_str(&format!("<section id=\"{id}\">\n<h2>{}</h2>\n", escape(title)));
            for part in parts {
                match part {
                    Part::Html(html) => body.push_str(html),
                    Part::Panel(panel) => {
                        body.push_str(&panel.render());
                        panels.push(panel.data());
                    }
                }
            }
            body.push_str("</section>\n");
        }
        let style = include_str!("page.css");
        let script = include_str!("page.js");
        let data = json_in_html(&json!({ "panels": panels }))?;
        Ok(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{SECURITY}\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the report</a>\n\
             <header>\n<h1>{title}</h1>\n<nav aria-label=\"Sections\">\n{links}</nav>\n</header>\n\
             <main id=\"main\">\n<noscript><p>Charts need JavaScript; the tables do not.</p></noscript>\n{body}</main>\n\
             <script type=\"application/json\" id=\"report-data\">{data}</script>\n\
             <script>{LIBRARY}</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
        ))
    }
}

/// JSON that cannot end the element it stands in.
fn json_in_html(value: &Value) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::other(format!("cannot write the numbers of the report: {error}")))?;
    // Outside of strings JSON has no `<`.
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}
