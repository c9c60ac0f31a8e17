//! Where the numbers come from: commands, seeds, fingerprints.

use poul::evaluate::{Evaluation, Provenance};

use super::markup::{HtmlTable, escape};
use super::page::{Part, Section};

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let provenance = evaluation.provenance.as_ref()?;
    let Provenance { poul, command, fit_command, learner, design, seeds, files, .. } = provenance;
    let mut list = format!("<dt>version</dt><dd>poul {}</dd>\n", escape(poul));
    for (name, value) in [("learner", learner), ("design", design)] {
        if let Some(value) = value {
            list += &format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value));
        }
    }
    for (what, seed) in seeds {
        list += &format!("<dt>seed of the {}</dt><dd>{seed}</dd>\n", escape(what));
    }
    let mut html = format!("<dl>\n{list}</dl>\n");
    for (what, command) in [("Fitted by", fit_command.as_deref()), ("Evaluated by", Some(command.as_str()))] {
        if let Some(command) = command.filter(|command| !command.is_empty()) {
            html += &format!("<h3>{what}</h3>\n<pre><code>{}</code></pre>\n", escape(command));
        }
    }
    let mut table = HtmlTable::new("Files", 2, ["file", "fingerprint"]);
    files.iter().for_each(|(file, fingerprint)| table.row("", [file.clone(), fingerprint.clone()]));
    if !table.is_empty() {
        html += &table.render();
    }
    let mut notes: Vec<&str> = Vec::new();
    for note in evaluation.results.iter().flat_map(|result| &result.metrics.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    if !notes.is_empty() {
        let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
        html += &format!("<details><summary>Notes on the metrics</summary>\n<ul>\n{items}</ul></details>\n");
    }
    Some(Section { id: "provenance", title: "Where the numbers come from", parts: vec![Part::Html(html)] })
}
