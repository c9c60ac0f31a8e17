//! What should we do: an allocation as a page of its own.

use poul::decide::users::{Allocation, AllocationWorth};
use poul::evaluate::Estimated;
use serde_json::json;

use super::chart::{Column, Panel, Variant, axis};
use super::markup::{HtmlTable, amount, paragraph};
use super::page::{Part, Section};
use crate::number::{count, optional, percent, significant};
use poul::plainly;

/// Policies that a page lists, those with most users.
const MOST_POLICIES: usize = 100;

pub(super) fn sections(allocation: &Allocation) -> Vec<Section> {
    let section = |id, title, parts| Section { id, title, parts };
    let mut sections = vec![
        section("decision", "What should we do?", vec![Part::Html(decision(allocation))]),
        section("limits", "What do the limits cost?", vec![Part::Html(limits(allocation))]),
    ];
    if allocation.curve.len() > 1 {
        sections.push(section(
            "budgets",
            "What would other budgets bring?",
            vec![Part::Panel(curve(allocation))],
        ));
    }
    if let Some(evaluation) = &allocation.evaluation {
        sections.push(section("worth", "What is it worth?", vec![Part::Html(worth(evaluation))]));
    }
    sections
}

fn decision(allocation: &Allocation) -> String {
    let outcomes: Vec<&String> = allocation.value.keys().collect();
    let heading = ["policy", "users", "share"].map(String::from).into_iter();
    let heading = heading.chain(outcomes.iter().map(|name| format!("{name}, predicted")));
    let caption = format!("Who gets what, against everybody keeping {}", allocation.control);
    let mut table = HtmlTable::wide(&caption, 1, heading.collect());
    for own in allocation.policies.iter().filter(|own| own.users > 0.0).take(MOST_POLICIES) {
        let cells = [own.policy.clone(), count(own.users.round() as u64), percent(own.share)].into_iter();
        let totals = outcomes
            .iter()
            .map(|name| own.totals.get(*name).map_or("–".to_owned(), |total| amount(*total)));
        table.cells("", cells.chain(totals).collect());
    }
    let notes: String = allocation.notes.iter().map(|note| paragraph(&plainly(note))).collect();
    paragraph(&allocation.summary) + &table.render() + &notes
}

fn limits(allocation: &Allocation) -> String {
    let mut table = HtmlTable::new("Limits", 1, ["limit", "amount", "used", "slack", "price"]);
    for own in &allocation.constraints {
        let number = |number: Option<f64>| match own.unit.as_str() {
            "users" => number.map_or_else(|| "–".to_owned(), percent),
            _ => optional(number),
        };
        let price = own.price_in_words(&allocation.maximize);
        table.row("", [own.name.clone(), number(own.limit), number(own.used), number(own.slack), price]);
    }
    let gap = match (allocation.duality_gap, allocation.bound) {
        (Some(gap), Some(bound)) => format!(
            "No allocation within the limits brings more than {} of {}: this one is at most {} away from it (the duality gap).",
            amount(bound),
            allocation.maximize,
            significant(gap)
        ),
        _ => "Decided by prices that were found before: limits are not kept by force.".to_owned(),
    };
    let table = if table.is_empty() { paragraph("There are no limits.") } else { table.render() };
    table + &paragraph(&gap)
}

fn curve(allocation: &Allocation) -> Panel {
    let of = |value: &dyn Fn(&poul::decide::users::CurvePoint) -> Option<f64>| -> Vec<Option<f64>> {
        allocation.curve.iter().map(value).collect()
    };
    let budget = of(&|point| Some(point.budget));
    let line = |role: &str, name: &str, y: Vec<Option<f64>>| {
        json!({ "type": "scatter", "mode": "lines", "role": role, "name": name, "x": budget, "y": y,
                "hovertemplate": "budget %{x:.4s}<br>%{y:.4s}<extra></extra>" })
    };
    let is_valued = allocation.curve.iter().all(|point| point.lower.is_some());
    let mut traces = Vec::new();
    if is_valued {
        traces.push(line("low", "low", of(&|point| point.lower)));
        traces.push(line("high", "band", of(&|point| point.upper)));
        traces.push(line("line", "by outcomes", of(&|point| Some(point.value))));
    }
    let role = if is_valued { "reference" } else { "line" };
    traces.push(line(role, "predicted", of(&|point| Some(point.predicted))));
    let own = traces.len() - 1;
    let layout = json!({ "xaxis": axis("budget"), "yaxis": axis(&allocation.maximize) });
    let (first, last) = (allocation.curve.first(), allocation.curve.last());
    let words = match (first, last) {
        (Some(first), Some(last)) => format!(
            "A budget of {} brings {} of {} as predicted, one of {} brings {}.",
            amount(first.budget),
            amount(first.predicted),
            allocation.maximize,
            amount(last.budget),
            amount(last.predicted)
        ),
        _ => String::new(),
    };
    Panel {
        id: "budget-curve",
        title: format!("{} that budgets bring", allocation.maximize),
        how: match is_valued {
            true => "Every point is the best allocation for its budget. The line is what it is worth by the outcomes of these \
                     rows, the band holds the whole line at once; the dotted line is what was predicted."
                .to_owned(),
            false => "Every point is the best allocation for its budget, as predicted.".to_owned(),
        },
        keys: Vec::new(),
        variants: vec![Variant::chart(Vec::new(), words, traces, layout)],
        columns: vec![
            Column::new("budget", own, "x"),
            Column::new(&format!("{}, predicted", allocation.maximize), own, "y"),
        ],
    }
}

fn worth(worth: &AllocationWorth) -> String {
    let outcomes = worth.rules.first().map(|rule| rule.outcomes.as_slice()).unwrap_or_default();
    let mut heading = vec!["rule".to_owned()];
    heading.extend(outcomes.iter().map(|own| format!("{} a user", own.outcome)));
    heading.extend(["return".to_owned(), format!("this is better by ({})", worth.maximize)]);
    let caption =
        format!("By the outcomes of {} rows, against everybody {}", count(worth.rows), worth.against);
    let mut table = HtmlTable::wide(&caption, 1, heading);
    let told = |own: &Estimated| {
        format!(
            "{} ({} … {})",
            significant(own.estimate),
            significant(own.interval[0]),
            significant(own.interval[1])
        )
    };
    for rule in &worth.rules {
        let mut cells = vec![rule.rule.clone()];
        cells.extend(rule.outcomes.iter().map(|own| told(&own.per_user)));
        cells.push(rule.gained_per_unit.as_ref().map_or_else(|| "–".to_owned(), told));
        let better = rule.outcomes.iter().find(|own| own.outcome == worth.maximize);
        let better = better.and_then(|own| own.first_is_better_by.as_ref());
        cells.push(better.map_or_else(|| "–".to_owned(), told));
        table.cells("", cells);
    }
    let how = format!(
        "Each row's doubly robust score of the policy that a rule gives it, whatever it got; intervals at {}, differences row by \
         row.",
        percent(worth.level)
    );
    let notes: String = worth.notes.iter().map(|note| paragraph(note)).collect();
    paragraph(&how) + &table.render() + &notes
}
