//! Are the sizes right: predicted against observed effects by decile of the predicted effect.

use poul::evaluate::{Bin, Evaluation, Metric, Metrics};
use serde_json::json;

use super::chart::{Column, Panel, Variant, axis, label};
use super::checks::diagonal;
use super::curves::{comparisons, sentence_start};
use super::markup::interval;
use super::page::{Part, Section};
use super::{is_thin, left_out_sentence, shown_results};
use crate::number::optional;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let (results, left_out) = shown_results(evaluation);
    let variants: Vec<Variant> = comparisons(evaluation, &results)
        .iter()
        .filter(|(_, _, metrics)| metrics.calibration.iter().any(|bin| bin.observed.is_some()))
        .map(|(outcome, policy, metrics)| variant(outcome, policy, metrics))
        .collect();
    if variants.is_empty() {
        return None;
    }
    let panel = Panel {
        id: "calibration",
        title: "Predicted and observed effects by decile".to_owned(),
        how: format!(
            "Rows are cut into groups of equal size by predicted effect; the observed effect is the difference of the arms' \
             means, ± 2 standard errors. On the dotted line sizes are right; a slope of 1 says the same.{}",
            left_out_sentence(left_out)
        ),
        keys: vec!["outcome", "policy"],
        variants,
        columns: vec![
            Column::new("predicted", 0, "x"),
            Column::new("observed", 0, "y"),
            Column::new("standard error", 0, "customdata"),
            Column::new("rows", 0, "rows"),
        ],
    };
    Some(Section { id: "sizes", title: "Are the sizes right?", parts: vec![Part::Panel(panel)] })
}

fn variant(outcome: &str, policy: &str, metrics: &Metrics) -> Variant {
    let thin = is_thin(metrics.n_treated, metrics.n_control);
    let bins: Vec<&Bin> = metrics.calibration.iter().filter(|bin| bin.observed.is_some()).collect();
    let predicted: Vec<f64> = bins.iter().map(|bin| bin.predicted).collect();
    let observed: Vec<f64> = bins.iter().filter_map(|bin| bin.observed).collect();
    let se: Vec<Option<f64>> = bins.iter().map(|bin| bin.se.filter(|_| !thin)).collect();
    let length: Vec<f64> = se.iter().map(|se| 2.0 * se.unwrap_or(0.0)).collect();
    let rows: Vec<f64> = bins.iter().map(|bin| bin.n_treated + bin.n_control).collect();
    let mut traces = vec![json!({
        "type": "scatter", "mode": "markers", "role": if thin { "faint" } else { "points" }, "name": label(policy),
        "x": predicted, "y": observed, "customdata": se, "rows": rows, "error_y": { "type": "data", "array": length },
        "hovertemplate": "predicted %{x:.4~g}<br>observed %{y:.4~g} ± 2 × %{customdata:.3~g}<extra></extra>",
    })];
    traces.extend(diagonal(&predicted));
    let layout = json!({
        "xaxis": axis(&format!("predicted effect on {outcome}")),
        "yaxis": axis("observed effect"),
    });
    let slope = match metrics[Metric::CalibrationSlope].interval.filter(|_| !thin) {
        Some(ends) => {
            format!("slope {} ({})", optional(metrics[Metric::CalibrationSlope].value), interval(Some(ends)))
        }
        None => format!("slope {}", optional(metrics[Metric::CalibrationSlope].value)),
    };
    let words = format!(
        "{} on {outcome}: {slope}, MAPE {}, weighted MAPE {}; predicted effects from {} to {}.",
        sentence_start(policy),
        optional(metrics[Metric::Mape].value),
        optional(metrics[Metric::Wmape].value),
        optional(predicted.last().copied()),
        optional(predicted.first().copied()),
    );
    Variant::chart(vec![outcome.to_owned(), policy.to_owned()], words, traces, layout)
}
