//! Is the ranking real: uplift curves with their bands, by outcome and policy.

use poul::evaluate::{Evaluation, Metric, Metrics};
use serde_json::json;

use super::chart::{Column, Panel, Variant, axis, label, thinned};
use super::markup::{amount, interval};
use super::page::{Part, Section};
use super::{is_thin, left_out_sentence, shown_results};
use crate::number::optional;

/// Points of all curves together, about: more variants have fewer points each, so that the page stays small.
const MOST_POINTS: usize = 8_000;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let (results, left_out) = shown_results(evaluation);
    let comparisons = comparisons(evaluation, &results);
    let most = (MOST_POINTS / comparisons.len().max(1)).clamp(11, 101);
    let variants: Vec<Variant> = comparisons
        .iter()
        .filter(|(_, _, metrics)| !metrics.curve.is_empty())
        .map(|(outcome, policy, metrics)| variant(outcome, policy, metrics, most))
        .collect();
    if variants.is_empty() {
        return None;
    }
    let panel = Panel {
        id: "curves",
        title: "Uplift curve".to_owned(),
        how: format!(
            "Rows are sorted by predicted effect, the largest first: the height is what treating the first share of them \
             brought in total. The dotted line is a random order; the band holds the curve at {:.0} %, point by point.{}",
            100.0 * evaluation.level,
            left_out_sentence(left_out)
        ),
        keys: vec!["outcome", "policy"],
        variants,
        columns: vec![
            Column::new("share of rows", 2, "x"),
            Column::new("gain", 2, "y"),
            Column::new("low", 0, "y"),
            Column::new("high", 1, "y"),
            Column::new("effect per row", 2, "customdata"),
        ],
    };
    Some(Section { id: "ranking", title: "Is the ranking real?", parts: vec![Part::Panel(panel)] })
}

/// What stands for all policies of an outcome together.
const ALL_POLICIES: &str = "all policies";

/// Every comparison that has numbers to draw: outcome, policy, metrics; all policies together where there are several.
pub(super) fn comparisons<'a>(
    evaluation: &'a Evaluation,
    results: &[&'a poul::evaluate::PolicyResult],
) -> Vec<(&'a str, String, &'a Metrics)> {
    let mut comparisons = Vec::new();
    for outcome in super::outcomes(evaluation) {
        let pooled =
            evaluation.pooled.iter().filter(|pooled| pooled.outcome == outcome && pooled.policies.len() > 1);
        comparisons.extend(pooled.map(|pooled| (outcome, ALL_POLICIES.to_owned(), &pooled.metrics)));
        let own = results.iter().filter(|result| result.outcome == outcome);
        comparisons.extend(own.map(|result| (outcome, result.policy.clone(), &result.metrics)));
    }
    comparisons
}

/// A policy at the start of a sentence.
pub(super) fn sentence_start(policy: &str) -> &str {
    if policy == ALL_POLICIES {
        "All policies pooled, which ranks policies and users together,"
    } else {
        policy
    }
}

fn variant(outcome: &str, policy: &str, metrics: &Metrics, most: usize) -> Variant {
    let thin = is_thin(metrics.n_treated, metrics.n_control);
    let points: Vec<_> =
        thinned(metrics.curve.len(), most).into_iter().map(|place| metrics.curve[place]).collect();
    let share: Vec<f64> = points.iter().map(|point| point.share).collect();
    let end = |side: usize| -> Vec<Option<f64>> {
        points.iter().map(|point| point.gain_interval.filter(|_| !thin).map(|ends| ends[side])).collect()
    };
    let gain: Vec<f64> = points.iter().map(|point| point.gain).collect();
    let hover: Vec<String> = points
        .iter()
        .map(|point| match point.gain_interval.filter(|_| !thin) {
            Some(ends) => format!("gain {} ({} … {})", amount(point.gain), amount(ends[0]), amount(ends[1])),
            None => format!("gain {}", amount(point.gain)),
        })
        .collect();
    let last = gain.last().copied().unwrap_or(0.0);
    let line = |role: &str, name: &str, y: serde_json::Value| json!({ "type": "scatter", "mode": "lines", "role": role, "name": name, "x": share, "y": y });
    let mut own = line(if thin { "faint" } else { "line" }, &label(policy), json!(gain));
    own["text"] = json!(hover);
    own["customdata"] = json!(points.iter().map(|point| point.lift).collect::<Vec<_>>());
    own["hovertemplate"] =
        json!("first %{x:.0%} of rows<br>%{text}<br>effect per row %{customdata:.4~g}<extra></extra>");
    let mut random = line("reference", "random order", json!([0.0, last]));
    random["x"] = json!([0.0, 1.0]);
    let mut high = line("high", "band", json!(end(1)));
    high["showlegend"] = json!(!thin && points.iter().any(|point| point.gain_interval.is_some()));
    let traces = vec![line("low", "low", json!(end(0))), high, own, random];
    let mut xaxis = axis("share of rows, largest predicted effect first");
    xaxis["tickformat"] = json!(".0%");
    xaxis["tickvals"] = json!([0.0, 0.25, 0.5, 0.75, 1.0]);
    xaxis["range"] = json!([0.0, 1.0]);
    let layout = json!({ "xaxis": xaxis, "yaxis": axis(&format!("gain in {outcome}")) });
    let auuc = match metrics[Metric::Auuc].interval.filter(|_| !thin) {
        Some(ends) => format!("AUUC {} ({})", optional(metrics[Metric::Auuc].value), interval(Some(ends))),
        None => format!("AUUC {}", optional(metrics[Metric::Auuc].value)),
    };
    let random = optional(metrics[Metric::RandomAuuc].value);
    let words = format!(
        "{} on {outcome}: {auuc}, a random order has {random}; treating everybody brings {}.{}",
        sentence_start(policy),
        amount(last),
        if thin { " Too few rows for a band." } else { "" }
    );
    Variant::chart(vec![outcome.to_owned(), policy.to_owned()], words, traces, layout)
}
