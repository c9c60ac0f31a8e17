//! How training went: what it had to say, and the losses of each phase by epoch.

use poul::evaluate::{Evaluation, TrainingPoint};
use serde_json::json;

use super::chart::{Column, Panel, Variant, axis};
use super::markup::escape;
use super::page::{Part, Section};
use crate::number::significant;

const ID: &str = "training-section";
const TITLE: &str = "How training went";

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let provenance = evaluation.provenance.as_ref()?;
    let history = &provenance.history;
    let mut variants: Vec<Variant> = Vec::new();
    for points in history.chunk_by(|a, b| a.phase == b.phase && a.epoch < b.epoch) {
        let phase = points.first().map_or("", |point| &point.phase);
        let several = variants.iter().filter(|own| own.at.iter().any(|at| at.starts_with(phase))).count();
        let name = if several == 0 { phase.to_owned() } else { format!("{phase} ({})", several + 1) };
        variants.push(variant(name, points));
    }
    let mut parts = Vec::new();
    if !provenance.fit_notes.is_empty() {
        let items = provenance.fit_notes.iter().map(|note| format!("<li>{}</li>\n", escape(note)));
        parts.push(Part::Html(format!("<ul>\n{}</ul>\n", items.collect::<String>())));
    }
    if variants.is_empty() {
        return (!parts.is_empty()).then_some(Section { id: ID, title: TITLE, parts });
    }
    let panel = Panel {
        id: "training",
        title: "Loss by epoch".to_owned(),
        how: "Training goes on while the validation loss falls; a curve that ends while it still falls was stopped by the \
              number of epochs."
            .to_owned(),
        keys: vec!["phase"],
        variants,
        columns: vec![
            Column::new("epoch", 0, "x"),
            Column::new("loss", 0, "y"),
            Column::new("validation", 1, "y"),
        ],
    };
    parts.push(Part::Panel(panel));
    Some(Section { id: ID, title: TITLE, parts })
}

fn variant(phase: String, points: &[TrainingPoint]) -> Variant {
    let epoch: Vec<usize> = points.iter().map(|point| point.epoch).collect();
    let loss: Vec<f64> = points.iter().map(|point| point.loss).collect();
    let validation: Vec<Option<f64>> = points.iter().map(|point| point.validation).collect();
    let hover = "epoch %{x}<br>%{y:.5~g}<extra></extra>";
    let mut traces =
        vec![json!({ "type": "scatter", "mode": "lines+markers", "role": "line", "name": "training",
        "x": epoch, "y": loss, "hovertemplate": hover })];
    let least = validation.iter().flatten().copied().reduce(f64::min);
    if least.is_some() {
        traces.push(
            json!({ "type": "scatter", "mode": "lines+markers", "role": "second", "name": "validation",
            "x": epoch, "y": validation, "hovertemplate": hover }),
        );
    }
    let mut words = format!("{phase}: {} epochs", points.len());
    if let Some(last) = loss.last() {
        words += &format!(", training loss {} at the end", significant(*last));
    }
    if let Some(least) = least {
        words += &format!(", least validation loss {}", significant(least));
    }
    let mut xaxis = axis("epoch");
    xaxis["rangemode"] = json!("tozero");
    Variant::chart(vec![phase], words + ".", traces, json!({ "xaxis": xaxis, "yaxis": axis("loss") }))
}
