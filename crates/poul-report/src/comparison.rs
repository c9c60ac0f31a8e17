//! The report of a comparison: which learner ranks best and by how much, on the same test rows.

use poul::compare::{Cell, Comparison, Estimate, LearnerResult};
use poul::evaluate::{Metric, Verdict};
use serde_json::json;

use super::MOST_POLICIES;
use super::chart::{Column, Panel, Variant, axis, short_label};
use super::markup::{HtmlTable, escape, interval, listed, several, signed};
use super::page::{Part, Section};
use super::summary::Line;
use crate::number::{count, optional, significant};

/// What stands for all policies together.
const ALL_POLICIES: &str = "all policies";

pub(super) fn sections(comparison: &Comparison, command: &str) -> Vec<Section> {
    let mut sections = vec![summary(comparison)];
    let auuc = panel(
        comparison,
        "auuc",
        Metric::Auuc,
        "AUUC of each learner",
        "How well each learner ranks the test rows, with its interval; the dotted line is a random order.",
    );
    let difference = differences(comparison);
    let parts: Vec<Part> =
        auuc.into_iter().chain(difference).map(Part::Panel).chain(tables(comparison)).collect();
    if comparison.learners.iter().any(|learner| !learner.cells.is_empty()) {
        sections.push(Section { id: "learners", title: "Which learner ranks best?", parts });
    }
    let how = "The mean error of predicted effects by decile, relative to what was observed; less is better.";
    if let Some(sizes) = panel(comparison, "wmape", Metric::Wmape, "Weighted MAPE of each learner", how) {
        sections.push(Section {
            id: "sizes",
            title: "Whose sizes are right?",
            parts: vec![Part::Panel(sizes)],
        });
    }
    sections.extend(super::assigned::of_comparison(comparison));
    sections.extend(losses(comparison));
    sections.push(provenance(comparison, command));
    sections
}

fn summary(comparison: &Comparison) -> Section {
    let mut lines = vec![Line::new(
        None,
        format!(
            "{} on {} to train on, {} to validate, {} to test; policies against {}.",
            several(comparison.learners.len(), "learner", "learners"),
            several(comparison.train_rows, "row", "rows"),
            count(comparison.validation_rows as u64),
            count(comparison.test_rows as u64),
            comparison.against
        ),
    )];
    for (population, outcome) in groups(comparison) {
        lines.extend(best(comparison, &population, &outcome));
    }
    let by_loss = comparison.learners.iter().filter_map(|own| Some((own.validation_r_loss?, &own.label)));
    if let Some((loss, label)) = by_loss.min_by(|a, b| a.0.total_cmp(&b.0)) {
        lines.push(Line::new(None, format!("The least validation R-loss is that of {label}: {loss:.5}.")));
    }
    for failure in &comparison.failures {
        let text = format!("{} failed with seed {}: {}", failure.label, failure.seed, failure.error);
        lines.push(Line::new(Some(Verdict::Fail), text));
    }
    let items: String = lines.iter().map(Line::render).collect();
    let parts = vec![Part::Html(format!("<ul class=\"verdicts\">\n{items}</ul>\n"))];
    Section { id: "summary", title: "Summary", parts }
}

/// Who ranks best, and whom the paired difference separates from the reference.
fn best(comparison: &Comparison, population: &str, outcome: &str) -> Option<Line> {
    let of = |learner: &LearnerResult| {
        let cell = learner.cell(population, outcome, None)?;
        cell.metric(Metric::Auuc).copied()
    };
    let known: Vec<(&LearnerResult, Estimate)> =
        comparison.learners.iter().filter_map(|learner| Some((learner, of(learner)?))).collect();
    let (first, estimate) = known.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let mut text = format!(
        "On {outcome}, {population} population, {} has the largest AUUC: {} ({}).",
        first.label,
        significant(estimate.value),
        interval(estimate.interval)
    );
    if let Some(reference) = &comparison.reference {
        let apart = |sign: f64| -> Vec<String> {
            let own = known.iter().filter(|(_, own)| {
                own.difference_interval.is_some_and(|[low, high]| low * sign > 0.0 && high * sign > 0.0)
            });
            own.map(|(learner, _)| learner.label.clone()).collect()
        };
        let (better, worse) = (apart(1.0), apart(-1.0));
        text += &match (better.is_empty(), worse.is_empty()) {
            (true, true) => format!(" No difference to {reference} is separated from zero."),
            (false, true) => format!(" Better than {reference}: {}.", listed(&better)),
            (true, false) => format!(" Worse than {reference}: {}.", listed(&worse)),
            (false, false) => {
                format!(" Better than {reference}: {}; worse: {}.", listed(&better), listed(&worse))
            }
        };
    }
    Some(Line::new(None, text))
}

