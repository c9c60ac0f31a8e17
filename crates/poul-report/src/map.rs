//! How far is a policy from anything that was run: the policies on the first two axes of h, with distances.

use poul::evaluate::{Evaluation, PolicyPlace};
use serde_json::json;

use super::chart::{Column, Panel, Variant, axis, label, policy_label};
use super::markup::{HtmlTable, listed};
use super::page::{Part, Section};
use crate::number::{count, optional, percent, significant};

/// More names than this would cover each other; the hover text has them all.
const MOST_NAMES: usize = 25;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let places = &evaluation.policies;
    if places.is_empty() {
        return None;
    }
    let against = evaluation.results.first().map_or("", |result| &result.against);
    let parts = vec![Part::Panel(panel(places, against)), Part::Html(table(places))];
    Some(Section { id: "map-section", title: "How far is each policy from what was run?", parts })
}

fn panel(places: &[PolicyPlace], against: &str) -> Panel {
    let sides = label_sides(places);
    let most = places.iter().map(|place| place.rows).max().unwrap_or(0).max(1) as f64;
    let group = |run: bool| {
        let own: Vec<&PolicyPlace> = places.iter().filter(|place| (place.rows > 0) == run).collect();
        let sides: Vec<&str> = places
            .iter()
            .zip(&sides)
            .filter(|(place, _)| (place.rows > 0) == run)
            .map(|(_, side)| *side)
            .collect();
        let names: Vec<String> = own.iter().map(|place| policy_label(&place.policy, against)).collect();
        let hover: Vec<String> = own
            .iter()
            .map(|place| {
                let near = match (&place.nearest, place.distance) {
                    (Some(nearest), Some(distance)) if *nearest != place.policy => {
                        format!("<br>nearest {} at distance {}", label(nearest), significant(distance))
                    }
                    _ => String::new(),
                };
                format!(
                    "{}<br>{} training rows{near}<br>supported {}, unseen {}",
                    label(&place.policy),
                    count(place.rows),
                    percent(place.supported_share),
                    percent(place.unseen_share)
                )
            })
            .collect();
        let size: Vec<f64> = own.iter().map(|place| 8.0 + 20.0 * (place.rows as f64 / most).sqrt()).collect();
        json!({
            "type": "scatter", "mode": if places.len() > MOST_NAMES { "markers" } else { "markers+text" }, "role": "map",
            "name": if run { "run" } else { "never run" }, "x": own.iter().map(|place| place.at[0]).collect::<Vec<_>>(),
            "y": own.iter().map(|place| place.at[1]).collect::<Vec<_>>(), "text": names, "textposition": sides,
            "customdata": hover, "rows": own.iter().map(|place| place.rows).collect::<Vec<_>>(), "cliponaxis": false,
            "marker": { "size": size, "symbol": if run { "circle" } else { "diamond-open" } },
            "hovertemplate": "%{customdata}<extra></extra>",
        })
    };
    let n_run = places.iter().filter(|place| place.rows > 0).count();
    let traces = [true, false].into_iter().filter(|run| if *run { n_run > 0 } else { n_run < places.len() });
    let mut far: Vec<&PolicyPlace> =
        places.iter().filter(|place| place.distance.is_some_and(|own| own > 0.0)).collect();
    far.sort_by(|a, b| b.distance.partial_cmp(&a.distance).unwrap_or(std::cmp::Ordering::Equal));
    let far: Vec<String> =
        far.iter().map(|place| format!("{} at {}", place.policy, optional(place.distance))).collect();
    let words = match far.is_empty() {
        true => format!("All {} policies were run.", places.len()),
        false => {
            format!("{n_run} of {} policies were run; farthest from them: {}.", places.len(), listed(&far))
        }
    };
    let layout = json!({
        "xaxis": axis("first axis"), "yaxis": axis("second axis"), "height": 420,
        "margin": { "t": 56, "r": 36 },
    });
    Panel {
        id: "map",
        title: "Map of policies".to_owned(),
        how: "Policies that lie close together do similar things, as far as effects are concerned. The size of a mark is the \
              number of training rows; the distance runs from 0 (the same mixture) to 2 (nothing shared)."
            .to_owned(),
        keys: Vec::new(),
        variants: vec![Variant::chart(Vec::new(), words, traces.map(group).collect(), layout)],
        columns: vec![
            Column::new("policy", 0, "text"),
            Column::new("first axis", 0, "x"),
            Column::new("second axis", 0, "y"),
            Column::new("training rows", 0, "rows"),
        ],
    }
}

/// On which side of its mark each name stands, so that names keep away from marks and from each other.
fn label_sides(places: &[PolicyPlace]) -> Vec<&'static str> {
    const SIDES: [(&str, f64, f64); 4] = [
        ("top center", 0.0, 0.06),
        ("bottom center", 0.0, -0.06),
        ("middle right", 0.05, 0.0),
        ("middle left", -0.05, 0.0),
    ];
    let scaled = |axis: usize| -> Vec<f64> {
        let values = places.iter().map(|place| place.at[axis]);
        let (low, high) =
            values.clone().fold((f64::MAX, f64::MIN), |(low, high), own| (low.min(own), high.max(own)));
        values.map(|own| if high > low { (own - low) / (high - low) } else { 0.5 }).collect()
    };
    let (x, y) = (scaled(0), scaled(1));
    let mut taken: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let mut sides = Vec::with_capacity(places.len());
    for mark in 0..places.len() {
        let room = |(_, dx, dy): &(&str, f64, f64)| {
            let at = (x[mark] + dx, y[mark] + dy);
            let others = taken.iter().enumerate().filter(|(other, _)| *other != mark);
            others.map(|(_, own)| (own.0 - at.0).hypot(own.1 - at.1)).fold(0.1, f64::min)
        };
        // The first of equals: above, where there is room.
        let best = SIDES.iter().rev().max_by(|a, b| room(a).total_cmp(&room(b))).unwrap_or(&SIDES[0]);
        taken.push((x[mark] + best.1, y[mark] + best.2));
        sides.push(best.0);
    }
    sides
}

fn table(places: &[PolicyPlace]) -> String {
    let mut table = HtmlTable::new(
        "What stands behind each policy",
        1,
        ["policy", "training rows", "nearest run", "d", "supported", "unseen", "largest difference from it"],
    );
    for place in places {
        let bound: Vec<String> = place.bound.iter().map(|bound| significant(*bound)).collect();
        let class = if place.unseen_share > 0.0 { "thin" } else { "" };
        table.row(
            class,
            [
                place.policy.clone(),
                count(place.rows),
                place.nearest.clone().unwrap_or_else(|| "–".to_owned()),
                optional(place.distance),
                percent(place.supported_share),
                percent(place.unseen_share),
                if bound.is_empty() { "–".to_owned() } else { bound.join(" / ") },
            ],
        );
    }
    table.render()
}
