//! Average effects for a person: a row for each policy, and for each group of the columns asked for.

use std::collections::BTreeMap;

use poul::evaluate::{AverageEffect, BY_PREDICTED_EFFECT, Evaluation};
use poul_report::number::{count, optional};

use super::summary::note_lines;
use crate::table::{Table, shortened, shortened_beside};

/// The averages over all rows, then by the columns that were asked for; those by predicted effect are left to the JSON.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    let by = |average: &AverageEffect| average.by.clone().unwrap_or_default();
    let whole: Vec<&AverageEffect> = evaluation.averages.iter().filter(|own| own.by.is_none()).collect();
    let grouped: Vec<&AverageEffect> = evaluation
        .averages
        .iter()
        .filter(|own| !by(own).is_empty() && by(own) != BY_PREDICTED_EFFECT)
        .collect();
    if whole.is_empty() {
        return String::new();
    }
    let is_observed = whole.iter().any(|own| own.share_without_overlap.is_some());
    let mut text = format!(
        "\nAverage effects over {} by the doubly robust score; interval of each alone and band of all at once at \
         {:.0} %, q: false-discovery rate.\n",
        if is_observed { "the rows with overlap" } else { "all rows" },
        100.0 * evaluation.level
    );
    let more = |own: [String; 3]| own.into_iter().filter(|_| is_observed);
    let mut table =
        Table::new(["outcome", "policy", "treated", "effect", "se", "interval", "band", "q", "predicted"])
            .with(more(["overlap", "effective", "vanishes at"].map(String::from)))
            .left(2);
    for own in &whole {
        let cells = [
            own.outcome.clone(),
            shortened_beside(&own.policy, &own.against),
            count(own.n_treated as u64),
            optional(own.effect),
            optional(own.se),
            ends(own.interval),
            ends(own.band),
            chance(own.q_value),
            predicted(own),
        ];
        table.row_with(cells, more(overlap(own)));
    }
    text.push_str(&table.to_string());
    if is_observed {
        text.push_str(
            "overlap: rows that had a real chance of both policies; effective: the policy's effective sample size after \
             weighting;\nvanishes at: how many times something unobserved would have to change the odds of getting the \
             policy for the interval to hold zero.\n",
        );
    }
    if !grouped.is_empty() {
        let mut table = Table::new([
            "by", "group", "outcome", "policy", "rows", "treated", "effect", "se", "interval", "band", "q",
        ])
        .left(4);
        for own in &grouped {
            table.row([
                by(own),
                shortened(own.group.as_deref().unwrap_or_default()),
                own.outcome.clone(),
                shortened_beside(&own.policy, &own.against),
                count(own.rows as u64),
                count(own.n_treated as u64),
                optional(own.effect),
                optional(own.se),
                ends(own.interval),
                ends(own.band),
                chance(own.q_value),
            ]);
        }
        text.push('\n');
        text.push_str(&table.to_string());
    }
    text + &notes(&[whole, grouped].concat())
}

/// The share of rows with overlap, the effective rows, and the factor at which the effect vanishes.
fn overlap(own: &AverageEffect) -> [String; 3] {
    let dash = || "–".to_owned();
    [
        own.share_without_overlap.map_or_else(dash, |share| format!("{:.0} %", 100.0 * (1.0 - share))),
        own.effective_rows.map_or_else(dash, |rows| count(rows.round() as u64)),
        own.hidden.as_ref().map_or_else(dash, |hidden| format!("{:.2}", hidden.vanishes_at)),
    ]
}

fn ends(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
    )
}

/// The mean prediction, with the interval of the model's own average where it has one, and whether it is off.
fn predicted(own: &AverageEffect) -> String {
    let mut text = optional(own.predicted);
    if own.predicted_interval.is_some() {
        text += &format!(" ({})", ends(own.predicted_interval));
    }
    if own.outside_band {
        text += ", outside the observed band";
    }
    text
}

fn chance(q_value: Option<f64>) -> String {
    match q_value {
        None => "–".to_owned(),
        Some(q) if q < 0.001 => "< 0.001".to_owned(),
        Some(q) => format!("{q:.3}"),
    }
}

/// Each note once, with how many averages it is about.
fn notes(averages: &[&AverageEffect]) -> String {
    const SHOWN: usize = 3;
    let mut about: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for own in averages {
        let group = own.group.as_ref().map(|group| format!(" in {group}")).unwrap_or_default();
        for note in &own.notes {
            about.entry(note).or_default().push(format!("{} of {}{group}", own.outcome, own.policy));
        }
    }
    note_lines(&about, SHOWN)
}