/// Populations and outcomes, in their order.
fn groups(comparison: &Comparison) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for cell in comparison.learners.iter().flat_map(|learner| &learner.cells) {
        let group = (cell.population.clone(), cell.outcome.clone());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// The cells of a group that the first learner has: all policies together come first.
fn cells<'a>(comparison: &'a Comparison, population: &str, outcome: &str) -> Vec<&'a Cell> {
    let Some(first) = comparison.learners.first() else { return Vec::new() };
    let own = |cell: &&Cell| cell.population == population && cell.outcome == outcome;
    let mut cells: Vec<&Cell> = first.cells.iter().filter(own).collect();
    cells.sort_by_key(|cell| cell.policy.is_some());
    cells.truncate(MOST_POLICIES);
    cells
}

/// A learner's estimate of one comparison.
type Known<'a> = (&'a LearnerResult, Estimate);

fn estimates<'a>(comparison: &'a Comparison, cell: &Cell, metric: Metric) -> Vec<Known<'a>> {
    let of = |learner: &'a LearnerResult| {
        let own = learner.cell(&cell.population, &cell.outcome, cell.policy.as_deref())?;
        Some((learner, *own.metric(metric)?))
    };
    comparison.learners.iter().filter_map(of).collect()
}

fn panel(comparison: &Comparison, id: &'static str, metric: Metric, title: &str, how: &str) -> Option<Panel> {
    let value = |own: &Estimate| Some((own.value, own.interval));
    let random = (metric == Metric::Auuc).then_some(0.5);
    learners_panel(comparison, id, metric, (title, how), value, random)
}

fn differences(comparison: &Comparison) -> Option<Panel> {
    let reference = comparison.reference.as_ref()?;
    let title = format!("Difference in AUUC to {reference}");
    let how = "From the same draws of the test rows for both learners: an interval on one side of zero separates them.";
    let value = |own: &Estimate| Some((own.difference?, own.difference_interval));
    learners_panel(comparison, "difference", Metric::Auuc, (&title, how), value, Some(0.0))
}

/// A dot and an interval for each learner.
fn learners_panel(
    comparison: &Comparison,
    id: &'static str,
    metric: Metric,
    (title, how): (&str, &str),
    value: impl Fn(&Estimate) -> Option<(f64, Option<[f64; 2]>)>,
    reference: Option<f64>,
) -> Option<Panel> {
    let mut variants = Vec::new();
    for (population, outcome) in groups(comparison) {
        for cell in cells(comparison, &population, &outcome) {
            let known: Vec<(String, f64, Option<[f64; 2]>)> = estimates(comparison, cell, metric)
                .iter()
                .filter_map(|(learner, own)| value(own).map(|(x, ends)| (learner.label.clone(), x, ends)))
                .collect();
            if known.is_empty() {
                continue;
            }
            let sign = if cell.ate.is_some_and(|ate| ate < 0.0) { -1.0 } else { 1.0 };
            let policy = cell.policy.clone().unwrap_or_else(|| ALL_POLICIES.to_owned());
            let at = vec![population.clone(), outcome.clone(), policy];
            variants.push(learners_variant(at, title, &known, reference.map(|own| own * sign)));
        }
    }
    (!variants.is_empty()).then(|| Panel {
        id,
        title: title.to_owned(),
        how: how.to_owned(),
        keys: vec!["population", "outcome", "policy"],
        variants,
        columns: vec![
            Column::new("learner", 0, "customdata"),
            Column::new("value", 0, "x"),
            Column::new("low", 0, "lower"),
            Column::new("high", 0, "upper"),
        ],
    })
}

