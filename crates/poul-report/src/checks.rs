//! Was the experiment sound: checks of the design, balance, overlap, the outcome model, placebo and sensitivity.

use poul::evaluate::{Evaluation, Validation};
use serde_json::{Value, json};

use super::chart::{Column, Panel, Variant, axis, label, names_axis, short_label};
use super::markup::{HtmlTable, interval, paragraph, several};
use super::page::{Part, Section};
use super::summary::Line;
use crate::number::{count, percent, significant};

/// Features in the balance chart.
const MOST_FEATURES: usize = 15;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let mut parts = Vec::new();
    match &evaluation.validation {
        None => parts.push(Part::Html(paragraph(
            "No checks of the design came with this evaluation; poul check profiles a table before it is used.",
        ))),
        Some(validation) => {
            let lines: String = validation
                .checks
                .iter()
                .map(|check| Line::new(Some(check.verdict), format!("{}: {}", check.name, check.text)).render())
                .collect();
            parts.push(Part::Html(format!("<ul class=\"verdicts\">\n{lines}</ul>\n")));
            parts.extend(balance(validation).map(Part::Panel));
            parts.extend(overlap(validation).map(Part::Html));
            parts.extend(outcome_model(validation).map(Part::Panel));
            parts.extend(placebo(validation).map(Part::Html));
            parts.extend(sensitivity(validation).map(Part::Html));
            parts.extend(hidden(validation).map(Part::Html));
        }
    }
    Some(Section { id: "checks", title: "Was the experiment sound?", parts })
}

fn balance(validation: &Validation) -> Option<Panel> {
    let shown: Vec<_> = validation.balance.iter().take(MOST_FEATURES).collect();
    let worst = shown.first()?;
    let names: Vec<String> = shown.iter().map(|own| short_label(&own.feature)).collect();
    let before: Vec<f64> = shown.iter().map(|own| own.before).collect();
    let after: Vec<f64> = shown.iter().map(|own| own.correlation).collect();
    let z: Vec<f64> = shown.iter().map(|own| own.z).collect();
    let words = format!(
        "The feature that predicts the policy best has correlation {} with it ({}), {} standard errors from none.",
        significant(worst.correlation),
        worst.feature,
        significant(worst.z),
    );
    let hover = "%{y}<br>|correlation| %{x:.4f}<extra></extra>";
    let traces = vec![
        json!({ "type": "scatter", "mode": "markers", "role": "faint", "name": "before accounting for propensities",
                "x": before, "y": names, "hovertemplate": hover }),
        json!({ "type": "scatter", "mode": "markers", "role": "points", "name": "after",
                "x": after, "y": names, "customdata": z, "hovertemplate": hover }),
    ];
    let mut xaxis = axis("|correlation|");
    xaxis["rangemode"] = json!("tozero");
    let layout = json!({ "xaxis": xaxis, "yaxis": names_axis(), "height": 110 + 22 * shown.len() });
    Some(Panel {
        id: "balance",
        title: "Balance of the assignment over features".to_owned(),
        how: format!(
            "The {} that predict best which policy a row received, once the propensities are accounted for; near zero where \
             assignment does not depend on the feature.",
            several(shown.len(), "feature", "features")
        ),
        keys: Vec::new(),
        variants: vec![Variant::chart(Vec::new(), words, traces, layout)],
        columns: vec![
            Column::new("feature", 1, "y"),
            Column::new("before", 0, "x"),
            Column::new("after", 1, "x"),
            Column::new("z", 1, "customdata"),
        ],
    })
}

fn overlap(validation: &Validation) -> Option<String> {
    let mut table = HtmlTable::new(
        "Overlap: the probability of each policy over all rows",
        1,
        ["policy", "rows", "effective", "least", "5 %", "median", "95 %", "most", "rows without a chance"],
    );
    for own in &validation.overlap {
        let at = |place: usize| {
            own.quantiles.get(place).map_or_else(|| "–".to_owned(), |value| significant(*value))
        };
        table.row(
            "",
            [
                own.policy.clone(),
                count(own.rows as u64),
                count(own.effective_rows.round() as u64),
                at(0),
                at(1),
                at(3),
                at(5),
                at(6),
                count(own.without_overlap as u64),
            ],
        );
    }
    (!table.is_empty()).then(|| table.render())
}

