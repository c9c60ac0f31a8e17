//! What each action does in each context: a heat map with coverage.

use poul::evaluate::{AtomEffect, Evaluation};
use serde_json::{Value, json};

use super::chart::{Column, Panel, Variant, label, short_label};
use super::markup::{interval, listed, signed};
use super::page::{Part, Section};
use crate::number::count;

/// Cells with room for a number.
const MOST_NUMBERS: usize = 120;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let mut outcomes: Vec<&str> = Vec::new();
    for atom in &evaluation.atoms {
        if !outcomes.contains(&atom.outcome.as_str()) {
            outcomes.push(&atom.outcome);
        }
    }
    let variants: Vec<Variant> = outcomes
        .into_iter()
        .map(|outcome| {
            variant(
                outcome,
                &evaluation.atoms.iter().filter(|atom| atom.outcome == outcome).collect::<Vec<_>>(),
            )
        })
        .collect();
    if variants.is_empty() {
        return None;
    }
    let panel = Panel {
        id: "atoms",
        title: "Effect of each action in each context".to_owned(),
        how: "The average effect on the whole population of changing that one cell of the control policy, in units of the \
              outcome. The table has intervals: one for each cell alone, and a band that holds all cells at once. A dot \
              marks what control does already, a question mark a cell that no training row carried; an empty cell cannot \
              be scored."
            .to_owned(),
        keys: vec!["outcome"],
        variants,
        columns: vec![
            Column::new("context", 0, "list.context"),
            Column::new("action", 0, "list.action"),
            Column::new("effect", 0, "list.effect"),
            Column::new("interval", 0, "list.interval"),
            Column::new("band", 0, "list.band"),
            Column::new("training rows", 0, "list.rows"),
        ],
    };
    Some(Section { id: "atoms-section", title: "What does each action do?", parts: vec![Part::Panel(panel)] })
}

fn variant(outcome: &str, atoms: &[&AtomEffect]) -> Variant {
    let distinct = |name: fn(&AtomEffect) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        for atom in atoms {
            if !names.contains(&name(atom)) {
                names.push(name(atom));
            }
        }
        names
    };
    let (contexts, actions) = (distinct(|atom| &atom.context), distinct(|atom| &atom.action));
    let cell = |context: &str, action: &str| {
        atoms.iter().find(|atom| atom.context == context && atom.action == action).copied()
    };
    let grid = |of: &dyn Fn(&str, &str, Option<&AtomEffect>) -> Value| -> Vec<Vec<Value>> {
        let row = |context: &&str| {
            actions.iter().map(|action| of(context, action, cell(context, action))).collect()
        };
        contexts.iter().map(row).collect()
    };
    let numbers = contexts.len() * actions.len() <= MOST_NUMBERS;
    let text = grid(&|_, _, atom| match atom {
        Some(atom) if atom.control => json!("•"),
        Some(atom) if atom.rows == 0 => json!("?"),
        Some(AtomEffect { effect: Some(effect), .. }) if numbers => json!(signed(Some(*effect))),
        _ => json!(""),
    });
    let hover = grid(&|context, action, atom| {
        let said = match atom {
            None => "no such atom".to_owned(),
            Some(atom) => {
                let effect =
                    atom.effect.map_or_else(|| "cannot be scored".to_owned(), |own| signed(Some(own)));
                let control = if atom.control { "<br>control does this" } else { "" };
                let ends =
                    atom.interval.map_or_else(String::new, |_| format!(" ({})", interval(atom.interval)));
                format!("effect {effect}{ends}<br>{} training rows{control}", count(atom.rows))
            }
        };
        json!(format!("{} in {}<br>{said}", label(action), label(context)))
    });
    let effects = grid(&|_, _, atom| json!(atom.and_then(|atom| atom.effect)));
    let most = atoms.iter().filter_map(|atom| atom.effect).fold(0.0_f64, |most, own| most.max(own.abs()));
    let most = if most > 0.0 { most } else { 1.0 };
    let list = |of: fn(&AtomEffect) -> Value| atoms.iter().map(|atom| of(atom)).collect::<Vec<_>>();
    let places = |n: usize| (0..n).collect::<Vec<_>>();
    let traces = vec![json!({
        "type": "heatmap", "role": "heat", "z": effects, "x": places(actions.len()), "y": places(contexts.len()),
        "text": text, "texttemplate": "%{text}", "customdata": hover, "hovertemplate": "%{customdata}<extra></extra>",
        "zmin": -most, "zmax": most, "xgap": 2, "ygap": 2,
        "list": { "context": list(|atom| json!(atom.context)), "action": list(|atom| json!(atom.action)),
                  "effect": list(|atom| json!(atom.effect)), "interval": list(|atom| json!(interval(atom.interval))),
                  "band": list(|atom| json!(interval(atom.band))), "rows": list(|atom| json!(atom.rows)) },
    })];
    let ticks = |names: &[&str]| {
        json!({ "tickmode": "array", "tickvals": places(names.len()), "zeroline": false, "showgrid": false,
                "ticktext": names.iter().map(|name| short_label(name)).collect::<Vec<_>>() })
    };
    let (xaxis, mut yaxis) = (ticks(&actions), ticks(&contexts));
    yaxis["autorange"] = json!("reversed");
    let layout = json!({ "xaxis": xaxis, "yaxis": yaxis, "height": (120 + 34 * contexts.len()).min(1600) });
    let mut known: Vec<&&AtomEffect> =
        atoms.iter().filter(|atom| !atom.control && atom.effect.is_some()).collect();
    known.sort_by(|a, b| b.effect.partial_cmp(&a.effect).unwrap_or(std::cmp::Ordering::Equal));
    let told = |atom: Option<&&&AtomEffect>| {
        atom.map(|atom| format!("{} in {} {}", atom.action, atom.context, signed(atom.effect)))
    };
    let unseen: Vec<String> = atoms
        .iter()
        .filter(|atom| atom.rows == 0)
        .map(|atom| format!("{} in {}", atom.action, atom.context))
        .collect();
    let mut words = match (told(known.first()), told(known.last())) {
        (Some(best), Some(worst)) => {
            format!("On {outcome} the largest effect is that of {best}, the least of {worst}.")
        }
        _ => format!("On {outcome} no atom can be scored."),
    };
    if !unseen.is_empty() {
        words += &format!(" Never seen in training: {}.", listed(&unseen));
    }
    Variant::chart(vec![outcome.to_owned()], words, traces, layout)
}
