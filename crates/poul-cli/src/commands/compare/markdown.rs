//! The paper's tables as Markdown: Table 1, and the detailed tables where a learner takes part by several schedules.

use poul::compare::{Comparison, LearnerResult};
use poul::evaluate::Metric;
use poul_report::policies_name;

use super::layout::{Layout, METRICS, is_better_large, policy_name};

pub(super) fn tables(comparison: &Comparison) -> String {
    let layout = Layout::new(comparison);
    let mut text = format!(
        "Effects against `{}`; {} test rows; intervals at {:.0} % in brackets; the best of each column is bold.\n",
        comparison.against.replace(['`', '\n', '<'], " "),
        comparison.test_rows,
        100.0 * comparison.level
    );
    for outcome in &layout.outcomes {
        text += &format!("\n### {}\n\n", escaped(outcome));
        text += &table(&layout, outcome, &layout.selected(), false);
    }
    if layout.has_details() {
        let all: Vec<&LearnerResult> = comparison.learners.iter().collect();
        for outcome in &layout.outcomes {
            text += &format!("\n### {}, by training schedule\n\n", escaped(outcome));
            text += &table(&layout, outcome, &all, true);
        }
    }
    text += &assigned(comparison);
    for failure in &comparison.failures {
        text += &format!("\n{} failed: {}\n", escaped(&failure.label), escaped(&failure.error));
    }
    text
}

/// Each row by its own policy, where arms are too thin to compare policies one by one.
fn assigned(comparison: &Comparison) -> String {
    let Some(first) =
        comparison.learners.first().filter(|own| comparison.thin_arms && !own.assigned.is_empty())
    else {
        return String::new();
    };
    let mut text = "\n### Every row by its own policy\n\n".to_owned();
    let heading = ["outcome", "population", "policies", "learner"].map(str::to_owned);
    let metrics = Metric::ASSIGNED.map(|metric| metric.title().to_owned());
    text += &line(&[&heading[..], &metrics[..]].concat());
    text += &line(&["---", "---", "---", "---", "---:", "---:", "---:"].map(str::to_owned));
    for (place, cell) in first.assigned.iter().enumerate() {
        for learner in &comparison.learners {
            let Some(own) = learner.assigned.get(place) else { continue };
            let value = |metric: Metric| match own.metric(metric) {
                None => "–".to_owned(),
                Some(estimate) => {
                    let ends = estimate.interval.map(|[low, high]| format!(" [{low:.3}, {high:.3}]"));
                    format!("{:.3}{}", estimate.value, ends.unwrap_or_default())
                }
            };
            let names = [&cell.outcome, &cell.population, policies_name(own.policies), &learner.label];
            let names = names.map(|name: &str| escaped(name));
            text += &line(&[&names[..], &Metric::ASSIGNED.map(value)[..]].concat());
        }
    }
    text
}

fn table(layout: &Layout<'_>, outcome: &str, rows: &[&LearnerResult], detailed: bool) -> String {
    let mut heading = vec!["learner".to_owned()];
    if detailed {
        heading.push("epochs (global, core)".to_owned());
    }
    heading.push("validation R-loss".to_owned());
    for group in &layout.groups {
        for metric in METRICS {
            let arrow = if is_better_large(metric) { "↑" } else { "↓" };
            let policy = policy_name(group.policy.as_deref());
            heading.push(escaped(&format!("{}, {policy}: {} {arrow}", group.population, metric.title())));
        }
    }
    let mut text = line(&heading);
    let rule = |index: usize| if index == 0 { "---" } else { "---:" }.to_owned();
    text += &line(&(0..heading.len()).map(rule).collect::<Vec<_>>());
    for row in rows {
        let mut cells = vec![escaped(&row.learner)];
        if detailed {
            cells.push(row.schedule.map_or_else(|| "–".to_owned(), |schedule| schedule.to_string()));
        }
        cells.push(row.validation_r_loss.map_or_else(|| "–".to_owned(), |loss| format!("{loss:.5}")));
        for group in &layout.groups {
            for metric in METRICS {
                let Some(estimate) = layout.estimate(row, outcome, group, metric) else {
                    cells.push("–".to_owned());
                    continue;
                };
                let value = format!("{:.3}", estimate.value);
                let best = layout.is_best(rows, estimate.value, outcome, group, metric);
                let value = if best { format!("**{value}**") } else { value };
                let interval = estimate.interval.map(|[low, high]| format!(" [{low:.3}, {high:.3}]"));
                cells.push(value + &interval.unwrap_or_default());
            }
        }
        text += &line(&cells);
    }
    text
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Text that is neither markup, nor a link, nor the end of a cell: names come from whoever made the table.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '|' | '[' | ']' | '`' | '\\' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_not_markup() {
        let name = "<img src=x onerror=alert(1)> [a](javascript:b) `c` | d\ne";
        let escaped = super::escaped(name);
        assert_eq!(escaped, "&lt;img src=x onerror=alert(1)&gt; \\[a\\](javascript:b) \\`c\\` \\| d e");
    }
}