fn learners_variant(
    at: Vec<String>,
    title: &str,
    known: &[(String, f64, Option<[f64; 2]>)],
    reference: Option<f64>,
) -> Variant {
    let place: Vec<usize> = (0..known.len()).collect();
    let names: Vec<String> = known.iter().map(|(label, ..)| short_label(label)).collect();
    let x: Vec<f64> = known.iter().map(|(_, x, _)| *x).collect();
    let end = |side: usize| -> Vec<Option<f64>> {
        known.iter().map(|(_, _, ends)| ends.map(|ends| ends[side])).collect()
    };
    let length = |side: usize| -> Vec<f64> {
        known.iter().map(|(_, x, ends)| ends.map_or(0.0, |ends| (ends[side] - x).abs())).collect()
    };
    let hover: Vec<String> =
        known.iter().map(|(_, x, ends)| format!("{} ({})", significant(*x), interval(*ends))).collect();
    let traces = vec![json!({
        "type": "scatter", "mode": "markers", "role": "points", "name": "learner", "x": x, "y": place, "lower": end(0),
        "upper": end(1), "customdata": names, "text": hover, "cliponaxis": false,
        "error_x": { "type": "data", "symmetric": false, "array": length(1), "arrayminus": length(0) },
        "hovertemplate": "%{customdata}<br>%{text}<extra></extra>",
    })];
    let shapes: Vec<_> = reference
        .into_iter()
        .map(|x| {
            json!({ "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                    "line": { "dash": "dot", "width": 1.5, "color": "gray" } })
        })
        .collect();
    let layout = json!({
        "xaxis": axis(title), "height": 100 + 30 * known.len(), "shapes": shapes,
        "yaxis": { "tickmode": "array", "tickvals": place, "ticktext": names, "zeroline": false,
                   "range": [known.len() as f64 - 0.4, -0.6] },
    });
    let said: Vec<String> =
        known.iter().map(|(label, x, _)| format!("{label} {}", significant(*x))).collect();
    let words = format!("On {}, {} population, {}: {}.", at[1], at[0], at[2], said.join(", "));
    Variant::chart(at, words, traces, layout)
}

fn tables(comparison: &Comparison) -> Vec<Part> {
    let reference = comparison.reference.as_deref().unwrap_or("–");
    // The ranking in full, the others by their values.
    let others: Vec<Metric> = Metric::compared()
        .filter(|metric| *metric != Metric::Auuc && metric.definition().compared.is_some())
        .collect();
    let mut parts = Vec::new();
    for (population, outcome) in groups(comparison) {
        let difference = format!("difference to {reference}");
        let first = ["learner", Metric::Auuc.title(), "interval", &difference, "interval", "sd over seeds"];
        let heading = first.into_iter().chain(others.iter().map(|metric| metric.title())).map(str::to_owned);
        let caption = format!("All policies together on {outcome}, {population} population");
        let mut table = HtmlTable::wide(&caption, 1, heading.collect());
        for learner in &comparison.learners {
            let Some(cell) = learner.cell(&population, &outcome, None) else { continue };
            let auuc = cell.metric(Metric::Auuc);
            let value = |metric: Metric| optional(cell.metric(metric).map(|own| own.value));
            let mut cells = vec![
                learner.label.clone(),
                value(Metric::Auuc),
                interval(auuc.and_then(|own| own.interval)),
                signed(auuc.and_then(|own| own.difference)),
                interval(auuc.and_then(|own| own.difference_interval)),
                optional(auuc.and_then(|own| own.seed_sd)),
            ];
            cells.extend(others.iter().map(|metric| value(*metric)));
            table.cells("", cells);
        }
        if !table.is_empty() {
            parts.push(Part::Html(table.render()));
        }
    }
    parts
}

fn losses(comparison: &Comparison) -> Option<Section> {
    let mut table = HtmlTable::new(
        "Validation R-loss, in variances of the outcomes; less is better",
        1,
        ["learner", "R-loss", "sd over seeds"],
    );
    for learner in &comparison.learners {
        let loss = learner.validation_r_loss.map_or_else(|| "–".to_owned(), |loss| format!("{loss:.5}"));
        table.row("", [learner.label.clone(), loss, optional(learner.validation_r_loss_seed_sd)]);
    }
    let known = comparison.learners.iter().any(|learner| learner.validation_r_loss.is_some());
    known.then(|| Section {
        id: "losses",
        title: "What validation rows say",
        parts: vec![Part::Html(table.render())],
    })
}

fn provenance(comparison: &Comparison, command: &str) -> Section {
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let mut html = format!(
        "<dl>\n<dt>version</dt><dd>poul {}</dd>\n<dt>seeds</dt><dd>{}</dd>\n<dt>bootstrap</dt><dd>{} at {:.0} %</dd>\n</dl>\n\
         <h3>Compared by</h3>\n<pre><code>{}</code></pre>\n",
        escape(&comparison.poul),
        seeds.join(", "),
        several(comparison.draws, "draw", "draws"),
        100.0 * comparison.level,
        escape(command)
    );
    let mut notes: Vec<&str> = comparison.notes.iter().map(String::as_str).collect();
    for note in comparison.learners.iter().flat_map(|learner| &learner.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    if !notes.is_empty() {
        let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
        html += &format!("<details><summary>Notes</summary>\n<ul>\n{items}</ul></details>\n");
    }
    Section { id: "provenance", title: "Where the numbers come from", parts: vec![Part::Html(html)] }
}
