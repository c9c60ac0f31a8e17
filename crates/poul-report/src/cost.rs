//! What the gain costs: incremental value against incremental cost as the targeted share grows.

use poul::evaluate::{CostResult, Evaluation};
use serde_json::json;

use super::MOST_POLICIES;
use super::chart::{Column, Panel, Variant, axis, label, thinned};
use super::markup::{amount, interval};
use super::page::{Part, Section};
use crate::number::optional;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let shown = evaluation.cost_curves.iter().filter(|curve| !curve.curve.is_empty()).take(MOST_POLICIES);
    let variants: Vec<Variant> = shown.map(variant).collect();
    if variants.is_empty() {
        return None;
    }
    let first = evaluation.cost_curves.first()?;
    let panel = Panel {
        id: "cost",
        title: format!("Incremental {} against incremental {}", first.value, first.cost),
        how: "Rows are targeted from the largest predicted effect on: every point is a share of them. The dotted line is \
              a random order; above it, the ranking buys more for the same money."
            .to_owned(),
        keys: vec!["policy"],
        variants,
        columns: vec![
            Column::new("share of rows", 0, "customdata"),
            Column::new(&format!("incremental {}", first.cost), 0, "x"),
            Column::new(&format!("incremental {}", first.value), 0, "y"),
        ],
    };
    Some(Section { id: "cost-section", title: "What does it cost?", parts: vec![Part::Panel(panel)] })
}

fn variant(result: &CostResult) -> Variant {
    let points: Vec<_> =
        thinned(result.curve.len(), 101).into_iter().map(|place| result.curve[place]).collect();
    let cost: Vec<f64> = points.iter().map(|point| point.cost).collect();
    let value: Vec<f64> = points.iter().map(|point| point.value).collect();
    let share: Vec<f64> = points.iter().map(|point| point.share).collect();
    let (all_cost, all_value) = (cost.last().copied().unwrap_or(0.0), value.last().copied().unwrap_or(0.0));
    let traces = vec![
        json!({ "type": "scatter", "mode": "lines", "role": "line", "name": label(&result.policy), "x": cost, "y": value,
                "customdata": share,
                "hovertemplate": "first %{customdata:.0%} of rows<br>cost %{x:.4s}<br>value %{y:.4s}<extra></extra>" }),
        json!({ "type": "scatter", "mode": "lines", "role": "reference", "name": "random order",
                "x": [0.0, all_cost], "y": [0.0, all_value] }),
    ];
    let layout = json!({
        "xaxis": axis(&format!("incremental {}", result.cost)),
        "yaxis": axis(&format!("incremental {}", result.value)),
    });
    let words = format!(
        "{}: treating everybody brings {} of {} for {} of {}; area under the curve {} ({}), a random order has {}.",
        result.policy,
        amount(all_value),
        result.value,
        amount(all_cost),
        result.cost,
        optional(result.aucc),
        interval(result.aucc_interval),
        optional(result.random_aucc),
    );
    Variant::chart(vec![result.policy.clone()], words, traces, layout)
}
