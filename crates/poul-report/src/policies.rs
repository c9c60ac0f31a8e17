//! The policies beside each other: average effects with intervals, and what stands behind each.

use poul::evaluate::{AverageEffect, Evaluation, Interval, Metric, PolicyResult, verdicts};
use serde_json::{Value, json};

use super::chart::{Column, Panel, Variant, axis, names_axis, policy_label};
use super::markup::{HtmlTable, interval, listed, paragraph, several, signed};
use super::page::{Part, Section};
use super::summary::average;
use super::{FEWEST_ROWS, is_thin, left_out_sentence, outcomes, shown_results};
use crate::number::{count, optional, percent};

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    if evaluation.results.is_empty() {
        return None;
    }
    let mut parts: Vec<Part> = effects(evaluation).into_iter().map(Part::Panel).collect();
    let verdicts = verdicts(evaluation);
    for outcome in outcomes(evaluation) {
        parts.push(Part::Html(effect_table(evaluation, outcome)));
        let own = verdicts.outcomes.iter().find(|own| own.outcome == outcome);
        let difference = own.and_then(|own| own.difference.as_deref());
        parts.extend(difference.map(|text| Part::Html(paragraph(text))));
        parts.push(Part::Html(quality_table(evaluation, outcome)));
    }
    let n_thin = evaluation
        .results
        .iter()
        .filter(|result| is_thin(result.metrics.n_treated, result.metrics.n_control))
        .count();
    if n_thin > 0 {
        parts.push(Part::Html(paragraph(&format!(
            "{} with fewer than {FEWEST_ROWS} rows in an arm: in grey, without intervals.",
            several(n_thin, "comparison", "comparisons")
        ))));
    }
    Some(Section { id: "policies", title: "What the policies do", parts })
}

/// A policy's average effect as it is shown.
struct Shown<'a> {
    result: &'a PolicyResult,
    effect: Option<f64>,
    interval: Option<Interval>,
    band: Option<Interval>,
    q_value: Option<f64>,
    predicted: Option<f64>,
    outside_band: bool,
    thin: bool,
}

/// The doubly robust average where there is one, or where nobody randomised; the difference in means otherwise.
fn shown<'a>(evaluation: &Evaluation, result: &'a PolicyResult) -> Shown<'a> {
    let metrics = &result.metrics;
    let thin = is_thin(metrics.n_treated, metrics.n_control);
    let is_told = |own: &&AverageEffect| own.effect.is_some() || own.share_without_overlap.is_some();
    let robust = average(evaluation, result).filter(is_told);
    let (effect, ends) = match robust {
        Some(average) => (average.effect, average.interval),
        None => (metrics[Metric::Ate].value, metrics[Metric::Ate].interval),
    };
    Shown {
        result,
        effect,
        interval: ends.filter(|_| !thin),
        band: robust.and_then(|average| average.band).filter(|_| !thin),
        q_value: robust.and_then(|average| average.q_value).filter(|_| !thin),
        predicted: robust.and_then(|average| average.predicted).or(metrics[Metric::AtePredicted].value),
        outside_band: !thin && robust.is_some_and(|average| average.outside_band),
        thin,
    }
}

fn effects(evaluation: &Evaluation) -> Option<Panel> {
    let (results, left_out) = shown_results(evaluation);
    let mut variants = Vec::new();
    for outcome in outcomes(evaluation) {
        let own: Vec<Shown<'_>> = results
            .iter()
            .filter(|result| result.outcome == outcome)
            .map(|result| shown(evaluation, result))
            .filter(|own| own.effect.is_some())
            .collect();
        if !own.is_empty() {
            variants.push(effects_variant(outcome, &own));
        }
    }
    let robust = evaluation.averages.iter().any(|average| average.by.is_none());
    let observed = evaluation.averages.iter().any(|average| average.share_without_overlap.is_some());
    let what = match (robust, observed) {
        (_, true) => "by the doubly robust score, over the rows that had a real chance of both policies",
        (true, _) => "by the doubly robust score",
        _ => "the difference in means",
    };
    let banded = evaluation.averages.iter().any(|average| average.band.is_some());
    let band = match banded {
        true => " The thin line is the simultaneous band, which all policies are inside of at once.",
        false => "",
    };
    (!variants.is_empty()).then(|| Panel {
        id: "effects",
        title: "Average effect of each policy".to_owned(),
        how: format!(
            "Observed: {what}, with its interval.{band} Diamonds: the mean predicted effect.{}",
            left_out_sentence(left_out)
        ),
        keys: vec!["outcome"],
        variants,
        columns: vec![
            Column::new("policy", 0, "customdata"),
            Column::new("effect", 0, "x"),
            Column::new("low", 0, "lower"),
            Column::new("high", 0, "upper"),
            Column::new("predicted", 2, "x"),
        ],
    })
}