fn outcome_model(validation: &Validation) -> Option<Panel> {
    let mut variants = Vec::new();
    for own in &validation.outcome_model {
        let (x, y): (Vec<f64>, Vec<f64>) =
            own.bins.iter().map(|[predicted, mean]| (*predicted, *mean)).unzip();
        let words =
            format!("The model of {} explains {} of its variance out of fold.", own.outcome, percent(own.r2));
        let mut traces: Vec<Value> =
            vec![json!({ "type": "scatter", "mode": "markers+lines", "role": "line", "name": "deciles",
            "x": x, "y": y, "hovertemplate": "predicted %{x:.4s}<br>observed %{y:.4s}<extra></extra>" })];
        traces.extend(diagonal(&x));
        let (predicted, observed) = (format!("predicted {}", own.outcome), format!("mean {}", own.outcome));
        let layout = json!({ "xaxis": axis(&predicted), "yaxis": axis(&observed) });
        variants.push(Variant::chart(vec![own.outcome.clone()], words, traces, layout));
    }
    (!variants.is_empty()).then(|| Panel {
        id: "outcome-model",
        title: "The outcome model, by decile of its prediction".to_owned(),
        how: "Points on the dotted line: the mean outcome is what was predicted before the policy was known."
            .to_owned(),
        keys: vec!["outcome"],
        variants,
        columns: vec![Column::new("predicted", 0, "x"), Column::new("observed", 0, "y")],
    })
}

/// The line on which both axes agree, over the range of what was predicted: noise in what was observed must not squeeze it.
pub(super) fn diagonal(predicted: &[f64]) -> Option<Value> {
    let (low, high) = predicted
        .iter()
        .copied()
        .fold((f64::MAX, f64::MIN), |(low, high), own| (low.min(own), high.max(own)));
    (low < high).then(|| {
        json!({ "type": "scatter", "mode": "lines", "role": "reference", "name": label("as predicted"),
                "x": [low, high], "y": [low, high] })
    })
}

fn placebo(validation: &Validation) -> Option<String> {
    let mut table = HtmlTable::new(
        "Placebo: the spread of effects when the treatment is permuted",
        1,
        ["outcome", "as fitted", "permuted, mean", "permuted, most", "permutations"],
    );
    for own in &validation.placebo {
        let n = own.permuted.len();
        let mean = own.permuted.iter().sum::<f64>() / n.max(1) as f64;
        let most = own.permuted.iter().copied().fold(0.0, f64::max);
        table.row(
            "",
            [
                own.outcome.clone(),
                significant(own.spread),
                significant(mean),
                significant(most),
                count(n as u64),
            ],
        );
    }
    (!table.is_empty()).then(|| table.render())
}

fn sensitivity(validation: &Validation) -> Option<String> {
    let mut table = HtmlTable::new(
        "Sensitivity: how much of what is left unexplained a hidden cause would have to explain",
        2,
        ["policy", "outcome", "to bring the effect to zero", "to bring the interval to zero"],
    );
    for own in &validation.sensitivity {
        table.row(
            "",
            [
                own.policy.clone(),
                own.outcome.clone(),
                percent(own.robustness),
                percent(own.robustness_interval),
            ],
        );
    }
    (!table.is_empty()).then(|| table.render())
}

/// Bounds of average effects for some factors of the odds.
fn hidden(validation: &Validation) -> Option<String> {
    let mut table = HtmlTable::new(
        "Hidden causes: the interval of the average effect if something unobserved changed the odds of getting a policy",
        2,
        ["policy", "outcome", "1.5 times", "2 times", "3 times", "it holds zero from"],
    );
    for own in &validation.sensitivity {
        let Some(hidden) = &own.hidden else { continue };
        let of = |factor: f64| {
            let bound = hidden.bounds.iter().find(|bound| bound.lambda == factor);
            interval(bound.map(|bound| bound.interval))
        };
        let vanishes = format!("{} times", significant(hidden.vanishes_at));
        table.row("", [own.policy.clone(), own.outcome.clone(), of(1.5), of(2.0), of(3.0), vanishes]);
    }
    (!table.is_empty()).then(|| table.render())
}
