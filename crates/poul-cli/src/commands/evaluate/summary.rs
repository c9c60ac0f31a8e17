//! An evaluation for a person: a table of metrics, averages, checks, notes.

use std::collections::BTreeMap;

use poul::evaluate::{Evaluation, Metric, Metrics, Shown};
use poul_report::number::{count, optional};

use super::{assigned, averages, checks, verdicts};
use crate::table::{Table, shortened_beside};

/// The main numbers, for a person.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    let compared = match evaluation.results.is_empty() {
        true => String::new(),
        false => comparisons(evaluation),
    };
    let text = compared + &assigned::summary(evaluation) + &averages::summary(evaluation);
    // Nothing above it where policies were not compared one by one.
    text.trim_start_matches('\n').to_owned()
        + &checks::summary(evaluation)
        + &notes(evaluation)
        + &verdicts::summary(evaluation)
}

/// Policies one by one.
fn comparisons(evaluation: &Evaluation) -> String {
    let metrics: Vec<(Metric, Shown)> =
        Metric::ARMS.iter().filter_map(|metric| Some((*metric, metric.definition().evaluated?))).collect();
    let heading = metrics.iter().flat_map(|(metric, shown)| {
        std::iter::once(metric.title()).chain(shown.interval.then_some("interval")).map(str::to_owned)
    });
    let mut table = Table::new(["outcome", "policy", "treated", "control"]).with(heading).left(2);
    let mut row = |outcome: &str, policy: String, own: &Metrics| {
        let first = [outcome.to_owned(), policy, count(own.n_treated as u64), count(own.n_control as u64)];
        let numbers = metrics.iter().flat_map(|(metric, shown)| {
            let number = own[*metric];
            std::iter::once(optional(number.value)).chain(shown.interval.then(|| interval(number.interval)))
        });
        table.row_with(first, numbers);
    };
    for result in &evaluation.results {
        row(&result.outcome, shortened_beside(&result.policy, &result.against), &result.metrics);
    }
    for pooled in evaluation.pooled.iter().filter(|pooled| pooled.policies.len() > 1) {
        row(&pooled.outcome, format!("all {}, pooled", pooled.policies.len()), &pooled.metrics);
    }
    let against = evaluation.results.first().map_or("", |result| &result.against);
    let mut text = table.to_string();
    text.push_str(&format!(
        "\nEffects are against {against}; intervals at {:.0} %. A random ranking has AUUC 0.5 (−0.5 where the effect is \
         negative) and Qini 0.\n",
        100.0 * evaluation.level
    ));
    for cost in &evaluation.cost_curves {
        text.push_str(&format!(
            "{}: area under the cost curve ({} against {}) {} {}\n",
            cost.policy,
            cost.value,
            cost.cost,
            optional(cost.aucc),
            interval(cost.aucc_interval),
        ));
    }
    text
}

/// `low … high`, or a dash.
pub(super) fn interval(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
    )
}

/// Each note once, with the comparisons it is about. That 0/1 metrics do not apply is left to the JSON.
fn notes(evaluation: &Evaluation) -> String {
    const SHOWN: usize = 5;
    let many = evaluation.results.len() > SHOWN;
    let mut about: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for result in &evaluation.results {
        for note in &result.metrics.notes {
            // With many policies most bins are noisy; the table says enough.
            if note.contains("0/1 outcomes only") || (many && note.starts_with("mape: in ")) {
                continue;
            }
            about.entry(note).or_default().push(format!("{} of {}", result.outcome, result.policy));
        }
    }
    note_lines(&about, SHOWN)
}

/// A line for each note, with the first few of what it is about.
pub(super) fn note_lines(about: &BTreeMap<&str, Vec<String>>, n_shown: usize) -> String {
    let line = |(note, about): (&&str, &Vec<String>)| {
        let shown = about.iter().take(n_shown).cloned().collect::<Vec<_>>().join(", ");
        match about.len().saturating_sub(n_shown) {
            0 => format!("note: {shown}: {note}\n"),
            more => format!("note: {shown} and {more} more: {note}\n"),
        }
    };
    about.iter().map(line).collect()
}