fn effects_variant(outcome: &str, own: &[Shown<'_>]) -> Variant {
    let names: Vec<String> =
        own.iter().map(|own| policy_label(&own.result.policy, &own.result.against)).collect();
    let place: Vec<usize> = (0..own.len()).collect();
    let effect: Vec<Option<f64>> = own.iter().map(|own| own.effect).collect();
    let end = |ends: fn(&Shown<'_>) -> Option<Interval>, side: usize| -> Vec<Option<f64>> {
        own.iter().map(|own| ends(own).map(|ends| ends[side])).collect()
    };
    let bars = |ends: fn(&Shown<'_>) -> Option<Interval>| -> Value {
        let length = |side: usize| -> Vec<f64> {
            let one = |own: &Shown<'_>| Some((ends(own)?[side] - own.effect?).abs());
            own.iter().map(|own| one(own).unwrap_or(0.0)).collect()
        };
        json!({ "type": "data", "symmetric": false, "array": length(1), "arrayminus": length(0) })
    };
    let hover: Vec<String> = own
        .iter()
        .map(|own| format!("effect {}<br>interval {}", signed(own.effect), interval(own.interval)))
        .collect();
    let symbols: Vec<&str> = own.iter().map(|own| if own.thin { "circle-open" } else { "circle" }).collect();
    let mut traces = vec![
        json!({ "type": "scatter", "mode": "markers", "role": "points", "name": "observed", "x": effect, "y": place,
                "lower": end(|own| own.interval, 0), "upper": end(|own| own.interval, 1), "text": hover,
                "customdata": names, "marker": { "symbol": symbols }, "error_x": bars(|own| own.interval),
                "hovertemplate": "%{customdata}<br>%{text}<extra></extra>" }),
        json!({ "type": "scatter", "mode": "markers", "role": "band", "name": "band", "showlegend": false, "x": effect,
                "y": place, "error_x": bars(|own| own.band) }),
        json!({ "type": "scatter", "mode": "markers", "role": "rival", "name": "predicted",
                "x": own.iter().map(|own| own.predicted).collect::<Vec<_>>(), "y": place, "customdata": names,
                "hovertemplate": "%{customdata}<br>predicted %{x:.4~g}<extra></extra>" }),
    ];
    // Names may repeat once they are shortened, so that places carry the axis and names label it.
    let mut yaxis = names_axis();
    yaxis["type"] = json!("linear");
    yaxis["tickmode"] = json!("array");
    yaxis["tickvals"] = json!(place);
    yaxis["ticktext"] = json!(names);
    yaxis["range"] = json!([own.len() as f64 - 0.4, -0.6]);
    yaxis["autorange"] = json!(false);
    yaxis["zeroline"] = json!(false);
    traces[0]["cliponaxis"] = json!(false);
    let layout = json!({ "xaxis": axis(&format!("effect on {outcome}")), "yaxis": yaxis, "height": 120 + 28 * own.len() });
    let sentences: Vec<String> = own
        .iter()
        .map(|own| format!("{} {} ({})", own.result.policy, signed(own.effect), interval(own.interval)))
        .collect();
    Variant::chart(vec![outcome.to_owned()], format!("On {outcome}: {}.", listed(&sentences)), traces, layout)
}

/// What each policy does.
fn effect_table(evaluation: &Evaluation, outcome: &str) -> String {
    let mut table = HtmlTable::new(
        &format!("Effects on {outcome}"),
        1,
        [
            "policy",
            "treated",
            "control",
            "effect",
            "interval",
            "band",
            "q",
            "predicted",
            "difference in means",
            "supported",
        ],
    );
    for result in evaluation.results.iter().filter(|result| result.outcome == outcome) {
        let own = shown(evaluation, result);
        let is_robust = average(evaluation, result).is_some_and(|average| average.effect.is_some());
        let place = evaluation.policies.iter().find(|place| place.policy == result.policy);
        table.row(
            class(&own),
            [
                result.policy.clone(),
                count(result.metrics.n_treated as u64),
                count(result.metrics.n_control as u64),
                signed(own.effect),
                interval(own.interval),
                interval(own.band),
                own.q_value.map_or_else(|| "–".to_owned(), |q| format!("{q:.3}")),
                predicted(&own),
                signed(result.metrics[Metric::Ate].value.filter(|_| is_robust)),
                place.map_or_else(|| "–".to_owned(), |place| percent(place.supported_share)),
            ],
        );
    }
    table.render()
}

fn predicted(own: &Shown<'_>) -> String {
    match own.outside_band {
        true => format!("{} (outside the observed band)", signed(own.predicted)),
        false => signed(own.predicted),
    }
}

/// How good its predictions are.
fn quality_table(evaluation: &Evaluation, outcome: &str) -> String {
    let is_reported = |metric: &Metric| Some((*metric, metric.definition().reported?.interval));
    let mut metrics: Vec<(Metric, bool)> = Metric::ARMS.iter().filter_map(is_reported).collect();
    metrics.sort_by_key(|(metric, with_interval)| (metric.definition().about, !with_interval));
    let heading = metrics.iter().flat_map(|(metric, with_interval)| {
        std::iter::once(metric.title()).chain(with_interval.then_some("interval"))
    });
    let heading: Vec<String> = std::iter::once("policy").chain(heading).map(str::to_owned).collect();
    let mut table = HtmlTable::wide(&format!("Ranking and sizes on {outcome}"), 1, heading);
    for result in evaluation.results.iter().filter(|result| result.outcome == outcome) {
        let own = shown(evaluation, result);
        let numbers = metrics.iter().flat_map(|(metric, with_interval)| {
            let number = result.metrics[*metric];
            let ends = with_interval.then(|| interval(number.interval.filter(|_| !own.thin)));
            std::iter::once(optional(number.value)).chain(ends)
        });
        table.cells(class(&own), std::iter::once(result.policy.clone()).chain(numbers).collect());
    }
    table.render()
}

fn class(own: &Shown<'_>) -> &'static str {
    if own.thin { "thin" } else { "" }
}
